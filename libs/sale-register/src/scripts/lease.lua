#!lua
-- Purpose: leases a block of a day's sequence numbers. A counter that is missing, is no number, or counts for another data history of the server
--   (restart, promotion, an older copy) starts at a random place: after a loss of data no number of before comes again by counting, also where
--   the counter itself came back older.
-- KEYS: 1 counter. It holds (first 16 bits of master_replid) * 2^32 + number.
-- ARGV: 1 size of the block, 2 where a new counter starts (below 2^32), 3 life of the counter in seconds.
-- Reply: the last number of the block; it is above the ones before it (the caller takes it modulo 2^32).

local SPAN = 4294967296
local info = redis.pcall('INFO', 'replication')
local tag = tonumber(type(info) == 'string' and string.match(info, 'master_replid:(%x%x%x%x)') or '0', 16)
local value = redis.pcall('GET', KEYS[1])
local number = type(value) == 'string' and string.find(value, '^%d+$') and #value <= 15 and tonumber(value)
if not number or math.floor(number / SPAN) ~= tag then
  redis.call('SET', KEYS[1], string.format('%.0f', tag * SPAN + tonumber(ARGV[2])), 'EX', ARGV[3])
end
return redis.call('INCRBY', KEYS[1], ARGV[1])
