-- bad_input_spec.lua - `kubelua run` with wrong input: it refuses to start, or waits and reports why, or
-- parks one controller while the others run.
-- real in asan: what scripts hand over, on both servers

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local SCRIPT = [[
local kube = require "kubelua"
return kube.controller { name = %q, resource = %q, reconcile = function() end }
]]

local function script(name, kind)
  return process.write(process.tmpname ".lua", SCRIPT:format(name, kind))
end

-- Runs a command to its end; returns its output and exit status.
local function ends(...)
  local words = { KUBELUA }
  for _, word in ipairs { ... } do words[#words + 1] = word end
  local p = process.spawn(words)
  local code = p:wait(20)
  return p:log(), assert(code, "it still runs:\n" .. p:log())
end

describe("`kubelua run` refuses to start", function()
  it("with a kubeconfig that is not YAML, with the place", function()
    local path = process.write(process.tmpname ".kubeconfig", "clusters: [\n")
    local out, code = ends("run", script("a", "v1/Pod"), "--kubeconfig", path)
    assert.equal(1, code)
    assert.truthy(out:find(path .. ":", 1, true), out)
  end)

  it("with a kubeconfig that is not there", function()
    local out, code = ends("run", script("a", "v1/Pod"), "--kubeconfig", "/nowhere/config")
    assert.equal(1, code)
    assert.truthy(out:find("/nowhere/config does not exist", 1, true), out)
  end)

  it("with durations of the election that are zero", function()
    for _, option in ipairs { "lease-duration", "renew-deadline", "retry-period" } do
      local out, code = ends("run", script("a", "v1/Pod"), "--leader-elect", "--leader-elect-" .. option,
        "0s")
      assert.equal(2, code)
      assert.truthy(out:find("--leader-elect-" .. option .. " must be above zero, got 0s", 1, true), out)
    end
  end)

  it("with an unknown context, and lists the known ones", function()
    local path = process.write(process.tmpname ".kubeconfig", [[
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: left, context: {cluster: c}}, {name: right, context: {cluster: c}}]
current-context: left
]])
    local out, code = ends("run", script("a", "v1/Pod"), "--kubeconfig", path, "--context", "write")
    assert.equal(1, code)
    assert.truthy(out:find('context "write" does not exist', 1, true), out)
    assert.truthy(out:find("left", 1, true) and out:find("right", 1, true), out)
  end)

  it("with an unknown option, and suggests the nearest", function()
    local out, code = ends("run", script("a", "v1/Pod"), "--leader-elct")
    assert.equal(2, code)
    assert.truthy(out:find("did you mean --leader-elect?", 1, true), out)
  end)

  it("with two scripts that name the same controller", function()
    local out, code = ends("dev", script("twin", "v1/Pod"), script("twin", "v1/Node"))
    assert.equal(1, code)
    assert.truthy(out:find("twin", 1, true), out)
  end)

  it("with contradictory times of the election", function()
    local out, code = ends("dev", script("a", "v1/Pod"), "--leader-elect", "--leader-elect-lease-duration",
      "5s")
    assert.equal(1, code)
    assert.truthy(out:find("must be longer than the renew deadline", 1, true), out)
  end)
end)

describe("`kubelua run` waits, and logs the reason,", function()
  it("when the server is down", function()
    local path = process.write(process.tmpname ".kubeconfig", [[
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
]])
    local p = process.spawn { KUBELUA, "run", script("a", "v1/Pod"), "--kubeconfig", path }
    p:wait_for_log(20, "connection refused by 127.0.0.1:1")
    assert.equal(0, p:stop())
  end)
end)

