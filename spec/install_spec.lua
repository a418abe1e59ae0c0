local process = require "support.process"

local variant = os.getenv "KL_VARIANT" or "release"

describe("what `make install` leaves behind", function()
  local prefix, pkg
  setup(function()
    prefix = process.tmpname ".prefix"
    pkg = "PKG_CONFIG_PATH=" .. process.quote(prefix .. "/lib/pkgconfig") .. " pkg-config"
    local out, code = process.run(("make --no-print-directory install VARIANT=%s PREFIX=%s"):format(variant, process.quote(prefix)))
    assert(code == 0, out)
  end)

  it("runs", function()
    assert.truthy(process.run(process.quote(prefix .. "/bin/kubelua") .. " --version"):match "^kubelua %d")
  end)

  -- A sanitizer's build cannot be loaded by an interpreter that knows nothing of it.
  if variant ~= "release" then return end

  it("can be required by stock Lua from anywhere", function()
    local out = process.run(([[cd / && LUA_PATH_5_4='%s/share/lua/5.4/?.lua;%s/share/lua/5.4/?/init.lua' \
      LUA_CPATH_5_4='%s/lib/lua/5.4/?.so' lua5.4 -e 'print(require "kubelua".qty "1500m")']]):format(prefix, prefix, prefix))
    assert.equal("1500m\n", out)
  end)

  it("is enough to build a C program that embeds the library", function()
    local out, code = process.run(("gcc -std=gnu11 $(%s --cflags kubelua) -o %s spec/programs/embed.c $(%s --libs kubelua)")
      :format(pkg, process.quote(prefix .. "/embed"), pkg))
    assert.equal(0, code, out)
  end)
end)
