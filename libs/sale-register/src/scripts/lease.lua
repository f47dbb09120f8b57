#!lua
-- Purpose: leases a block of a day's sequence numbers. A counter that is missing, or no number, starts at a random place: after a loss of
--   data no number of before comes again by counting.
-- KEYS: 1 counter.
-- ARGV: 1 size of the block, 2 where a missing counter starts, 3 life of the counter in seconds.
-- Reply: the last number of the block; it is above the ones before it (the caller wraps).

local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'string' or not string.find(value, '^%d+$') or #value > 15 then
  redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
end
return redis.call('INCRBY', KEYS[1], ARGV[1])
