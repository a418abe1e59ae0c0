-- attach_spec.lua - kubelua attach: a prompt in a running process; the spec types.
-- real in asan, tsan: WebSockets over TLS

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local SCRIPT = [[
local kube = require "kubelua"
return kube.controller {
  name = "maps", resource = "v1/ConfigMap", namespaces = { %q }, params = { color = "red", size = 3 },
  indexes = { color = "data.color" },
  reconcile = function(map, ctx)
    if ctx.params.size > 5 then error "too big" end
    ctx:patch(map, function(m) m.metadata.annotations = { color = ctx.params.color } end)
  end,
}
]]

servers.each(function(name, start_server)
  describe("kubelua attach against " .. name, function()
    local server, client, ns, dir, run
    lazy_setup(function()
      server = start_server {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function()
      ns = controller.namespace(client, "attach")
      dir = process.tmpname ".runtime"
      assert(select(2, process.run("mkdir -m 700 " .. process.quote(dir))) == 0)
      run = controller.start_with({ "XDG_RUNTIME_DIR=" .. dir }, server, SCRIPT:format(ns),
        "--metrics-bind-address", "127.0.0.1:0")
      run:wait_for_log(60, "controller is running")
    end)
    after_each(function() if run:alive() then controller.finish(run) end end)

    -- Types lines; returns the output and the status.
    local function type_in(...)
      local file = process.write(process.tmpname ".lua", table.concat({ ... }, "\n") .. "\n")
      return process.run(("XDG_RUNTIME_DIR=%s %s attach < %s"):format(process.quote(dir), KUBELUA,
        process.quote(file)))
    end

    local function await(text, ...)
      local lines = { ... }
      wait.until_true(30, text, function()
        local out = type_in(table.unpack(lines))
        if not out:find(text) then error(out, 0) end
        return true
      end)
    end

    local function map(of, data)
      return client:create { kind = "v1/ConfigMap", namespace = ns, name = of, data = data }
    end
    local function color(of) return client:get("v1/ConfigMap", ns, of)("metadata.annotations.color") end

    it("reads caches and indexes, and shows the state", function()
      map("a", { color = "blue" })
      map("b", { color = "green" })
      await("color: blue", ("get('v1/ConfigMap', %q, 'a')"):format(ns))
      local out,
        code = type_in("for o in each('cm', { index = 'color', value = 'green' }) do print('found ' .. \z
        o.metadata.name) end", "controllers()", "informers()")
      assert.equal(0, code, out)
      assert.truthy(out:find "found b\n" and not out:find "found a\n", out)
      assert.truthy(out:find "maps +v1/ConfigMap +running +1 ", out)
      assert.truthy(out:find "v1/ConfigMap .-watching +2 ", out)
      await("it runs again when something changes", ("why('cm', %q)"):format(ns .. "/a"))
      assert.falsy(run:log():find("control command", 1, true), "what only looks is not told")
    end)

    it("reports mistakes, with status 1", function()
      for line, said in pairs {
        ["get('v1/Secret', 'a')"] = "no controller of this process keeps v1/Secret in its cache",
        ["get('v1/ConfgMap', 'a')"] =
          "no controller of this process keeps v1/ConfgMap in its cache: did you mean v1/ConfigMap? (they \z
          keep v1/ConfigMap",
        ["reconcile('v1/Secret', 'a')"] =
          "no controller of this process reconciles v1/Secret (they are for v1/ConfigMap",
        ["pause()"] = 'pause: name the controller: pause("NAME"); controllers() lists them',
        ["reconcile 'maps'"] = 'reconcile: name the object: reconcile("v1/ConfigMap", "namespace/name")',
        ["lst 'cm'"] = "did you mean 'list'?",
        ["get('cm', 'elsewhere/a')"] = "only, without elsewhere: add it there",
        ["list('cm', { indx = 'color' })"] = "list: there is no indx; did you mean 'index'?",
        ["list('cm', { index = 'colour', value = 'x' })"] = "colour",
        ["pause 'mapz'"] = "there is no controller mapz: did you mean maps?",
        ["reconcile('cm', 'a')"] = "a is not in the cache of cm",
        ["set_params('maps', { colr = 'x' })"] = "maps has no param colr (did you mean color?)",
        ["set_params('maps', { size = 'x' })"] = 'param size of maps must be a number, got "x"',
      } do
        local out, code = type_in(line)
        assert.truthy(out:find(said, 1, true), line .. ": " .. out)
        assert.equal(1, code)
      end
    end)

    it("pauses a controller, which stays ready, and resumes it", function()
      type_in "pause 'maps'"
      assert.truthy(run:log():find(('control command uid=%s pid='):format((process.run "id -u"):gsub("%s",
        "")), 1, true))
      await("maps +v1/ConfigMap +paused ", "controllers()")
      map("a")
      await("maps is paused: no key runs until it is resumed", ("why('cm', %q)"):format(ns .. "/a"))
      assert.truthy(controller.metrics(run):find('kubelua_controller_paused{controller="maps"} 1', 1, true))
      assert.is_nil(color "a")
      type_in "resume 'maps'"
      wait.until_true(30, "the key runs", function() return color "a" == "red" end)
    end)

    it("runs a key without writing, and shows what it would write", function()
      map("a")
      wait.until_true(30, "the key has run", function() return color "a" == "red" end)
      type_in("pause 'maps'", "set_params('maps', { color = 'blue' })")
      await("color: blue", "params 'maps'")
      local out, code = type_in(("run('cm', %q, { dry = true })"):format(ns .. "/a"))
      assert.equal(0, code, out)
      assert.truthy(out:find "patched v1/ConfigMap" and out:find('would patch v1/ConfigMap ' .. ns
        .. '/a: metadata.annotations.color: "red" -> "blue"', 1, true), out)
      assert.equal("red", color "a")
      type_in "set_params('maps', { size = 6 })"
      await("size: 6", "params 'maps'")
      out = type_in(("run('cm', %q, { dry = true })"):format(ns .. "/a"))
      assert.truthy(out:find "error: .*too big" and out:find "it would write nothing", out)
      out, code = type_in(("run('cm', %q, { dry = true })"):format(ns .. "/gone"))
      assert.equal(1, code)
      assert.truthy(out:find(ns .. "/gone is not in the cache of cm", 1, true), out)
    end)

    it("runs a key manually, and sets params until the next generation", function()
      map("a")
      wait.until_true(30, "the key has run", function() return color "a" == "red" end)
      type_in(("reconcile('cm', %q)"):format(ns .. "/a"))
      await("by hand", ("why('cm', %q)"):format(ns .. "/a"))
      local out = type_in "set_params('maps', { color = 'blue' })"
      assert.truthy(out:find "color: blue" and out:find "size: 3", out)
      wait.until_true(30, "the key has run with them", function() return color "a" == "blue" end)
      await("color: blue", "params 'maps'")
      local log = run:log()
      assert.truthy(log:find "params were set manually[^\n]* params=color", log)
      assert.falsy(log:find("params=[^\n]*blue"), log)
      process.write(run.script_path, process.read(run.script_path):gsub('"red"', '"green"'))
      wait.until_true(30, "the next generation has its own", function() return color "a" == "green" end)
      await("color: green", "params 'maps'")
    end)
  end)
end)

describe("kubelua dev", function()
  local dir, run
  before_each(function()
    dir = process.tmpname ".dev"
    assert(select(2, process.run("mkdir -m 700 " .. process.quote(dir))) == 0)
    process.write(dir .. "/maps.lua", SCRIPT:format "default")
    run = process.spawn { "env", "XDG_RUNTIME_DIR=" .. dir, KUBELUA, "dev", dir .. "/maps.lua",
      "--write-kubeconfig", dir .. "/kc" }
    run:wait_for_log(30, "controller is running")
    process.write(dir .. "/map.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: card}}")
    local out, code = process.run(("%s apply --kubeconfig %s/kc -f %s/map.yaml"):format(KUBELUA, dir, dir))
    assert.equal(0, code, out)
  end)
  after_each(function() run:stop(30) end)

  it("logs its writes, and uses the namespace default for a bare name", function()
    run:wait_for_log(30,
      "wrote controller=maps key=default/card verb=patch kind=v1/ConfigMap object=default/card \z
      changes=\"metadata.annotations: none -> {\\\"color\\\":\\\"red\\\"}\"")
    local function asks(words)
      local out, code = process.run(("XDG_RUNTIME_DIR=%s %s %s"):format(process.quote(dir), KUBELUA, words))
      assert.equal(0, code, out)
      return out
    end
    assert.matches("color: red", asks "attach -e 'get(\"cm\", \"card\")'")
    assert.matches("it would write nothing", asks "attach -e 'run(\"cm\", \"card\", { dry = true })'")
    assert.equal("", asks "attach -e 'reconcile(\"cm\", \"card\")'")
    local story = asks "why cm card"
    assert.matches("by hand", story)
    assert.equal(story:match "maps: ([^\n]+)", asks("why cm card -n default"):match "maps: ([^\n]+)")
  end)
end)