servers.each(function(name, start)
  describe("`kubelua run` against " .. name, function()
    local server, client
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it("parks a controller whose kind the server lacks, runs the others, and recovers when the kind appears",
      function()
      local group = "late" .. math.random(100000, 999999) .. ".example.com"
      local p = process.spawn { KUBELUA, "run", script("lost", group .. "/v1/Widget"),
        script("found", "v1/Namespace"),
        "--kubeconfig", server.kubeconfig }
      p:wait_for_log(20, "found: running")
      p:wait_for_log(20, "the server has no \"" .. group .. "/v1/Widget\"")
      client:create {
        apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
        metadata = { name = "widgets." .. group },
        spec = {
          group = group, scope = "Namespaced", names = { kind = "Widget", plural = "widgets",
            singular = "widget", listKind = "WidgetList" },
          versions = { {
            name = "v1", served = true, storage = true,
            schema = { openAPIV3Schema = { type = "object",
              ["x-kubernetes-preserve-unknown-fields"] = true } },
          } },
        },
      }
      p:wait_for_log(60, "lost: running")
      assert.equal(0, p:stop())
    end)

    -- In protobuf, in JSON, as a list and as initial events.
    for _, words in ipairs { {}, { "--no-protobuf" }, { "--watch-list" } } do
      it("skips an object above --max-object-bytes, names it and the flag, and takes it after it shrank "
        .. (words[1] or ""), function()
        local ns = controller.namespace(client, "big")
        local function write(fish, size)
          client:apply({ apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = ns, name = fish },
            data = { blubber = ("x"):rep(size) } }, { manager = "spec", force = true })
        end
        write("whale", 200000)
        write("minnow", 10)
        local path = process.write(process.tmpname ".lua", [[
          local kube = require "kubelua"
          return kube.controller { name = "sea", resource = "v1/ConfigMap", reconcile = function(o, ctx)
            ctx.log:info("seen", { fish = o.metadata.name, bytes = #(o.data and o.data.blubber or "") })
          end }
        ]])
        local p = process.spawn { KUBELUA, "run", path, "--kubeconfig", server.kubeconfig, "--namespace", ns,
          "--max-object-bytes", "100Ki", words[1] }
        p:wait_for_log(60, "bytes=10 fish=minnow")
        p:wait_for_log(20, ns .. "/whale")
        p:wait_for_log(20, "raise --max-object-bytes")
        write("minnow", 150000)
        p:wait_for_log(60, ns .. "/minnow")
        write("herring", 11)
        p:wait_for_log(60, "bytes=11 fish=herring")
        write("minnow", 12)
        p:wait_for_log(60, "bytes=12 fish=minnow")
        write("whale", 13)
        p:wait_for_log(60, "bytes=13 fish=whale")
        assert.falsy(p:log():find("parked", 1, true))
        assert.equal(0, p:stop())
      end)
    end

    it("exits at once on a second signal", function()
      local ns = controller.namespace(client, "twice")
      local path = process.write(process.tmpname ".lua", ([[
        local kube = require "kubelua"
        return kube.controller { name = "sleeper", resource = "v1/ConfigMap", reconcile = function(o, ctx)
          ctx.log:info "asleep"
          ctx:sleep "10m"
        end }
      ]]))
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "bed" }
      local p = process.spawn { KUBELUA, "run", path, "--kubeconfig", server.kubeconfig, "--namespace", ns }
      p:wait_for_log(20, "asleep")
      p:signal "TERM"
      p:wait_for_log(20, "stopping")
      -- Signals in one burst count once, so the second one is sent later.
      wait.until_true(20, "the end", function()
        p:signal "TERM"
        return not p:alive()
      end)
      assert.equal(1, p:wait(5))
    end)
  end)
end)

servers.only_real(function(name, start)
  describe("`kubelua run` without the right to read, against " .. name, function()
    local server
    lazy_setup(function() server = start {} end)
    lazy_teardown(function() if server then server:stop() end end)

    it("names the missing RBAC rule, and keeps running", function()
      local p = process.spawn { KUBELUA, "run", script("curious", "v1/Secret"), "--kubeconfig",
        server:kubeconfig_for(server.tokens.nobody) }
      p:wait_for_log(20, 'add rule {apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"]} to \z
        the ClusterRole of nobody')
      assert.equal(0, p:stop())
    end)

    it("explains rejected credentials", function()
      local p = process.spawn { KUBELUA, "run", script("stranger", "v1/Secret"), "--kubeconfig",
        server:kubeconfig_for("no-such-token") }
      p:wait_for_log(20, "Unauthorized")
      assert.equal(0, p:stop())
    end)
  end)
end)
