#!lua
-- Purpose: repair: appends the entry of a marked order again, because neither entry, dead letter nor row of it was found.
-- KEYS: 1 epoch, 2 stream, 3 marks.
-- ARGV: 1 the epoch expected, 2 user id, 3 voucher id, 4 order id.
-- Reply: {word, ...}: LOST (the epoch is another), NOT_HELD (the mark no longer holds this order), APPENDED entry id.

--@include include-epoch.lua
if not epoch_holds(KEYS[1], ARGV[1]) then
  return { 'LOST' }
end
if redis.call('HGET', KEYS[3], ARGV[2]) ~= ARGV[4] then
  return { 'NOT_HELD' }
end
return { 'APPENDED', redis.call('XADD', KEYS[2], '*', 'userId', ARGV[2], 'voucherId', ARGV[3], 'id', ARGV[4]) }
