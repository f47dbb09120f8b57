#!lua
-- Purpose: decides all purchases of one partition that arrived together, and applies what it accepts: entry, mark and unit, all or nothing.
-- KEYS: 1 epoch, 2 stream; then for each distinct voucher: sale, stock, marks; then backlog where it was counted from outside. Of these only the
--   marks of a voucher that nobody has bought yet do not exist: a key that is declared and missing is TRYAGAIN while its slot moves.
-- ARGV: 1 group, 2 maxBacklog (entries), 3 number of vouchers; then for each voucher: its id, n, n user ids, n order ids.
--   Ids are strings and are never made numbers. Purchases of one voucher keep their order of arrival.
-- Reply, flat: a batch code; after DECIDED, for each voucher in turn: beginMs, endMs (false where unknown), then n outcomes.
-- Batch codes: 0 DECIDED. Nothing of the batch was done: 1 EPOCH, 2 SERVER_STATE (the server refuses INFO, TIME or a read, or has no
--   master_replid), 3 REFUSED_WRITE (a write was refused; the earlier ones of this call are undone), 5 INCONSISTENT (the stream key is no stream).
--   4 UNDO_REFUSED: a write was refused, and the undoing of an earlier one too: nobody knows.
-- Outcomes: 0 ACCEPTED (now, or before under this very order id), 1 NOT_PUBLISHED, 2 NOT_STARTED, 3 ENDED, 4 SOLD_OUT, 5 OVERLOADED,
--   6 EPOCH (the sale is being rebuilt), 7 INCONSISTENT (numbers that are none, or stock + marks <> units), 8 SERVER_STATE (a read is
--   refused); a string: DUPLICATE, the order id that the buyer has.
-- Precedence: EPOCH, NOT_PUBLISHED, INCONSISTENT, NOT_STARTED, DUPLICATE, ENDED, SOLD_OUT, OVERLOADED, ACCEPTED.
-- Time: the server's. A decision sees the earlier ones of its batch. All reads stand before the first write; scripts do not roll back,
-- so every write is a pcall, and a refused one undoes the earlier ones. admit does not raise the sale's version: it never frees a unit.

local call = redis.pcall
local find = string.find
local DECIDED, EPOCH, SERVER_STATE, REFUSED_WRITE, UNDO_REFUSED, INCONSISTENT = 0, 1, 2, 3, 4, 5
local ACCEPTED, NOT_PUBLISHED, NOT_STARTED, ENDED, SOLD_OUT, OVERLOADED = 0, 1, 2, 3, 4, 5
local SALE_EPOCH, SALE_INCONSISTENT, SALE_SERVER_STATE = 6, 7, 8

local stream = KEYS[2]
local vouchers = tonumber(ARGV[3])
local counted_key = KEYS[3 * vouchers + 3]

local info = call('INFO', 'replication')
local history = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
if not history then
  return { SERVER_STATE }
end
if call('GET', KEYS[1]) ~= history then
  return { EPOCH }
end
local time = call('TIME')
if time.err then
  return { SERVER_STATE }
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function trouble(reply)
  return find(reply.err, 'WRONGTYPE', 1, true) and SALE_INCONSISTENT or SALE_SERVER_STATE
end

-- Undelivered and pending entries of the group. Where the server cannot tell (entries were deleted one by one): as counted from outside, else all.
local function exact_backlog(length)
  local groups = call('XINFO', 'GROUPS', stream)
  if not groups.err then
    for _, group in ipairs(groups) do
      local fact = {}
      for at = 1, #group, 2 do
        fact[group[at]] = group[at + 1]
      end
      if fact.name == ARGV[1] then
        if fact.lag then
          return fact.lag + fact.pending, false
        end
        break
      end
    end
  end
  local counted = counted_key and call('GET', counted_key)
  if type(counted) == 'string' and find(counted, '^%d+$') then
    return tonumber(counted), true
  end
  return length, false
end

local length = call('XLEN', stream)
if type(length) ~= 'number' then
  return { trouble(length) == SALE_INCONSISTENT and INCONSISTENT or SERVER_STATE }
