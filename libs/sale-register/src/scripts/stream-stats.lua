#!lua flags=no-writes
-- Purpose: the state of one partition's stream, at one instant.
-- KEYS: 1 stream, 2 dead letters. ARGV: 1 group.
-- Reply: {1 group exists or 0, length, lag or false, pending, oldest pending id or false, oldest undelivered id or false, time in
--   Unix milliseconds, dead letters, consumers flat (name, pending, idle ms), foreign groups flat (name, lag or false, pending)}.
--   A key that is missing or no stream counts as nothing.

local stream = KEYS[1]
local function number_of(reply)
  return type(reply) == 'number' and reply or 0
end
local function facts(flat)
  local found = {}
  for at = 1, #flat, 2 do
    found[flat[at]] = flat[at + 1]
  end
  return found
end

local time = redis.call('TIME')
local reply = { 0, number_of(redis.pcall('XLEN', stream)), 0, 0, false, false, time[1] * 1000 + math.floor(time[2] / 1000),
  number_of(redis.pcall('XLEN', KEYS[2])), {}, {} }
local groups = redis.pcall('XINFO', 'GROUPS', stream)
if groups.err then
  return reply
end
for _, flat in ipairs(groups) do
  local group = facts(flat)
  if group.name ~= ARGV[1] then
    local foreign = reply[10]
    foreign[#foreign + 1] = group.name
    foreign[#foreign + 1] = group.lag or false
    foreign[#foreign + 1] = group.pending
  else
    reply[1], reply[3], reply[4] = 1, group.lag or false, group.pending
    if group.pending > 0 then
      reply[5] = redis.call('XPENDING', stream, group.name)[2]
    end
    local next_entries = redis.call('XRANGE', stream, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)
    reply[6] = next_entries[1] and next_entries[1][1] or false
    for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', stream, group.name)) do
      local fact, list = facts(consumer), reply[9]
      list[#list + 1] = fact.name
      list[#list + 1] = fact.pending
      list[#list + 1] = fact.idle
    end
  end
end
if reply[1] == 0 and reply[2] > 0 then
  -- No group yet: everything waits.
  reply[3] = reply[2]
  reply[6] = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1][1]
end
return reply
