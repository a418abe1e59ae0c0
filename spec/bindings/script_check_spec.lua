-- script_check_spec.lua - `kubelua check` reports each mistake in a script with file, place and remedy, and
-- exits with status 1.
-- not in tsan: scripts are loaded by one thread
-- not in check: some scripts spend the two seconds that a load may take

local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local function dir()
  local path = process.tmpname()
  process.run("mkdir -p " .. process.quote(path))
  return path
end

local function check(...)
  local words = {}
  for i, word in ipairs { ... } do words[i] = process.quote(word) end
  return process.run(("%s check %s"):format(process.quote(KUBELUA), table.concat(words, " ")))
end

-- Writes a script with this text, and further files by name, into a new directory. Returns the path of the
-- script and the directory.
local function written(text, files)
  local d = dir()
  for name, content in pairs(files or {}) do
    local parent = name:match "^(.*)/"
    if parent then process.run("mkdir -p " .. process.quote(d .. "/" .. parent)) end
    process.write(d .. "/" .. name, content)
  end
  return process.write(d .. "/script.lua", text), d
end

-- Checks a script with this text in its own directory, whose name the output does not have.
local function checked(text, files)
  local path, d = written(text, files)
  local out, code = check(path)
  return out:gsub(d:gsub("%p", "%%%0") .. "/", ""), code
end

-- ThreadSanitizer adds four bytes to each byte, so the time may end before the memory.
local WATCHED = os.getenv "KL_VARIANT" == "tsan"

local function has_parts(out, parts)
  for _, part in ipairs(parts) do
    if not out:find(part, 1, true) then error(("%q is not in what it said:\n%s"):format(part, out), 3) end
  end
  assert.is_nil(out:find("stack traceback", 1, true), out)
end

local function refuses(text, parts, files)
  local out, code = checked(text, files)
  assert.equal(1, code, out)
  has_parts(out, parts)
end

