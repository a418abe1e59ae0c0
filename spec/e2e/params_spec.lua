-- params_spec.lua - the params of a deployment: on the command line, from the environment, files, ConfigMaps
-- and Secrets. A change starts a new generation; a mistake is rejected.

local new_api = require "support.api"
local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- Writes its params into the ConfigMap "asks".
local SCRIPT = [[
  local kube = require "kubelua"
  return kube.controller {
    name = "params", resource = "v1/ConfigMap", selector = { fields = "metadata.name=asks" },
    params = {
      region = { type = "string", default = "eu", enum = { "eu", "us", "asia" } },
      replicas = { type = "integer", default = 2, min = 1 },
      limits = { cpu = 1, memory = 2 }, home = "",
    },
    reconcile = function(map, ctx)
      local p = ctx.params
      local got = ("%s %d %d/%d%s"):format(p.region, p.replicas, p.limits.cpu, p.limits.memory, p.home)
      if map("data.got") ~= got then ctx:patch(map, function(m) m.data = { got = got } end) end
    end,
  }
]]

servers.each(function(name, start)
  describe("params of `kubelua run` against " .. name, function()
    local client, ns
    local begin = controller.frame("params", start, function(_, of_server, namespace)
      client, ns = of_server, namespace
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "asks" }
    end)

    local function run(...) return begin(SCRIPT, "--namespace", ns, ...) end

    local function await_got(want)
      wait.until_true(60, want, function()
        local got = client:get("v1/ConfigMap", ns, "asks")("data.got")
        if got ~= want then error("it is " .. tostring(got), 0) end
        return true
      end)
    end

    local function map_of(data) return { kind = "v1/ConfigMap", namespace = ns, name = "given",
      data = data } end
    it("come from the command line, else from the environment, else from the last file with them", function()
      local file, other = process.tmpname ".yaml", process.tmpname ".yaml"
      process.write(file, "replicas: 3\nregion: us\nlimits: { cpu: 4 }\n")
      process.write(other, "params.limits: { memory: 5 }\nreplicas: 6\n")
      run("--params", file, "--params", other, "--param", "region=asia", "--param-env", "home=HOME")
      await_got("asia 6 4/5" .. os.getenv "HOME")
      process.write(other, "replicas: 8\n")
      await_got("asia 8 4/2" .. os.getenv "HOME")
    end)

    it("come from a ConfigMap, which may come late and change; invalid values are rejected", function()
      local p = run("--params", "configmap/" .. ns .. "/given", "--param", "region=us")
      p:wait_for_log(30, "there is no ConfigMap given in namespace " .. ns)
      client:create(map_of { replicas = "0" })
      p:wait_for_log(30, "param replicas of params must be at least 1, got 0")
      client:patch(map_of(), { data = { replicas = "4" } })
      await_got "us 4 1/2"

      client:patch(map_of(), { data = { replicas = "many" } })
      p:wait_for_log(30, "the new params were refused; the old ones stay")
      assert.truthy(p:log():find('configmap/' .. ns .. '/given: param replicas of params must be a whole \z
        number, got \\"many\\"', 1, true), p:log())
      client:patch(map_of(), { data = { replicas = "5", limits = "memory: 9" } })
      await_got "us 5 1/9"
      assert.truthy(p:log():find('loaded the next generation[^\n]*changes="params: params changed"'), p:log())

      client:patch(map_of(), { data = { replcas = "5" } })
      p:wait_for_log(30, "no controller here has a param replcas (did you mean replicas?)")
    end)

    it("follow fast changes, invalid values, deletion and return", function()
      client:apply { kind = "v1/ConfigMap", namespace = ns, name = "fast", data = { replicas = "1" } }
      local p = run("--params", "configmap/" .. ns .. "/fast")
      await_got "eu 1 1/2"
      local function set(data)
        client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "fast" }, { data = data })
      end
      for i = 1, 60 do
        if i % 20 == 0 then client:delete("v1/ConfigMap", ns, "fast") end
        client:apply { kind = "v1/ConfigMap", namespace = ns, name = "fast",
          data = { replicas = tostring(i % 9 + 1) } }
      end
      set { replicas = ("9"):rep(1000) }
      set { replicas = "2", limits = ("["):rep(100000) }
      p:wait_for_log(60, "the new params were refused; the old ones stay")
      set { replicas = "6", limits = "memory: 7" }
      await_got "eu 6 1/7"
      controller.finish(p)
    end)

    it("come from a Secret, whose values are never shown, whatever their types", function()
      client:create { kind = "v1/Secret", namespace = ns, name = "given",
        stringData = { region = "asia", replicas = "7" } }
      local socket = process.tmpname ".sock"
      local p = run("--params", "secret/" .. ns .. "/given", "--control", socket)
      await_got "asia 7 1/2"
      local out = process.run(("%s why --socket %s cm %s/asks"):format(KUBELUA, socket, ns))
      assert.truthy(out:find('params given: {"region":"***","replicas":"***"}', 1, true), out)
      client:patch({ kind = "v1/Secret", namespace = ns, name = "given" },
        { stringData = { replicas = "many-42" } })
      p:wait_for_log(30, "param replicas of params must be a whole number, got a string")
      assert.falsy(p:log():find("many-42", 1, true), p:log())
      client:patch({ kind = "v1/Secret", namespace = ns, name = "given" },
        { stringData = { replicas = "7" } })
      client:patch({ kind = "v1/Secret", namespace = ns, name = "given" }, { stringData = { region = "us" } })
      await_got "us 7 1/2"
      assert.falsy(p:log():find("asia", 1, true), p:log())
    end)

    it("are shown by why, except secrets", function()
      local socket = process.tmpname ".sock"
      local script = SCRIPT:gsub("home = \"\",",
        'home = { type = "secret", optional = true },'):gsub("p%.home%)", 'tostring(ctx.secret "home"))')
      local p = begin(script, "--namespace", ns, "--control", socket, "--param", "home=s3cret", "--param",
        "replicas=4")
      await_got "eu 4 1/2***"
      local out, code = process.run(("%s why --socket %s cm %s/asks"):format(KUBELUA, socket, ns))
      assert.equal(0, code, out)
      assert.truthy(out:find('params given: {"replicas":4,"home":"***"}', 1, true), out)
      for _, path in ipairs { "/v1/controllers", "/v1/params?controller=params" } do
        local said = process.run(("curl -fsS --unix-socket %s http://x%s"):format(socket, path))
        assert.truthy(said:find("***", 1, true) and not said:find("s3cret", 1, true), said)
      end
      assert.falsy(p:log():find("s3cret", 1, true), p:log())
    end)

    it("are given to a shadow candidate, and to a replay", function()
      local socket, recording, file = process.tmpname ".sock", process.tmpname ".rec", process.tmpname ".yaml"
      process.write(file, "replicas: 9\n")
      local p = run("--params", file, "--control", socket, "--record", recording)
      await_got "eu 9 1/2"
      local next_one = process.write(process.tmpname ".lua", SCRIPT)
      local out = process.run(("%s shadow --socket %s %s --all"):format(KUBELUA, socket, next_one))
      wait.until_true(30, "the candidate does the same", function()
        out = process.run(("%s shadow --socket %s"):format(KUBELUA, socket))
        return out:find("1 same, 0 differ", 1, true)
      end)
      -- a change reaches both
      process.write(file, "replicas: 8\n")
      await_got "eu 8 1/2"
      wait.until_true(60, "the candidate does the same with the next params", function()
        client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "asks" }, { data = { got = "again" } })
        await_got "eu 8 1/2"
        out = process.run(("%s shadow --socket %s"):format(KUBELUA, socket))
        return out:find("[1-9]%d* same, 0 differ, 0 fail")
      end)
      controller.finish(p)
      local said, code = process.run(("%s replay %s %s"):format(KUBELUA, recording, p.script_path))
      assert.equal(0, code, said)
      said, code = process.run(("%s replay %s %s --param region=us"):format(KUBELUA, recording,
        p.script_path))
      assert.equal(1, code, said)
      assert.truthy(said:find('"eu 9 1/2" -> "us 9 1/2"', 1, true), said)
      said, code = process.run(("%s replay %s %s --param regoin=us 2>&1"):format(KUBELUA, recording,
        p.script_path))
      assert.equal(2, code, said)
      assert.truthy(said:find("no controller here has a param regoin (did you mean region?)", 1, true), said)
    end)
  end)
