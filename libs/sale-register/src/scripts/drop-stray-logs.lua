#!lua
-- Purpose: repair: drops a stream or a list of dead letters that another hand replaced by a key of another type: it can hold nothing of ours, and
--   nothing is admitted, stored or set aside while it stands there.
-- KEYS: 1 epoch, 2 stream, 3 dead letters.
-- ARGV: 1 the epoch expected.
-- Reply: {word, ...}: LOST (the epoch is another), or DROPPED with the number of keys dropped.

--@include include-epoch.lua
if not epoch_holds(KEYS[1], ARGV[1]) then
  return { 'LOST' }
end
local dropped = 0
for at = 2, 3 do
  local found = redis.call('TYPE', KEYS[at]).ok
  if found ~= 'none' and found ~= 'stream' then
    dropped = dropped + redis.call('DEL', KEYS[at])
  end
end
return { 'DROPPED', dropped }
