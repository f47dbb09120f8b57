#!lua
-- Purpose: opens a login: what hmdp's clients and load plans expect under a token.
-- KEYS: 1 token.
-- ARGV: 1 life in seconds, 2 user id, 3 nick name, 4 icon.
-- Reply: 1.

redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'id', ARGV[2], 'nickName', ARGV[3], 'icon', ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[1])
return 1
