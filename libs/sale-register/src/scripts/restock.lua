#!lua
-- Purpose: brings the units offered to a stated number under a higher version: relative in effect (stock moves by the difference), absolute
--   in form, so that repeats and reordered calls are harmless.
-- KEYS: 1 epoch, 2 sale, 3 stock.
-- ARGV: 1 units, 2 unitsVersion.
-- Reply: {word, ...} in this precedence: NOT_PUBLISHED; CLOSED (the sale is being rebuilt or holds no numbers or another type); ALREADY unitsLeft (these units
--   stand under this or a higher version); CONFLICT units unitsVersion (this or a higher version stands with other units); for decreases only
--   CLOSED (the epoch is not open) and INSUFFICIENT_UNITS unitsLeft (fewer are free); APPLIED unitsLeft.

--@include include-epoch.lua
--@include include-sale.lua
local terms = redis.pcall('HMGET', KEYS[2], 'status', 'units', 'unitsVersion')
local stock = redis.pcall('GET', KEYS[3])
if is_other_type(terms) or is_other_type(stock) then
  return { 'CLOSED' }
end
if is_error(terms) or is_error(stock) then
  return is_error(terms) and terms or stock
end
if terms[1] and terms[1] ~= 'open' then
  return { 'CLOSED' }
end
if not terms[1] or not stock then
  return { 'NOT_PUBLISHED' }
end
local left, old, version = whole(stock), whole(terms[2]), whole(terms[3])
if not (left and old and version) then
  return { 'CLOSED' }
end
local units, new_version = tonumber(ARGV[1]), tonumber(ARGV[2])
if new_version <= version then
  if units == old then
    return { 'ALREADY', decimal(left) }
  end
  return { 'CONFLICT', decimal(old), decimal(version) }
end
local change = units - old
if change < 0 then
  if not epoch_open(KEYS[1]) then
    return { 'CLOSED' }
  end
  if left + change < 0 then
    return { 'INSUFFICIENT_UNITS', decimal(left) }
  end
end
raise_version(KEYS[2])
redis.call('HSET', KEYS[2], 'units', ARGV[1], 'unitsVersion', ARGV[2])
local after = redis.pcall('INCRBY', KEYS[3], decimal(change))
if is_error(after) then
  redis.pcall('HSET', KEYS[2], 'units', terms[2], 'unitsVersion', terms[3])
  return after
end
return { 'APPLIED', decimal(after) }
