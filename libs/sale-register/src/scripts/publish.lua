#!lua
-- Purpose: puts a voucher on sale for the first time. Never touches a sale that is there.
-- KEYS: 1 epoch, 2 sale, 3 stock, 4 marks.
-- ARGV: 1 beginMs, 2 endMs (Unix milliseconds), 3 units, 4 unitsVersion.
-- Reply, a word, in this precedence: CLOSED (the epoch is not open, or the sale is being rebuilt), EXISTS (on sale already),
--   NEEDS_REBUILD (some keys of the voucher are there, others not), PUBLISHED.

--@include include-epoch.lua
--@include include-sale.lua
if not epoch_open(KEYS[1]) then
  return 'CLOSED'
end
local status = redis.pcall('HGET', KEYS[2], 'status')
if is_error(status) then
  return 'NEEDS_REBUILD'
end
if status and status ~= 'open' then
  return 'CLOSED'
end
local present = redis.call('EXISTS', KEYS[2], KEYS[3], KEYS[4])
if status and redis.call('EXISTS', KEYS[3]) == 1 then
  return 'EXISTS'
end
if present > 0 then
  return 'NEEDS_REBUILD'
end
redis.call('SET', KEYS[3], ARGV[3])
local now = redis.call('TIME')
local version = decimal(now[1] * 1000 + math.floor(now[2] / 1000))
local written = redis.pcall('HSET', KEYS[2], 'beginMs', ARGV[1], 'endMs', ARGV[2], 'status', 'open', 'units', ARGV[3],
  'unitsVersion', ARGV[4], 'version', version)
if is_error(written) then
  redis.pcall('DEL', KEYS[3])
  return written
end
return 'PUBLISHED'
