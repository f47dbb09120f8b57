#!lua
-- Purpose: closes the partition for a reconciler: the epoch becomes reconciling:<token>:<history>. Compare-and-set.
-- KEYS: 1 epoch.
-- ARGV: 1 the value expected now (empty: missing or no string), 2 token.
-- Reply: {word, ...}: NO_RIGHT, NO_HISTORY; CHANGED value (empty where missing); BEGUN value.

--@include include-epoch.lua
local history, why = server_history()
if not history then
  return { why }
end
local value = epoch_value(KEYS[1]) or ''
if value ~= ARGV[1] then
  return { 'CHANGED', value }
end
local begun = 'reconciling:' .. ARGV[2] .. ':' .. history
redis.call('SET', KEYS[1], begun)
return { 'BEGUN', begun }
