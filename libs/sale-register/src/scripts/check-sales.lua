#!lua
-- Purpose: one look at what refusals rest on: epoch, time and sales, all of one instant. A process may remember refusals only after such a look.
--   Writes nothing, yet has no flag that says so: a server that refuses admit (read-only, full, not saving) must refuse this look too.
-- KEYS: 1 epoch; then for each voucher: sale, stock, marks. ARGV: none.
-- Reply: {history, nowMs, then for each voucher an array or false}. history: the server's data history where the partition is open, else false
--   (then nothing may be remembered, and no voucher follows). The array: beginMs, endMs, units left, number of marks, version. false: the sale is not
--   there, not open or not consistent, so admit would not refuse by its terms.
-- Precedence: none; the terms are judged by the caller, by admit's own rules.

--@include include-epoch.lua
--@include include-sale.lua
local history = server_history()
if not history or epoch_value(KEYS[1]) ~= history then
  return { false }
end
local now = redis.call('TIME')
local reply = { history, decimal(now[1] * 1000 + math.floor(now[2] / 1000)) }
for at = 2, #KEYS, 3 do
  local terms = redis.pcall('HMGET', KEYS[at], 'beginMs', 'endMs', 'status', 'units', 'version')
  local stock = whole(redis.pcall('GET', KEYS[at + 1]))
  local marks = redis.pcall('HLEN', KEYS[at + 2])
  local found = false
  if not is_error(terms) and terms[3] == 'open' and stock and type(marks) == 'number' then
    local begins, ends, units, version = whole(terms[1]), whole(terms[2]), whole(terms[4]), whole(terms[5])
    if begins and ends and units and version and stock + marks == units then
      found = { terms[1], terms[2], decimal(stock), marks, terms[5] }
    end
  end
  reply[#reply + 1] = found
end
return reply
