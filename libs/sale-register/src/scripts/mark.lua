#!lua
-- Purpose: repair: marks the buyer of an active order that Redis lost, and takes its unit; the stock may go below 0.
-- KEYS: 1 epoch, 2 sale, 3 stock, 4 marks.
-- ARGV: 1 the epoch expected, 2 user id, 3 order id.
-- Reply: {word, ...}: LOST (the epoch is another), NOT_PUBLISHED (no sale, or no stock that is a number), HELD order id (a mark is there),
--   MARKED unitsLeft.

--@include include-epoch.lua
--@include include-sale.lua
if not epoch_holds(KEYS[1], ARGV[1]) then
  return { 'LOST' }
end
if redis.call('EXISTS', KEYS[2]) == 0 or not whole(redis.pcall('GET', KEYS[3])) then
  return { 'NOT_PUBLISHED' }
end
local held = redis.call('HGET', KEYS[4], ARGV[2])
if held then
  return { 'HELD', held }
end
raise_version(KEYS[2])
redis.call('HSET', KEYS[4], ARGV[2], ARGV[3])
local left = redis.pcall('DECRBY', KEYS[3], 1)
if is_error(left) then
  redis.pcall('HDEL', KEYS[4], ARGV[2])
  return left
end
return { 'MARKED', decimal(left) }
