#!lua
-- Purpose: included by number.lua. KEYS, ARGV: none. Reply: none.
local word = 'included'
