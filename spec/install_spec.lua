-- install_spec.lua - `make install`, the Debian package and the rockspec: complete, and usable from C and
-- from stock Lua.
-- not in check, asan, tsan: it builds packages, and what they carry runs in every other spec

local process = require "support.process"

local variant = os.getenv "KL_VARIANT" or "release"

describe("the result of `make install`", function()
  local prefix, pkg
  setup(function()
    prefix = process.tmpname ".prefix"
    pkg = "PKG_CONFIG_PATH=" .. process.quote(prefix .. "/lib/pkgconfig") .. " pkg-config"
    local out, code = process.run(("make --no-print-directory install VARIANT=%s PREFIX=%s"):format(variant,
      process.quote(prefix)))
    assert(code == 0, out)
  end)

  it("runs", function()
    assert.truthy(process.run(process.quote(prefix .. "/bin/kubelua") .. " --version"):match "^kubelua %d")
  end)

  -- A sanitizer's build cannot be loaded by an interpreter that knows nothing of it.
  if variant ~= "release" then return end

  it("can be required by stock Lua from anywhere", function()
    local command = [[cd / && LUA_PATH_5_4='%s/share/lua/5.4/?.lua;%s/share/lua/5.4/?/init.lua' \
      LUA_CPATH_5_4='%s/lib/lua/5.4/?.so' lua5.4 -e 'print(require "kubelua".qty "1500m")']]
    assert.equal("1500m\n", process.run(command:format(prefix, prefix, prefix)))
  end)

  it("is enough to build a C program that embeds the library", function()
    local out,
      code = process.run(("gcc -std=gnu11 $(%s --cflags kubelua) -o %s spec/programs/embed.c $(%s --libs \z
      kubelua)")
      :format(pkg, process.quote(prefix .. "/embed"), pkg))
    assert.equal(0, code, out)
  end)
end)

-- The packages hold the release build.
if variant ~= "release" then return end

local function sh(fmt, ...)
  local words = { ... }
  for i, word in ipairs(words) do words[i] = process.quote(word) end
  local out, code = process.run(fmt:format(table.unpack(words)))
  assert.equal(0, code, out)
  return out
end

describe("the Debian package", function()
  local file, root
  setup(function()
    -- build/deb is dist_spec's
    file = sh("env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory deb DEB=%s",
      process.tmpname ".deb"):match "(%S+%.deb)%s*$"
    root = process.tmpname ".root"
    sh("mkdir -p %s/var/lib/dpkg/info %s/var/lib/dpkg/updates && : >%s/var/lib/dpkg/status", root, root, root)
    sh("dpkg --root=%s --log=%s/dpkg.log --force-depends --force-not-root --force-script-chrootless -i %s",
      root, root, file)
  end)

  it("installs a program that runs, and a module that stock Lua finds", function()
    assert.matches("^kubelua %d", sh("%s/usr/bin/kubelua --version", root))
    assert.equal("1500m\n", sh([[cd / && \
      LUA_PATH_5_4=%s'/usr/share/lua/5.4/?.lua;'%s'/usr/share/lua/5.4/?/init.lua' \
      LUA_CPATH_5_4=%s'/usr/lib/lua/5.4/?.so' \
      lua5.4 -e 'print(require "kubelua".qty "1500m")']], root, root, root))
  end)

  it("depends on the packages that have the libraries it is linked with", function()
    local depends = " " .. sh("dpkg-deb -f %s Depends", file):gsub("[,()]", " ") .. " "
    local n = 0
    for library in sh("objdump -p %s/usr/bin/kubelua", root):gmatch "NEEDED%s+(%S+)" do
      local path = sh("ldd %s/usr/bin/kubelua", root):match(library:gsub("%p", "%%%0") .. " => (%S+)")
      local real = path and sh("readlink -f %s", path):match "%S+":gsub("^/usr", "")
      local owner = real and (process.run(("dpkg -S /usr%s %s 2>/dev/null"):format(real,
        real)):match "([%w.+-]+):[^\n]* /")
      if owner and owner ~= "libgcc-s1" then
        n = n + 1
        assert.truthy(depends:find(" " .. owner .. " ", 1, true),
          owner .. " has " .. library .. " and is not in" .. depends)
      end
    end
    assert.is_true(n >= 6)
  end)

  it("knows its files, and leaves nothing behind", function()
    local files = sh("dpkg --root=%s -L kubelua", root)
    for _, path in ipairs { "/usr/share/doc/kubelua/copyright", "/usr/share/man/man1/kubelua.1.gz",
      "/usr/share/man/man1/kubelua-run.1.gz", "/usr/share/bash-completion/completions/kubelua",
      "/usr/share/zsh/vendor-completions/_kubelua", "/usr/share/fish/vendor_completions.d/kubelua.fish" } do
      assert.truthy(files:find(path .. "\n", 1, true), path)
    end
    assert.equal("", sh("dpkg --root=%s --verify kubelua", root))
    sh("dpkg --root=%s --log=%s/dpkg.log --force-not-root --force-script-chrootless --purge kubelua", root,
      root)
    assert.equal("", sh("find %s -path '*/usr/*' -type f", root))
  end)
end)

describe("the rockspec", function()
  it("installs a module that stock Lua finds", function()
    local tree = process.tmpname ".rocks"
    sh("env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS luarocks --lua-version 5.4 make --tree %s \z
      deploy/kubelua-*.rockspec 2>&1", tree)
    assert.equal("1500m\n", sh([[cd / && eval "$(luarocks --lua-version 5.4 path --tree %s)" && \
      lua5.4 -e 'print(require "kubelua".qty "1500m")']], tree))
    assert.matches("kubelua", sh("luarocks --lua-version 5.4 list --porcelain --tree %s", tree), 1, true)
  end)

  it("has the version of the library", function()
    local version = process.read "core/base/version.h":match 'KL_VERSION "([^"]+)"'
    assert.truthy(process.read("deploy/kubelua-" .. version
      .. "-1.rockspec"):find(('version = "%s-1"'):format(version), 1, true))
  end)
end)