-- A spec for each row { name, text, parts of the complaint, further files }. One process checks all: each
-- script has its own state there, too.
local function each_refused(rows)
  local said = {}
  lazy_setup(function()
    local paths = {}
    for i, row in ipairs(rows) do paths[i] = written(row[2], row[4]) end
    local out, code = check(table.unpack(paths))
    assert.equal(1, code, out)
    for complaint in (out:gsub("%f[^\n\0]kubelua check: ", "\0")):gmatch "\0([^\0]*)" do
      said[#said + 1] = complaint
    end
    assert.equal(#rows, #said, out)
  end)
  for i, row in ipairs(rows) do
    it(row[1], function() has_parts(said[i], row[3]) end)
  end
end

--- A valid controller with the given lines.
local function spec(lines)
  return ([[
local kube = require "kubelua"
return kube.controller {
  name = "x", resource = "v1/Pod", reconcile = function() end,
  %s
}
]]):format(lines)
end

describe("kubelua check", function()
  it("describes a valid script and exits with 0", function()
    local out, code = checked(spec [[when = { "labels", "spec.nodeName", "data" },
      indexes = { node = "spec.nodeName", own = function() end,
        ["v1/Node"] = { zone = "metadata.labels.zone" } },
      watches = { ["v1/Secret"] = { via = "node" }, ["v1/Node"] = "same-name",
        ["v1/Service"] = "owner", ["v1/ConfigMap"] = function() end },
      owns = { "v1/ServiceAccount" }, reads = { "apps/v1/Deployment" }, workers = 4,
      concurrency = 10, timeout = "2s", resync = "10m",
      params = { limit = 3 },]])
    assert.equal(0, code, out)
    for _, part in ipairs { "controller x", "v1/Pod", "v1/ConfigMap -> a function",
      "v1/Node -> the same name", "v1/Secret -> index node",
      "v1/Service -> its owners", "v1/ServiceAccount", "apps/v1/Deployment", "node of v1/Pod: spec.nodeName",
      "own of v1/Pod: a function",
      "zone of v1/Node: metadata.labels.zone", "labels, spec.nodeName, data", '{"limit":3}' } do
      assert.truthy(out:find(part, 1, true), part .. " is not in\n" .. out)
    end
  end)

  it("describes the new features of controllers", function()
    local out, code = checked(spec [[namespaces = { "b", "a" },
      selector = { labels = { app = "web" }, fields = "metadata.name!=x" },
      when = { "generation", selector = "tier in (a,b)" },
      owns = { "v1/ServiceAccount", ["v1/Secret"] = { when = "labels" } },
      watches = { ["v1/Service"] = { "same-name", when = { "spec.ports" } },
        ["v1/Node"] = { function() end, when = function() end } }, metadata = { "v1/Node" },
      finalize = function() end, memory = "8Mi", every = "10m", cron = "0 3 * * *",
      priority = "spec.priority", serial = function() end,
      backoff = { base = "1s", max = "1m", give_up = 5 }, own_writes = false,
      leader = "own", shard = { by = "namespace", caches = "own" }, on_reload = "failing",]])
    assert.equal(0, code, out)
    for _, part in ipairs { "a, b", "app=web", "fields metadata.name!=x",
      "of objects with tier in (a,b); generation", "v1/Secret; when labels",
      "v1/Service -> the same name; when spec.ports", "v1/Node -> a function; when a function",
      "metadata    v1/Node", "kubelua.dev/x", "8388608 bytes",
      "every       600s", "cron        0 3 * * *", "priority    spec.priority", "serial      a function",
      "1s to 60s, jitter 0.1, gives up after 5 failures",
      "not waited for", "its own lease", "by namespace; caches hold a replica's own namespaces",
      "keys that failed run again" } do
      assert.truthy(out:find(part, 1, true), part .. " is not in\n" .. out)
    end
  end)

  it("creates a controller per kind in a list", function()
    local out, code = checked [[
      local kube = require "kubelua"
      return kube.controller { name = "many",
        resource = { "apps/v1/Deployment", "example.com/v1/Widget", "other.org/v1/Widget" },
        reconcile = function() end }]]
    assert.equal(0, code, out)
    for _, part in ipairs { "controller many-deployment", "controller many-widget-example",
      "controller many-widget-other", "manager     many" } do
      assert.truthy(out:find(part, 1, true), part .. " is not in\n" .. out)
    end
  end)

  it("takes a list of controllers and several files", function()
    local text = [[
      local kube = require "kubelua"
      local function one(name)
        return kube.controller { name = name, resource = "v1/Pod", reconcile = function() end }
      end
      return { one "first", one "second" }]]
    local d = dir()
    local out, code = check(process.write(d .. "/a.lua", text),
      process.write(d .. "/b.lua", (text:gsub("first", "third"):gsub("second", "fourth"))))
    assert.equal(0, code, out)
    for _, name in ipairs { "first", "second", "third", "fourth" } do
      assert.truthy(out:find("controller " .. name, 1, true), out)
    end
  end)

  it("continues after a bad file, and reports it", function()
    local d = dir()
    local out, code = check(process.write(d .. "/bad.lua", "return 1 +"),
      process.write(d .. "/good.lua", spec ""))
    assert.equal(1, code)
    assert.truthy(out:find("bad.lua:1:", 1, true), out)
    assert.truthy(out:find("controller x", 1, true), out)
  end)

  it("needs a file", function()
    local out, code = check()
    assert.equal(2, code)
    assert.truthy(out:find("at least one script", 1, true), out)
    out, code = check "/nonexistent/x.lua"
    assert.equal(1, code)
    assert.truthy(out:find("/nonexistent/x.lua: No such file or directory", 1, true), out)
    local empty = dir()
    out, code = check(empty)
    assert.equal(1, code, out)
    assert.truthy(out:find(empty .. " has no script: no file in it ends with .lua", 1, true), out)
  end)

  it("accepts the policies of this repository", function()
    local out, code = check("controllers/hello.lua", "controllers/koordinator/noderesource.lua")
    assert.equal(0, code, out)
  end)
end)

describe("a script that does not load", function()
  local cases = {
    { "with a syntax error", "local x = 1\nreturn {{", { "script.lua:2:", "near <eof>" } },
    { "that is bytecode", "\27Lua", { "script.lua is compiled Lua; scripts are loaded from their text" } },
    { "that raises", "local x = nil\nlocal y = x.z\n", { "script.lua:2:", "attempt to index a nil value" } },
    { "that raises a table", "local x\nerror { code = 1 }", { 'script.lua:2: raised {"code":1}' } },
    { "that raises nil", "error()", { "script.lua:1: raised nil" } },
    { "that returns nothing", "local x = 1", { "script.lua", "returned nothing (is `return` missing?)" } },
    { "that returns a number", "return 7", { "script.lua", "this one returned a number" } },
    { "that returns a bare table", "return { name = 'x' }", { "wrap it in kube.controller" } },
    { "that returns a list with a stranger",
      'local kube = require "kubelua"\nreturn { kube.controller { name = "a", resource = "v1/Pod", \z
      reconcile = print }, 7 }',
      { "a list whose element 2 is neither" } },
    { "that returns two controllers of one name",
      'local kube = require "kubelua"\nlocal c = kube.controller { name = "a", resource = "v1/Pod", \z
      reconcile = print }\nreturn { c, c }',
      { 'two controllers are named "a"' } },
    { "that connects", 'local kube = require "kubelua"\nlocal c = kube.connect()',
      { "script.lua:2:", "kube.connect is for standalone programs; a controller reaches the API through \z
      ctx, in its reconcile" } },
    { "that opens a file", 'local f = io.open "/etc/passwd"',
      { "script.lua:1:", "'io' is not available to scripts: scripts do no I/O" } },
    { "that runs a program", 'os.execute "true"', { "script.lua:1:", "execute" } },
    { "that reads the environment", 'local x = os.getenv "HOME"', { "script.lua:1:", "getenv" } },
    { "that removes a file", 'os.remove "/tmp/x"', { "script.lua:1:", "remove" } },
    { "that loads a file", 'dofile "/etc/passwd"', { "script.lua:1:", "'dofile' is not available",
      "require" } },
    { "that looks around with debug", 'debug.getregistry()',
      { "script.lua:1:", "'debug' is not available" } },
    { "that reads a global which is not there", "local x = 1\nlocal y = nmae",
      { "script.lua:2:", "undefined global 'nmae'" } },
    { "that reads one in a function while loading", "local function f() return nmae end\nf()",
      { "script.lua:1:", "undefined global 'nmae'" } },
    { "that writes a global", "count = 1", { "script.lua:1:",
      "assignment to undefined global 'count': write `local count = ...`" } },
    { "that writes a global through _G", "_G.count = 1",
      { "script.lua:1:", "assignment to undefined global 'count'" } },
    { "that unlocks the environment", "setmetatable(_G, nil)", { "protected metatable" } },
    { "with a finaliser", "setmetatable({}, { __gc = function() end })",
      { "script.lua:1:", "may not have __gc" } },
    { "with a late finaliser by load", "return load('return setmetatable({}, {__gc = print})')()",
      { "may not have __gc" } },
    { "that loads bytecode", "local f = assert(load '\\27Lua')",
      { "script.lua:1:", "attempt to load a binary chunk" } },
    { "that loads from a function", "load(function() end)",
      { "script.lua:1:", "load takes a string here" } },
    { "that adds to kubelua", 'local kube = require "kubelua"\nkube.mine = 1',
      { "script.lua:2:", "kube.mine: the kubelua table is shared" } },
    { "that reaches around kubelua for its core", 'local core = require "kubelua.core"',
      { "script.lua:1:", "is not available to scripts" } },
    { "that reaches around kubelua for a client", 'local connect = require "kubelua.client".connect',
      { "script.lua:1:", "is not available to scripts" } },
    { "that reads a misspelt kubelua", 'local kube = require "kubelua"\nreturn kube.controler {}',
      { "script.lua:2:", "controller" } },
    { "that requires what is not there", 'require "helper"',
      { "script.lua:1:", 'module "helper" is neither kubelua\'s nor in the script\'s directory', "helper.lua",
      "helper/init.lua" } },
    { "that requires a misspelt part of kubelua", 'require "kubelua.nothing"',
      { "script.lua:1:", "kubelua.nothing" } },
    { "that requires out of its directory", 'require "../helper"',
      { "script.lua:1:", "is not a module name" } },
    { "that requires a module with an error", 'require "helper"', { "helper.lua:3:" },
      { ["helper.lua"] = "\n\nlocal = 1" } },
    { "that requires a module that raises", 'require "helper"', { "helper.lua:1: no" },
      { ["helper.lua"] = "error 'no'" } },
    { "that requires a module which is bytecode", 'require "helper"', { "helper.lua is compiled Lua" },
      { ["helper.lua"] = "\27Lua" } },
    { "with modules in a circle", 'require "a"', { 'module "a" requires itself' },
      { ["a.lua"] = 'require "b"', ["b.lua"] = 'require "a"' } },
    { "whose module writes a global", 'require "a"', { "a.lua:1:", "assignment to undefined global 'x'" },
      { ["a.lua"] = "x = 1" } },
  }
  each_refused(cases)

  it("that fills the memory, even behind pcall", function()
    refuses("while true do\n  pcall(function()\n    local t = {} while true do t[#t + 1] = ('x'):rep(5e7) \z
      .. #t end\n  end)\nend",
      { WATCHED and "script.lua:" or "script.lua:3: loading needs more than 256Mi of memory" })
  end)

  it("that never ends, even behind pcall and in coroutines", function()
    refuses("while true do\n  pcall(coroutine.wrap(function()\n    while true do end\n  end))\nend",
      { "script.lua:", "loading takes longer than 2s of processor time (",
      " have passed): the top level only builds tables and functions" })
  end)

  it("whose __call is itself, or that recurses forever", function()
    refuses("local mt = {}\nlocal t = setmetatable({}, mt)\nmt.__call = t\nt()",
      { "script.lua:4: stack overflow: the active calls hold more than 32768 values" })
    refuses("local function f() return 1 + f() end\nf()", { "script.lua:1: stack overflow: " })
  end)

  it("has numeric keys that all collide at the next growth of their table", function()
    refuses("local t = {}\nlocal last = (1 << 21) - 1\nfor i = 1, (1 << 20) + 1 do\n  t[i * last] = i\nend",
      { "script.lua:4: the numeric keys of a large table collide, so growing it would take very long" })
  end)

  it("may have many keys that do not collide", function()
    local out, code = checked([[
local kube = require "kubelua"
local t = {}
for i = 1, 20000 do
  t[i * 1000], t[-i], t[i + 0.5], t["x" .. i], t[1764000000000000000 + i * 1000000] = i, i, i, i, i
end
return kube.controller { name = "x", resource = "v1/Pod", reconcile = function() end }
]])
    assert.equal(0, code, out)
  end)

  it("may catch that recursion, even if it ends a coroutine", function()
    local out, code = checked([[
local kube = require "kubelua"
local function f() return 1 + f() end
local function is_overflow(ok, e)
  assert(not ok and e:find "stack overflow: the active calls hold more than 32768 values", e)
end
is_overflow(pcall(f))
is_overflow(xpcall(f, function(e) return e end))
is_overflow(coroutine.resume(coroutine.create(f)))
is_overflow(pcall(coroutine.wrap(f)))
return kube.controller { name = "x", resource = "v1/Pod", reconcile = function() end }
]])
    assert.equal(0, code, out)
  end)

  it("has room for 32,000 values and large tables, however its stack grew", function()
    local out, code = checked([[
local kube = require "kubelua"
local function room(n, ...)
  assert(select("#", ...) == n)
  local t = {}
  for i = 1, 70000 do t[i] = i end
  return n
end
for _, n in ipairs { 9000, 4500, 18000, 12000, 15000, 15500 } do
  assert(room(n, table.unpack({}, 1, n)) == n)
end
for n = 1000, 32000, 1000 do assert(select("#", table.unpack({}, 1, n)) == n) end
return kube.controller { name = "x", resource = "v1/Pod", reconcile = function() end }
]])
    assert.equal(0, code, out)
  end)

  it("may pass many values to xpcall", function()
    local out, code = checked([[
local kube = require "kubelua"
local ok, n = xpcall(select, error, "#", table.unpack({}, 1, 4000))
assert(ok and n == 4000)
return kube.controller { name = "x", resource = "v1/Pod", reconcile = function() end }
]])
    assert.equal(0, code, out)
  end)

  it("whose error's __tostring never ends", function()
    refuses("error(setmetatable({}, { __tostring = function() while true do end end }))",
      { "loading takes longer than 2s of processor time (" })
  end)
end)

describe("the file of a script", function()
  local MARK = "\xef\xbb\xbf"
  local SOUND = "local kube = require 'kubelua'\nreturn kube.controller { name = 'x', resource = 'v1/Pod', \z
    reconcile = function() end }"

  it("may begin with a shebang, a byte order mark or both, and so may its modules",
    function()
    for _, first in ipairs { "#!/usr/bin/env kubelua\n", MARK, MARK .. "#!/usr/bin/env kubelua\r\n",
      MARK .. "# \27Lua\n" } do
      local out, code = checked(first .. "require 'other'\n" .. SOUND,
        { ["other.lua"] = first .. "return {}" })
      assert.equal(0, code, out)
    end
  end)

  it("keeps its line numbers then", function()
    refuses(MARK .. "#!/usr/bin/env kubelua\n\nreturn nothing",
      { "script.lua:3: undefined global 'nothing'" })
    refuses("require 'other'", { "other.lua:2: undefined global 'nothing'" },
      { ["other.lua"] = "#!lua\nreturn nothing" })
  end)

  it("must be UTF-8 text, and not bytecode, even behind a byte order mark", function()
    refuses("\xff\xfer\0e\0", { "script.lua is UTF-16; save it as UTF-8" })
    refuses(MARK .. string.dump(function() end), { "script.lua is compiled Lua" })
  end)

  it("has a bounded nesting depth, with the place in the error", function()
    refuses("local a = 1\n\nreturn " .. ("{"):rep(100000),
      { "script.lua:3: nested too deep: C stack overflow" })
    refuses("require 'other'", { "other.lua:2: nested too deep" },
      { ["other.lua"] = "\nreturn " .. ("("):rep(100000) })
  end)

  it("is found by its whole name, a NUL included", function()
    refuses([[return require "other\0x"]], { "script.lua:1: ", "NUL" }, { ["other.lua"] = "return nil" })
  end)

  it("is a regular file: kubelua waits for no pipe", function()
    local d = dir()
    process.run("mkfifo " .. process.quote(d .. "/fifo.lua") .. " && mkdir "
      .. process.quote(d .. "/other.lua"))
    assert.matches("fifo%.lua is a FIFO, not a regular file", (check(d .. "/fifo.lua")))
    assert.matches("/dev/zero is a device, not a regular file", (check "/dev/zero"))
    assert.matches("other%.lua is a directory, not a regular file",
      (check(process.write(d .. "/main.lua", "require 'other'"))))
    assert.matches("fifo%.lua is a FIFO, not a regular file",
      (check(process.write(d .. "/main.lua", "require 'fifo'"))))
  end)
end)

