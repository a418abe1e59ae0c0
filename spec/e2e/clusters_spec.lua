-- clusters_spec.lua - one process with several contexts: each has a manager, and one cluster is unreachable.
local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local function cluster(name, s)
  return ("- name: %s\n  cluster: {server: %q%s}\n"):format(name, s.url,
    s.ca and (", certificate-authority: %q"):format(s.ca) or "")
end

-- A kubeconfig with the contexts "east" and "west".
local function kubeconfig(east, west)
  return process.write(process.tmpname ".kubeconfig", table.concat {
    "apiVersion: v1\nkind: Config\nclusters:\n", cluster("east", east), cluster("west", west),
    ("users:\n- name: us\n  user: {token: %q}\n"):format(east.token or "none"),
    "contexts:\n- name: east\n  context: {cluster: east, user: us}\n- name: west\n  context: {cluster: \z
      west, user: us}\ncurrent-context: east\n",
  })
end

local MIRROR = [[
local kube = require "kubelua"
return kube.controller {
  name = "mirror",
  resource = "v1/ConfigMap",
  namespaces = { %q },
  selector = "mirror=yes",
  reconcile = function(map, ctx)
    if ctx.cluster ~= "east" then return end
    local name = map.metadata.name
    if map("data.gone") then
      ctx:at("west"):delete("v1/ConfigMap", map.metadata.namespace, name)
      return
    end
    if map("data.lost") then ctx:at("wets") end
    local there = ctx:at("west"):get("v1/ConfigMap", name)
    if there and there("data.text") == map.data.text .. "%s" then return end
    ctx:at("west"):apply { kind = "v1/ConfigMap", name = name, data = { text = map.data.text .. "%s" } }
    local n = #ctx:at("west"):list("v1/ConfigMap", { namespace = map.metadata.namespace })
    ctx.log:info("copied", { copies = n })
  end,
}
]]

servers.each(function(name, start)
  describe("one process and two clusters of " .. name, function()
    local east, west, here, there, ns, config, run
    local port = servers.free_port()

    local function script(suffix) return MIRROR:format(ns, suffix, suffix) end
    local function get(path)
      return (process.run(("curl -sS --max-time 10 'http://127.0.0.1:%d%s'"):format(port, path)))
    end
    local function text(client, of)
      local o = client:get("v1/ConfigMap", ns, of)
      return o and o("data.text")
    end
    local function put(of, data)
      here:apply { kind = "v1/ConfigMap", namespace = ns, name = of, labels = { mirror = "yes" },
        data = data }
    end

    lazy_setup(function()
      east, west = start {}, start { own = true }
      here, there = controller.client(east), controller.client(west)
      ns = controller.namespace(here, "clusters")
      there:create { kind = "v1/Namespace", name = ns }
      config = kubeconfig(east, west)
      run = controller.start({ kubeconfig = config }, script "", "--context", "east", "--context", "west",
        "--metrics-bind-address", "127.0.0.1:" .. port, "--health-probe-bind-address", "127.0.0.1:" .. port)
      wait.until_true(60, "both clusters are managed", function() return get("/readyz"):find "^ok" end)
    end)
    lazy_teardown(function()
      if run then controller.finish(run) end
      if west then west:stop() end
      if east then east:stop() end
    end)

    it("copies objects from one to the other, under the controller's name", function()
      put("a", { text = "one" })
      wait.until_true(60, "the copy", function() return text(there, "a") == "one" end)
      assert.equal("mirror", there:get("v1/ConfigMap", ns, "a").metadata.managedFields[1].manager)
      put("a", { text = "two" })
      wait.until_true(60, "the changed copy", function() return text(there, "a") == "two" end)
      put("a", { gone = "yes" })
      wait.until_true(60, "no copy", function() return not there:get("v1/ConfigMap", ns, "a") end)
    end)

    it("lists the clusters when a script names an unknown one", function()
      put("lost", { lost = "yes", text = "x" })
      run:wait_for_log(60, "did you mean 'west'?")
      here:delete("v1/ConfigMap", ns, "lost")
    end)

    it("names the cluster in metrics, readiness and logs", function()
      local metrics = get "/metrics"
      for _, cluster_name in ipairs { "east", "west" } do
        assert.truthy(metrics:find(('workqueue_adds_total{cluster="%s",'):format(cluster_name), 1, true),
          cluster_name)
        assert.truthy(get("/readyz?verbose"):find(("[+]%s/mirror ok"):format(cluster_name), 1, true),
          cluster_name)
        assert.truthy(run:log():find(("caches are synced cluster=%s controller=mirror"):format(cluster_name),
          1, true), cluster_name)
      end
      local _, heads = metrics:gsub("# TYPE workqueue_adds_total counter\n", "")
      assert.equal(1, heads)
      assert.falsy(metrics:find 'process_[%w_]+{cluster=')
      assert.truthy(run:log():find("copied cluster=east controller=mirror", 1, true))
    end)

    it("starts a new generation in all", function()
      process.write(run.script_path, script "!")
      wait.until_true(60, "both have it", function()
        local log = run:log()
        return log:find("a new generation took over cluster=east", 1, true)
          and log:find("a new generation took over cluster=west", 1, true)
      end)
      put("b", { text = "new" })
      wait.until_true(60, "the copy", function() return text(there, "b") == "new!" end)
    end)
  end)

  describe("an unreachable cluster, beside one of " .. name, function()
    it("parks its own controllers and no others", function()
      local east, west = start {}, servers.embedded {}
      local here = controller.client(east)
      local ns, port = controller.namespace(here, "away"), servers.free_port()
      west:kill()
      local run = controller.start({ kubeconfig = kubeconfig(east, west) }, controller.answering(ns, "?"),
        "--context", "east", "--context", "west",
        "--health-probe-bind-address", "127.0.0.1:" .. port)
      controller.ask(here, ns, 1, 3)
      controller.await_answers(here, ns, 3, 60, function(ask) return ask .. "?" end)
      local ready = process.run(("curl -sS --max-time 10 'http://127.0.0.1:%d/readyz'"):format(port))
      assert.truthy(ready:find(("[+]east/answers-%s ok"):format(ns), 1, true), ready)
      assert.truthy(ready:find(("[-]west/answers-%s failed"):format(ns), 1, true), ready)
      west:restart()
      local other = controller.client(west)
      other:create { kind = "v1/Namespace", name = ns }
      controller.ask(other, ns, 1, 2)
      controller.await_answers(other, ns, 2, 90, function(ask) return ask .. "?" end)
      controller.finish(run)
      west:stop()
      east:stop()
    end)
  end)
end)

