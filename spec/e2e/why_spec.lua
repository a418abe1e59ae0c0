-- why_spec.lua - kubelua why: what a running process reports about a key, and about the reasons why it does
-- not run.

local controller = require "support.controller"
local json = require "dkjson"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local SCRIPT = [[
local kube = require "kubelua"
return kube.controller {
  name = "maps", resource = "v1/ConfigMap", namespaces = { NAMESPACE }, when = { "data" },
  owns = { "v1/Secret" }, reads = { "v1/Service" },
  watches = {
    ["v1/Secret"] = function(secret)
      return secret("metadata.labels.of")
        and { secret.metadata.namespace .. "/" .. secret.metadata.labels.of } or {}
    end,
    ["v1/ServiceAccount"] = function(account)
      return { account.metadata.namespace .. "/" .. (account("metadata.labels.of") or "nothing") }
    end,
  },
  reconcile = function(map, ctx)
    ctx:list("v1/Service", { namespace = map.metadata.namespace, labels = "app=x" })
    if map("data.fail") then error "as asked" end
    if map("data.turns") then error(ctx.attempt % 2 == 1 and "the first way" or "the second way", 0) end
    if map("data.never") then return kube.fail "not in this life" end
    ctx:patch(map, function(m) m.metadata.annotations = { seen = "yes" } end)
    return { requeue_after = "1h" }
  end,
}
]]

local function runtime_dir()
  local dir = process.tmpname ".runtime"
  assert(select(2, process.run("mkdir -m 700 " .. process.quote(dir))) == 0)
  return dir
end

local function start(server, dir, script, ...)
  return controller.start_with({ "XDG_RUNTIME_DIR=" .. dir }, server, script, ...)
end

-- Output and status of `kubelua why WORDS`.
local function why(dir, words)
  return process.run(("XDG_RUNTIME_DIR=%s %s why %s"):format(process.quote(dir), KUBELUA, words))
end

-- Waits until the output has each of the texts, in which %d+, %% and the like are patterns; hyphens are
-- literal.
local function says(dir, words, ...)
  local texts = { ... }
  for i, text in ipairs(texts) do
    texts[i] = text:gsub("(%w)%-(%w)", "%1%%-%2"):gsub("(%w)%-(%w)", "%1%%-%2")
  end
  wait.until_true(30, "why " .. words, function()
    local out = why(dir, words)
    for _, text in ipairs(texts) do
      if not out:find(text) then error(("%q is not in:\n%s"):format(text, out), 0) end
    end
    return true
  end)
end

