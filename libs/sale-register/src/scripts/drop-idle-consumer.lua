#!lua flags=allow-oom
-- Purpose: removes a consumer name that was silent for long and owns no pending entry. Looking and removing are one call: between two calls the
--   consumer could be handed entries, and removing its name would throw them away.
-- KEYS: 1 stream.
-- ARGV: 1 group, 2 consumer, 3 least idle time in milliseconds.
-- Reply, a word, in this precedence: UNKNOWN (no such stream, group or consumer), KEPT (it owns entries, or was active since), DROPPED.

local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if consumers.err then
  -- A missing stream or group has nothing to remove; other errors (rights, another type) are the caller's to hear.
  if string.find(consumers.err, 'no such key', 1, true) or string.find(consumers.err, 'NOGROUP', 1, true) then
    return 'UNKNOWN'
  end
  return consumers
end
for _, consumer in ipairs(consumers) do
  local fact = {}
  for at = 1, #consumer, 2 do
    fact[consumer[at]] = consumer[at + 1]
  end
  if fact.name == ARGV[2] then
    if fact.pending > 0 or fact.idle < tonumber(ARGV[3]) then
      return 'KEPT'
    end
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
    return 'DROPPED'
  end
end
return 'UNKNOWN'
