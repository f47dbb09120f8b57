#!lua
-- Purpose: opens the partition: the epoch becomes the server's history. Compare-and-set.
-- KEYS: 1 epoch; then for each voucher that must be complete: sale, stock.
-- ARGV: 1 the value of this rebuild (reconciling:<token>:<history>); then the voucher ids.
-- Reply: {word, ...} in this precedence: LOST (another value stands, or the server's history is another), INCOMPLETE voucher ids (a key is
--   missing or the sale is not open), OPENED value.

--@include include-epoch.lua
local history = server_history()
local expected = ARGV[1]
if not history or epoch_value(KEYS[1]) ~= expected or string.match(expected, '^reconciling:[^:]+:(%x+)$') ~= history then
  return { 'LOST' }
end
local reply = { 'INCOMPLETE' }
for at = 2, #KEYS, 2 do
  if redis.pcall('HGET', KEYS[at], 'status') ~= 'open' or redis.call('EXISTS', KEYS[at + 1]) == 0 then
    reply[#reply + 1] = ARGV[at / 2 + 1]
  end
end
if #reply > 1 then
  return reply
end
redis.call('SET', KEYS[1], history)
return { 'OPENED', history }
