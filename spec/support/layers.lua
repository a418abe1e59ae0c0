-- layers.lua - the layers of the code as a table, and a check of every #include and require against it.
--
--   base <- value <- model <- wire; value <- yaml                   what an object is
--   http <- auth <- client <- session                               how a server is spoken to
--   httpd                                                           how it is to be one: over base alone
--   cache, queue, metrics                                           neighbours who never meet
--   informers <- election <- events <- sharding <- run <- observe <- controller
--   controller <- {webhook, lab} <- manager <- control
--   {lab, server} <- sim                                            programs over a world in memory
--   run <- isolate                                               a program's states as processes of their own
--   cel <- rules <- schema                                          rules as text, checked and evaluated
--   schema <- run                                                   what a server makes of a write
--   schema <- check <- builtin                                how checks complain; what kinds are checked for
--   {show, custom, builtin, serving, devices, policy, audit} <- verbs
--   verbs <- server                                                 what a call does to an object
--   schema <- {show, openapi, custom, discovery} <- server; show <- builtin <- verbs  the embedded API server
--   {httpd, wire, rbac} <- audit <- server                          what is said of each request
--   {httpd, schema} <- faults <- server                             what goes wrong on request
--   {rules, builtin} <- policy <- server                              admission policies
--   http <- custom                                            how a webhook's URL is written
--   builtin <- warnings <- verbs                               what is warned of in valid objects
--   builtin <- {serving, devices} <- verbs                                 what configures the server itself
--   state <- {values, api} <- {script, terminal} <- cli              in bindings/: all of core, and lua.h
--
-- `check(files)` takes path -> text, so that a spec can show it a wrong house.

local process = require "support.process"

local M = {}

local function set(words)
  local t = {}
  for word in words:gmatch "%S+" do t[word] = true end
  return t
end

--- The directories from which the files of a directory may include.
M.arrows = {
  ["core/base"] = set "base",
  ["core/httpd"] = set "base httpd",
  ["core/archive"] = set "base value archive",
  ["core/store"] = set "base value model schema store",
  ["core/faults"] = set "base httpd value model schema faults",
  ["core/owners"] = set "base model schema store owners",
  ["core/rbac"] = set "base value httpd rbac",
  ["core/value"] = set "base value",
  ["core/yaml"] = set "base value yaml",
  ["core/model"] = set "base value model",
  ["core/wire"] = set "base value model wire",
  ["core/http"] = set "base model http",
  ["core/auth"] = set "base value yaml model http auth",
  ["core/client"] = set "base value model wire http auth client",
  ["core/session"] = set "base httpd http client session",
  ["core/cache"] = set "base value model cache",
  ["core/queue"] = set "base queue",
  ["core/metrics"] = set "base value metrics",
  ["core/informers"] = set "base value model client cache informers",
  ["core/election"] = set "base value model client cache metrics informers election",
  ["core/events"] = set "base value model election events",
  ["core/sharding"] = set "base value model client metrics informers election sharding",
  ["core/run"] = set "base value yaml model schema client cache queue metrics election events sharding run",
  ["core/isolate"] = set "base value model run isolate",
  ["core/observe"] = set "base httpd value model client queue metrics informers events run observe",
  ["core/controller"] = set "base value model client queue informers election sharding run observe \z
    controller",
  ["core/webhook"] = set "base httpd value model auth client metrics run controller webhook",
  ["core/lab"] = set "base value model client informers events run controller lab",
  ["core/manager"] = set "base httpd value model client metrics election events run observe controller \z
    webhook lab manager",
  ["core/sim"] = set "base model run controller lab server sim",
  ["core/control"] = set "base httpd value model cache metrics observe controller manager control",
  ["core/grammar"] = set "base grammar",
  ["core/cel"] = set "base value model grammar cel",
  ["core/rules"] = set "base model cel rules",
  ["core/schema"] = set "base value model rules schema",
  ["core/show"] = set "base value yaml model wire schema show",
  ["core/openapi"] = set "base schema openapi",
  ["core/discovery"] = set "base schema store discovery",
  ["core/custom"] = set "base http value model store schema custom",
  ["core/audit"] = set "base httpd value yaml model wire rbac audit",
  ["core/check"] = set "base value model schema check",
  ["core/builtin"] = set "base value model schema show check builtin",
  ["core/warnings"] = set "base model schema check builtin warnings",
  ["core/serving"] = set "base model schema check builtin serving",
  ["core/devices"] = set "base cel schema check builtin devices",
  ["core/policy"] = set "base value model store cel rules schema show check builtin policy",
  ["core/verbs"] = set "base value model rbac audit store owners rules schema show builtin warnings serving \z
    devices policy custom verbs",
  ["core/server"] = set "base httpd value yaml rbac audit faults store owners archive wire model schema \z
    show openapi policy custom discovery verbs server",
}

