#!lua
-- Purpose: repair: puts the id of the buyer's active order into his mark in place of one that is known to be on no way any more.
-- KEYS: 1 epoch, 2 sale, 3 marks.
-- ARGV: 1 the epoch expected, 2 user id, 3 order id expected in the mark, 4 order id.
-- Reply: {word, ...}: LOST (the epoch is another), CHANGED order id (the mark holds another; empty where there is none), REMARKED.

--@include include-epoch.lua
--@include include-sale.lua
if not epoch_holds(KEYS[1], ARGV[1]) then
  return { 'LOST' }
end
local held = redis.call('HGET', KEYS[3], ARGV[2])
if held ~= ARGV[3] then
  return { 'CHANGED', held or '' }
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  raise_version(KEYS[2])
end
redis.call('HSET', KEYS[3], ARGV[2], ARGV[4])
return { 'REMARKED' }
