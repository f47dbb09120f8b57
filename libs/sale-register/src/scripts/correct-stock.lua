#!lua
-- Purpose: repair: moves the stock by the difference units - marks - stock, if that is still the difference the reader saw. Purchases and
--   releases leave it as it is, so this is safe during traffic.
-- KEYS: 1 epoch, 2 sale, 3 stock, 4 marks.
-- ARGV: 1 the epoch expected, 2 the difference expected (not 0).
-- Reply: {word, ...}: LOST (the epoch is another, or the sale is being rebuilt), NOT_PUBLISHED (no sale, or no numbers), CHANGED difference,
--   CORRECTED before after.

--@include include-epoch.lua
--@include include-sale.lua
if not epoch_holds(KEYS[1], ARGV[1]) then
  return { 'LOST' }
end
local terms = redis.call('HMGET', KEYS[2], 'status', 'units')
if terms[1] and terms[1] ~= 'open' then
  return { 'LOST' }
end
local units, stock = whole(terms[2]), whole(redis.pcall('GET', KEYS[3]))
if not (terms[1] and units and stock) then
  return { 'NOT_PUBLISHED' }
end
local difference = units - redis.call('HLEN', KEYS[4]) - stock
if difference ~= tonumber(ARGV[2]) or difference == 0 then
  return { 'CHANGED', decimal(difference) }
end
raise_version(KEYS[2])
local after = redis.call('INCRBY', KEYS[3], decimal(difference))
return { 'CORRECTED', decimal(stock), decimal(after) }