--- kubelua.h, the public header, and the bindings may include everything in core; the rooms of the bindings
--- may include these other rooms of the bindings.
local BINDINGS = {
  state = "", values = "state", api = "state values", script = "state values api",
    cli = "state values api script terminal",
  terminal = "state api",
}
do
  local core = {}
  for room in pairs(M.arrows) do core[#core + 1] = room:match "[^/]+$" end
  local all = table.concat(core, " ")
  M.arrows["core"] = set(all)
  for room, lower in pairs(BINDINGS) do
    M.arrows["bindings/" .. room] = set(("%s %s %s"):format(all, room, lower))
  end
end

--- Foreign headers, and the files that may include them (prefixes of paths).
M.doors = {
  { "^curl/", { "core/http/http" } },
  { "^dlfcn%.h$", { "core/http/http_curl.c" } },
  { "^microhttpd%.h$", { "core/httpd/httpd_impl.h" } },
  { "^gnutls/", { "core/base/keyring.c" } },
  { "^wslay/", { "core/http/websocket.c" } },
  { "^cjson/", { "core/value/json.c" } },
  { "^sanitizer/", { "core/value/arena.c" } },
  { "^cJSON%.h$", { "core/value/json.c" } },
  { "^yaml%.h$", { "core/yaml/" } },
  { "^openssl/", { "core/base/x509", "core/base/base64.c", "core/base/sha1.c",
    "core/base/sha256.c" } },
  { "^sys/inotify%.h$", { "core/base/fswatch.c" } },
  { "^linux/seccomp%.h$", { "core/isolate/jail.c" } },
  { "^linux/filter%.h$", { "core/isolate/jail.c" } },
  { "^linux/audit%.h$", { "core/isolate/jail.c" } },
  { "^pthread%.h$", { "core/base/sync.h", "core/base/sync.c" } },
  { "^re2/", { "core/base/regex.cc" } },
  { "^sqlite3%.h$", { "core/archive/archive.c" } },
  { "^zlib%.h$", { "core/base/packed.c", "core/base/gzip.c" } },
  { "^histedit%.h$", { "bindings/terminal/prompt.c" } },
  { "^lua%.h$", { "bindings/" } },
  { "^lauxlib%.h$", { "bindings/" } },
  { "^lualib%.h$", { "bindings/" } },
}

--- Calls that only some files may make: all others get the time from base/clock, so that specs control it.
M.calls = {
  { "clock_gettime", "core/base/clock.c" },
  { "gettimeofday", "core/base/clock.c" },
  { "pthread_create", "core/base/sync.c" },
}

--- The headers of C and POSIX; any other header in <> must be listed above.
local SYSTEM = set [[
  assert.h ctype.h errno.h fcntl.h fenv.h float.h inttypes.h limits.h locale.h malloc.h math.h poll.h pwd.h
  sched.h search.h semaphore.h signal.h spawn.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h
  stdio.h stdlib.h stdnoreturn.h string.h strings.h syslog.h termios.h time.h unistd.h wchar.h fnmatch.h
  glob.h dirent.h getopt.h libgen.h link.h netdb.h ifaddrs.h endian.h byteswap.h
  arpa/inet.h net/if.h netinet/in.h netinet/tcp.h immintrin.h emmintrin.h
  sys/epoll.h sys/eventfd.h sys/ioctl.h sys/mman.h sys/prctl.h sys/random.h sys/resource.h sys/select.h
  sys/signalfd.h sys/socket.h sys/stat.h sys/statfs.h sys/syscall.h sys/time.h sys/timerfd.h sys/types.h
  sys/uio.h sys/un.h sys/utsname.h sys/vfs.h sys/wait.h
  linux/futex.h linux/magic.h
  new
]]

local function starts_with_one(path, prefixes)
  for _, prefix in ipairs(prefixes) do
    if path:sub(1, #prefix) == prefix then return true end
  end
  return false
end

-- Removes comments and strings, which may contain examples; includes keep their quotes, as they are read
-- before.
local function without_comments(text)
  text = text:gsub("/%*.-%*/", function(c) return (c:gsub("[^\n]", " ")) end)
  return (text:gsub("//[^\n]*", ""))
end

local function check_include(path, line, kind, header, report)
  if kind == "<" then
    for _, door in ipairs(M.doors) do
      if header:find(door[1]) then
        if not starts_with_one(path, door[2]) then
          report(path, line, ("<%s> has its door in %s; go through that"):format(header,
            table.concat(door[2], ", ")))
        end
        return
      end
    end
    if not SYSTEM[header] then
      report(path, line, ("<%s> is foreign and has no door in spec/support/layers.lua"):format(header))
    end
    return
  end
  local from = path:match "^(.*)/[^/]*$"
  local to = header:match "^([%w_]+)/"
  if not to then
    report(path, line, ("\"%s\" has no directory; includes are rooted at core/ and bindings/"):format(header))
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
    if path:find "%.[ch]$" or path:find "%.cc$" then check_c(path, text, report) end
    if path:find "%.lua$" then check_lua(path, text, report) end
  end
  table.sort(found)
  return found
end

--- The arrows that no file in `files` needs, as sorted lines.
function M.unused(files)
  local used, found = {}, {}
  for path, text in pairs(files) do
    local from = path:match "^(core/%w+)/[^/]*%.[chc]+$"
    used[from or 0] = used[from or 0] or {}
    for to in text:gmatch '#%s*include%s*"([%w_]+)/[%w_]+%.h"' do used[from or 0][to] = true end
  end
  for from, allowed in pairs(M.arrows) do
    for to in pairs(used[from] and allowed or {}) do
      if not used[from][to] and from ~= "core/" .. to then
        found[#found + 1] = ("%s may include from %s/ and never does"):format(from, to)
      end
    end
  end
  table.sort(found)
  return found
end

-- The dependencies of a file: the headers of a header, the modules that a module of the library requires at
-- its top level.
local function needs(path, text)
  local found = {}
  if path:find "%.h$" then
    for header in text:gmatch '#%s*include%s*"([%w_]+/[%w_]+%.h)"' do
      found[#found + 1] = (BINDINGS[header:match "^[^/]+"] and "bindings/" or "core/") .. header
    end
  elseif path:find "^lua/.*%.lua$" then
    for name in ("\n" .. text):gmatch "\nlocal [%w_]+ = require \"(kubelua[%w_.]*)\"" do
      found[#found + 1] = ("lua/%s.lua"):format(name == "kubelua" and "kubelua/init" or name:gsub("%.", "/"))
    end
  else
    return nil
  end
  return found
end

--- The cycles among the headers and among the library's modules in `files`, each as one line of paths.
function M.circles(files)
  local includes, names = {}, {}
  for path, text in pairs(files) do
    includes[path] = needs(path, text)
    names[#names + 1] = includes[path] and path
  end
  table.sort(names)
  local found, done = {}, {}
  local function visit(path, trail, place)
    if place[path] then
      found[#found + 1] = table.concat(trail, " -> ", place[path]) .. " -> " .. path
      return
    end
    if done[path] or not includes[path] then return end
    done[path] = true
    trail[#trail + 1], place[path] = path, #trail + 1
    for _, to in ipairs(includes[path]) do visit(to, trail, place) end
    trail[#trail], place[path] = nil, nil
  end
  for _, path in ipairs(names) do visit(path, {}, {}) end
  return found
end

local MOST_LINES, MOST_FILES = 8000, 45

--- The rooms in `files` that are too large, with their sizes.
function M.large(files)
  local lines, sources, found = {}, {}, {}
  for path, text in pairs(files) do
    local room = path:match "^(%w+/%w+)/[^/]*%.[ch]$"
    if room then
      lines[room] = (lines[room] or 0) + select(2, text:gsub("\n", ""))
      if path:find "%.c$" then sources[room] = (sources[room] or 0) + 1 end
    end
  end
  local function judge(counts, most, what)
    for room, n in pairs(counts) do
      if n > most then
        found[#found + 1] = ("%s has %d %s; a room has %d at most"):format(room, n, what, most)
      end
    end
  end
  judge(lines, MOST_LINES, "lines of C")
  judge(sources, MOST_FILES, "C files")
  table.sort(found)
  return found
end

--- The rooms whose README.md is missing, too short or long, or does not name every header, as
--- sorted lines. `files` as for check, with the READMEs.
function M.readmes(files)
  local found, rooms = {}, {}
  for path in pairs(files) do
    local room = path:match "^(%w+/%w+)/[^/]*%.[ch]$"
    if room then rooms[room] = true end
  end
  for room in pairs(rooms) do
    local text = files[room .. "/README.md"]
    if not text then
      found[#found + 1] = room .. " has no README.md"
    else
      local _, lines = text:gsub("\n", "")
      if lines < 20 or lines > 40 then
        found[#found + 1] = ("%s/README.md has %d lines; it has 20 to 40"):format(room, lines)
      end
      for path in pairs(files) do
        local name = path:match("^" .. room .. "/([^/]+%.h)$")
        if name and not name:find "_impl%.h$" and not text:find(name, 1, true) then
          found[#found + 1] = ("%s/README.md does not name %s"):format(room, name)
        end
      end
    end
  end
  table.sort(found)
  return found
end

--- The rooms that the map (docs/architecture.md) does not name, as sorted lines.
function M.unmapped(files, map)
  local found, rooms = {}, {}
  for path in pairs(files) do
    local room = path:match "^(core/%w+)/[^/]*%.[ch]$"
    if room and not rooms[room] and not map:find("%f[%w]" .. room .. "%f[%W]") then
      found[#found + 1] = "docs/architecture.md does not name " .. room
    end
    rooms[room or 0] = true
  end
  table.sort(found)
  return found
end

--- Every source file to which the rules apply.
function M.tree()
  local files = {}
  local list = process.run "find core bindings \\( -name '*.[ch]' -o -name '*.cc' -o -name README.md \\) \z
    -type f; find \z
    controllers lua -name '*.lua' -type f"
  for path in list:gmatch "[^\n]+" do files[path] = process.read(path) end
  return files
end

return M
