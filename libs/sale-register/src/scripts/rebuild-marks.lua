#!lua
-- Purpose: writes marks into a sale that is being rebuilt, each only where the buyer's mark is still the one the reader saw.
-- KEYS: 1 epoch, 2 sale, 3 marks.
-- ARGV: 1 the epoch expected, 2 token, 3 n (at most 1,000); then n user ids, n order ids expected (empty: no mark), n order ids.
-- Reply: {LOST} (epoch or the sale's token is another), or {WRITTEN, number written, user ids whose mark was another and stays}.

--@include include-epoch.lua
if not epoch_holds(KEYS[1], ARGV[1]) or redis.call('HGET', KEYS[2], 'status') ~= 'reconciling:' .. ARGV[2] then
  return { 'LOST' }
end
local n = tonumber(ARGV[3])
local held = redis.call('HMGET', KEYS[3], unpack(ARGV, 4, n + 3))
local pairs_to_set, reply = {}, { 'WRITTEN', 0 }
for i = 1, n do
  local user, expected, order = ARGV[3 + i], ARGV[3 + n + i], ARGV[3 + 2 * n + i]
  local now = held[i] or ''
  if now == expected then
    pairs_to_set[#pairs_to_set + 1] = user
    pairs_to_set[#pairs_to_set + 1] = order
  elseif now ~= order then
    reply[#reply + 1] = user
  end
end
if #pairs_to_set > 0 then
  redis.call('HSET', KEYS[3], unpack(pairs_to_set))
end
reply[2] = #pairs_to_set / 2
return reply
