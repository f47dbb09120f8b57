#!lua flags=no-writes
-- Purpose: tells whether the partition may admit, and why not.
-- KEYS: 1 epoch. ARGV: none.
-- Reply: {the server's history or false, NO_RIGHT or NO_HISTORY where it is false (else false), the epoch's value or false}.

--@include include-epoch.lua
local history, why = server_history()
return { history or false, why or false, epoch_value(KEYS[1]) or false }
