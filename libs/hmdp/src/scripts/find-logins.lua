#!lua
-- Purpose: who the tokens of one tick belong to; each login that was found lives on for its whole life. A life that is whole but for the
--   slack stays as it is: the crowd of a rush would else write to the append-only file once more for each purchase.
-- KEYS: one per token.
-- ARGV: 1 life in seconds, 2 slack in seconds.
-- Reply: per key the user id as it stands there; false (nil) where there is no login, or something that is none.

local life = tonumber(ARGV[1])
local least = life - tonumber(ARGV[2])
local users = {}
for index = 1, #KEYS do
  local user = redis.pcall('HGET', KEYS[index], 'id')
  if type(user) == 'string' then
    users[index] = user
    local left = redis.call('TTL', KEYS[index])
    if left < least or left > life then
      redis.call('EXPIRE', KEYS[index], life)
    end
  else
    users[index] = false
  end
end
return users
