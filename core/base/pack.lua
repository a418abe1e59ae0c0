-- pack.lua - a compressed file as a C array: lua5.4 core/base/pack.lua FILE.gz PLAIN NAME > out.c

local file = assert(io.open(assert(arg[1]), "rb"))
local packed = file:read "a"
file:close()
local plain = assert(io.open(assert(arg[2]), "rb"))
local size = plain:seek "end"
plain:close()

io.write '#include "base/packed.h"\n\nstatic const unsigned char gz[] = {\n'
for at = 1, #packed, 24 do
  io.write("    ", (packed:sub(at, at + 23):gsub(".", function(c) return c:byte() .. "," end)), "\n")
end
io.write(("};\nextern const kl_packed %s;\nconst kl_packed %s = { gz, %d, %d };\n"):format(
  arg[3], arg[3], #packed, size))
