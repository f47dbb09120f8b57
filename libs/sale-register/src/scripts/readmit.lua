#!lua
-- Purpose: takes an order back into the register that was accepted before a loss of data and is held by a consumer only: same id; mark and
--   unit taken if free, entry appended. The sale's window does not matter: the order was accepted in time.
-- KEYS: 1 epoch, 2 stream, 3 sale, 4 stock, 5 marks.
-- ARGV: 1 user id, 2 voucher id, 3 order id.
-- Reply: {word, ...} in this precedence: CLOSED (the epoch is not open, the sale is being rebuilt or inconsistent: ask again later),
--   NOT_PUBLISHED, HELD order id (the mark holds another order), NO_UNITS, READMITTED entry id.

--@include include-epoch.lua
--@include include-sale.lua
if not epoch_open(KEYS[1]) then
  return { 'CLOSED' }
end
local terms = redis.pcall('HMGET', KEYS[3], 'status', 'units')
local stock = redis.pcall('GET', KEYS[4])
local held = redis.pcall('HGET', KEYS[5], ARGV[1])
for _, reply in ipairs({ terms, stock or '', held or '' }) do
  if is_error(reply) then
    return is_other_type(reply) and { 'CLOSED' } or reply
  end
end
if terms[1] and terms[1] ~= 'open' then
  return { 'CLOSED' }
end
if not terms[1] or not stock then
  return { 'NOT_PUBLISHED' }
end
local units, left = whole(terms[2]), whole(stock)
if not (units and left) or left + redis.call('HLEN', KEYS[5]) ~= units then
  return { 'CLOSED' }
end
if held and held ~= ARGV[3] then
  return { 'HELD', held }
end
if not held and left <= 0 then
  return { 'NO_UNITS' }
end
local entry = redis.call('XADD', KEYS[2], '*', 'userId', ARGV[1], 'voucherId', ARGV[2], 'id', ARGV[3])
if held then
  return { 'READMITTED', entry }
end
local marked = redis.pcall('HSET', KEYS[5], ARGV[1], ARGV[3])
local cut = is_error(marked) and marked or redis.pcall('DECRBY', KEYS[4], 1)
if is_error(cut) then
  if not is_error(marked) then
    redis.pcall('HDEL', KEYS[5], ARGV[1])
  end
  redis.pcall('XDEL', KEYS[2], entry)
  return cut
end
raise_version(KEYS[3])
return { 'READMITTED', entry }