servers.each(function(name, start_server)
  describe("kubelua why against " .. name, function()
    local server, client, ns, dir
    lazy_setup(function()
      server = start_server {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function()
      ns = controller.namespace(client, "why")
      dir = runtime_dir()
    end)

    local function map(of, data)
      return client:create { kind = "v1/ConfigMap", namespace = ns, name = of, data = data }
    end
    local function script() return (SCRIPT:gsub("NAMESPACE", ("%q"):format(ns))) end

    it("shows the last run: its trigger, reads, writes, and what comes next", function()
      local run = start(server, dir, script())
      run:wait_for_log(60, "controller is running")
      local a = map("a", { x = "1" })
      says(dir, "v1/ConfigMap " .. ns .. "/a", "maps: it runs again in %d+m",
        "v1/ConfigMap " .. ns .. "/a added %(rv " .. a.metadata.resourceVersion .. "%)",
        "listed 0 v1/Service %(namespace " .. ns .. ", labels app=x%)",
        "patched v1/ConfigMap " .. ns .. "/a: 200 in [%d.]+ ?m?s", "%-> done; next in ")
      says(dir, "configmaps a -n " .. ns, "patched v1/ConfigMap")
      local answer = json.decode((why(dir, "cm/a -n " .. ns .. " -o json")))
      local entry = answer.controllers[1]
      assert.same({ "maps", "resource", ns .. "/a", "waiting", true },
        { entry.controller, entry.role, entry.key, entry.queue.state, entry.present })
      local steps = entry.runs[#entry.runs].steps
      assert.same({ "v1/Service", 0 }, { steps[1].list, steps[1].count })
      assert.same({ "patch", 200 }, { steps[2].call, steps[2].code })
      controller.finish(run)
    end)

    it("does not show the values by which Secrets are looked up", function()
      local run = start(server, dir, ([[
        return require "kubelua".controller {
          name = "looks", resource = "v1/ConfigMap", namespaces = { %q },
          indexes = { ["v1/Secret"] = { pin = "data.pin" }, by = "data.x" },
          reconcile = function(map, ctx)
            ctx:list("v1/Secret", { index = "pin", value = "hush-hush" })
            ctx:list("v1/ConfigMap", { index = "by", value = "told" })
          end,
        }]]):format(ns))
      run:wait_for_log(60, "controller is running")
      map("a", { x = "1" })
      says(dir, "cm a -n " .. ns, "listed 0 v1/Secret .*pin", "listed 0 v1/ConfigMap .*told")
      assert.is_nil(why(dir, "cm a -n " .. ns):find("hush", 1, true))
      assert.is_nil(why(dir, "cm a -n " .. ns .. " -o json"):find("hush", 1, true))
      controller.finish(run)
    end)

    it("shows what keeps a key from running", function()
      map("fails", { fail = "yes" })
      map("never", { never = "yes" })
      local m = map("quiet", { x = "1" })
      local run = start(server, dir, script())
      run:wait_for_log(60, "controller is running")
      says(dir, "cm fails -n " .. ns, "in backoff after %d+ failures in a row: next in",
        "%-> error: .*as asked; next in", "stack traceback")
      says(dir, "cm never -n " .. ns, "maps: failed for good: it runs again when something changes",
        "%-> failed for good: not in this life")
      says(dir, "cm " .. ns .. "/gone", "is not in the cache: it does not exist",
        "no run of it is in the history")
      says(dir, "cm elsewhere/gone", "is in a namespace that maps does not watch")
      says(dir, "cm " .. ns .. "/quiet", "maps: it runs again in")
      client:patch(m, { metadata = { labels = { some = "label" } } })
      says(dir, "cm " .. ns .. "/quiet", "triggered no run: none of the fields in `when` has changed")
      controller.finish(run)
    end)

    it("shows alternating failures once each", function()
      local run = start(server, dir, script())
      run:wait_for_log(60, "controller is running")
      map("fails", { turns = "1" })
      says(dir, ("cm fails -n %s"):format(ns), "before %([34] times%): [^\n]* %-> error: the first way",
        "before %([34] times%): [^\n]* %-> error: the second way")
      assert.equal(2, select(2, why(dir, ("cm fails -n %s"):format(ns)):gsub("\n    before", "")))
      controller.finish(run)
    end)

    it("looks for a bare name in the namespace default, and lists other triggers", function()
      local run = start(server, dir, [[
local kube = require "kubelua"
return kube.controller { name = "maps", resource = "v1/ConfigMap",
  namespaces = { "default", ]] .. ("%q"):format(ns)
        .. [[ }, resync = "5m", every = "1h", cron = "0 3 * * *", reconcile = function() end }]])
      run:wait_for_log(60, "controller is running")
      says(dir, "cm nobody", "v1/ConfigMap default/nobody is not in the cache")
      map("rests", { x = "1" })
      says(dir, "cm rests -n " .. ns, "it runs again when something changes, and every 5m0s %(`resync`%), \z
        and every 1h0m0s %(`every`%), and at 0 3 %* %* %* %(`cron`%)")
      controller.finish(run)
    end)

    it("follows owned and watched objects to the keys that they lead to", function()
      local m = map("owner", { x = "1" })
      client:create { apiVersion = "v1", kind = "Secret",
        metadata = { namespace = ns, name = "owned", labels = { of = "owner" }, ownerReferences = {
        { apiVersion = "v1", kind = "ConfigMap", name = "owner", uid = m.metadata.uid,
          controller = true } } } }
      client:create { kind = "v1/Secret", namespace = ns, name = "stray" }
      client:create { apiVersion = "v1", kind = "ServiceAccount",
        metadata = { namespace = ns, name = "points", labels = { of = "owner" } } }
      local run = start(server, dir, script())
      run:wait_for_log(60, "controller is running")
      says(dir, "v1/Secret " .. ns .. "/owned", "maps %(owned%) %-> v1/ConfigMap " .. ns
        .. "/owner: it runs again in", "patched v1/ConfigMap " .. ns .. "/owner")
      -- two paths lead there, and it is shown once
      assert.is_nil(why(dir, "v1/Secret " .. ns .. "/owned"):find("to no key", 1, true))
      says(dir, "secret " .. ns .. "/stray", "maps %(owned%): no owner reference of it names",
        "maps %(watched%): the script's `watches` maps it to no key")
      says(dir, "sa " .. ns .. "/points", "maps %(watched%) %-> v1/ConfigMap " .. ns .. "/owner: ")
      says(dir, "svc " .. ns .. "/none", "maps %(read%): it is only read")
      controller.finish(run)
    end)

    it("shows the leader, and a missing cache", function()
      local lease = { "--leader-elect", "--leader-elect-resource-namespace", ns, "--leader-elect-identity" }
      local words = table.move(lease, 1, #lease, 1, {})
      words[#words + 1] = "the-first"
      local first = start(server, runtime_dir(), script(), table.unpack(words))
      first:wait_for_log(60, "controller is running")
      words[#words] = "the-second"
      local second = start(server, dir, script(), table.unpack(words))
      map("a")
      says(dir, "cm " .. ns .. "/a", "this process does not lead: the Lease .* is held by the-first")
      controller.finish(second)
      controller.finish(first)
      local parked = start(server, dir, (script():gsub("v1/Secret", "example.com/v1/Missing")))
      says(dir, "cm " .. ns .. "/a", "maps is parked: example.com/v1/Missing: ")
      controller.finish(parked)
    end)

    it("reports a disconnected cache while the server is down", function()
      local lonely = start_server { own = true }
      local other = controller.client(lonely)
      local there = controller.namespace(other, "why")
      local run = start(lonely, dir, (SCRIPT:gsub("NAMESPACE", ("%q"):format(there))))
      run:wait_for_log(60, "controller is running")
      lonely:kill()
      says(dir, "cm " .. there .. "/gone",
        "is not in the cache: it does not exist; but the server has sent nothing about v1/ConfigMap for \z
          [%d.]+m?s: \z
        .*connection refused")
      run:stop()
      lonely:stop()
    end)

    it("shows a call of ctx.http once, with its result", function()
      local run = start(server, dir, ([[
local kube = require "kubelua"
return kube.controller { name = "away", resource = "v1/ConfigMap", namespaces = { %q },
  http = { "http://127.0.0.1:1" },
  reconcile = function(_, ctx) ctx.http:get "http://127.0.0.1:1/x" end }
]]):format(ns), "--allow-http")
      run:wait_for_log(60, "controller is running")
      map("called")
      says(dir, "cm " .. ns .. "/called", "\n +GET http://127%.0%.0%.1:1/x: connection refused")
      controller.finish(run)
    end)

    it("says that webhooks have no history", function()
      local run = start(server, dir, [[
return require "kubelua".webhook { name = "idle", resource = "v1/Secret", failure_policy = "Ignore",
  validate = function() end }
]], "--webhook-listen", "127.0.0.1:0", "--webhook-url", "auto")
      run:wait_for_log(60, "control socket")
      says(dir, "secret " .. ns .. "/a", "this process has webhooks and no controller")
      controller.finish(run)
      client:delete("admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", "idle.webhooks.kubelua")
    end)

    it("asks which process, and which kind, if ambiguous", function()
      local out, code = why(dir, "cm " .. ns .. "/a")
      assert.equal(1, code)
      assert.truthy(out:find("you have no running kubelua here: start one with", 1, true), out)
      local first, second = start(server, dir, script()),
        start(server, dir, script(), "--control", dir .. "/kubelua/second.sock")
      first:wait_for_log(60, "controller is running")
      second:wait_for_log(60, "controller is running")
      out, code = why(dir, "cm " .. ns .. "/a")
      assert.equal(1, code)
      for _, run in ipairs { first, second } do
        assert.truthy(out:find(("--pid %d  run %s"):format(run.pid, run.script_path), 1, true), out)
      end
      for _, run in ipairs { first, second } do
        out, code = why(dir, ("cm %s/a --pid %d"):format(ns, run.pid))
        assert.equal(0, code, out)
      end
      out = why(dir, ("v1/ConfigMaps %s/a --socket %s/kubelua/second.sock"):format(ns, dir))
      assert.truthy(out:find(
        'no controller of this process watches or reconciles "v1/ConfigMaps": did you mean \z
        v1/ConfigMap?', 1, true), out)
      out, code = why(dir, "cm")
      assert.equal(2, code)
      assert.truthy(out:find("kubelua why KIND NAMESPACE/NAME", 1, true), out)
      controller.finish(second)
      controller.finish(first)
    end)

    it("works without the flight recorder, which can be limited", function()
      map("a")
      local run = start(server, dir, script(), "--flight-recorder", "off")
      run:wait_for_log(60, "controller is running")
      says(dir, "cm " .. ns .. "/a", "it runs again in", "no run of it is in the history")
      controller.finish(run)
      run = start(server, dir, script(), "--flight-recorder", "1Ki")
      assert.equal(2, run:wait(20))
      assert.truthy(run:log():find("--flight-recorder must be a number of bytes, 64Ki or more, or off",
        1, true))
    end)
  end)
end)

describe("kubelua why", function()
  it("explains that kinds are unknown before the first contact with a server", function()
    local dir = runtime_dir()
    local socket = dir .. "/s.sock"
    local kubeconfig = process.write(process.tmpname ".kubeconfig", ([[
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
]]):format(servers.free_port()))
    local run = controller.start({ kubeconfig = kubeconfig }, (SCRIPT:gsub("NAMESPACE", '"a"')), "--control",
      socket)
    run:wait_for_log(60, "control socket")
    local function asked(kind) return process.run(("%s why --socket %s %s a/b 2>&1"):format(KUBELUA, socket,
      kind)) end
    local said, code = asked "cm"
    assert.equal(1, code)
    assert.truthy(said:find('"cm" cannot be resolved yet: discovery has not finished', 1, true), said)
    said, code = asked "v1/ConfigMap"
    assert.equal(0, code, said)
    assert.match("maps is parked", said)
    controller.finish(run)
  end)
end)
