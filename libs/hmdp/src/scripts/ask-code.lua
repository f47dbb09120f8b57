#!lua
-- Purpose: keeps a new login code for a phone, unless the phone asked too often. A new code takes the place of the one before and may be
--   tried anew.
-- KEYS: 1 code, 2 tries, 3 asks (of one phone; one slot).
-- ARGV: 1 the code, 2 its life in seconds, 3 most codes in a window, 4 the window in seconds.
-- Reply: 1 kept, 0 asked too often (nothing changed).

local asks = tonumber(redis.call('GET', KEYS[3]) or '0')
if asks >= tonumber(ARGV[3]) then
  return 0
end
redis.call('INCR', KEYS[3])
if asks == 0 then
  redis.call('EXPIRE', KEYS[3], ARGV[4])
end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
redis.call('DEL', KEYS[2])
return 1