describe("webhooks of several clusters", function()
  local HOOK = [[
local kube = require "kubelua"
return kube.webhook { name = "whose", resource = "v1/ConfigMap", namespaces = { "default" },
  validate = function(obj, req)
    return kube.deny("ours are " .. #req.live:list("v1/Namespace", { labels = "whose" })) end }
]]

  it("have their own addresses, or are rejected", function()
    local east, west = servers.embedded {}, servers.embedded {}
    finally(function() east:stop() west:stop() end)
    local config = kubeconfig(east, west)
    local path = process.write(process.tmpname ".lua", HOOK)
    local out,
      code = process.run(("%s run %s --kubeconfig %s --context east --context west --webhook-listen \z
      127.0.0.1:9444 --webhook-url auto"):format(KUBELUA, path, config))
    assert.equal(1, code, out)
    assert.matches("webhooks of 2 clusters cannot share the address 127.0.0.1:9444: run a process for each \z
      --context, or give --webhook-listen HOST:0", out, 1, true)
    controller.client(east):create { kind = "v1/Namespace", name = "one", labels = { whose = "east" } }
    local run = controller.start({ kubeconfig = config }, path, "--context", "east", "--context", "west",
      "--webhook-listen", "127.0.0.1:0", "--webhook-url", "auto")
    for n, s in ipairs { west, east } do
      local client = controller.client(s)
      local kube = require "kubelua"
      wait.until_true(60, "the webhook of this cluster", function()
        local o, e = kube.try(client.create, client, { kind = "v1/ConfigMap", namespace = "default",
          name = "probe" }, { dry_run = true })
        return not o and e.message:find("ours are " .. n - 1, 1, true)
      end)
    end
    controller.finish(run)
  end)
end)

describe("several contexts on the command line", function()
  it("are named once each", function()
    local server = servers.embedded {}
    local out,
      code = process.run((KUBELUA .. " run --kubeconfig %s --context east --context east %s 2>&1"):format(
      process.quote(kubeconfig(server, server)), process.quote(process.write(process.tmpname ".lua",
        controller.answering("x", "!")))))
    assert.equal(1, code)
    assert.truthy(out:find("the context east is named twice", 1, true), out)
    server:stop()
  end)

  it("must exist", function()
    local server = servers.embedded {}
    local out,
      code = process.run((KUBELUA .. " run --kubeconfig %s --context east --context wets %s 2>&1"):format(
      process.quote(kubeconfig(server, server)), process.quote(process.write(process.tmpname ".lua",
        controller.answering("x", "!")))))
    assert.equal(1, code)
    assert.truthy(out:find("wets", 1, true), out)
    server:stop()
  end)
end)