end
local room = (#ARGV - 3) / 2 - vouchers
local max_backlog = tonumber(ARGV[2])
local counted_outside = false
if length + room > max_backlog then
  local backlog
  backlog, counted_outside = exact_backlog(length)
  room = max_backlog - backlog
end

-- What holds for every purchase of the voucher, or nil; then beginMs, endMs, units left, number of marks.
local function read_sale(at)
  local terms = call('HMGET', KEYS[at], 'beginMs', 'endMs', 'status', 'units')
  if terms.err then
    return trouble(terms)
  end
  local begins, ends, status, units = terms[1], terms[2], terms[3], terms[4]
  if status and status ~= 'open' then
    return SALE_EPOCH
  end
  local stock = call('GET', KEYS[at + 1])
  if not stock or not (begins or ends or status or units) then
    return NOT_PUBLISHED
  end
  if type(stock) ~= 'string' then
    return trouble(stock)
  end
  local marked = call('HLEN', KEYS[at + 2])
  if type(marked) ~= 'number' then
    return trouble(marked)
  end
  if not (begins and ends and status and units and find(stock, '^%-?%d+$') and find(units, '^%d+$')
    and find(begins, '^%-?%d+$') and find(ends, '^%-?%d+$')) then
    return SALE_INCONSISTENT
  end
  local left = tonumber(stock)
  if left + marked ~= tonumber(units) then
    return SALE_INCONSISTENT
  end
  begins, ends = tonumber(begins), tonumber(ends)
  if now < begins then
    return NOT_STARTED, begins, ends
  end
  return nil, begins, ends, left, marked
end

local reply, size = { DECIDED }, 1
local taken_of = {}
local accepted_any = 0
local at = 4
for voucher = 1, vouchers do
  local n = tonumber(ARGV[at + 1])
  at = at + 2
  local verdict, begins, ends, left, marked = read_sale(3 * voucher)
  local marks = {}
  if not verdict and marked > 0 then
    marks = call('HMGET', KEYS[3 * voucher + 2], unpack(ARGV, at, at + n - 1))
    if marks.err then
      verdict = trouble(marks)
    end
  end
  reply[size + 1], reply[size + 2] = begins or false, ends or false
  size = size + 2
  if verdict then
    for i = 1, n do
      reply[size + i] = verdict
    end
  else
    local buyers, taken, count = {}, {}, 0
    local over = now >= ends
    for i = 1, n do
      local user, order = ARGV[at + i - 1], ARGV[at + n + i - 1]
      local held = marks[i] or buyers[user]
      local outcome
      if held then
        outcome = held == order and ACCEPTED or held
      elseif over then
        outcome = ENDED
      elseif left <= 0 then
        outcome = SOLD_OUT
      elseif room <= 0 then
        outcome = OVERLOADED
      else
        outcome = ACCEPTED
        left, room = left - 1, room - 1
        buyers[user] = order
        taken[count + 1], taken[count + 2] = user, order
        count = count + 2
      end
      reply[size + i] = outcome
    end
    if count > 0 then
      taken_of[voucher] = taken
      accepted_any = accepted_any + count / 2
    end
  end
  size = size + n
  at = at + 2 * n
end
if accepted_any == 0 then
  return reply
end

local entries, appended = {}, 0
local marked_vouchers, cut_vouchers = {}, {}

local function undo()
  local done = true
  for voucher, units in pairs(cut_vouchers) do
    done = type(call('INCRBY', KEYS[3 * voucher + 1], units)) == 'number' and done
  end
  for voucher in pairs(marked_vouchers) do
    local taken, users = taken_of[voucher], {}
    for i = 1, #taken, 2 do
      users[#users + 1] = taken[i]
    end
    done = type(call('HDEL', KEYS[3 * voucher + 2], unpack(users))) == 'number' and done
  end
  if appended > 0 then
    done = type(call('XDEL', stream, unpack(entries))) == 'number' and done
  end
  return { done and REFUSED_WRITE or UNDO_REFUSED }
end

at = 4
for voucher = 1, vouchers do
  local id, taken = ARGV[at], taken_of[voucher]
  at = at + 2 + 2 * tonumber(ARGV[at + 1])
  if taken then
    local count = #taken
    for i = 1, count, 2 do
      local entry = call('XADD', stream, '*', 'userId', taken[i], 'voucherId', id, 'id', taken[i + 1])
      if type(entry) ~= 'string' then
        return undo()
      end
      appended = appended + 1
      entries[appended] = entry
    end
    if type(call('HSET', KEYS[3 * voucher + 2], unpack(taken))) ~= 'number' then
      return undo()
    end
    marked_vouchers[voucher] = true
    if type(call('DECRBY', KEYS[3 * voucher + 1], count / 2)) ~= 'number' then
      return undo()
    end
    cut_vouchers[voucher] = count / 2
  end
end
if counted_outside then
  call('INCRBY', counted_key, accepted_any)
end
return reply
