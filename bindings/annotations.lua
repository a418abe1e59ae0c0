-- annotations.lua DIR - prints every Lua file below DIR that tells the Lua language server something, one
-- after the other, each behind a line "@ PATH BYTES": what `kubelua annotations` unpacks. Commands and the
-- simulator are nobody's library.

local dir = assert(arg[1], "usage: lua5.4 annotations.lua DIR")

local list = {}
local pipe = assert(io.popen(("find '%s' -name '*.lua' -type f"):format(dir)))
for path in pipe:lines() do
  if not path:find "/kubelua/cli/" and not path:find "/kubelua/sim/" then list[#list + 1] = path end
end
pipe:close()
table.sort(list)
for _, path in ipairs(list) do
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  io.write(("@ %s %d\n"):format(path:sub(#dir + 2), #text), text, "\n")
end
