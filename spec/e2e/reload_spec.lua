-- reload_spec.lua - a running process takes new logic: under load, with new kinds, without old controllers.
-- real in asan, tsan: watches over HTTP/2 go on through generations

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local MAPS, SAVES = 200, 20

-- ---------------------------------------------------------------- a directory with a script, saved as
-- editors save

local function directory()
  local dir = process.tmpname ".scripts"
  assert(select(2, process.run("mkdir -p " .. process.quote(dir))) == 0)
  return dir
end

local function in_place(path, text) process.write(path, text) end

local function renamed(path, text)
  process.write(path .. ".new", text)
  assert(os.rename(path .. ".new", path))
end

-- ---------------------------------------------------------------- what a process says about itself

local function count(text, what)
  local n, at = 0, 1
  while true do
    local from, to = text:find(what, at, true)
    if not from then return n end
    n, at = n + 1, to + 1
  end
end

-- The value of a metric with a label, or nil.
local function metric(run, name, label)
  for labels, value in controller.metrics(run):gmatch("\n" .. name .. "{([^}\n]*)} (%S+)") do
    if labels:find(label, 1, true) then return tonumber(value) end
  end
end

local function lists(run, kind)
  return metric(run, "kubelua_informer_lists_total", ('kind="%s"'):format(kind))
end

-- Threads whose name begins so.
local function threads(run, prefix)
  local out = process.run(("cat /proc/%d/task/*/comm"):format(run.pid))
  return count("\n" .. out, "\n" .. prefix)
end

local function crd(group, kind)
  local plural = kind:lower() .. "s"
  return {
    apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = plural .. "." .. group },
    spec = {
      group = group, scope = "Namespaced", names = { kind = kind, plural = plural, singular = kind:lower(),
        listKind = kind .. "List" },
      versions = { {
        name = "v1", served = true, storage = true,
        schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } },
      } },
    },
  }
end