end)

describe("params on the command line", function()
  local script

  lazy_setup(function() script = process.write(process.tmpname ".lua", SCRIPT) end)

  for words, said in pairs {
    ["--param regoin=us"] = "--param: no controller here has a param regoin (did you mean region?)",
    ["--param params.regoin=us"] = "--param: no controller here has a param params.regoin",
    ["--param region=moon"] = '--param: param region of params must be "eu", "us" or "asia", got "moon"',
    ["--param region"] = "--param region: write --param NAME=VALUE",
    ["--param =x"] = "--param =x: write --param NAME=VALUE",
    ["--param-env region=NO_SUCH_VARIABLE"] = "--param-env region=NO_SUCH_VARIABLE: there is no \z
      environment variable NO_SUCH_VARIABLE",
    ["--param-env region="] = "--param-env region=: write --param-env NAME=VARIABLE",
    ["--params none.yaml"] = "none.yaml: No such file or directory",
    ["--params configmap/given"] = "--params configmap/given: write configmap/NAMESPACE/NAME, \z
      secret/NAMESPACE/NAME or the path of a YAML file",
    ["--params /dev/null/x"] = "/dev/null/x: Not a directory",
  } do
    it("are refused when they are " .. words, function()
      local out, code = process.run(("%s dev %s --control off %s"):format(KUBELUA, script, words))
      assert.truthy(code == 1 or code == 2, out)
      assert.truthy(out:find(said, 1, true), out)
    end)
  end

  it("are refused when the file is not a table of names", function()
    local file = process.write(process.tmpname ".yaml", "- region\n")
    local out, code = process.run(("%s dev %s --control off --params %s"):format(KUBELUA, script, file))
    assert.equal(1, code, out)
    assert.truthy(out:find('params are names and values, such as "region: eu"; this is an array', 1, true),
      out)
  end)
end)

