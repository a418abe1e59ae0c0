-- chart_spec.lua - deploy/chart: what it renders is accepted by a real API server, runs with the rights it gives, and its mistakes are told.

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local HELLO = [[--set-file scripts.hello\\.lua=controllers/hello.lua --set 'controllers={hello.lua}']]
local RULES = [[--set-json 'rules=[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch","patch"]}]']]

-- `make versions` builds it; a helm of the machine does as well.
local helm = process.run("ls build/assets/helm/helm || command -v helm"):match "%S+helm%f[%s]"

servers.only_real(function(name, start)
  if not helm then
    local why = "deploy/chart needs helm: `make versions` builds it"
    if os.getenv "CI" == "true" then it("is rendered by helm", function() error(why, 0) end) else pending(why) end
    return
  end

  describe("deploy/chart at " .. name, function()
    local server, client

    lazy_setup(function()
      server = start { own = true }
      client = controller.client(server)
      server:must_kubectl("apply", "-f", "spec/fixtures/prometheus/podmonitors.yaml")
      server:must_kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/podmonitors.monitoring.coreos.com")
      client:create { kind = "v1/Namespace", name = "apps" }
    end)
    lazy_teardown(function() if server then server:stop() end end)

    -- The chart's text with these words of helm, or its complaint and status.
    local function rendered(words)
      return process.run(("%s template demo deploy/chart -n apps --kube-version 1.34.3 %s 2>&1"):format(helm, words))
    end

    local function applied(words, ...)
      local text, code = rendered(words)
      assert.equal(0, code, text)
      local file = process.write(process.tmpname ".yaml", text)
      local out = server:must_kubectl("apply", "-n", "apps", "--validate=strict", "-f", file, ...)
      assert.is_nil(out:find("Warning", 1, true), out)
      local by_kind = {}
      for _, o in ipairs(kube.yaml(text, file)) do by_kind[o.kind] = by_kind[o.kind] or o end
      return by_kind, out
    end

    it("is a sound chart", function()
      local out, code = process.run(("%s lint --strict deploy/chart %s 2>&1"):format(helm, HELLO))
      assert.equal(0, code, out)
    end)

    it("is accepted with everything switched on", function()
      local _, out = applied(table.concat({ HELLO, RULES, "--set metrics.podMonitor=true,webhooks.enabled=true,shards=auto,logFormat=text",
        "--set-json 'extraArgs=[\"--workers\",\"4\"]'", "--set podAnnotations.a=b,nodeSelector.c=d,serviceAccount.annotations.e=f", "--set 'imagePullSecrets[0].name=x'",
        "--set 'tolerations[0].operator=Exists'", "--set-json 'namespacedRules=[{\"apiGroups\":[\"\"],\"resources\":[\"pods\"],\"verbs\":[\"list\"]}]'" }, " "), "--dry-run=server")
      for _, what in ipairs { "deployment.apps/demo", "podmonitor.monitoring.coreos.com/demo", "service/demo-webhook", "poddisruptionbudget.policy/demo",
        "configmap/demo-scripts", "clusterrole.rbac.authorization.k8s.io/apps-demo", "role.rbac.authorization.k8s.io/demo" } do
        assert.truthy(out:find(what, 1, true), what .. " is not in\n" .. out)
      end
    end)

    it("runs its scripts with the rights it gives and is refused nothing", function()
      local made = applied(HELLO .. " " .. RULES)
      assert.equal(process.read "controllers/hello.lua", client:get("v1/ConfigMap", "apps", "demo-scripts").data["hello.lua"])
      assert.equal(2, made.Deployment.spec.replicas)
      -- The spec's user in the place of the service account, of which nobody here would make a token.
      server:must_kubectl("create", "clusterrolebinding", "chart-nobody", "--clusterrole", "apps-demo", "--user", "nobody")
      server:must_kubectl("create", "rolebinding", "chart-nobody", "-n", "apps", "--role", "demo", "--user", "nobody")
      local words = { KUBELUA, name = "kubelua run as nobody" }
      for _, arg in ipairs(made.Deployment.spec.template.spec.containers[1].args) do
        words[#words + 1] = (arg:gsub("^/controllers/", "controllers/"):gsub("0%.0%.0%.0:%d+", "127.0.0.1:0"))
      end
      words[#words + 1] = "--kubeconfig"
      words[#words + 1] = server:kubeconfig_for(server.tokens.nobody)
      local p = process.spawn(words)
      client:create { kind = "v1/ConfigMap", namespace = "apps", name = "card", labels = { hello = "chart" }, data = {} }
      wait.until_true(60, "the greeting", function()
        return client:get("v1/ConfigMap", "apps", "card")("data.greeting") == "Hello, chart!" or not p:alive() and error(p:log(), 0)
      end)
      assert.equal(0, p:stop(45), p:log())
      for _, refusal in ipairs { "orbidden", "cannot list", "cannot patch", "not allowed" } do assert.is_nil(p:log():find(refusal), p:log()) end
      assert.equal("", client:get("coordination.k8s.io/v1/Lease", "apps", "demo")("spec.holderIdentity") or "")
    end)

    it("says what is missing", function()
      local out, code = rendered ""
      assert.not_equal(0, code)
      assert.matches("controllers is empty: name the scripts to run", out, 1, true)
      out, code = rendered [[--set-file scripts.hello\\.lua=controllers/hello.lua --set 'controllers={helo.lua}']]
      assert.not_equal(0, code)
      assert.matches("controllers names helo.lua, which is not among scripts (hello.lua)", out, 1, true)
      out, code = rendered(HELLO .. " --set serviceAccount.create=false")
      assert.not_equal(0, code)
      assert.matches("serviceAccount.name is needed", out, 1, true)
    end)

    it("takes a ConfigMap that is there", function()
      local out, code = rendered "--set existingConfigMap=mine --set 'controllers={a.lua}'"
      assert.equal(0, code, out)
      assert.matches("configMap: {name: mine}", out, 1, true)
      assert.is_nil(out:find("kind: ConfigMap", 1, true))
    end)
  end)
end)