describe("a webhook", function()
  it("may not return an unusable verdict", function()
    local lost = "kube.fail and kube.retry do nothing by themselves"
    local function body(text)
      return 'local kube = require "kubelua"\nreturn kube.controller { name = "x", resource = \z
        "v1/ConfigMap",\n'
        .. "reconcile = function(o, ctx)\n" .. text .. "\nend }"
    end
    for _, text in ipairs { 'kube.fail "no"', 'if o then kube.retry("1s") end',
      "ctx:get('v1/Pod', 'x') kube.fail 'no'",
      "local x = ... kube.fail 'no'", "local t = {} ; kube . fail 'no'",
      "for _ = 1, 2 do kube.retry(1, 'x') end",
      "return function() kube.fail 'no' end" } do
      refuses(body(text), { "script.lua:4: " .. lost })
    end
    for _, text in ipairs { 'return kube.fail "no"', "error(kube.retry '1s')",
      "return -- so it is\n kube.fail 'no'",
      "local v = o and kube.fail 'no' or kube.retry '1s' return v",
      "local t = { kube.fail 'no', a = kube.retry '1s' }",
      "kube.retry_on_conflict(function() end)", "local s = 'kube.fail' --[[ kube.fail 'no' ]]",
      "return o.data == nil and not kube.fail 'x'" } do
      local out, code = checked(body(text))
      assert.equal(0, code, out)
    end
  end)

  it("needs twice its script's memory", function()
    refuses([[
local kube = require "kubelua"
local kept = ("x"):rep(3000000)
return kube.webhook { name = "w", resource = "v1/Pod", operations = { "CREATE" },
  memory = "4Mi", validate = function() return kept end }
]], { 'controller "w": memory is 4096 KiB, of which the loaded script takes' })
  end)
end)

