-- requests_spec.lua - warnings of the server, our own rate limit and its metrics; and the client's verbs in a
-- reconcile.
-- real in asan: warnings and refusals of the real server

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local VERBS = [[
local kube = require "kubelua"
local function said(fn, ...)
  local result, err = kube.try(fn, ...)
  if err then return (err.kind .. " " .. tostring(err.code)) end
  return result
end
return kube.controller {
  name = "verbs-%s",
  resource = "v1/ConfigMap",
  owns = {}, reads = {},
  reconcile = function(map, ctx)
    if map.metadata.namespace ~= "%s" or map.metadata.name ~= "go" then return end
    local out = {}
    local function note(name, value) out[name] = tostring(value) end
    note("scale", ctx:scale("apps/v1/Deployment", "web", 3).spec.replicas)
    note("get_scale", ctx:get_scale("apps/v1/Deployment", ctx.namespace, "web").spec.replicas)
    note("bind", ctx:bind(ctx.namespace .. "/pod", "node-1"))
    note("bind_again", said(ctx.bind, ctx, ctx.namespace .. "/pod", "node-2"))
    note("evict_absent", ctx:evict "never")
    note("evict", ctx:evict("pod", { grace = 0 }))
    note("token", #(ctx:token "robot") > 100)
    note("status", ctx:update_status({ kind = "v1/Pod", name = "other",
      status = { phase = "Running" } }).status.phase)
    note("applied", ctx:apply_status({ kind = "v1/Pod", name = "other",
      status = { message = "hello" } }).status.message)
    note("many", #ctx:delete_collection("v1/Secret",
      { namespace = ctx.namespace, labels = { x = "y" } }).items)
    note("nowhere", said(ctx.delete_collection, ctx, "v1/Secret"))
    note("metadata", ctx.live:get("v1/ConfigMap", "go", { metadata_only = true }).kind)
    local each = 0
    for _ in ctx.live:each("v1/ConfigMap", { namespace = ctx.namespace }) do each = each + 1 end
    note("each", each > 0)
    note("list", #ctx.live:list("v1/ConfigMap",
      { namespace = ctx.namespace, fields = { ["metadata.name"] = "go" } }))
    note("no_status", said(ctx.update_status, ctx, map))
    ctx:apply { kind = "v1/ConfigMap", name = "did", data = out }
  end,
}
]]

