#!lua
-- Purpose: settles a mark whose order is, by a durable record, rejected or cancelled: gives mark and unit back, or, where the buyer has
--   another active order, puts that order's id into the mark. Only while the mark holds this very order: idempotent for ever.
--   Creates no key. Not bound to the epoch.
-- KEYS: 1 sale, 2 stock, 3 marks.
-- ARGV: 1 user id, 2 order id, 3 id of the buyer's other order, or the empty string.
-- Reply, a word: NOT_HELD (nothing changed), REASSIGNED, RELEASED.
-- A stock that is missing or no number is left alone: the sale is unavailable then, and its rebuild counts anew.

--@include include-sale.lua
local held = redis.pcall('HGET', KEYS[3], ARGV[1])
if is_error(held) and not is_other_type(held) then
  return held
end
if held ~= ARGV[2] then
  return 'NOT_HELD'
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  raise_version(KEYS[1])
end
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
  return 'REASSIGNED'
end
redis.call('HDEL', KEYS[3], ARGV[1])
if whole(redis.pcall('GET', KEYS[2])) then
  local given = redis.pcall('INCRBY', KEYS[2], 1)
  if is_error(given) then
    redis.pcall('HSET', KEYS[3], ARGV[1], ARGV[2])
    return given
  end
end
return 'RELEASED'