servers.each(function(name, start)
  describe("new logic in `kubelua run` against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function() ns = controller.namespace(client, "reload") end)

    local function create(key, data)
      client:create { kind = "v1/ConfigMap", namespace = ns, name = key, data = data or { touch = "0" } }
    end
    local function data(key, field) return client:get("v1/ConfigMap", ns, key)("data." .. field) end

    local function await(key, field, value)
      wait.until_true(60, ("%s of %s is %s"):format(field, key, value), function()
        local got = data(key, field)
        if got ~= value then error("it is " .. tostring(got), 0) end
        return true
      end)
    end

    local function run(path, ...)
      return controller.start(server, path, "--namespace", ns, "--metrics-bind-address", "127.0.0.1:0", ...)
    end

    -- A script whose controllers write `value` into `field` of every ConfigMap; `more` are other keys of
    -- the spec.
    local function marking(field, value, more)
      return ([[
        local kube = require "kubelua"
        return kube.controller {
          name = "marks", resource = "v1/ConfigMap", %s
          reconcile = function(map, ctx)
            local value = %s
            if map("data.%s") ~= value then ctx:patch(map, function(m) m.data.%s = value end) end
          end,
        }
      ]]):format(more or "", value, field, field)
    end

    it("takes over again and again under load: no key is lost, nothing is listed twice", function()
      local dir = directory()
      local main, module = dir .. "/main.lua", dir .. "/greeting.lua"
      local function main_text(round)
        return ([[
          -- round %d
          local kube = require "kubelua"
          -- nil while a save in place has emptied the file
          local of = require "greeting".of
          return kube.controller {
            name = "greets", resource = "v1/ConfigMap", workers = 2,
            reconcile = function(map, ctx)
              local touch = map("data.touch")
              local want = touch and of(touch)
              if map("data.greeting") ~= want then ctx:patch(map, function(m) m.data.greeting = want end) end
            end,
          }
        ]]):format(round)
      end
      local function module_text(round)
        return ("return { of = function(touch) return %q .. touch end }"):format("round " .. round .. ": ")
      end

      process.write(main, main_text(0))
      process.write(module, module_text(0))
      for i = 1, MAPS do create("map-" .. i) end
      local p = run(main)
      p:wait_for_log(30, "greets: running")

      local touches, next_map = {}, 1
      local function touch(n)
        for _ = 1, n do
          touches[next_map] = (touches[next_map] or 0) + 1
          client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "map-" .. next_map },
            { data = { touch = tostring(touches[next_map]) } })
          next_map = next_map % MAPS + 1
        end
      end

      local loaded, refused = 0, 0
      for round = 1, SAVES do
        local save = round % 2 == 0 and renamed or in_place
        touch(MAPS // SAVES)
        if round % 5 == 0 and round < SAVES then
          save(module, "return { of = function(touch)")                -- half a file
          refused = refused + 1
        else
          save(module, module_text(round))
          if round % 3 == 0 then save(main, main_text(round)) end
          loaded = loaded + 1
        end
        touch(MAPS // SAVES)
        wait.until_true(30, "the save of round " .. round, function()
          local log = p:log()
          return count(log, "the new script was refused") >= refused
            and count(log, "loaded the next generation") >= loaded
        end)
      end

      wait.until_true(120, "the last logic's greeting of everything", function()
        for map in client:each("v1/ConfigMap", { namespace = ns }) do
          local i = tonumber(map.metadata.name:match "^map%-(%d+)$")
          local want = i and ("round %d: %d"):format(SAVES, touches[i])
          if map("data.greeting") ~= want then
            error(("%s has %s, not %s"):format(map.metadata.name, map("data.greeting"), want), 0)
          end
        end
        return true
      end)
      assert.equal(1, lists(p, "v1/ConfigMap"))
      -- Lua cuts the front off a long path.
      assert.truthy(p:log():find("/greeting.lua:1:", 1, true), "the refusal names the place:\n" .. p:log())
      assert.is_nil(p:log():find("reconcile failed", 1, true), p:log())
      controller.finish(p)
    end)

    it("takes over with its own functions for indexes, mappings and changes, while events come in", function()
      local function text(round)
        return ([[
          local kube = require "kubelua"
          return kube.controller {
            name = "copies", resource = "v1/ConfigMap",
            when = function(now, old) return now("data.copy") ~= old("data.copy") end,
            indexes = { word = function(map) return map("data.word") end },
            watches = {
              ["v1/Secret"] = function(secret, ctx)
                local keys = {}
                for map in ctx:each("v1/ConfigMap",
                  { index = "word", value = secret("metadata.labels.word") or "none" }) do
                  keys[#keys + 1] = map.metadata.namespace .. "/" .. map.metadata.name
                end
                return keys
              end,
            },
            reconcile = function(map, ctx)
              local secret = map("data.word") and ctx:get("v1/Secret", "of-" .. map.data.word)
              local copy = secret and "%d: " .. secret.metadata.labels.value
              if copy and map("data.copy") ~= copy then ctx:patch(map, function(m) m.data.copy = copy end) end
            end,
          }
        ]]):format(round)
      end
      local words, value = 20, 0
      for i = 1, words do
        create("map-" .. i, { word = "w" .. i })
        client:create { kind = "v1/Secret", namespace = ns, name = "of-w" .. i,
          labels = { word = "w" .. i, value = "0" } }
      end
      local p = run(process.write(directory() .. "/main.lua", text(1)))
      await("map-1", "copy", "1: 0")
      for round = 2, 8 do
        renamed(p.script_path, text(round))
        value = value + 1
        for i = 1, words do
          client:patch({ kind = "v1/Secret", namespace = ns, name = "of-w" .. i },
            { metadata = { labels = { value = tostring(value) } } })
        end
      end
      for i = 1, words do await("map-" .. i, "copy", "8: " .. value) end
      -- Only an event can wake the map now.
      client:patch({ kind = "v1/Secret", namespace = ns, name = "of-w3" },
        { metadata = { labels = { value = "last" } } })
      await("map-3", "copy", "8: last")
      assert.equal(1, lists(p, "v1/ConfigMap"))
      assert.equal(1, lists(p, "v1/Secret"))
      assert.is_nil(p:log():find("ERROR", 1, true), p:log())
      controller.finish(p)
    end)

    it("lets active runs finish with their old logic", function()
      create "bed"
      local p = run(process.write(directory() .. "/main.lua", [[
        local kube = require "kubelua"
        return kube.controller {
          name = "marks", resource = "v1/ConfigMap",
          reconcile = function(map, ctx)
            if map.metadata.name ~= "bed" then return end
            ctx.log:info "asleep"
            while not ctx.live:get("v1/ConfigMap", "gate") do ctx:sleep "50ms" end
            ctx:patch(map, function(m) m.data.slept = "generation " .. ctx.generation end)
          end,
        }
      ]]))
      p:wait_for_log(30, "asleep")
      create "awake"
      renamed(p.script_path, marking("mark", '"generation " .. ctx.generation'))
      await("awake", "mark", "generation 2")
      assert.is_nil(data("bed", "slept"))
      create "gate"
      await("bed", "slept", "generation 1")
      await("bed", "mark", "generation 2")
      controller.finish(p)
    end)

    it("waits until a new kind is synced, and does not list the others again", function()
      for i = 1, 50 do
        client:create { kind = "v1/Secret", namespace = ns, name = "secret-" .. i, stringData = { a = "b" } }
      end
      create "map"
      local p = run(process.write(directory() .. "/main.lua", marking("mark", '"nothing"')))
      await("map", "mark", "nothing")
      assert.is_nil(lists(p, "v1/Secret"))
      -- All counts that it saw are kept.
      renamed(p.script_path, marking("counts", [[(function()
        local n, before = #ctx:list "v1/Secret", map("data.counts") or ""
        return (" " .. before .. " "):find(" " .. n .. " ", 1, true) and before or (before .. " " .. n)
      end)()]], 'reads = { "v1/Secret" },'))
      await("map", "counts", " 50")
      assert.equal(1, lists(p, "v1/Secret"))
      assert.equal(1, lists(p, "v1/ConfigMap"))
      controller.finish(p)
    end)

    it("waits for a missing kind while the old generation works, and takes over when it appears",
      function()
      local group = ("g%d.example.com"):format(math.random(100000, 999999))
      create "first"
      local p = run(process.write(directory() .. "/main.lua", marking("mark", '"old"')))
      await("first", "mark", "old")
      renamed(p.script_path, marking("mark", '"new"', ('reads = { "%s/v1/Widget" },'):format(group)))
      p:wait_for_log(30, "the new generation waits; the old one keeps running")
      p:wait_for_log(20, ('the server has no \\"%s/v1/Widget\\"'):format(group))
      create "second"
      await("second", "mark", "old")
      client:create(crd(group, "Widget"))
      await("second", "mark", "new")
      await("first", "mark", "new")
      controller.finish(p)
    end)

    it("keeps a controller while its new resource is missing, and replaces it then", function()
      local group = ("g%d.example.com"):format(math.random(100000, 999999))
      create "first"
      local old = marking("mark", '"old"')
      local new = old:gsub('"v1/ConfigMap"', ('"%s/v1/Gadget"'):format(group))
      local p = run(process.write(directory() .. "/main.lua", old))
      await("first", "mark", "old")
      renamed(p.script_path, new)
      p:wait_for_log(30, "a kind is missing")
      create "second"
      await("second", "mark", "old")
      assert.equal(1, metric(p, "kubelua_generation", "controller"))
      local ready = process.run(("%s attach --pid %d -e 'controllers()'"):format(KUBELUA, p.pid))
      assert.truthy(ready:find("v1/ConfigMap +running +1 .*its next generation, for " .. group
        .. "/v1/Gadget, is not ready: "), ready)
      client:create(crd(group, "Gadget"))
      p:wait_for_log(60, "the new generation lacks this controller; it stops")
      wait.until_true(30, "the end of the old informer", function() return not lists(p, "v1/ConfigMap") end)
      wait.until_true(30, "a gadget", function()
        return client:create { apiVersion = group .. "/v1", kind = "Gadget",
          metadata = { namespace = ns, name = "g" }, data = {} }
      end)
      wait.until_true(30, "its mark", function()
        return client:get(group .. "/v1/Gadget", ns, "g")("data.mark") == "old"
      end)
      controller.finish(p)
    end)

    it("returns to its old resource if the new one never appears", function()
      create "first"
      local old = marking("mark", '"old"')
      local p = run(process.write(directory() .. "/main.lua", old))
      await("first", "mark", "old")
      renamed(p.script_path, (old:gsub('"v1/ConfigMap"', '"never.example.com/v1/Gadget"')))
      p:wait_for_log(30, "a kind is missing")
      renamed(p.script_path, marking("mark", '"newer"'))
      await("first", "mark", "newer")
      assert.equal(1, lists(p, "v1/ConfigMap"))
      controller.finish(p)
    end)

    it("stops a removed controller, and its informer", function()
      create "map"
      client:create { kind = "v1/Secret", namespace = ns, name = "first", labels = { a = "b" } }
      local two = [[
        local kube = require "kubelua"
        local function mark(o, ctx)
          if not o("metadata.labels.mark") then ctx:patch(o, { metadata = { labels = { mark = "yes" } } }) end
        end
        return {
          kube.controller { name = "stays", resource = "v1/ConfigMap", reconcile = mark },
          kube.controller { name = "goes", resource = "v1/Secret", reconcile = mark },
        }
      ]]
      local p = run(process.write(directory() .. "/main.lua", two))
      local function marked(kind, key) return client:get(kind, ns, key)("metadata.labels.mark") == "yes" end
      wait.until_true(30, "both marks", function()
        return marked("v1/ConfigMap", "map") and marked("v1/Secret", "first")
      end)
      renamed(p.script_path, (two:gsub('kube%.controller { name = "goes"[^\n]*\n', "\n")))
      wait.until_true(30, "the end of its informer", function() return not lists(p, "v1/Secret") end)
      wait.until_true(30, "the end of its worker", function() return threads(p, "kl-goes") == 0 end)
      client:create { kind = "v1/Secret", namespace = ns, name = "second" }
      create "later"
      wait.until_true(30, "the other one's mark", function() return marked("v1/ConfigMap", "later") end)
      assert.is_false(marked("v1/Secret", "second"))
      controller.finish(p)
    end)

    it("changes the number of workers, up and down", function()
      create "map"
      local p = run(process.write(directory() .. "/main.lua", marking("mark", '"1"', "workers = 1,")))
      await("map", "mark", "1")
      local function workers()
        return metric(p, "controller_runtime_max_concurrent_reconciles", 'controller="marks"')
      end
      assert.equal(1, threads(p, "kl-marks"))
      for _, n in ipairs { 4, 2 } do
        renamed(p.script_path, marking("mark", ('"%d"'):format(n), ("workers = %d,"):format(n)))
        await("map", "mark", tostring(n))
        wait.until_true(30, n .. " workers", function()
          return threads(p, "kl-marks") == n and workers() == n
        end)
      end
      controller.finish(p)
    end)

    it("is noticed in modules of subdirectories, including new ones", function()
      create "map"
      local dir = directory()
      process.run("mkdir -p " .. process.quote(dir .. "/words/more"))
      local function using(module)
        return marking("mark", "WORD"):gsub("return kube",
          ('local WORD = require "%s"\nreturn kube'):format(module))
      end
      process.write(dir .. "/words/one.lua", 'return "one"')
      process.write(dir .. "/words/more/two.lua", 'return "two"')
      local p = run(process.write(dir .. "/main.lua", (using "words.one")))
      await("map", "mark", "one")
      renamed(dir .. "/words/one.lua", 'return "another one"')
      await("map", "mark", "another one")
      in_place(dir .. "/main.lua", (using "words.more.two"))
      await("map", "mark", "two")
      in_place(dir .. "/words/more/two.lua", 'return "another two"')
      await("map", "mark", "another two")
      controller.finish(p)
    end)

    it("is read from a ConfigMap's volume when kubelet swaps it", function()
      create "map"
      local dir = directory()
      local function volume(version, word)
        process.run(("mkdir -p %s/..%s"):format(dir, version))
        process.write(("%s/..%s/main.lua"):format(dir, version),
          (marking("mark", "WORD"):gsub("return kube", 'local WORD = require "word"\nreturn kube')))
        process.write(("%s/..%s/word.lua"):format(dir, version), ("return %q"):format(word))
        local out, code = process.run(("cd %s && ln -s ..%s ..data_tmp && mv -T ..data_tmp ..data"):format(
          dir, version))
        assert.equal(0, code, out)
      end
      volume("v1", "one")
      process.run(("cd %s && ln -s ..data/main.lua main.lua && ln -s ..data/word.lua word.lua"):format(dir))
      local p = run(dir .. "/main.lua")
      await("map", "mark", "one")
      for version, word in ipairs { "two", "three" } do
        volume("v" .. version + 1, word)
        process.run(("rm -r %s/..v%d"):format(dir, version))
        await("map", "mark", word)
      end
      assert.is_nil(p:log():find("was refused", 1, true), p:log())
      controller.finish(p)
    end)

    it("keeps the lease, and is used by the next leader", function()
      create "first"
      local path = process.write(directory() .. "/main.lua", marking("mark", '"old"'))
      local function contender(identity)
        return run(path, "--leader-elect", "--leader-elect-resource-namespace", ns, "--leader-elect-identity",
          identity,
          "--leader-elect-lease-duration", "30s", "--leader-elect-renew-deadline", "20s",
          "--leader-elect-retry-period", "1s")
      end
      local function lease() return client:get("coordination.k8s.io/v1/Lease", ns, "marks") end
      local leader = contender "one"
      await("first", "mark", "old")
      local standby = contender "two"
      standby:wait_for_log(30, "waiting for leadership")
      local transitions = lease()("spec.leaseTransitions")
      renamed(path, marking("mark", '"new"'))
      await("first", "mark", "new")
      standby:wait_for_log(30, "a new generation took over")
      assert.equal("one", lease()("spec.holderIdentity"))
      assert.equal(transitions, lease()("spec.leaseTransitions"))
      controller.finish(leader)
      create "second"
      await("second", "mark", "new")
      assert.equal("two", lease()("spec.holderIdentity"))
      controller.finish(standby)
    end)

    it("is read on SIGHUP", function()
      create "map"
      local p = run(process.write(directory() .. "/main.lua", marking("mark", '"one"')))
      await("map", "mark", "one")
      p:signal "HUP"
      p:wait_for_log(20, "the script has not changed")
      renamed(p.script_path, "return {")
      p:wait_for_log(20, "the new script was refused")
      p:signal "HUP"
      wait.until_true(20, "the refusal once more", function()
        return count(p:log(), "the new script was refused") >= 2
      end)
      renamed(p.script_path, marking("mark", '"two"'))
      p:signal "HUP"
      await("map", "mark", "two")
      controller.finish(p)
    end)
  end)
end)
