-- build.lua OUT - `make site`: writes the pages into OUT.src and has the generator make the site in OUT.

package.path = "docs/site/?.lua;" .. package.path
local site = require "site"

local out = assert(arg[1], "usage: lua5.4 docs/site/build.lua OUT")
local src = out .. ".src"
assert(os.execute(("rm -rf '%s' '%s' && mkdir -p '%s'"):format(out, src, src)))
site.write(src)
local mkdocs, why = site.generator(site.cache())
if not mkdocs then
  io.stderr:write("site: not made: ", why, "; its pages as Markdown are in ", src, "/docs\n")
  os.exit(1)
end
if not site.make(mkdocs, src, out) then os.exit(1) end
print("site: " .. out .. "; search needs a server: python3 -m http.server -b 127.0.0.1 -d " .. out)
