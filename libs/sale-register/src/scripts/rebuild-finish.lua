#!lua
-- Purpose: ends the rebuilding of one sale: stock = units - marks, counted here; terms written; status open. Where the register knows a higher
--   unitsVersion than the caller read, its own units stay (a restock came between).
-- KEYS: 1 epoch, 2 sale, 3 stock, 4 marks.
-- ARGV: 1 the epoch expected, 2 token, 3 beginMs, 4 endMs, 5 units, 6 unitsVersion.
-- Reply: {LOST} (epoch or the sale's token is another), or {FINISHED, unitsLeft, number of marks, units, unitsVersion}.

--@include include-epoch.lua
--@include include-sale.lua
if not epoch_holds(KEYS[1], ARGV[1]) or redis.call('HGET', KEYS[2], 'status') ~= 'reconciling:' .. ARGV[2] then
  return { 'LOST' }
end
local units, version = ARGV[5], ARGV[6]
local own = redis.call('HMGET', KEYS[2], 'units', 'unitsVersion')
local own_units, own_version = whole(own[1]), whole(own[2])
if own_units and own_version and own_version > tonumber(version) then
  units, version = own[1], own[2]
end
local marks = redis.call('HLEN', KEYS[4])
local left = decimal(tonumber(units) - marks)
redis.call('SET', KEYS[3], left)
raise_version(KEYS[2])
-- Last, so that a refused write before it leaves the sale closed.
redis.call('HSET', KEYS[2], 'beginMs', ARGV[3], 'endMs', ARGV[4], 'units', units, 'unitsVersion', version, 'status', 'open')
return { 'FINISHED', left, marks, units, version }
