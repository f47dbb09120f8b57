#!lua
-- Purpose: counts a try of a phone's login code and gives the code for comparison. The try after the last one allowed voids the code, so
--   that guesses at the same time are counted one by one. Without a code nothing is counted: strangers make no keys.
-- KEYS: 1 code, 2 tries (of one phone; one slot).
-- ARGV: 1 most tries of one code, 2 life of the count in seconds.
-- Reply: the code; nil where there is none, or none any more.

local code = redis.call('GET', KEYS[1])
if not code then
  return false
end
local tries = redis.call('INCR', KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[2])
if tries > tonumber(ARGV[1]) then
  redis.call('DEL', KEYS[1], KEYS[2])
  return false
end
return code
