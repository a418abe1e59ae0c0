-- embed.lua - a compressed file as a C array: lua5.4 core/openapi/embed.lua FILE.gz PLAIN > out.c

local file = assert(io.open(assert(arg[1]), "rb"))
local packed = file:read "a"
file:close()
local plain = assert(io.open(assert(arg[2]), "rb"))
local size = plain:seek "end"
plain:close()

io.write('#include "openapi/definitions.h"\n\n')
io.write(("const size_t kl__definitions_plain = %d;\n"):format(size))
io.write(("const size_t kl__definitions_len = %d;\n"):format(#packed))
io.write "const unsigned char kl__definitions_gz[] = {\n"
for at = 1, #packed, 24 do
  io.write("    ", (packed:sub(at, at + 23):gsub(".", function(c) return c:byte() .. "," end)), "\n")
end
io.write "};\n"
