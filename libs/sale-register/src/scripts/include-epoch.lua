#!lua
-- Purpose: what a script must know of the partition's epoch. Included by other scripts; no script by itself. KEYS, ARGV: none of its own. Reply: none.

-- The server's data history (master_replid): changes at restart, promotion and failback. nil and NO_RIGHT or NO_HISTORY where it cannot be told.
local function server_history()
  local info = redis.pcall('INFO', 'replication')
  if type(info) ~= 'string' then
    return nil, 'NO_RIGHT'
  end
  local history = string.match(info, 'master_replid:(%x+)')
  if not history then
    return nil, 'NO_HISTORY'
  end
  return history
end

-- The value of the epoch key; nil where it is missing or no string.
local function epoch_value(key)
  local value = redis.pcall('GET', key)
  if type(value) == 'string' then
    return value
  end
  return nil
end

-- True while the partition may admit.
local function epoch_open(key)
  local history = server_history()
  return history ~= nil and epoch_value(key) == history
end

-- True while the epoch holds exactly `expected` (a history, or reconciling:<token>:<history>) and that history is the server's.
local function epoch_holds(key, expected)
  if epoch_value(key) ~= expected then
    return false
  end
  local history = server_history()
  return history ~= nil and string.sub(expected, -string.len(history)) == history
end