describe("a spec", function()
  local cases = {
    { "with an unknown key", 'reconile = 1', { "script.lua:2:",
      'controller "x": unknown key \'reconile\'; did you mean \'reconcile\'?' } },
    { "with an unknown key like no other", 'zzzzzz = 1', { "unknown key 'zzzzzz'" } },
    { "with a number as key", '[1] = "v1/Pod"', { "unknown key '1'" } },
    { "with less processor time than a cold cache costs", 'cpu = "10us"',
      { "cpu must be at least a millisecond of processor time such as \"100ms\", got \"10us\"" } },
    { "with processor time that is none", 'cpu = "a lot"', { "cpu must be a duration above zero" } },
    { "with when as a number", 'when = 1', { "when must be a list", "got number" } },
    { "with an empty when", 'when = {}', { "when is empty" } },
    { "with a misspelt word in when", 'when = { "label" }',
      { "when: 'label' is neither a path", "did you mean 'labels'?" } },
    { "with a number in when", 'when = { 1 }', { "when[1] must be a string, got number" } },
    { "with a broken path in when", 'when = { "spec[" }', { "when: ", "spec[" } },
    { "with indexes as a list of paths", 'indexes = "spec.x"', { "indexes must be a table" } },
    { "with an index that is a number", 'indexes = { a = 1 }', { "index a must be a path", "got number" } },
    { "with an index of a broken path", 'indexes = { a = "spec[" }', { "index a", "spec[" } },
    { "with an index without a name", 'indexes = { "spec.x" }', { "an index has a name" } },
    { "with an index of a broken kind", 'indexes = { ["v1/pood"] = { a = "spec.x" } }',
      { 'indexes: no built-in kind has the name "v1/pood"; did you mean "v1/Pod"?' } },
    { "with the indexes of a kind in two places",
      'indexes = { po = { a = "spec.x" }, ["v1/Pod"] = { b = "spec.x" } }',
      { "indexes of v1/Pod are listed twice" } },
    { "with an index table of a kind that is not a table", 'indexes = { ["v1/Pod"] = "spec.x" }',
      { 'indexes["v1/Pod"] must be a table of indexes' } },
    { "with watches as a list", 'watches = { "v1/Secret", ["v1/Node"] = "owner" }',
      { 'watches must say which keys a change enqueues: { ["v1/Secret"] = "owner" }' } },
    { "with watches as a text", 'watches = "v1/Pod"', { "watches must be a table" } },
    { "with a watch of a broken kind", 'watches = { secrts = "owner" }',
      { 'watches: no built-in kind has the name "secrts"; did you mean "v1/Secret"?' } },
    { "with a kind under two names", 'watches = { deploy = "owner", ["apps/v1/Deployment"] = "same-name" }',
      { 'watches: "apps/v1/Deployment" and "deploy" are the same kind; merge them' } },
    { "with a word that no server knows", 'watches = { Zebra = "owner" }',
      { 'no built-in kind has the name "Zebra"; write a kind of a CRD in full: "group/version/Kind"' } },
    { "with a word that is none", 'watches = { ["a b"] = "owner" }',
      { '"a b" names no kind; write "v1/Pod"' } },
    { "with a watch of an unknown word", 'watches = { ["v1/Secret"] = "samename" }',
      { 'watches["v1/Secret"] must be', "did you mean 'same-name'?" } },
    { "with a watch that is a number", 'watches = { ["v1/Secret"] = 1 }',
      { 'watches["v1/Secret"] must be' } },
    { "with a watch via nothing", 'watches = { ["v1/Secret"] = { via = "src" } }',
      { 'via = "src" must name an index of v1/Pod, and there is none: add it to indexes' } },
    { "with a watch via a misspelt index",
      'indexes = { source = "spec.x" }, watches = { ["v1/Secret"] = { via = "sorce" } }',
    { "did you mean 'source'?" } },
    { "with a watch via an index of another kind",
      'indexes = { ["v1/Node"] = { src = "spec.x" } }, watches = { ["v1/Secret"] = { via = "src" } }',
    { "must name an index of v1/Pod" } },
    { "with an unknown key in a watch", 'watches = { ["v1/Secret"] = { vai = "src" } }',
      { "unknown key 'vai'" } },
    { "with an empty watch", 'watches = { ["v1/Secret"] = {} }',
      { 'watches["v1/Secret"] must be "owner", "same-name", { via = index } or a function' } },
    { "with a watch in two ways",
      'indexes = { a = "spec.x" }, watches = { ["v1/Secret"] = { "owner", via = "a" } }',
    { 'via and "owner" exclude each other' } },
    { "with a misspelt word in a watch's when",
      'watches = { ["v1/Secret"] = { "owner", when = { "label" } } }',
    { 'watches["v1/Secret"].when: \'label\' is neither a path', "did you mean 'labels'?" } },
    { "with an unknown key in when", 'when = { "labels", selectr = "a=b" }',
      { "when: unknown key 'selectr'; did you mean 'selector'?" } },
    { "with a broken selector in when", 'when = { selector = "a=b=" }',
      { "when.selector: label selector", 'found "="' } },
    { "with owns as a text", 'owns = "v1/Secret"', { "owns must be a list of kinds, got string" } },
    { "with owns as a table of names", 'owns = { secret = "v1/Secret" }',
      { 'owns["v1/Secret"] must be a table' } },
    { "with a kind in owns that is not a table", 'owns = { ["v1/Secret"] = true }',
      { 'owns["v1/Secret"] must be a table such as { when' } },
    { "with a force that is neither true nor false", 'owns = { ["v1/Secret"] = { force = "no" } }',
      { 'owns["v1/Secret"].force must be true' } },
    { "with an unknown key in owns", 'owns = { ["v1/Secret"] = { wen = "labels" } }',
      { "did you mean 'when'?" } },
    { "with a selector of what it owns that is none", 'owns = { ["v1/Secret"] = { selector = "a b" } }',
      { 'owns["v1/Secret"].selector: ' } },
    { "with an unknown key in a selector of what it watches",
      'watches = { ["v1/Secret"] = { "owner", selector = { labels = "a=b", label = "c" } } }',
      { "watches[\"v1/Secret\"].selector: unknown key 'label'", "labels" } },
    { "with namespaces of what it reads that are none",
      'reads = { ["v1/Secret"] = { selector = { namespaces = { "A" } } } }',
      { 'reads["v1/Secret"].selector.namespaces[1]: ' } },
    { "with no namespace of what it reads", 'reads = { ["v1/Secret"] = { selector = { namespaces = {} } } }',
      { 'reads["v1/Secret"].selector.namespaces must be a list such as { "default" }' } },
    { "with namespaces in its own selector", 'selector = { namespaces = { "a" } }',
      { "selector.namespaces: those of the resource are the controller's own `namespaces`" } },
    { "with namespaces of what it reads beside divided caches",
      'shard = { by = "namespace", caches = "own" }, \z
      reads = { ["v1/Secret"] = { selector = { namespaces = { "a" } } } }',
      { "selector.namespaces of v1/Secret: shard", 'caches = "all"' } },
    { "with two selections of one kind", 'owns = { "v1/Secret" }, reads = { ["v1/Secret"] = { selector = \z
      "a=b" } }',
      { 'reads["v1/Secret"].selector: this controller has one cache of v1/Secret, and owns["v1/Secret"] \z
        has another selector' } },
    { "with a selector of its resource among what it reads", 'reads = { ["v1/Pod"] = { selector = "a=b" } }',
      { 'reads["v1/Pod"].selector: the resource\'s selector belongs in the controller\'s own `selector`' } },
    { "with a kind in reads that is no table", 'reads = { ["v1/Secret"] = "a=b" }',
      { 'reads["v1/Secret"] must be a table such as { selector = "app=web" }, got string' } },
    { "with a number in owns", 'owns = { 1 }', { "owns must be a kind such as", "got number" } },
    { "with a broken kind in reads", 'reads = { "v1/sekrets" }',
      { 'reads: no built-in kind has the name "v1/sekrets"' } },
    { "with a kind of a strange version", 'reads = { "deployments.v7.apps" }',
      { 'no built-in kind has the name "deployments.v7.apps"; did you mean "apps/v1/Deployment"?' } },
    { "with fields as a text", 'fields = "spec.x"', { "fields must be a list of paths", "got string" } },
    { "with a number in fields", 'fields = { 1 }', { "fields[1] must be a path such as", "got number" } },
    { "with a broken path in fields", 'fields = { "spec..x" }', { 'fields: path "spec..x": a missing key' } },
    { "with one item of a list in fields", 'fields = { "spec.containers[1].image" }',
      { "an index cannot be selected alone" } },
    { "with fields of a kind that it has not", 'reads = { "v1/Secret" }, fields = { ["v1/Secrt"] = {} }',
      { "no such kind in a cache; did you mean 'v1/Secret'?" } },
    { "with fields of a kind as a text", 'reads = { "v1/Secret" }, fields = { ["v1/Secret"] = "data" }',
      { 'fields["v1/Secret"] must be a list of paths' } },
    { "with fields of its own kind twice", 'fields = { "spec", ["v1/Pod"] = { "status" } }',
      { "paths of v1/Pod are listed twice" } },
    { "with fields of its own kind under two names",
      'fields = { po = { "spec" }, ["v1/Pod"] = { "status" } }',
      { "paths of v1/Pod are listed twice" } },
    { "with managed_fields as a text", 'managed_fields = "no"',
      { "managed_fields must be true", "got string" } },
    { "with no worker", 'workers = 0', { "workers must be a whole number from 1 to 256, got 0" } },
    { "with half a worker", 'workers = 1.5', { "workers must be a whole number" } },
    { "with workers in words", 'workers = "two"', { "workers must be a whole number", "got two" } },
    { "with a negative concurrency", 'concurrency = -1',
      { "concurrency must be a whole number from 1 to 10000" } },
    { "with a timeout without a unit", 'timeout = "5"', { "timeout must be a duration above zero" } },
    { "with a timeout of zero", 'timeout = 0', { "timeout must be a duration above zero", "got 0" } },
    { "with a negative resync", 'resync = "-5s"', { "resync must be a duration above zero" } },
    { "with a resync that is a table", 'resync = {}', { "resync must be a duration above zero" } },
    { "with namespaces that are none", 'namespaces = {}', { "namespaces must be a list" } },
    { "with a namespace that cannot be", 'namespaces = { "a", "B_c" }',
      { "namespaces[2]: must consist of lower case letters" } },
    { "with a broken selector", 'selector = "a=b="', { "selector: label selector", 'found "="' } },
    { "with a selector that is a number", 'selector = 1', { "selector must be a label selector" } },
    { "with a misspelt selector", 'selector = { label = "a=b" }',
      { "selector: unknown key 'label'; did you mean 'labels'?" } },
    { "with a broken field selector", 'selector = { fields = "a" }', { "selector.fields: " } },
    { "with metadata of a kind that it has not", 'metadata = { "v1/Secret" }',
      { 'metadata: this controller has no "v1/Secret" in a cache' } },
    { "with metadata and fields of a kind", 'metadata = true, fields = { "spec.x" }',
      { "v1/Pod is in both metadata and fields" } },
    { "with metadata and an index of something else", 'metadata = true, indexes = { node = "spec.nodeName" }',
      { 'only metadata of v1/Pod is fetched, so "spec.nodeName" is always absent' } },
    { "with a finalizer and no finalize", 'finalizer = "example.com/x"', { "finalizer needs a `finalize" } },
    { "with finalize as a text", 'finalize = "x"', { "finalize must be a function(obj, ctx), got string" } },
    { "with a finalizer without a domain", 'finalize = print, finalizer = "x"',
      { 'it must have a domain: "example.com/x"' } },
    { "with a finalizer that is not a name", 'finalize = print, finalizer = "a/b/c"',
      { "finalizer: must have one '/' at most" } },
    { "with a memory of next to nothing", 'memory = "10k"',
      { "memory must be an amount of at least 1Mi", "got 10k" } },
    { "with a memory in a wrong unit", 'memory = "8MB"',
      { "memory must be an amount", "did you mean 'Mi'?" } },
    { "with every in milliseconds", 'every = "50ms"',
      { "every must be at least one second", "requeue_after" } },
    { "with a broken cron", 'cron = "0 25 * * *"', { "'25' is not a valid hour" } },
    { "with a cron in a list that is a number", 'cron = { 3 }', { "cron[1] must be a string" } },
    { "with a priority beyond the most", 'priority = 50',
      { "priority must be a whole number from -49 to 49, got 50" } },
    { "with a priority of a broken path", 'priority = "spec["', { "priority: ", "spec[" } },
    { "with serial as a number", 'serial = 1', { "serial must be a path", "got number" } },
    { "with backoff as a text", 'backoff = "5s"', { "backoff must be a table such as" } },
    { "with a misspelt backoff", 'backoff = { bse = "1s" }',
      { "backoff: unknown key 'bse'; did you mean 'base'?" } },
    { "with a backoff the wrong way round", 'backoff = { base = "10s", max = "1s" }',
      { "backoff: base (10s) is more than max (1s)" } },
    { "with an unknown word in on_reload", 'on_reload = "fail"',
      { 'on_reload must be "all", "failing" or "none"', "got fail" } },
    { "with too much jitter", 'backoff = { jitter = 2 }', { "backoff.jitter must be a number from 0 to 1" } },
    { "with own_writes as a table", 'own_writes = {}', { "own_writes must be a duration" } },
    { "with a leader of its choice", 'leader = "mine"', { "leader must be true", "got mine" } },
    { "with an unknown shard", 'shard = "node"', { "shard must be true (by key)", "got node" } },
    { "with a shard by something else", 'shard = { by = "namspace" }',
      { 'shard.by must be "namespace" or "key", got namspace', "did you mean 'namespace'?" } },
    { "with a shard by nothing", 'shard = { caches = "own" }',
      { 'shard.by must be "namespace" or "key", got nil' } },
    { "with a misspelt shard", 'shard = { by = "namespace", cache = "own" }',
      { "shard: unknown key 'cache'; did you mean 'caches'?" } },
    { "with caches of somebody else", 'shard = { by = "namespace", caches = "mine" }',
      { 'shard.caches must be "own" or "all", got mine' } },
    { "with caches of a part of the keys", 'shard = { by = "key", caches = "own" }',
      { 'caches = "own" needs by = "namespace"' } },
    { "with a misspelt word for shard", 'shard = "namespaces"',
      { "shard must be true (by key)", "did you mean 'namespace'?" } },
    { "with params as a text", 'params = "x"', { "params must be a table, got string" } },
    { "with a function in params", 'params = { f = print }', { "params.f: a function" } },
    { "with a list as params", 'params = { 1, 2 }', { "params must be a table of names, got a list" } },
  }
  for _, row in ipairs(cases) do row[2] = spec(row[2] .. ",") end
  each_refused(cases)

  local whole = {
    { "that is a text", 'kube.controller "x"', { "kube.controller takes a table, got string" } },
    { "without a name", 'kube.controller { resource = "v1/Pod", reconcile = print }',
      { "name must be a string, got nil" } },
    { "with a name in capitals", 'kube.controller { name = "Sync", resource = "v1/Pod", reconcile = print }',
      { 'controller "Sync": a name has lower case letters' } },
    { "with a name that ends in a dash",
      'kube.controller { name = "a-", resource = "v1/Pod", reconcile = print }',
    { "starts and ends with a letter or digit" } },
    { "with a name that is too long",
      'kube.controller { name = ("a"):rep(64), resource = "v1/Pod", reconcile = print }', { "at most 63" } },
    { "without a resource", 'kube.controller { name = "a", reconcile = print }', { "resource is missing" } },
    { "with a resource that is nearly one",
      'kube.controller { name = "a", resource = "v1/podds", reconcile = print }',
      { 'resource: no built-in kind has the name "v1/podds"; did you mean "v1/Pod"?' } },
    { "with a resource that is a number", 'kube.controller { name = "a", resource = 1, reconcile = print }',
      { "resource must be a kind" } },
    { "without reconcile", 'kube.controller { name = "a", resource = "v1/Pod" }',
      { "reconcile must be a function(obj, ctx), got nil" } },
    { "with reconcile as a text", 'kube.controller { name = "a", resource = "v1/Pod", reconcile = "x" }',
      { "reconcile must be a function(obj, ctx), got string" } },
  }
  for _, row in ipairs(whole) do row[2] = 'local kube = require "kubelua"\nreturn ' .. row[2] end
  each_refused(whole)

  it("blames the script's line, also from a helper of the script", function()
    refuses('local kube = require "kubelua"\nlocal h = require "h"\nreturn h(kube)', { "h.lua:2:" },
      { ["h.lua"] = "return function(kube)\n  local c = kube.controller { name = 'a' }\n  return c\nend" })
  end)
end)

