-- shadow_spec.lua - a candidate runs on live keys in the shadow of the running logic: it writes nothing, and
-- its intended writes are compared.

local process = require "support.process"
local wait = require "support.wait"
local widgets = require "support.widgets"

local SECONDS = 30
local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

widgets.each("shadow-spec", function(t)
  local socket

  before_each(function() socket = process.tmpname ".sock" end)

  local function run(lines, ...) return t.run(lines, "--control", socket, ...) end

  local function candidate(lines) return process.write(process.tmpname ".lua", t.script(lines)) end

  local function shadow(...)
    return process.run(table.concat({ KUBELUA, "shadow", "--socket", socket, ... }, " "))
  end

  -- Waits until the report has these words; returns all of it.
  local function reports(words)
    local text
    local ok = pcall(wait.until_true, SECONDS, words, function()
      text = shadow()
      return text:find(words, 1, true)
    end)
    if not ok then
      error(("the report never said %q, but:\n%s\nthe log:\n%s"):format(words, text, t.process:log()), 2)
    end
    return text
  end

  local function child(name) return t.client:get("v1/ConfigMap", t.ns, "child-" .. name) end

  local function arrived(name, n)
    wait.until_true(SECONDS, "the child of " .. name, function()
      return child(name) and child(name)("data.n") == n
    end)
  end

  local LIVE = [[
    owns = { "v1/ConfigMap" },
    reconcile = function(obj, ctx)
      ctx:apply { kind = "v1/ConfigMap", name = "child-" .. ctx.name, data = { n = tostring(obj.spec.n) } }
      return { status = { n = obj.spec.n, at = tostring(ctx:now()) } }
    end]]

  -- Does the same in other words, except for d and f; its other writes must never reach the server.
  it("reports a kind of difference once, and the number of keys", function()
    for i = 1, 3 do t.widget("w" .. i, { n = i }) end
    run(LIVE, "--shadow", candidate((LIVE:gsub("tostring%(obj.spec.n%)", "tostring(obj.spec.n + 10)"))))
    for i = 1, 3 do arrived("w" .. i, tostring(i)) end
    local text = reports "0 same, 3 differ"
    local _, lines = text:gsub("data.n: ", "")
    assert.equal(1, lines, text)
    assert.has_match("\n    2 more keys like this\n", text)
    assert.is_nil(text:find "and %-?%d+ more\n")
  end)

  local NEXT = [[
    owns = { "v1/ConfigMap" },
    reconcile = function(obj, ctx)
      if ctx.name == "f" then error("no f, please") end
      local n = ctx.name == "d" and obj.spec.n + 1 or obj.spec.n
      local had = ctx:get("v1/ConfigMap", "child-" .. ctx.name)
      if had and not obj("status.n") then error("the world was mended before I saw it") end
      local made = ctx:create_or_patch({ kind = "v1/ConfigMap", name = "child-" .. ctx.name },
        function(m) m.data.n = tostring(n) end)
      if ctx:get("v1/ConfigMap", "child-" .. ctx.name).data.n ~= made.data.n then
        error("it does not see its own write")
      end
      if ctx.name == "d" then ctx:create { kind = "v1/Secret", name = "never", stringData = { a = "b" } } end
      ctx:event("Candidate", "this must not be told")
      return { status = { n = obj.spec.n, at = tostring(ctx:now()) } }
    end]]

  it("counts same, different and failed keys, and writes nothing", function()
    run(LIVE, "--shadow", candidate(NEXT))
    for _, name in ipairs { "a", "b", "c", "d", "f" } do t.widget(name, { n = 1 }) end
    for _, name in ipairs { "a", "b", "c", "d", "f" } do arrived(name, "1") end
    local text = reports "3 same, 1 differs, 1 fails"
    assert.has_match("d differs: .*v1/ConfigMap " .. t.ns:gsub("%p", "%%%0")
      .. '/child%-d: data%.n: "1" %-> "2"', text)
    assert.has_match("v1/Secret " .. t.ns:gsub("%p", "%%%0") .. "/never: gone %-> there data: %(added%)",
      text)
    assert.has_match("f fails: result: done %-> error %(.*no f, please", text)
    assert.is_nil(t.client:get("v1/Secret", t.ns, "never"))
    assert.equal("1", child "d" "data.n")
    for e in t.client:each("events.k8s.io/v1/Event", { namespace = t.ns }) do
      assert.not_equal("Candidate", e.reason)
    end
    t.silent "this must not be told"
    local _, code = shadow()
    assert.equal(1, code)
    -- It is removed, and the live logic is unaffected.
    assert.has_match("left the shadow: 3 same", (shadow "--end"))
    assert.has_match("no candidate runs in the shadow", (shadow()))
    t.client:patch(t.get "d", { spec = { n = 7 } })
    arrived("d", "7")
  end)

  it("is started by a command, restarts when its file changes, and is promoted by a command", function()
    -- Only the spec wakes a key: no late run that a child woke is counted.
    local live, next_one = LIVE:gsub("owns =", "reads ="), NEXT:gsub("owns =", "reads =")
    run(live)
    local path = candidate(next_one)
    t.widget("b", { n = 1 })
    t.await("b", "the status, with which its run ends", function(o) return o("status.n") == 1 end)
    -- A bare name is resolved in the command's working directory, whatever PWD says.
    local dir, name = path:match "^(.*)/([^/]*)$"
    assert.has_match("in the shadow of", (process.run(("env -C %s PWD=/ %s shadow --socket %s %s"):format(dir,
      KUBELUA, socket, name))))
    reports "0 same, 0 differ"
    t.client:patch(t.get "b", { spec = { n = 2 } })
    reports "1 same, 0 differ, 0 fail"
    process.write(path, t.script((next_one:gsub('ctx.name == "d" and', 'ctx.name == "b" and'))))
    reports "0 same, 0 differ"
    t.client:patch(t.get "b", { spec = { n = 3 } })
    local text = reports "0 same, 1 differs"
    assert.has_match('data%.n: "3" %-> "4"', text)
    process.write(path, "this is not Lua")
    t.says "the changed candidate cannot run"
    assert.has_match("was promoted: 0 same, 1 differs", (shadow "--promote"))
    arrived("b", "4")
    assert.has_match("no candidate runs in the shadow", (shadow()))
    -- It stays while the script's file is unchanged, until a reload is requested.
    local out, code = process.run(table.concat({ KUBELUA, "reload", "--socket", socket, "2>&1" }, " "))
    assert.equal(0, code, out)
    assert.has_match("generation 3", out)
  end)

  it("judges runs from before its caches synced", function()
    local crd = "apiextensions.k8s.io/v1/CustomResourceDefinition"
    local group = t.ns .. ".example.com"
    run((LIVE:gsub("owns =", "reads =")))
    local path = candidate((LIVE:gsub("owns = { ", ("reads = { %q, "):format(group .. "/v1/Late"))))
    t.widget("a", { n = 1 })
    arrived("a", "1")
    assert.has_match("in the shadow of", (shadow(path)))
    reports "is the CRD installed?"
    t.client:patch(t.get "a", { spec = { n = 2 } })
    arrived("a", "2")
    assert.has_match("is the CRD installed?", (shadow()))
    t.client:create { kind = crd, name = "lates." .. group, spec = { group = group, scope = "Namespaced",
      names = { kind = "Late", plural = "lates" }, versions = { { name = "v1", served = true, storage = true,
        schema = { openAPIV3Schema = { type = "object" } } } } } }
    finally(function() t.client:delete(crd, "lates." .. group) end)
    reports "1 same, 0 differ, 0 fail"
  end)

  it("runs every key once on request, and reports the result", function()
    run((LIVE:gsub("owns =", "reads =")))
    for _, name in ipairs { "a", "d", "f" } do t.widget(name, { n = 1 }) end
    for _, name in ipairs { "a", "d", "f" } do arrived(name, "1") end
    local path = candidate((NEXT:gsub("owns =", "reads =")))
    local text, code = shadow(path, "--all")
    assert.equal(1, code, text)
    assert.has_match(path:gsub("%p", "%%%0") .. " in the shadow of .*: 1 same, 1 differs, 1 fails",
      text)
    assert.has_match("d differs: ", text)
    assert.has_match("a candidate, %-%-promote and %-%-end", (shadow("--end", "--promote")))
  end)

  it("sees the live script's memo, and does not change it", function()
    local counting = [[
    owns = { "v1/ConfigMap" },
    reconcile = function(obj, ctx)
      if ctx.memo.n ~= obj.spec.n then ctx.memo.n, ctx.memo.count = obj.spec.n, (ctx.memo.count or 0) + 1 end
      ctx:apply { kind = "v1/ConfigMap", name = "child-" .. ctx.name,
        data = { n = tostring(obj.spec.n), count = tostring(ctx.memo.count) } }
    end]]
    run(counting, "--shadow", candidate(counting))
    t.widget("a", { n = 1 })
    arrived("a", "1")
    for n = 2, 4 do
      t.client:patch(t.get "a", { spec = { n = n } })
      arrived("a", tostring(n))
    end
    assert.equal("4", child "a" "data.count")
    reports "1 same, 0 differ, 0 fail"
  end)

  it("takes over automatically when enough keys match", function()
    run(LIVE, "--shadow", candidate((LIVE:gsub("return { status = {",
      "return { status = { new = obj.spec.n > 1 or nil,"))), "--promote-after", "3")
    for _, name in ipairs { "a", "b" } do t.widget(name, { n = 1 }) end
    arrived("b", "1")
    reports "2 same, 0 differ"
    t.widget("c", { n = 1 })
    t.says "the candidate was promoted"
    t.client:patch(t.get "c", { spec = { n = 2 } })
    t.await("c", "the new logic's word", function(o) return o("status.new") end)
  end)

  it("is rejected if it cannot run, or if no controller has its name", function()
    run(LIVE)
    t.says "running"
    local text, code = shadow(process.write(process.tmpname ".lua", "return 1 +"))
    assert.equal(1, code)
    assert.has_match("unexpected symbol near <eof>", text)
    text, code = shadow(process.write(process.tmpname ".lua",
      'return require "kubelua".controller { name = "other", resource = "v1/Pod", reconcile = \z
      function() end }'))
    assert.equal(1, code)
    assert.has_match("has none of the controllers that run here: its first is other, and "
      .. t.name:gsub("%p", "%%%0"), text)
    shadow(candidate [[reads = { "example.com/v1/Nothing" }, reconcile = function() end]])
    reports "example.com/v1/Nothing"
    shadow "--end"
    text, code = shadow "--promote"
    assert.equal(1, code)
    assert.has_match("no candidate runs in the shadow", text)
  end)
end)
