-- script_sources_spec.lua - sources of scripts: a directory, a ConfigMap of the cluster, a volume whose files
-- are replaced at once; and the reports of a rejected script.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- A script that writes the word of its module into every ConfigMap with a question.
local MAIN = [[
  local kube = require "kubelua"
  local word = require "word"
  return kube.controller {
    name = "words", resource = "v1/ConfigMap",
    reconcile = function(map, ctx)
      if map("data.ask") and map("data.word") ~= word then
        ctx:patch(map, function(m) m.data.word = word end)
      end
    end,
  }
]]

local function word(text) return ("return %q"):format(text) end

local function directory()
  local dir = process.tmpname ".scripts"
  assert(select(2, process.run("mkdir -p " .. process.quote(dir))) == 0)
  return dir
end

servers.each(function(name, start)
  describe("scripts of `kubelua run` against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function()
      ns = controller.namespace(client, "sources")
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "asks", data = { ask = "yes" } }
    end)

    local function run(script, ...)
      return controller.start(server, script, "--namespace", ns, "--metrics-bind-address", "127.0.0.1:0", ...)
    end

    local function await_word(want)
      wait.until_true(60, "the word " .. want, function()
        local got = client:get("v1/ConfigMap", ns, "asks")("data.word")
        if got ~= want then error("it is " .. tostring(got), 0) end
        return true
      end)
    end

    local function map_of(data)
      return { kind = "v1/ConfigMap", namespace = ns, name = "logic", data = data }
    end

    local function events(reason)
      local notes = {}
      for event in client:each("events.k8s.io/v1/Event", { namespace = ns }) do
        if event.reason == reason then notes[#notes + 1] = event end
      end
      return notes
    end

    it("come from a ConfigMap, which may come late, change, and be deleted", function()
      local p = run("configmap/" .. ns .. "/logic")
      p:wait_for_log(30, "there is no ConfigMap logic in namespace " .. ns)
      client:create(map_of { ["main.lua"] = MAIN, ["word.lua"] = "return nil, nil end" })
      p:wait_for_log(30, "word.lua:1:")
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "logic" },
        { data = { ["word.lua"] = word "one" } })
      await_word "one"

      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "logic" },
        { data = { ["word.lua"] = word "two" } })
      await_word "two"

      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "logic" },
        { data = { ["word.lua"] = "return (" } })
      p:wait_for_log(30, "the new script was refused; the old one keeps running")
      assert.truthy(p:log():find("logic/word.lua:1:", 1, true), p:log())
      wait.until_true(30, "an Event about the ConfigMap", function()
        local event = events "ReloadRefused"[1]
        return event and event.regarding.name == "logic" and event.type == "Warning"
          and event.note:find("word.lua:1:", 1, true)
      end)
      local text = controller.metrics(p)
      assert.truthy(text:find('kubelua_reload_refused{script="configmap/' .. ns .. '/logic"} 1', 1, true),
        text)

      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "logic" },
        { data = { ["word.lua"] = word "three" } })
      await_word "three"
      text = controller.metrics(p)
      assert.truthy(text:find('kubelua_reload_refused{script="configmap/' .. ns .. '/logic"} 0', 1, true),
        text)
      assert.truthy(text:find('kubelua_reloads_total{script="configmap/' .. ns .. '/logic",result="taken"} 2',
        1, true), text)
      assert.equal(2, #events "Reloaded")

      client:delete("v1/ConfigMap", ns, "logic")
      p:wait_for_log(30, "there is no ConfigMap logic")
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "asks" }, { data = { word = "wrong" } })
      await_word "three"
      controller.finish(p)
    end)

    it("come from the named key; an ambiguous ConfigMap is an error", function()
      client:create(map_of { ["a.lua"] = MAIN, ["b.lua"] = MAIN:gsub("words", "others"),
        ["word.lua"] = word "a" })
      local p = run("configmap/" .. ns .. "/logic")
      p:wait_for_log(30, "has 3 scripts, and none is called main.lua or init.lua")
      controller.finish(p)
      local q = run("configmap/" .. ns .. "/logic/b.lua")
      q:wait_for_log(30, "others: running")
      await_word "a"
      controller.finish(q)
    end)

    it("are rejected with advice if the argument is invalid", function()
      local out, code = process.run(KUBELUA .. " run configmap/logic 2>&1")
      assert.equal(1, code)
      assert.truthy(out:find('"configmap/logic" names no script: write configmap/NAMESPACE/NAME', 1, true),
        out)
    end)

    it("come from a directory, except its tests", function()
      local dir = directory()
      process.write(dir .. "/words.lua", (MAIN:gsub('require "word"', '"dir"')))
      process.write(dir .. "/words_test.lua", "error 'a test'")
      for _, command in ipairs { "check", "rbac" } do
        local out, code = process.run(("%s %s %s 2>&1"):format(KUBELUA, command, dir))
        assert.equal(0, code, out)
        assert.truthy(out:find("words", 1, true), out)
      end
      local p = run(dir .. "/")
      await_word "dir"
      process.write(dir .. "/words.lua", (MAIN:gsub('require "word"', '"dir again"')))
      await_word "dir again"
      controller.finish(p)
    end)

    local function reload(p, ...)
      return process.run(("%s reload --pid %d %s 2>&1"):format(KUBELUA, p.pid, table.concat({ ... }, " ")))
    end

    it("are reloaded by a command, whose status reports the result", function()
      local p = run(MAIN:gsub('require "word"', '"one"'), "--log-level", "info")
      await_word "one"
      local out, code = reload(p)
      assert.equal(0, code, out)
      assert.truthy(out:find(p.script_path .. ": unchanged, generation 1", 1, true), out)

      process.write(p.script_path, (MAIN:gsub('require "word"', '"two"'):gsub('name = "words",',
        'name = "words", workers = 3, reads = { "v1/Secret" },')))
      out, code = reload(p, p.script_path:match "[^/]+$")
      -- The file's own watcher may have loaded it first.
      assert.equal(0, code, out)
      assert.truthy(out:find "generation 2", out)
      assert.truthy(p:log():find("changes=\"words: new informer v1/Secret, workers default -> 3\"", 1, true),
        p:log())
      await_word "two"

      process.write(p.script_path, "return kube.controler {}")
      out, code = reload(p)
      assert.equal(1, code, out)
      assert.truthy(out:find("refused, generation 2 runs on: ", 1, true), out)
      assert.truthy(out:find(".lua:1: undefined global 'kube'", 1, true), out)

      process.write(p.script_path, (MAIN:gsub('require "word"', '"three"'):gsub("reconcile",
        'reads = { "never.example.com/v1/Gadget" }, reconcile')))
      out, code = reload(p, "--timeout", "500ms")
      assert.equal(1, code, out)
      assert.truthy(out:find("the new logic has not taken over in 0.5s, the old one runs on: words: ", 1,
        true), out)

      out, code = reload(p, "nothing.lua")
      assert.equal(2, code, out)
      assert.truthy(out:find("the process has no script nothing.lua; it has ", 1, true), out)
      controller.finish(p)
      out, code = reload(p)
      assert.equal(1, code, out)
    end)

    it("are swapped as a volume swaps them: all files at once, and one generation", function()
      local dir = directory()
      local function version(n, text)
        process.run(("mkdir -p %s/..%d"):format(dir, n))
        process.write(("%s/..%d/main.lua"):format(dir, n), "-- version " .. n .. "\n" .. MAIN)
        process.write(("%s/..%d/word.lua"):format(dir, n), word(text))
        assert.equal(0, select(2, process.run(
          ("ln -sfn ..%d %s/..data_tmp && mv -T %s/..data_tmp %s/..data"):format(n, dir, dir, dir))))
      end
      version(1, "one")
      process.run(("ln -s ..data/main.lua %s/main.lua && ln -s ..data/word.lua %s/word.lua"):format(dir, dir))
      local p = run(dir .. "/main.lua")
      await_word "one"
      for n = 2, 4 do
        version(n, "version " .. n)
        await_word("version " .. n)
      end
      assert.equal(3, select(2, p:log():gsub("loaded the next generation", "")), p:log())
      assert.is_nil(p:log():find("refused", 1, true), p:log())
      controller.finish(p)
    end)

    it("record a rejection as an Event on their pod, if it is known", function()
      local dir = directory()
      process.write(dir .. "/main.lua", (MAIN:gsub('require "word"', '"pod"')))
      local p = controller.start_with({ "POD_NAME=me-0", "POD_NAMESPACE=" .. ns, "POD_UID=0a-1b" }, server,
        dir .. "/main.lua", "--namespace", ns)
      await_word "pod"
      process.write(dir .. "/main.lua", "return kube.controler {}")
      wait.until_true(30, "an Event about the pod", function()
        local event = events "ReloadRefused"[1]
        return event and event.regarding.kind == "Pod" and event.regarding.name == "me-0"
          and event.regarding.uid == "0a-1b"
      end)
      os.remove(dir .. "/main.lua")
      p:wait_for_log(30, "main.lua: No such file or directory")
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "asks" }, { data = { word = "wrong" } })
      await_word "pod"
      controller.finish(p)
    end)
  end)
end)
