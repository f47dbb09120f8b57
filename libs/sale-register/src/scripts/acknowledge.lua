#!lua flags=allow-oom
-- Purpose: acknowledges finished entries, and removes from the stream what every group has finished. The bound is read and used in one
--   call: read in a separate one it would delete work that was handed out in between.
-- KEYS: 1 stream.
-- ARGV: 1 group; then entry ids (none: only removes).
-- Reply: {number acknowledged, number removed}.
-- Bound: the smallest, over all groups, of the oldest pending id, or of what follows the last delivered id where nothing is pending.

local stream = KEYS[1]
local acknowledged = 0
if #ARGV > 1 then
  acknowledged = redis.call('XACK', stream, unpack(ARGV))
end
local groups = redis.pcall('XINFO', 'GROUPS', stream)
if groups.err or #groups == 0 then
  return { acknowledged, 0 }
end

-- Parts of an id are decimals of up to 64 bits: compared as strings, because numbers here hold 53.
local function less(a, b)
  if #a ~= #b then
    return #a < #b
  end
  return a < b
end

local bound_ms, bound_seq
for _, group in ipairs(groups) do
  local fact = {}
  for at = 1, #group, 2 do
    fact[group[at]] = group[at + 1]
  end
  local ms, seq
  if fact.pending > 0 then
    ms, seq = string.match(redis.call('XPENDING', stream, fact.name)[2], '^(%d+)-(%d+)$')
  else
    ms, seq = string.match(fact['last-delivered-id'], '^(%d+)-(%d+)$')
    -- Beyond 15 digits the sum would be rounded: then the last delivered entry itself stays.
    if #seq <= 15 then
      seq = string.format('%.0f', tonumber(seq) + 1)
    end
  end
  if not bound_ms or less(ms, bound_ms) or (ms == bound_ms and less(seq, bound_seq)) then
    bound_ms, bound_seq = ms, seq
  end
end
return { acknowledged, redis.call('XTRIM', stream, 'MINID', '=', bound_ms .. '-' .. bound_seq) }
