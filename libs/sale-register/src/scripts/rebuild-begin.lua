#!lua
-- Purpose: takes one sale into rebuilding: its status becomes reconciling:<token>, so that nothing is admitted. Marks that are there stay:
--   a mark is the accepted order itself. A key of another type is dropped: it can hold nothing of ours.
-- KEYS: 1 epoch, 2 sale, 3 stock, 4 marks.
-- ARGV: 1 the epoch expected, 2 token.
-- Reply, a word: LOST (the epoch is another), BEGUN.

--@include include-epoch.lua
--@include include-sale.lua
if not epoch_holds(KEYS[1], ARGV[1]) then
  return 'LOST'
end
local function keep_only(key, wanted)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= wanted then
    redis.call('DEL', key)
  end
end
keep_only(KEYS[2], 'hash')
keep_only(KEYS[3], 'string')
keep_only(KEYS[4], 'hash')
redis.call('HSET', KEYS[2], 'status', 'reconciling:' .. ARGV[2])
raise_version(KEYS[2])
return 'BEGUN'
