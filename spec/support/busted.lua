-- busted.lua - starts busted in the interpreter that runs this file (stock lua5.4, or lua-host under a
-- sanitizer).
--
-- Debian's own `busted` command starts Lua 5.1.

require "busted.runner" { standalone = false }
