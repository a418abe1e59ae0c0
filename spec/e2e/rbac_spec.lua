-- rbac_spec.lua - `kubelua rbac`: a controller runs with exactly the printed role, and fails without any one
-- of its rules.
-- not in asan, tsan: the printed rules are the subject

local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local NS, USER = "rbac-spec", "rbac-spec-user"
local PATIENCE = 60

local SCRIPT = [[
local kube = require "kubelua"
return kube.controller {
  name = "rbac-spec", resource = "v1/Service", namespaces = { "rbac-spec" }, reads = { "v1/Secret" },
  reconcile = function(svc, ctx)
    local name = svc.metadata.name
    ctx.live:get("v1/Namespace", "rbac-spec")
    ctx:get("v1/Secret", "any")
    ctx:apply { kind = "v1/ServiceAccount", name = name }
    ctx:delete("v1/LimitRange", "none-" .. name)
    ctx:patch_status(svc, { loadBalancer = { ingress = { { ip = "192.0.2.1" } } } })
    ctx:event("Served", "it is served")
    ctx:patch(svc, function(s) s.metadata.annotations = { done = "yes" } end)
  end,
}
]]

-- Webhooks of replicas that share keys.
local HOOKS = [[
local kube = require "kubelua"
return {
  kube.controller { name = "rbac-shards", resource = "v1/Service", namespaces = { "rbac-spec" },
    reconcile = function() end },
  kube.webhook { name = "rbac-changes", resource = "v1/Service", namespaces = { "rbac-spec" },
    reads = { "v1/LimitRange" },
    mutate = function(svc, req)
      req.live:get("v1/ResourceQuota", "rbac-spec", "none")
      req:event(svc, "Seen", "it was seen")
      svc.metadata.annotations.hooked = "yes"
    end },
  kube.webhook { name = "rbac-looks", resource = "v1/Service", namespaces = { "rbac-spec" },
    validate = function() end },
}
]]

local function write(text)
  local dir = process.tmpname ".rbac"
  process.run("mkdir -p " .. process.quote(dir))
  return process.write(dir .. "/served.lua", text), dir
end

local function rbac(...) return process.run(KUBELUA .. " rbac " .. table.concat({ ... }, " ")) end