describe("what a script may do while loading", function()
  local good = {
    { "require its modules, as files and directories",
      'local m = require "lib.m"\nassert(m == require "lib.m" and m.x == 7 and require "empty" == true)',
      { ["lib/m.lua"] = 'assert(... == "lib.m"); return { x = require "lib" }', ["lib/init.lua"] = "return 7",
        ["empty.lua"] = "" } },
    { "use the libraries", 'assert(string.format("%d", 3) == "3" and #table.pack(1, 2) == 2 and math.max(1, \z
      2) == 2 and utf8.char(228) == "ä" and os.time() > 0)' },
    { "read and make times, in UTC", [[
      local function at(t) return os.time(t) - 1767225600 end -- 2026-01-01T00:00:00Z
      assert(at { year = 2026, month = 1, day = 1, hour = 0 } == 0)
      assert(at { year = 2026, month = 1, day = 2 } == 36 * 3600)
      assert(at { year = 2026, month = 1, day = 1, hour = 1, min = 2, sec = 3 } == 3723)
      local t = { year = 2026, month = 14, day = 1, hour = 23, min = 59, sec = 61 }
      assert(at(t) == 397 * 86400 + 1)
      local text = ""
      for _, key in ipairs { "year", "month", "day", "hour", "min", "sec", "yday", "wday", "isdst" } do
        text = text .. " " .. tostring(t[key])
      end
      assert(text == " 2027 2 2 0 0 1 33 3 false", text)
      for key, wrong in pairs { missing = {}, ["not an integer"] = { day = "x" },
        ["out%-of%-bound"] = { day = (1 << 30) + 1 } } do
        wrong.year, wrong.month = 2026, 1
        local ok, why = pcall(os.time, wrong)
        assert(not ok and why:find("field 'day' .*" .. key), why)
      end
      assert(os.date("%F %T", 1767225600) == "2026-01-01 00:00:00" and os.date("!%T", 3600) == "01:00:00")
      assert(os.date("*t", 86399).hour == 23 and os.date("%Y") >= "2026")
      assert(os.clock() >= 0)]] },
    { "load text in its own environment",
      'assert(load("return 1 + 1")() == 2); assert(load("return x", "c", "t", { x = 3 })() == 3)\nlocal f, \z
      why = load("return +")\nassert(not f and why)\nassert(not pcall(load "return undefined_global"))' },
    { "use coroutines", 'local co = coroutine.wrap(function(a) local b = coroutine.yield(a + 1); return b * \z
      2 end)\nassert(co(1) == 2 and co(5) == 10)' },
    { "catch errors with pcall and xpcall",
      'local ok, e = pcall(error, "x")\nassert(not ok and e == "x")\nlocal ok2, e2, extra = \z
      xpcall(function(a) error(a, 0) end, function(m) return m .. "!" end, "y")\nassert(not ok2 and e2 == \z
      "y!" and extra == nil)\nassert(select(2, xpcall(function(...) return ... end, print, 4, 5)) == 4)' },
    { "use quantities, durations and copies",
      'local kube = require "kubelua"\nassert(tostring(kube.qty "500m" + kube.qty "1500m") == "2")' },
    { "set metatables", 'local t = setmetatable({}, { __index = function(_, k) return k .. "!" end \z
      })\nassert(t.a == "a!")' },
    { "print", 'print("hello", 1, nil)' },
    { "tell values apart without seeing where they lie", [[
      local made_up = false
      for _ = 1, 20 do
        for _, v in ipairs { {}, function() end, coroutine.create(print), print } do
          local text = tostring(v)
          assert(text == tostring(v) and text == ("%-s"):format(v) and text ~= tostring {}, text)
          assert(text:find("^" .. type(v) .. ": 0x%x+$"), text)
          made_up = made_up or math.ult(1 << 48, math.tointeger(text:match "0x%x+"))
        end
      end
      assert(made_up, "all numbers are small enough to be addresses")
      assert(tostring(setmetatable({}, { __name = "thing" })):find "^thing: 0x")
      assert(("%s%%p"):format(setmetatable({}, { __tostring = function() return "mine" end })) == "mine%p")
      for _, how in ipairs { "%p", "%-20p", "%%%d %p" } do
        local ok, why = pcall(string.format, how, 1, {})
        assert(not ok and why:find "'%%p' would show", why)
      end]] },
  }
  for _, c in ipairs(good) do
    it(c[1], function()
      local out,
        code = checked(c[2] .. '\nreturn require "kubelua".controller { name = "x", resource = "v1/Pod", \z
        reconcile = function() end }', c[3])
      assert.equal(0, code, out)
    end)
  end
end)

