--- layers.lua - the picture of the house as a table, and a judge that reads every #include and require against it.
--
--   run -> {net, cache, queue} -> model -> base;  queue -> base;  server -> model, base;  bindings -> all of core + lua.h
--
-- `check(files)` takes path -> text, so that a spec can show it a wrong house.

local process = require "support.process"

local M = {}

local function set(words)
  local t = {}
  for word in words:gmatch "%S+" do t[word] = true end
  return t
end

--- Which directories the files of a directory may include from.
M.arrows = {
  ["core/base"] = set "base",
  ["core/model"] = set "base model",
  ["core/net"] = set "base model net",
  ["core/cache"] = set "base model cache",
  ["core/queue"] = set "base queue",
  ["core/server"] = set "base model server",
  ["core/run"] = set "base model net cache queue run",
  ["core"] = set "base model net cache queue run server",          -- kubelua.h, the public face
  ["bindings"] = set "base model net cache queue run server cli",
  ["bindings/cli"] = set "base model net cache queue run server",  -- the command line: main and its helpers
}

--- Foreign headers and the files that may know them (plain prefix of the path).
M.doors = {
  { "^curl/", { "core/net/http" } },
  { "^microhttpd%.h$", { "core/base/httpd.c" } },
  { "^gnutls/", { "core/base/keyring.c" } },
  { "^wslay/", { "core/net/websocket.c" } },
  { "^cjson/", { "core/model/json.c" } },
  { "^sanitizer/", { "core/model/arena.c" } },
  { "^cJSON%.h$", { "core/model/json.c" } },
  { "^yaml%.h$", { "core/model/yaml" } },
  { "^openssl/", { "core/base/x509" } },
  { "^sys/inotify%.h$", { "core/base/fswatch.c" } },
  { "^pthread%.h$", { "core/base/sync.h", "core/base/sync.c" } },
  { "^regex%.h$", { "core/model/regex" } },
  { "^pcre2", { "core/model/regex" } },
  { "^histedit%.h$", { "bindings/cli/prompt.c" } },
  { "^lua%.h$", { "bindings/" } },
  { "^lauxlib%.h$", { "bindings/" } },
  { "^lualib%.h$", { "bindings/" } },
}

--- Calls with a door: who else wants the time asks base/clock, so that specs can own it.
M.calls = {
  { "clock_gettime", "core/base/clock.c" },
  { "gettimeofday", "core/base/clock.c" },
  { "pthread_create", "core/base/sync.c" },
}

--- What C and POSIX give; anything else in <> needs a door above.
local SYSTEM = set [[
  assert.h ctype.h errno.h fcntl.h fenv.h float.h inttypes.h limits.h locale.h malloc.h math.h poll.h pwd.h sched.h search.h
  semaphore.h signal.h spawn.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h
  string.h strings.h syslog.h termios.h time.h unistd.h wchar.h fnmatch.h glob.h dirent.h getopt.h libgen.h link.h netdb.h endian.h byteswap.h
  arpa/inet.h net/if.h netinet/in.h netinet/tcp.h immintrin.h emmintrin.h
  sys/epoll.h sys/eventfd.h sys/ioctl.h sys/mman.h sys/prctl.h sys/random.h sys/resource.h sys/select.h sys/signalfd.h sys/socket.h
  sys/stat.h sys/statfs.h sys/syscall.h sys/time.h sys/timerfd.h sys/types.h sys/uio.h sys/un.h sys/utsname.h sys/vfs.h sys/wait.h
  linux/futex.h linux/magic.h
]]

local function starts_with_one(path, prefixes)
  for _, prefix in ipairs(prefixes) do
    if path:sub(1, #prefix) == prefix then return true end
  end
  return false
end

-- Comments and strings hold examples, which are not code; includes keep their quotes, as they are read before.
local function without_comments(text)
  text = text:gsub("/%*.-%*/", function(c) return (c:gsub("[^\n]", " ")) end)
  return (text:gsub("//[^\n]*", ""))
end

local function check_include(path, line, kind, header, report)
  if kind == "<" then
    for _, door in ipairs(M.doors) do
      if header:find(door[1]) then
        if not starts_with_one(path, door[2]) then
          report(path, line, ("<%s> has its door in %s; go through that"):format(header, table.concat(door[2], ", ")))
        end
        return
      end
    end
    if not SYSTEM[header] then report(path, line, ("<%s> is foreign and has no door in spec/support/layers.lua"):format(header)) end
    return
  end
  local from = path:match "^(.*)/[^/]*$"
  local to = header:match "^([%w_]+)/"
  if not to then
    if not from:find "^bindings" and from ~= "core" then
      report(path, line, ("\"%s\" has no directory; includes are rooted at core/"):format(header))
    end
    return
  end
  local allowed = M.arrows[from]
  if not allowed then
    report(path, line, ("%s/ is not in the picture of spec/support/layers.lua"):format(from))
  elseif not allowed[to] then
    report(path, line, ("%s may not include from %s/"):format(from, to))
  end
end

local function check_c(path, text, report)
  local code = without_comments(text)
  local number = 0
  for line in (code .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local kind, header = line:match "^%s*#%s*include%s*([<\"])([^>\"]+)"
    if kind then check_include(path, number, kind, header, report) end
    for _, call in ipairs(M.calls) do
      if line:find("%f[%w_]" .. call[1] .. "%s*%(") and path ~= call[2] then
        report(path, number, ("%s() belongs to %s alone"):format(call[1], call[2]))
      end
    end
  end
end

local function check_lua(path, text, report)
  local number = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local name = line:gsub("%-%-.*", ""):match "require%s*%(?%s*[\"']([^\"']+)"
    if name and path:find "^controllers/" and name:find "^kubelua%." then
      report(path, number, ("a controller requires \"kubelua\" and nothing below it, so not %q"):format(name))
    end
  end
end

--- The violations in `files` (path -> text), as sorted lines "path:line: what".
function M.check(files)
  local found = {}
  local function report(path, line, what) found[#found + 1] = ("%s:%d: %s"):format(path, line, what) end
  for path, text in pairs(files) do
    if path:find "%.[ch]$" then check_c(path, text, report) else check_lua(path, text, report) end
  end
  table.sort(found)
  return found
end

--- Every file of ours that the picture speaks about.
function M.tree()
  local files = {}
  local list = process.run "find core bindings -name '*.[ch]' -type f; find controllers -name '*.lua' -type f"
  for path in list:gmatch "[^\n]+" do files[path] = process.read(path) end
  return files
end

return M
