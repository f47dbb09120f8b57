#!lua
-- Purpose: small tools for scripts that change a sale. Included by other scripts; no script by itself. KEYS, ARGV: none of its own. Reply: none.

local function is_error(reply)
  return type(reply) == 'table' and reply.err ~= nil
end

-- True where the reply says that a key holds another type: then it holds nothing of ours.
local function is_other_type(reply)
  return is_error(reply) and string.find(reply.err, 'WRONGTYPE', 1, true) ~= nil
end

-- The number that the reply of a read spells, or nil: other types, blanks, exponents and hexadecimal are no whole numbers.
local function whole(reply)
  if type(reply) == 'string' and string.find(reply, '^%-?%d+$') then
    return tonumber(reply)
  end
  return nil
end

local function decimal(number)
  return string.format('%.0f', number)
end

-- Raises the sale's version, and says so on the channel of the sale's name: whoever remembers refusals forgets them. One that is missing starts at
-- the time, so that no earlier version comes again. A user without the right to the channel only makes others forget later.
local function raise_version(sale)
  if whole(redis.call('HGET', sale, 'version')) then
    redis.call('HINCRBY', sale, 'version', 1)
  else
    local now = redis.call('TIME')
    redis.call('HSET', sale, 'version', decimal(now[1] * 1000 + math.floor(now[2] / 1000)))
  end
  redis.pcall('PUBLISH', sale, '')
end