servers.each(function(name, start)
  describe("against " .. name, function()
    local s, c, ns

    lazy_setup(function()
      s = start()
      c = controller.client(s)
      ns = controller.namespace(c, "requests")
    end)
    lazy_teardown(function()
      if c then
        c:delete("v1/Namespace", ns)
        c:close()
      end
      s:stop()
    end)

    it("a reconcile has the client's verbs, in its key's namespace", function()
      local labels = { app = "web" }
      local spec = { containers = { { name = "c", image = "i:1" } } }
      c:create { kind = "apps/v1/Deployment", namespace = ns, name = "web",
        spec = { selector = { matchLabels = labels },
        template = { metadata = { labels = labels }, spec = spec } } }
      c:create { kind = "v1/Pod", namespace = ns, name = "pod", spec = spec }
      c:create { kind = "v1/Pod", namespace = ns, name = "other", spec = spec }
      c:create { kind = "v1/ServiceAccount", namespace = ns, name = "robot" }
      for i = 1, 2 do
        c:create { kind = "v1/Secret", namespace = ns, name = "s" .. i, labels = { x = "y" } }
      end
      local run = controller.start(s, VERBS:format(ns, ns))
      c:create { kind = "v1/ConfigMap", namespace = ns, name = "go" }
      local did
      wait.until_true(60, "the reconcile to have called them all", function()
        did = c:get("v1/ConfigMap", ns, "did")
        return did or error(run:log():sub(-2000), 0)
      end)
      controller.finish(run)
      assert.same({
        scale = "3", get_scale = "3", bind = "true", bind_again = "conflict 409", evict_absent = "true",
        evict = "true", token = "true",
        status = "Running", applied = "hello", many = "2", nowhere = "invalid nil",
        metadata = "PartialObjectMetadata", each = "true",
        list = "1", no_status = "invalid nil",
      }, kube.copy(did.data))
    end)

    it("a client-side rate limit delays requests, and metrics show by how much", function()
      local port = math.random(20000, 32000)
      local run = controller.start(s, controller.answering(ns, "!"), "--qps", "50", "--burst", "1",
        "--metrics-bind-address", "127.0.0.1:" .. port)
      controller.ask(c, ns, 1, 10)
      controller.await_answers(c, ns, 10, 60, function(ask) return ask .. "!" end)
      local text = process.run(("curl -sS --max-time 10 http://127.0.0.1:%d/metrics"):format(port))
      controller.finish(run)
      local count, sum = 0, 0
      for n in text:gmatch "rest_client_rate_limiter_duration_seconds_count{[^}]*} (%d+)" do
        count = count + tonumber(n)
      end
      for n in text:gmatch "rest_client_rate_limiter_duration_seconds_sum{[^}]*} (%S+)" do
        sum = sum + tonumber(n)
      end
      assert.is_true(count >= 10, text:sub(1, 4000))
      assert.is_true(sum > 0)
    end)

    it("a warning of the server appears once, in a list or a function", function()
      local function strange(key, field)
        return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = key, namespace = ns },
          [field] = "x" }
      end
      local quiet = kube.connect { kubeconfig = s.kubeconfig, on_warning = "none" }
      quiet:create(strange("w1", "dta"), { validation = "Warn" })
      quiet:create(strange("w2", "dta"), { validation = "Warn" })
      quiet:create(strange("w3", "dato"), { validation = "Warn" })
      local all, missed = quiet:warnings()
      assert.equal(0, missed)
      assert.same({ 'unknown field "dta"', 'unknown field "dato"' }, { all[1].text, all[2].text })
      assert.equal(2, #all)
      assert.equal("create configmaps " .. ns .. "/w1", all[1].call)
      assert.same({}, (quiet:warnings()))
      quiet:close()

      local told = {}
      local loud = kube.connect { kubeconfig = s.kubeconfig, on_warning = function(text, call)
        told[#told + 1] = call .. ": " .. text
      end }
      loud:create(strange("w4", "dta"), { validation = "Warn" })
      assert.same({ "create configmaps " .. ns .. '/w4: unknown field "dta"' }, told)
      loud:close()
    end)

    it("a slow start of a client with a limit is not an error", function()
      local slow = kube.connect { kubeconfig = s.kubeconfig, qps = 20, burst = 1 }
      for _ = 1, 4 do assert.is_not_nil(slow:get("v1/Namespace", ns)) end
      slow:close()
    end)
  end)
end)

describe("kube.connect", function()
  it("rejects invalid limits and handlers", function()
    for pattern, opts in pairs {
      ["qps must be more than 0, got 0"] = { qps = 0 },
      ["qps must be more than 0, got %-1"] = { qps = -1 },
      ["burst must be more than 0"] = { qps = 1, burst = 0 },
      ["burst needs qps"] = { burst = 5 },
      ["option 'qps' must be a number, got string"] = { qps = "5" },
      ["on_warning must be \"log\", \"none\" or a function, got \"loud\""] = { on_warning = "loud" },
    } do
      opts.server = "http://127.0.0.1:1"
      assert.error_matches(function() kube.connect(opts) end, pattern)
    end
  end)

  it("so does the command line", function()
    local kubelua = os.getenv "KUBELUA" or "build/kubelua"
    local out, code = process.run(kubelua .. " run x.lua --burst 5 2>&1")
    assert.equal(2, code)
    assert.matches("applies only together with --qps", out, 1, true)
    out, code = process.run(kubelua .. " run x.lua --qps 0 2>&1")
    assert.equal(2, code)
    assert.matches("--qps", out, 1, true)
  end)
end)
