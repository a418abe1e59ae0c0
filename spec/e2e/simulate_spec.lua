-- simulate_spec.lua - stand-ins for a cluster (controllers/simulate): unmodified kubectl sees pods become
-- ready, with the embedded server and --simulate, and with kube-apiserver and the scripts as controllers, so
-- that a real server accepts everything that they write.
-- not in asan, tsan: minutes of scripts' Lua and kubectl; servers and managers have specs of their own

local json = require "dkjson"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local DIR = "controllers/simulate"

-- With its own real server: on a shared one, the stand-ins would act on pods of other specs, too.
local function start_beside(name, start)
  if name == "the embedded API server" then
    return start { collects = true, args = { "--simulate", "--simulate-nodes", "2" } }
  end
  local server = start { empty = true }
  local words = { KUBELUA, "run", name = "kubelua run" }
  for path in process.run("ls " .. DIR .. "/*.lua"):gmatch "%S+" do
    if not path:find "_test%.lua$" then words[#words + 1] = path end
  end
  for _, word in ipairs { "--kubeconfig", server.kubeconfig, "--param", "simulate-cluster.nodes=2",
    "--control",
    "off" } do words[#words + 1] = word end
  server.beside = process.spawn(words)
  table.insert(server.children, server.beside)
  return server
end

describe("the stand-ins", function()
  it("have names", function()
    local function refused(words)
      local out, code = process.run(KUBELUA .. " apiserver --listen 127.0.0.1:0 " .. words .. " 2>&1")
      assert.equal(2, code)
      return out
    end
    assert.equal('kubelua apiserver: --simulate: there is no stand-in "pod"; did you mean "pods"?\n',
      refused "--simulate=nodes,pod")
    assert.matches('^kubelua apiserver: %-%-simulate: there is no stand%-in "xyzzy"; the stand%-ins are \z
      .*nodes, .*pods',
      refused "--simulate=xyzzy")
    assert.matches("%-%-simulate%-nodes needs %-%-simulate\n", refused "--simulate-nodes 4")
  end)

  it("run beside dev, too", function()
    local play = process.write(process.tmpname ".lua", [[
      local c = require "kubelua".connect { server = dev.server }
      for i = 1, 2 do c:wait_for("v1/Node", "node-" .. i, "Ready", { timeout = "60s" }) end
      assert(#c:list "v1/Node" == 2)
    ]])
    local out, code = process.run(("timeout 100 %s dev controllers/hello.lua --control off --simulate=nodes \z
      --simulate-nodes 2 --play %s 2>&1"):format(KUBELUA, play))
    assert.equal(0, code, out)
    assert.equal(1, select(2, out:gsub("stand%-ins simulate a cluster parts=nodes nodes=2", "")), out)
    assert.falsy(out:find("controller=simulate-", 1, true), out)
    local all = process.run(("timeout 100 %s dev controllers/hello.lua --control off --simulate \z
      --play %s 2>&1"):format(KUBELUA, process.write(process.tmpname ".lua", "")))
    assert.truthy(all:find('parts="cronjobs, daemonsets, deployments, ', 1, true), all)
    assert.falsy(all:find "WARN", all)
  end)
end)

servers.each(function(name, start)
  describe("kubectl beside stand-ins and " .. name, function()
    local s
    lazy_setup(function()
      s = start_beside(name, start)
      wait.until_true(60, "two nodes are there",
        function() return select(2, s:kubectl("get", "node", "node-2")) == 0 end)
      s:must_kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
    end)
    lazy_teardown(function() if s then s:stop() end end)

    local function get(kind, of, path)
      return s:must_kubectl("get", kind, of, "-o", "jsonpath={" .. path .. "}")
    end

    it("sees a pod become ready, and end", function()
      s:must_kubectl("run", "one", "--image=nginx")
      s:must_kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=60s")
      assert.matches("one +1/1 +Running +0 ", s:must_kubectl("get", "pods", "one"))
      assert.matches("Successfully assigned default/one to node%-", s:must_kubectl("describe", "pod", "one"))
      s:must_kubectl("delete", "pod", "one", "--timeout=60s")
    end)

    it("cordons a node, drains it, and lets pods in again", function()
      s:must_kubectl("run", "two", "--image=nginx")
      s:must_kubectl("wait", "--for=condition=Ready", "pod/two", "--timeout=60s")
      local node = get("pod", "two", ".spec.nodeName")
      s:must_kubectl("drain", node, "--force", "--timeout=60s")
      assert.equal(1, select(2, s:kubectl("get", "pod", "two")))
      assert.matches("SchedulingDisabled", s:must_kubectl("get", "node", node))
      s:must_kubectl("run", "three", "--image=nginx",
        '--overrides={"spec":{"nodeSelector":{"kubernetes.io/hostname":"' .. node .. '"}}}')
      s:must_kubectl("wait", "--for=condition=PodScheduled=False", "pod/three", "--timeout=60s")
      s:must_kubectl("uncordon", node)
      s:must_kubectl("wait", "--for=condition=Ready", "pod/three", "--timeout=60s")
      s:must_kubectl("delete", "pod", "three", "--timeout=60s")
    end)

    it("rolls a Deployment out, and back", function()
      s:must_kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
      s:must_kubectl("rollout", "status", "deployment/web", "--timeout=60s")
      s:must_kubectl("set", "image", "deployment/web", "nginx=nginx:2")
      s:must_kubectl("rollout", "status", "deployment/web", "--timeout=60s")
      assert.matches("\n1 .*\n2 ", s:must_kubectl("rollout", "history", "deployment/web"))
      s:must_kubectl("rollout", "undo", "deployment/web")
      s:must_kubectl("rollout", "status", "deployment/web", "--timeout=60s")
      s:must_kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
      assert.equal("nginx:1", get("deployment", "web", ".spec.template.spec.containers[0].image"))
      assert.matches("\n2 .*\n3 ", s:must_kubectl("rollout", "history", "deployment/web"))
      assert.matches("web +3/3 +3 +3 ", s:must_kubectl("get", "deployment", "web"))
      s:must_kubectl("expose", "deployment", "web", "--port=80")
      wait.until_true(60, "three endpoints that are ready", function()
        return s:must_kubectl("get", "endpointslice", "-l", "kubernetes.io/service-name=web", "-o",
          "jsonpath={.items[*].endpoints[*].conditions.ready}") == "true true true"
      end)
    end)

    it("lets a budget block a drain", function()
      s:must_kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=3")
      s:must_kubectl("wait", "pdb/web", "--for=jsonpath={.status.currentHealthy}=3", "--timeout=60s")
      local pod = s:must_kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].spec.nodeName}")
      assert.matches("would violate the pod's disruption budget",
        (s:kubectl("drain", pod, "--force", "--timeout=1s")))
      s:must_kubectl("patch", "pdb", "web", "-p", '{"spec":{"minAvailable":1}}')
      s:must_kubectl("drain", pod, "--force", "--timeout=60s")
      s:must_kubectl("uncordon", pod)
      s:must_kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    end)

    it("sees Jobs complete, and a CronJob make them", function()
      s:must_kubectl("create", "job", "once", "--image=busybox")
      s:must_kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=60s")
      assert.matches("once +Complete +1/1 ", s:must_kubectl("get", "job", "once"))
      s:must_kubectl("create", "cronjob", "often", "--image=busybox", "--schedule=* * * * *")
      s:must_kubectl("patch", "cronjob", "often", "--subresource=status", "-p",
        '{"status":{"lastScheduleTime":"2026-01-01T00:00:00Z"}}')
      s:must_kubectl("wait", "cronjob/often", "--for=jsonpath={.status.lastSuccessfulTime}", "--timeout=60s")
      s:must_kubectl("delete", "cronjob", "often")
      s:must_kubectl("create", "-f", process.write(process.tmpname ".json", json.encode {
        apiVersion = "batch/v1", kind = "Job", metadata = { name = "bad" },
          spec = { backoffLimit = 0, template = {
          metadata = { annotations = { ["simulate.kubelua.dev/exit-code"] = "1" } },
          spec = { restartPolicy = "Never", containers = { { name = "c", image = "i" } } } } } }))
      s:must_kubectl("wait", "--for=condition=Failed", "job/bad", "--timeout=60s")
    end)

    it("rolls StatefulSets with their claims and DaemonSets out, and back", function()
      local labels = { app = "db" }
      local template = { metadata = { labels = labels },
        spec = { containers = { { name = "c", image = "i:1" } } } }
      local spec = { selector = { matchLabels = labels }, template = template }
      local claim = { metadata = { name = "data" }, spec = { accessModes = { "ReadWriteOnce" },
        resources = { requests = { storage = "1Gi" } } } }
      for kind, which in pairs { StatefulSet = "statefulset/db", DaemonSet = "daemonset/db" } do
        spec.replicas = kind == "StatefulSet" and 2 or nil
        spec.serviceName = kind == "StatefulSet" and "db" or nil
        spec.volumeClaimTemplates = kind == "StatefulSet" and { claim } or nil
        labels.app = which:match "%a+"
        s:must_kubectl("create", "-f", process.write(process.tmpname ".json", json.encode {
          apiVersion = "apps/v1", kind = kind, metadata = { name = "db" }, spec = spec }))
        s:must_kubectl("rollout", "status", which, "--timeout=60s")
        s:must_kubectl("set", "image", which, "c=i:2")
        s:must_kubectl("rollout", "status", which, "--timeout=60s")
        assert.matches("\n1 .*\n2 ", s:must_kubectl("rollout", "history", which))
        s:must_kubectl("rollout", "undo", which)
        s:must_kubectl("rollout", "status", which, "--timeout=60s")
        assert.equal("i:1", get(kind, "db", ".spec.template.spec.containers[0].image"))
      end
      assert.equal("Bound", get("pvc", "data-db-1", ".status.phase"))
      assert.matches("db%-0 +1/1 +Running", s:must_kubectl("get", "pod", "db-0"))
    end)

    it("leaves no stand-in failing", function()
      local log = s.beside and s.beside:log() or s:log()
      for line in log:gmatch "[^\n]* ERROR [^\n]*" do
        -- an object that is deleted while its key runs
        assert.matches("404 NotFound", line, 1, true)
      end
    end)
  end)
end)