describe("kubelua rbac", function()
  it("limits writes to the namespaces where the script reads the kind", function()
    -- verbs on a resource, by namespace; "" is the cluster
    local function verbs(resource, other)
      local out = rbac((write(([[
        local kube = require "kubelua"
        return { kube.controller { name = "here", resource = "v1/ConfigMap",
          owns = { ["v1/Secret"] = { selector = { namespaces = { "a", "b" } } } },
          reconcile = function(map, ctx)
            ctx:create { kind = "v1/Secret", namespace = "a", name = map.metadata.name }
            ctx:delete("v1/Pod", "c", map.metadata.name)
          end } %s }]]):format(other))), "-o json")
      local found = {}
      for _, role in ipairs(kube.decode(out).items) do
        for _, rule in ipairs(role.rules) do
          for _, r in ipairs(rule.resources) do
            if r == resource then found[role("metadata.namespace")
              or ""] = table.concat(kube.copy(rule.verbs), " ") end
          end
        end
      end
      return found
    end
    assert.same({ a = "list watch create", b = "list watch create" }, verbs("secrets", ""))
    assert.same({ [""] = "delete" }, verbs("pods", ""))
    -- Another controller of the script may write anywhere.
    assert.same({ [""] = "create", a = "list watch", b = "list watch" }, verbs("secrets",
      [[, kube.controller { name = "there", resource = "v1/Service", reconcile = function() end }]]))
  end)

  it("prints roles that are the same each time, with their reasons", function()
    local path = write(SCRIPT)
    local out, code = rbac(path, "--bind -n system")
    assert.equal(0, code, out)
    assert.equal(out, (rbac(path, "--bind -n system")))
    assert.matches("kind: ClusterRole\nmetadata:\n  name: rbac%-spec\nrules:\n# namespaces: \z
      [^\n]*served.lua:6\n%- apiGroups: %[\"\"%]\n  resources: %[\"namespaces\"%]\n  verbs: %[\"get\"%]", out)
    assert.matches("kind: Role\nmetadata:\n  name: rbac%-spec\n  namespace: rbac%-spec\n", out)
    assert.matches("# services: [^\n]*resource of rbac%-spec\n%- apiGroups: %[\"\"%]\n  resources: \z
      %[\"services\"%]\n  verbs: %[\"get\", \"list\", \"watch\", \"patch\"%]", out)
    assert.matches("kind: ServiceAccount\nmetadata:\n  name: rbac%-spec\n  namespace: system", out)
    local objects = kube.yaml(out)
    assert.equal(5, #objects)
  end)

  it("lets a controller create its owned kinds, if the source does not say which", function()
    local path = write [[
local kube = require "kubelua"
local function made(o) return kube.merge({ kind = "v1/Secret" }, { name = o.metadata.name }) end
return kube.controller { name = "owner", resource = "v1/ConfigMap", owns = { "v1/Secret", "v1/LimitRange" },
  reconcile = function(o, ctx) ctx:apply(made(o)) ctx:create { kind = "v1/LimitRange", name = "x" } end }
]]
    local out = rbac(path)
    assert.matches('# secrets: objects that owner makes and owns; owns of owner\n[^#]*verbs: \z
      %["list", "watch", "create", "patch"%]', out)
    process.write(path, (assert(process.read(path)):gsub("ctx:apply%(made%(o%)%)", "")))
    assert.matches('# secrets: owns of owner\n', rbac(path))
  end)

  it("reads calls in pcall and kube.try", function()
    local path = write [[
local kube = require "kubelua"
return kube.controller { name = "protected", resource = "v1/ConfigMap", reconcile = function(o, ctx)
  pcall(ctx.delete, ctx, "v1/Secret", "x")
  kube.try(ctx.create, ctx, { kind = "v1/LimitRange", name = "x" })
  local made, why = kube.try(ctx.create, ctx, other(o))
  pcall(print, ctx, o)
end }
]]
    local out = rbac(path)
    assert.matches('# secrets: [^\n]*:3\n[^#]*verbs: %["delete"%]', out)
    assert.matches('# limitranges: [^\n]*:4\n[^#]*verbs: %["create"%]', out)
    assert.matches("served.lua:5: ctx:create(other(...)): the kind is not a literal there", out, 1, true)
    assert.is_nil(out:find("served.lua:6", 1, true), out)
  end)

  it("adds what the tests beside a script do", function()
    local path, dir = write [[
local kube = require "kubelua"
return kube.controller { name = "hidden", resource = "v1/ConfigMap", reconcile = function(o, ctx)
  local made = { kind = ("v1/%s"):format "Secret", name = o.metadata.name }
  ctx:create(made)
end }
]]
    local out = rbac(path)
    assert.matches("served.lua:4: ctx:create%(made%): the kind is not a literal there", out)
    assert.not_matches("secrets", out)
    process.write(dir .. "/served_test.lua", [[
it("makes a secret", function()
  require "kubelua".testing.start { script = "served.lua", objects = { kind = "v1/ConfigMap", name = "a" } }
end)]])
    out = rbac(path, "--record")
    assert.matches("# secrets: seen in a test of hidden\n[^\n]*\n  resources: %[\"secrets\"%]\n  verbs: \z
      %[\"create\"%]", out)
  end)

  it("adds what a run did that was recorded, with the plurals that its server has", function()
    local path, dir = write [[
local kube = require "kubelua"
return kube.controller { name = "hidden", resource = "example.com/v1/Oxen", reconcile = function(o, ctx)
  local made = { kind = ("v1/%s"):format "Secret", name = o.metadata.name }
  ctx:create(made)
  local sub = ctx.live
  sub:get("v1/" .. "LimitRange", "none")
end }
]]
    local crds = process.write(dir .. "/crds.json",
      [[{ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "oxen.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced",
          "names": { "plural": "oxen", "singular": "ox", "kind": "Oxen", "listKind": "OxenList" },
          "versions": [ { "name": "v1", "served": true, "storage": true,
            "schema": { "openAPIV3Schema": { "type": "object" } } } ] } }
  ]])
    local ox = process.write(dir .. "/ox.json",
      '{ "apiVersion": "example.com/v1", "kind": "Oxen", "metadata": { "name": "a", "namespace": \z
      "default" } }')
    local record = dir .. "/run.record"
    local run = process.spawn { KUBELUA, "dev", path, "--crds", crds, "--load", ox, "--record", record,
      name = "kubelua dev" }
    wait.until_true(30, "the run", function()
      return (process.read(record) or ""):find('"t":"ended"', 1, true)
    end)
    assert.equal(0, run:stop())
    local out, code = rbac(path, "--recorded", record)
    assert.equal(0, code, out)
    assert.matches("from the tables and the source and recorded runs\n", out, 1, true)
    assert.matches("# secrets: seen in a run of hidden\n[^\n]*\n  resources: %[\"secrets\"%]\n  verbs: \z
      %[\"create\"%]", out)
    assert.matches("resources: %[\"limitranges\"%]\n  verbs: %[\"get\"%]", out)
    assert.matches("%- apiGroups: %[\"example.com\"%]\n  resources: %[\"oxen\"%]", out)
    local was = process.read(record)
    local run_id = was:match '{"t":"began","r":"([^"]+)"'
    process.write(record, was .. table.concat({ '{"t":"asked","r":{},"op":5}', '{"t":"kind","kind":null}',
      '{"t":"kind","kind":"v1/X","plural":{}}', '{"t":"began","r":[1]}', '{"t":"began"}', '{"t":"asked"}',
      ('{"t":"asked","r":%q,"op":[]}'):format(run_id), ('{"t":"asked","r":%q,"op":"x"}'):format(run_id),
      ('{"t":"asked","r":%q,"op":{"verb":[],"kind":{}}}'):format(run_id) }, "\n") .. "\n")
    assert.same({ out, 0 }, { rbac(path, "--recorded", record) })
    process.write(record, '"tape"\n')
    assert.matches("is not a recording", (rbac(path, "--recorded", record)), 1, true)
    process.write(record, was)
    out, code = rbac(path, "--recorded", path)
    assert.equal(1, code)
    assert.matches("served.lua is not a recording; kubelua run or dev --record FILE writes recordings", out,
      1, true)
    out, code = rbac(path, "--recorded", dir .. "/absent")
    assert.equal(1, code)
    assert.matches("cannot read " .. dir .. "/absent: No such file", out, 1, true)
    out = rbac((write(SCRIPT)), "--recorded", record)
    assert.matches("controller hidden is in none of these scripts", out, 1, true)
  end)

  it("covers webhooks, and replicas that share keys", function()
    local path = write(HOOKS)
    local out, code = rbac(path, "-n system --shards --webhook-service system/hooks:8443")
    assert.equal(0, code, out)
    local function has(text) assert.truthy(out:find(text, 1, true), text .. "\nis not in\n" .. out) end
    has [=[- apiGroups: ["admissionregistration.k8s.io"]
  resources: ["mutatingwebhookconfigurations"]
  resourceNames: ["rbac-changes"]
  verbs: ["create", "patch", "delete"]]=]
    has [=[resources: ["validatingwebhookconfigurations"]
  resourceNames: ["rbac-looks"]]=]
    has [=[  namespace: system
rules:
# secrets: certificates of webhooks
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["create"]
# secrets: certificates of webhooks
- apiGroups: [""]
  resources: ["secrets"]
  resourceNames: ["hooks-webhook-tls"]
  verbs: ["get", "update"]
# leases: shards
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  verbs: ["get", "list", "watch", "create", "update", "delete"]]=]
    has "reads of rbac-changes"
    out = rbac(path, "--webhook-secret other/mine --webhook-service system/hooks")
    has [=[resourceNames: ["mine"]]=]
    has "namespace: other"
    assert.is_nil(out:find("leases", 1, true))
    out = rbac(path)
    has "# the Secret with the webhooks' certificates is unknown: --webhook-service or --webhook-secret"
    assert.is_nil(out:find("secrets", 1, true))
    out, code = rbac(path, "--webhook-secret mine 2>&1")
    assert.equal(2, code)
    has '--webhook-secret: "mine" must be NAMESPACE/NAME'
  end)

  it("lets replicas with divided caches list the namespaces", function()
    local function roles(more, ...)
      local path = write(([[
local kube = require "kubelua"
return kube.controller { name = "keeps", resource = "v1/ConfigMap",
  shard = { by = "namespace", caches = "own" }, %s reconcile = function() end }]]):format(more))
      return (rbac(path, ...))
    end
    local rule = "# namespaces: namespaces of keeps, divided among replicas\n- apiGroups: [\"\"]\n  \z
      resources: \z
      [\"configmaps\", \"namespaces\"]\n  verbs: [\"list\", \"watch\"]\n"
    local out = roles("", "--shards -n system")
    assert.truthy(out:find(rule, 1, true), out)
    for _, other in ipairs { roles("", "-n system"), roles([[namespaces = { "a" },]], "--shards -n system"),
      roles("", "--shards --watch-namespace a -n system") } do
      assert.is_nil(other:find('"namespaces"', 1, true), other)
    end
  end)

  it("takes a script of webhooks alone", function()
    local path = write 'return require "kubelua".webhook { name = "alone", resource = "v1/Pod", validate = \z
      function(o, req) return req.live:get("v1/Node", "a") ~= nil end }'
    local out, code = rbac(path)
    assert.equal(0, code, out)
    assert.matches("name: alone\nrules:\n# nodes: [^\n]*served.lua:1\n", out)
  end)

  -- The objects of `-o manifests` by kind; of ConfigMaps by name.
  local function manifests(...)
    local out, code = rbac(...)
    assert.equal(0, code, out)
    local by = {}
    for _, o in ipairs(kube.yaml(out)) do by[o.kind == "ConfigMap" and o.metadata.name or o.kind] = o end
    return by, out
  end

  it("prints all that a cluster needs to run a script: with its modules, params and webhooks", function()
    local path, dir = write [[
local kube = require "kubelua"
local part = require "parts.one"
return { kube.controller { name = "main", resource = "v1/Service",
  params = { zone = "a", count = 3, map = { a = 1 }, key = { type = "secret" }, own = 1, void = {},
    list = { type = "list", default = {} }, host = { type = "string" },
    maybe = { type = "string", optional = true } },
  reconcile = function() part() end },
  kube.controller { name = "other", resource = "v1/Secret", params = { zone = "a", own = 2 },
    reconcile = function() end },
  kube.webhook { name = "hook.example.com", resource = "v1/Service", validate = function() end } }
]]
    process.run("mkdir -p " .. process.quote(dir .. "/parts"))
    process.write(dir .. "/parts/one.lua", "return function() end\n")
    local by, out = manifests(path, "-n system -o manifests")
    local pod = by.Deployment.spec.template.spec
    assert.equal("system", by.Namespace.metadata.name)
    assert.equal("main", pod.serviceAccountName)
    assert.equal(process.read(path), by["main-scripts"].data["served.lua"])
    assert.equal("return function() end\n", by["main-scripts"].data["parts.one.lua"])
    local places = {}
    for _, item in ipairs(pod.volumes[1].configMap.items) do places[item.key] = item.path end
    assert.same({ ["served.lua"] = "served.lua", ["parts.one.lua"] = "parts/one.lua" }, places)
    assert.is_nil(by["main-params"]("data"))
    assert.truthy(out:find([=[
---
# Values in `data` override the script's defaults, and stay when the manifests are
# applied again:
#   kubectl -n system edit configmap main-params
# Needed: host
# The defaults:
#   data:
#     count: '3'
#     main.own: '1'
#     map: '{"a":1}'
#     other.own: '2'
#     zone: a
# Empty unless set: list, maybe, void
apiVersion: v1
kind: ConfigMap
metadata:
  name: main-params
  namespace: system
---
]=], 1, true), out)
    local words = {}
    for i, word in ipairs(pod.containers[1].args) do words[i] = word end
    words = table.concat(words, " ")
    for _, word in ipairs { "run /controllers/served.lua --leader-elect ",
      "--leader-elect-resource-name=main --leader-elect-resource-namespace=system ",
      "--params=configmap/system/main-params", "--webhook-service=system/main-webhook ",
      "--webhook-secret=system/main-webhook-tls" } do
      assert.truthy(words:find(word, 1, true), words)
    end
    assert.equal("main-webhook", by.Service.metadata.name)
    assert.equal("webhook", pod.containers[1].ports[3].name)
    local named = {}
    for _, rule in ipairs(by.Role.rules) do
      for _, name in ipairs(rule("resourceNames") or {}) do named[rule.resources[1]] = name end
    end
    assert.same({ configmaps = "main-params", leases = "main", secrets = "main-webhook-tls" }, named)
  end)

  it("prints no more than a script needs", function()
    local path = write(SCRIPT)
    local by, out = manifests(path, "-o manifests --name mine")
    assert.equal("mine", by.Deployment.metadata.name)
    assert.truthy(out:find("--leader-elect-resource-name=rbac-spec", 1, true))
    assert.is_nil(by.Namespace or by.Service or by["mine-params"])
    assert.is_nil(by.Deployment.spec.template.spec.volumes[1].configMap("items"))
    local _, elsewhere = write(HOOKS)
    out = rbac(path, elsewhere .. "/served.lua", "-o manifests 2>&1")
    assert.matches("served.lua is not below [^\n]*: a ConfigMap is one directory", out)
  end)

  it("explains what to do about an unknown kind", function()
    local path = write 'return require "kubelua".controller { name = "x", resource = \z
      "example.com/v1/Policy", reconcile = function() end }'
    assert.matches("policies.*the plural of example.com/v1/Policy is a guess: give its definition with \z
      %-%-crds", (rbac(path)))
    local out, code = rbac ""
    assert.equal(2, code)
    assert.matches("name at least one script", out)
  end)
end)

-- Runs with exactly the printed role: the script, arguments of `kubelua rbac` and of `kubelua run`; `poke`
-- makes requests like the controller's users, again and again; `over` tells that everything was done.
local CASES = {
  { what = "a controller", script = SCRIPT, rbac = "", run = {},
    over = function(c, name)
      local svc = c:get("v1/Service", NS, name)
      local seen = false
      for _, e in ipairs(c:list("events.k8s.io/v1/Event", { namespace = NS })) do
        seen = seen or e("regarding.name") == name
      end
      return seen and svc("metadata.annotations.done") == "yes" and svc("status.loadBalancer.ingress")
        and c:get("v1/ServiceAccount", NS, name)
    end },
  { what = "webhooks of replicas that share keys", script = HOOKS,
    rbac = ("-n %s --shards --webhook-secret %s/rbac-certs"):format(NS, NS),
    run = { "--webhook-listen", "127.0.0.1:0", "--webhook-url", "auto", "--webhook-secret",
      NS .. "/rbac-certs", "--shards", "auto",
      "--leader-elect-resource-namespace", NS },
    poke = function(c, name)
      kube.try(c.patch, c, { kind = "v1/Service", name = name, namespace = NS },
        { metadata = { annotations = { poked = tostring(os.clock()) } } })
    end,
    over = function(c, name, log)
      local shards = c:list("coordination.k8s.io/v1/Lease",
        { namespace = NS, labels = "kubelua.dev/shards-of=rbac-shards" })
      local seen = false
      for _, e in ipairs(c:list("events.k8s.io/v1/Event", { namespace = NS })) do
        seen = seen or e.reason == "Seen" and e("regarding.name") == name
      end
      return seen and #shards > 0 and log:find(
        "the webhook is registered with the API server webhook=rbac-looks", 1, true)
        and
        c:get("v1/Service", NS, name)("metadata.annotations.hooked") == "yes"
    end,
    clean = function(c)
      c:delete("admissionregistration.k8s.io/v1/MutatingWebhookConfiguration", "rbac-changes")
      c:delete("admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", "rbac-looks")
      c:delete("v1/Secret", NS, "rbac-certs")
    end },
}

describe("on a real kube-apiserver", function()
  local assets = servers.assets()
  if not assets then return pending "there is no real kube-apiserver here" end
  local s, c, path, roles, case

  local function allowed(rule, scope)
    local resource, sub = rule.resources[1]:match "^([^/]+)/?(.*)$"
    local answer = c:create { apiVersion = "authorization.k8s.io/v1", kind = "SubjectAccessReview",
      metadata = {}, spec = { user = USER, resourceAttributes = {
      namespace = scope, verb = rule.verbs[#rule.verbs], group = rule.apiGroups[1], resource = resource,
      subresource = sub,
      name = (rule.resourceNames or {})[1] } } }
    return answer.status.allowed
  end

  -- Binds the roles without one rule to our user, and waits until the server knows.
  local function bind(left_out)
    for _, role in ipairs(roles) do
      local o, rules = kube.copy(role), {}
      for _, r in ipairs(role.rules) do
        if r ~= left_out then rules[#rules + 1] = kube.copy(r) end
      end
      o.rules = kube.array(rules)
      c:apply(o, { force = true })
      local kind = o.kind .. "Binding"
      c:apply({ apiVersion = o.apiVersion, kind = kind,
        metadata = { name = o.metadata.name, namespace = o.metadata.namespace },
        roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = o.kind, name = o.metadata.name },
        subjects = { { kind = "User", name = USER, apiGroup = "rbac.authorization.k8s.io" } } },
        { force = true })
    end
    for _, role in ipairs(roles) do
      for _, r in ipairs(role.rules) do
        wait.until_true(PATIENCE, "the server knows the role", function()
          return allowed(r, role("metadata.namespace") or "") == (r ~= left_out)
        end)
      end
    end
  end

  local count = 0
  -- Runs the script with a fresh object until `over(name, log)`.
  local function run(what, over)
    count = count + 1
    local name = "svc-" .. count
    if case.clean then case.clean(c) end
    -- the server may still call the previous webhook for a moment
    wait.until_true(PATIENCE, "a service", function()
      return kube.try(c.create, c, { kind = "v1/Service", name = name, namespace = NS,
        spec = { type = "LoadBalancer", ports = { { port = 80 } } } }) ~= nil
    end)
    local p = process.spawn { KUBELUA, "run", path, "--kubeconfig", s.kubeconfig, "--as", USER,
      table.unpack(case.run) }
    local ok, why = pcall(wait.until_true, PATIENCE, what, function()
      if case.poke then case.poke(c, name) end
      return over(c, name, p:log())
    end)
    local log = p:log()
    p:stop()
    c:delete("v1/Service", NS .. "/" .. name)
    assert(ok, ("%s\n%s"):format(tostring(why), log))
    return log
  end

  local function forget_roles()
    for _, o in ipairs(roles or {}) do
      local name = o("metadata.namespace") and o.metadata.namespace .. "/" .. o.metadata.name
        or o.metadata.name
      c:delete(("rbac.authorization.k8s.io/v1/%sBinding"):format(o.kind), name)
      c:delete("rbac.authorization.k8s.io/v1/" .. o.kind, name)
    end
    roles = nil
  end

  lazy_setup(function()
    s = servers.real()
    c = kube.connect { kubeconfig = s.kubeconfig, cache_dir = false, on_warning = "none" }
    c:apply({ kind = "v1/Namespace", name = NS })
  end)
  lazy_teardown(function()
    if not c then return end
    c:delete("v1/Namespace", NS)
    s:stop()
  end)

  local function refused(log) return log:find "forbidden" end

  for _, it_runs in ipairs(CASES) do
    describe(it_runs.what, function()
      lazy_setup(function()
        case, roles, path = it_runs, {}, write(it_runs.script)
        for _, o in ipairs(kube.yaml((rbac(path, case.rbac)))) do roles[#roles + 1] = o end
      end)
      lazy_teardown(function()
        if case.clean then case.clean(c) end
        forget_roles()
      end)

      it("runs with exactly that role", function()
        bind()
        local log = run("everything was done", case.over)
        assert.is_nil(refused(log), log)
      end)

      it("fails without any single rule", function()
        for _, role in ipairs(roles) do
          for _, r in ipairs(role.rules) do
            bind(r)
            run("it was refused without " .. kube.to_json(r), function(_, _, log)
              return refused(log) ~= nil
            end)
          end
        end
      end)
    end)
  end

  it("a replica removes another that died, with what --shards adds", function()
    path, roles = write(SCRIPT), {}
    for _, o in ipairs(kube.yaml((rbac(path, "--shards -n", NS)))) do roles[#roles + 1] = o end
    bind()
    local function replica(who)
      return process.spawn { KUBELUA, "run", path, "--kubeconfig", s.kubeconfig, "--as", USER, "--shards",
        "auto", "--leader-elect-identity", who,
        "--leader-elect-resource-namespace", NS, "--leader-elect-lease-duration", "3s",
        "--leader-elect-renew-deadline", "2s", "--leader-elect-retry-period", "400ms" }
    end
    local function present(names)
      wait.until_true(PATIENCE, "there are " .. names, function()
        local there = {}
        for lease in c:each("coordination.k8s.io/v1/Lease",
          { namespace = NS, labels = "kubelua.dev/shards-of=rbac-spec" }) do
          there[#there + 1] = lease.spec.holderIdentity
        end
        table.sort(there)
        return table.concat(there, " ") == names
      end)
    end
    local one, two = replica "one", replica "two"
    local ok, why = pcall(function()
      present "one two"
      one:kill()
      present "two"
      c:create { kind = "v1/Service", name = "shared", namespace = NS,
        spec = { type = "LoadBalancer", ports = { { port = 80 } } } }
      wait.until_true(PATIENCE, "it does the work", function()
        return c:get("v1/Service", NS, "shared")("metadata.annotations.done") == "yes"
      end)
    end)
    local log = one:log() .. two:log()
    one:kill()
    two:stop()
    c:delete("v1/Service", NS .. "/shared")
    forget_roles()
    assert(ok, ("%s\n%s"):format(tostring(why), log))
    assert.is_nil(refused(log), log)
  end)
end)