describe("a file of tests", function()
  it("is recognized, and skipped if scripts are named beside it", function()
    local d = dir()
    local tests = process.write(d .. "/x_test.lua", "describe('x', function() end)\n")
    local script = process.write(d .. "/x.lua",
      'return require "kubelua".controller { name = "x", resource = "v1/Pod", reconcile = function() end }\n')
    local out, code = check(tests, script)
    assert.equal(0, code, out)
    assert.equal("controller x\n  resource    v1/Pod\n", out)
    out, code = check(tests)
    assert.equal(1, code, out)
    assert.matches("x_test.lua: files named *_test.lua are tests of scripts: kubelua test " .. tests, out, 1,
      true)
  end)
end)

describe("an endless name of a kind", function()
  it("is not compared with known names", function()
    for _, key in ipairs { "resource = KIND", 'resource = "v1/Pod", owns = { KIND }',
      'resource = "v1/Pod", reads = { KIND }', 'resource = "v1/Pod", watches = { [KIND] = "owner" }' } do
      refuses(([[local KIND = ("k"):rep(20000000)
        return require "kubelua".controller { name = "x", %s, reconcile = function() end }]]):format(key),
        { "none has a name of more than 512 bytes" })
    end
  end)
end)

describe("an endless path", function()
  it("is rejected before it is parsed", function()
    for _, key in ipairs { "fields = { PATH }", 'fields = { ["v1/Pod"] = { PATH } }, reads = { "v1/Pod" }',
      "indexes = { x = PATH }", "when = { PATH }" } do
      refuses(([[local PATH = ("a."):rep(500000) .. "b"
        return require "kubelua".controller { name = "x", resource = "v1/ConfigMap", %s,
          reconcile = function() end }]]):format(key), { "more than 512 steps" })
    end
  end)
end)

