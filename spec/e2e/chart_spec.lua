-- chart_spec.lua - deploy/chart: a real API server accepts its manifests, the program runs with the rights
-- that they grant, and mistakes in values are reported.
-- not in asan, tsan: the manifests are the subject

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local HELLO = [[--set-file scripts.hello\\.lua=controllers/hello.lua --set 'controllers={hello.lua}']]
local RULES = [[--set-json 'rules=[{"apiGroups":[""],"resources":["configmaps"],]]
  .. [["verbs":["get","list","watch","patch"]}]']]

local HOOK = [[
return require "kubelua".webhook {
  name = "chart-hook", resource = "v1/ConfigMap", namespaces = { "apps" },
  mutate = function(obj) obj.metadata.labels.hooked = "yes" end,
}
]]

-- `make versions` builds it; a helm of the machine does as well.
local helm = process.run("ls build/assets/helm/helm || command -v helm"):match "%S+helm%f[%s]"

servers.only_real(function(name, start)
  if not helm then
    local why = "deploy/chart needs helm: `make versions` builds it"
    if os.getenv "CI" == "true" then
      it("is rendered by helm", function() error(why, 0) end)
    else
      pending(why)
    end
    return
  end

  describe("deploy/chart at " .. name, function()
    local server, client

    lazy_setup(function()
      server = start { empty = true }
      client = controller.client(server)
      server:must_kubectl("apply", "-f", "spec/fixtures/prometheus/podmonitors.yaml")
      server:wait_established("crd/podmonitors.monitoring.coreos.com")
      client:create { kind = "v1/Namespace", name = "apps" }
      -- The spec's user replaces the service account, since no controller here creates its token.
      server:must_kubectl("create", "clusterrolebinding", "chart-nobody", "--clusterrole", "apps-demo",
        "--user", "nobody")
      server:must_kubectl("create", "rolebinding", "chart-nobody", "-n", "apps", "--role", "demo", "--user",
        "nobody")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    -- The rendered chart with these arguments of helm, or the error and the status.
    local function rendered(words)
      return process.run(("%s template demo deploy/chart -n apps --kube-version 1.34.3 %s 2>&1"):format(helm,
        words))
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

    it("is a valid chart", function()
      local out, code = process.run(("%s lint --strict deploy/chart %s 2>&1"):format(helm, HELLO))
      assert.equal(0, code, out)
    end)

    it("is accepted with everything switched on", function()
      local _, out = applied(table.concat({ HELLO, RULES,
        "--set metrics.podMonitor=true,webhooks.enabled=true,shards=auto,logFormat=text,\z
          dashboard.enabled=true,dashboard.tokenSecret=t",
        "--set-json 'extraArgs=[\"--workers\",\"4\"]'",
        "--set podAnnotations.a=b,nodeSelector.c=d,serviceAccount.annotations.e=f",
        "--set 'imagePullSecrets[0].name=x'",
        "--set 'tolerations[0].operator=Exists'",
        "--set-json 'namespacedRules=[{\"apiGroups\":[\"\"],\"resources\":[\"pods\"],\"verbs\":[\"list\"]}\z
          ]'" }, " "), "--dry-run=server")
      for _, what in ipairs { "deployment.apps/demo", "podmonitor.monitoring.coreos.com/demo",
        "service/demo-webhook", "poddisruptionbudget.policy/demo",
        "configmap/demo-scripts", "clusterrole.rbac.authorization.k8s.io/apps-demo",
        "role.rbac.authorization.k8s.io/demo" } do
        assert.truthy(out:find(what, 1, true), what .. " is not in\n" .. out)
      end
    end)

    it("keeps params in a ConfigMap, and references Secrets for others", function()
      local made = applied(HELLO .. " --set params.hello\\\\.size=3,params.region=eu --set \z
        'paramSecrets={dns}'",
        "--dry-run=server")
      assert.same({ ["hello.size"] = "3", region = "eu" }, (function()
        for _, o in ipairs(kube.yaml((rendered(HELLO .. " --set params.hello\\\\.size=3,params.region=eu")),
          "chart")) do
          if o.metadata.name == "demo-params" then return kube.copy(o.data) end
        end
      end)())
      local args = table.concat(kube.copy(made.Deployment.spec.template.spec.containers[1].args), " ")
      assert.truthy(args:find("--params=configmap/apps/demo-params --params=secret/apps/dns", 1, true), args)
      local names = {}
      for _, rule in ipairs(made.Role.rules) do names[#names + 1] = rule("resourceNames[1]") end
      assert.same({ "demo-params", "dns" }, names)
    end)

    it("serves the dashboard to the pod's own address alone, when told to", function()
      assert.is_nil(rendered(HELLO):find("dashboard", 1, true))
      local text = rendered(HELLO .. " --set dashboard.enabled=true")
      assert.truthy(text:find("- --dashboard=127.0.0.1:8082\n", 1, true), text)
      assert.is_nil(text:find("dashboard-token", 1, true), text)
    end)

    -- Waits until the spec's user has the rights of these roles, then runs the Deployment's command as that
    -- user. `scripts` replaces /controllers; the API server reaches the webhooks by their address instead of
    -- the Service.
    local function run_as_nobody(made, scripts, ...)
      for _, role in ipairs { made.ClusterRole, made.Role } do
        for _, rule in ipairs(role.rules) do
          local resource = rule.resources[#rule.resources]
          wait.until_true(60, "the right to " .. kube.to_json(rule), function()
            return client:create({ apiVersion = "authorization.k8s.io/v1", kind = "SubjectAccessReview",
              metadata = {}, spec = { user = "nobody", resourceAttributes = {
              namespace = role.kind == "Role" and "apps" or nil, verb = rule.verbs[#rule.verbs],
              group = rule.apiGroups[1], resource = resource,
              name = (rule.resourceNames or {})[1] } } }).status.allowed
          end)
        end
      end
      local words = { KUBELUA, name = "kubelua run as nobody" }
      for _, arg in ipairs(made.Deployment.spec.template.spec.containers[1].args) do
        words[#words + 1] = arg:gsub("^/controllers/", scripts):gsub("0%.0%.0%.0:%d+",
          "127.0.0.1:0"):gsub("^%-%-webhook%-service=.*", "--webhook-url=auto")
      end
      for _, word in ipairs { "--kubeconfig", server:kubeconfig_for(server.tokens.nobody), ... } do
        words[#words + 1] = word
      end
      return process.spawn(words)
    end

    local function was_refused_nothing(p)
      for _, refusal in ipairs { "orbidden", "cannot list", "cannot patch", "not allowed" } do
        assert.is_nil(p:log():find(refusal), p:log())
      end
    end

    it("runs its scripts with its own rights", function()
      -- As deploy/README.md has it.
      local rules, code = process.run(KUBELUA .. " rbac controllers/hello.lua -o values 2>&1")
      assert.equal(0, code, rules)
      local made = applied(HELLO .. " -f " .. process.write(process.tmpname ".yaml", rules))
      assert.equal(process.read "controllers/hello.lua",
        client:get("v1/ConfigMap", "apps", "demo-scripts").data["hello.lua"])
      assert.equal(2, made.Deployment.spec.replicas)
      local p = run_as_nobody(made, "controllers/")
      client:create { kind = "v1/ConfigMap", namespace = "apps", name = "card", labels = { hello = "chart" },
        data = {} }
      wait.until_true(60, "the greeting", function()
        return client:get("v1/ConfigMap", "apps", "card")("data.greeting") == "Hello, chart!" or not p:alive()
          and error(p:log(), 0)
      end)
      assert.equal(0, p:stop(45), p:log())
      was_refused_nothing(p)
      assert.equal("", client:get("coordination.k8s.io/v1/Lease", "apps", "demo")("spec.holderIdentity")
        or "")
    end)

    it("lets webhooks manage certificates and configurations with its own rights", function()
      local dir = process.tmpname ".chart"
      process.run("mkdir -p " .. process.quote(dir))
      local script = process.write(dir .. "/hook.lua", HOOK)
      local made = applied(("--set-file scripts.hook\\\\.lua=%s --set 'controllers={hook.lua}' --set \z
        webhooks.enabled=true"):format(process.quote(script)))
      local args = table.concat(kube.copy(made.Deployment.spec.template.spec.containers[1].args), " ")
      assert.matches("--webhook-service=apps/demo-webhook --webhook-secret=apps/demo-webhook-tls", args, 1,
        true)
      local first = run_as_nobody(made, dir .. "/")
      local i = 0
      wait.until_true(60, "the API server calls the webhook", function()
        i = i + 1
        local o = client:create { kind = "v1/ConfigMap", namespace = "apps", name = "hooked-" .. i }
        return o("metadata.labels.hooked") == "yes" or not first:alive() and error(first:log(), 0)
      end)
      -- Another replica finds that the certificate ends too soon, and writes the Secret.
      local before = client:get("v1/Secret", "apps", "demo-webhook-tls")
      local second = run_as_nobody(made, dir .. "/", "--webhook-cert-life", "8760h")
      second:wait_for_log(60, "the webhook is registered with the API server")
      assert.not_equal(before.metadata.resourceVersion,
        client:get("v1/Secret", "apps", "demo-webhook-tls").metadata.resourceVersion)
      assert.equal(0, second:stop(45), second:log())
      process.write(script,
        [[return require "kubelua".webhook { name = "chart-other", resource = "v1/Pod",
          validate = function() end }]])
      wait.until_true(60, "its configuration is gone", function()
        return client:get("admissionregistration.k8s.io/v1/MutatingWebhookConfiguration", "chart-hook") == nil
          or not first:alive() and error(first:log(), 0)
      end)
      assert.equal(0, first:stop(45), first:log())
      was_refused_nothing(first)
      was_refused_nothing(second)
      client:delete("admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", "chart-other")
    end)

    -- No kubelet and no Job controller are here: the spec runs the containers, and says how the Job ended.
    it("deletes the webhooks' configurations when uninstalled, with its own rights", function()
      local KIND = "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration"
      local dir = process.tmpname ".chart"
      process.run("mkdir -p " .. process.quote(dir))
      local script = process.write(dir .. "/hook.lua", (HOOK:gsub("chart%-hook", "chart-bye")))
      local function with_helm(words)
        return ("env KUBECONFIG=%s %s %s -n apps"):format(process.quote(server.kubeconfig), helm, words)
      end
      local out, code = process.run(
        with_helm(("install bye deploy/chart --set-file scripts.hook\\\\.lua=%s --set \z
        'controllers={hook.lua}' --set webhooks.enabled=true"):format(process.quote(script))))
      assert.equal(0, code, out)
      client:create { kind = KIND, name = "chart-bye",
        labels = { ["app.kubernetes.io/managed-by"] = "kubelua" },
        webhooks = {} }
      server:must_kubectl("create", "clusterrolebinding", "bye-nobody", "--clusterrole", "apps-bye-uninstall",
        "--user", "nobody")
      server:must_kubectl("create", "rolebinding", "bye-nobody", "-n", "apps", "--role", "bye-uninstall",
        "--user",
        "nobody")
      local bye = process.spawn { "sh", "-c", with_helm "uninstall bye --timeout 2m",
        name = "helm uninstall" }
      local job = wait.until_true(60, "the hook's Job", function()
        return client:get("batch/v1/Job", "apps", "bye-uninstall") or not bye:alive() and error(bye:log(), 0)
      end)
      assert.is_nil(client:get("apps/v1/Deployment", "apps", "bye"))
      local pod = job.spec.template.spec
      assert.equal(process.read(script),
        client:get("v1/ConfigMap", "apps", pod.volumes[1].configMap.name).data["hook.lua"])
      local containers = { pod.initContainers[1], pod.initContainers[2], pod.containers[1] }
      for _, c in ipairs(containers) do
        local words = { KUBELUA }
        for _, arg in ipairs(c.args) do
          words[#words + 1] = process.quote((arg:gsub("^/controllers/", dir .. "/")))
        end
        words[#words + 1] = "--kubeconfig " .. process.quote(server:kubeconfig_for(server.tokens.nobody))
        wait.until_true(60, c.name .. " to end well", function()
          out, code = process.run(table.concat(words, " "))
          return code == 0 or error(out, 0)
        end)
      end
      assert.is_nil(client:get(KIND, "chart-bye"))
      local now = os.date "!%Y-%m-%dT%H:%M:%SZ"
      client:patch_status(job, function(j)
        j.status = { startTime = now, completionTime = now, succeeded = 1, terminating = 0, ready = 0,
          uncountedTerminatedPods = {}, conditions = {
            { type = "SuccessCriteriaMet", status = "True", lastProbeTime = now, lastTransitionTime = now },
            { type = "Complete", status = "True", lastProbeTime = now, lastTransitionTime = now },
          } }
      end)
      assert.equal(0, bye:wait(60), bye:log())
      for _, left in ipairs { "v1/ServiceAccount", "v1/ConfigMap", "rbac.authorization.k8s.io/v1/Role" } do
        assert.is_nil(client:get(left, "apps", "bye-uninstall"), left)
      end
      assert.is_nil(rendered(HELLO
        .. " --set webhooks.enabled=true,webhooks.uninstall=false"):find("post-delete", 1, true))
    end)

    it("says what is missing", function()
      local out, code = rendered ""
      assert.not_equal(0, code)
      assert.matches("controllers is empty: name the scripts to run", out, 1, true)
      out, code = rendered [[--set-file scripts.hello\\.lua=controllers/hello.lua \
        --set 'controllers={helo.lua}']]
      assert.not_equal(0, code)
      assert.matches("controllers names helo.lua, which is not among scripts (hello.lua)", out, 1, true)
      out, code = rendered(HELLO .. " --set serviceAccount.create=false")
      assert.not_equal(0, code)
      assert.matches("serviceAccount.name is needed", out, 1, true)
    end)

    it("uses an existing ConfigMap", function()
      local out, code = rendered "--set existingConfigMap=mine --set 'controllers={a.lua}'"
      assert.equal(0, code, out)
      assert.matches("configMap: {name: mine}", out, 1, true)
      assert.is_nil(out:find("kind: ConfigMap", 1, true))
    end)
  end)
end)