describe("params that are not strings, from a server that stores such an object", function()
  it("are refused", function()
    local dir = process.tmpname ".data"
    local server = servers.embedded { args = { "--data", dir } }
    local client = controller.client(server)
    client:create { kind = "v1/ConfigMap", namespace = "default", name = "given", data = { region = "us" } }
    client:create { kind = "v1/Secret", namespace = "default", name = "given", data = { region = "dXM=" } }
    server:stop()
    local change = process.write(process.tmpname ".py", ([[
import sqlite3
d = sqlite3.connect(%q)
d.execute("""UPDATE objects SET object = replace(replace(object, '"region":"us"', '"region":5'),
  '"region":"dXM="', '"region":[1,2,3,4]')""")
d.commit()
]]):format(dir .. "/objects.db"))
    local said, code = process.run(("python3 %s 2>&1"):format(change))
    assert.equal(0, code, said)
    server:restart()
    for word, type in pairs { configmap = "integer", secret = "array" } do
      -- as a server that knows JSON alone: protobuf has no place for such a value
      for _, resource in ipairs { "configmaps", "secrets" } do
        assert.equal(200, new_api(server):post("/kubelua/v1/faults", { resource = resource, code = 406,
          reason = "NotAcceptable", times = 1 }).code)
      end
      local from = word .. "/default/given"
      local run = controller.start(server, SCRIPT, "--namespace", "default", "--params", from)
      local why = "%s: region is %s; values of a ConfigMap or a Secret must be strings"
      run:wait_for_log(30, why:format(from, type))
      controller.finish(run)
    end
    server:stop()
  end)
end)

describe("params of a webhook", function()
  it("are in req.params, secrets in req.secret, and can be set", function()
    local kube = require "kubelua"
    local t <close> = kube.testing.start { params = { word = "no" }, source = [[
      local kube = require "kubelua"
      return { kube.webhook { name = "words", resource = "v1/ConfigMap",
        params = { word = { type = "string", default = "never" },
          key = { type = "secret", optional = true } },
        validate = function(o, req)
          if o.metadata.name == req.params.word then
            return false, "not " .. req.params.word .. tostring(req.secret "key")
          end
        end } }]] }
    t:create { kind = "v1/ConfigMap", name = "never" }
    local ok, e = pcall(t.create, t, { kind = "v1/ConfigMap", name = "no" })
    assert.is_false(ok)
    assert.match("not nonil", e.message)
  end)
end)
