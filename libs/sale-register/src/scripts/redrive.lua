#!lua
-- Purpose: tries a dead letter's order once more: appends its entry and removes the letter, only while the mark holds the order.
-- KEYS: 1 stream, 2 dead letters, 3 marks.
-- ARGV: 1 id of the letter, 2 user id, 3 voucher id, 4 order id.
-- Reply: {word, ...} in this precedence: GONE (no such letter), NOT_HELD (the mark does not hold the order; nothing changed), REDRIVEN entry id.

if #redis.call('XRANGE', KEYS[2], ARGV[1], ARGV[1]) == 0 then
  return { 'GONE' }
end
if redis.call('HGET', KEYS[3], ARGV[2]) ~= ARGV[4] then
  return { 'NOT_HELD' }
end
local entry = redis.call('XADD', KEYS[1], '*', 'userId', ARGV[2], 'voucherId', ARGV[3], 'id', ARGV[4])
local removed = redis.pcall('XDEL', KEYS[2], ARGV[1])
if type(removed) ~= 'number' then
  redis.call('XDEL', KEYS[1], entry)
  return removed
end
return { 'REDRIVEN', entry }
