#!lua flags=no-writes
-- Purpose: shows how a script is loaded and run. KEYS: 1 any. ARGV: 1 any. Reply: {the key, the argument, a word from the included file}.
--@include included.lua
return { KEYS[1], ARGV[1], word }