describe("a command that looks at a script", function()
  local server, commands
  lazy_setup(function()
    server = servers.embedded {}
    -- It goes into a format of string.format, so its % are doubled.
    local kubeconfig = process.quote(server.kubeconfig):gsub("%%", "%%%%")
    commands = { "sim %s --set none=1,2", "check %s", "rbac %s", "explain %s --kubeconfig " .. kubeconfig }
  end)
  lazy_teardown(function() server:stop() end)

  it("gives it only the library of scripts", function()
    local d = dir()
    local script = process.write(d .. "/x.lua", ([[
      local kube = require "kubelua"
      pcall(function() io.open(%q, "w"):close() end)
      pcall(function() os.execute(%q) end)
      pcall(function() require("kubelua.core").tree(".", ".lua") io.open(%q, "w") end)
      return kube.controller { name = "x", resource = "v1/Pod", reconcile = function() end }
    ]]):format(d .. "/harm", "touch " .. d .. "/harm", d .. "/harm"))
    for _, words in ipairs(commands) do
      local out = process.run(KUBELUA .. " " .. words:format(process.quote(script)))
      assert.is_nil(process.read(d .. "/harm"), words .. ": " .. out)
    end
  end)

  -- Each takes two seconds of the processor, and all use the loader of `check`.
  if sizes.of { short = 0, long = 1 } == 1 then
    it("ends if loading takes too long", function()
      local script = process.write(dir() .. "/x.lua", "while true do end")
      for _, words in ipairs(commands) do
        local out, code = process.run(KUBELUA .. " " .. words:format(process.quote(script)))
        assert.equal(1, code, out)
        assert.matches("x.lua:1: loading takes longer than 2s of processor time", out, 1, true)
      end
    end)
  end
end)
