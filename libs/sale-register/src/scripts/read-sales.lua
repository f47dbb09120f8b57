#!lua flags=no-writes
-- Purpose: reads sales, each at one instant.
-- KEYS: for each voucher: sale, stock, marks. ARGV: none.
-- Reply: for each voucher an array: beginMs, endMs, status, units, unitsVersion, version, stock (false where missing), number of marks, and the
--   error of the first key that is of another type (false where none is).

local reply = {}
for at = 1, #KEYS, 3 do
  local terms = redis.pcall('HMGET', KEYS[at], 'beginMs', 'endMs', 'status', 'units', 'unitsVersion', 'version')
  local stock = redis.pcall('GET', KEYS[at + 1])
  local marks = redis.pcall('HLEN', KEYS[at + 2])
  local cause = terms.err or (type(stock) == 'table' and stock.err) or (type(marks) == 'table' and marks.err) or false
  if terms.err then
    terms = { false, false, false, false, false, false }
  end
  terms[7] = type(stock) == 'string' and stock
  terms[8] = type(marks) == 'number' and marks or 0
  terms[9] = cause
  reply[#reply + 1] = terms
end
return reply
