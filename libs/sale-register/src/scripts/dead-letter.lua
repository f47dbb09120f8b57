#!lua
-- Purpose: moves an entry out of the group into the dead letters: the letter is written only if this call is the one that acknowledged it.
-- KEYS: 1 stream, 2 dead letters.
-- ARGV: 1 group, 2 entry id; then fields and values of the letter.
-- Reply: {NOT_PENDING} (another one settled the entry; nothing was written), or {WRITTEN, id of the letter}. A refused write leaves the
--   entry pending and no letter.

if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1) == 0 then
  return { 'NOT_PENDING' }
end
local letter = redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
local acknowledged = redis.pcall('XACK', KEYS[1], ARGV[1], ARGV[2])
if acknowledged ~= 1 then
  redis.call('XDEL', KEYS[2], letter)
  return type(acknowledged) == 'table' and acknowledged or { 'NOT_PENDING' }
end
return { 'WRITTEN', letter }
