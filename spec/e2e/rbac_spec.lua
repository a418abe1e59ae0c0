--- rbac_spec.lua - `kubelua rbac`: with exactly the role that it prints a controller runs, and without any one rule it does not.

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

local function write(text)
  local dir = process.tmpname ".rbac"
  process.run("mkdir -p " .. process.quote(dir))
  return process.write(dir .. "/served.lua", text), dir
end

local function rbac(...) return process.run(KUBELUA .. " rbac " .. table.concat({ ... }, " ")) end

describe("kubelua rbac", function()
  it("prints roles that are the same each time, with their reasons", function()
    local path = write(SCRIPT)
    local out, code = rbac(path, "--bind -n system")
    assert.equal(0, code, out)
    assert.equal(out, (rbac(path, "--bind -n system")))
    assert.matches("kind: ClusterRole\nmetadata:\n  name: rbac%-spec\nrules:\n# namespaces: [^\n]*served.lua:6\n%- apiGroups: %[\"\"%]\n  resources: %[\"namespaces\"%]\n  verbs: %[\"get\"%]", out)
    assert.matches("kind: Role\nmetadata:\n  name: rbac%-spec\n  namespace: rbac%-spec\n", out)
    assert.matches("# services: [^\n]*resource of rbac%-spec\n%- apiGroups: %[\"\"%]\n  resources: %[\"services\"%]\n  verbs: %[\"get\", \"list\", \"watch\", \"patch\"%]", out)
    assert.matches("kind: ServiceAccount\nmetadata:\n  name: rbac%-spec\n  namespace: system", out)
    local objects = kube.yaml(out)
    assert.equal(5, #objects)
  end)

  it("adds what the tests beside a script do", function()
    local path, dir = write [[
local kube = require "kubelua"
return kube.controller { name = "hidden", resource = "v1/ConfigMap", reconcile = function(o, ctx)
  local made = { kind = "v1/" .. "Secret", name = o.metadata.name }
  ctx:create(made)
end }
]]
    local out = rbac(path)
    assert.matches("served.lua:4: ctx:create%(made%): of which kind is not written there", out)
    assert.not_matches("secrets", out)
    process.write(dir .. "/served_test.lua", [[
it("makes a secret", function()
  require "kubelua".testing.start { script = "served.lua", objects = { kind = "v1/ConfigMap", name = "a" } }
end)]])
    out = rbac(path, "--record")
    assert.matches("# secrets: seen in a test of hidden\n[^\n]*\n  resources: %[\"secrets\"%]\n  verbs: %[\"create\"%]", out)
  end)

  it("names the way out of a kind that it does not know", function()
    local path = write 'return require "kubelua".controller { name = "x", resource = "example.com/v1/Policy", reconcile = function() end }'
    assert.matches("policies.*the plural of example.com/v1/Policy is a guess: give its definition with %-%-crds", (rbac(path)))
    local out, code = rbac ""
    assert.equal(2, code)
    assert.matches("name at least one script", out)
  end)
end)

describe("on a real kube-apiserver", function()
  local assets = servers.assets()
  if not assets then return pending "there is no real kube-apiserver here" end
  local s, c, path, roles

  local function allowed(rule, scope)
    local resource, sub = rule.resources[1]:match "^([^/]+)/?(.*)$"
    local answer = c:create { apiVersion = "authorization.k8s.io/v1", kind = "SubjectAccessReview", metadata = {}, spec = { user = USER, resourceAttributes = {
      namespace = scope, verb = rule.verbs[#rule.verbs], group = rule.apiGroups[1], resource = resource, subresource = sub } } }
    return answer.status.allowed
  end

  -- The roles but for one rule, bound to our user; returns when the server has understood.
  local function bind(left_out)
    for _, role in ipairs(roles) do
      local o, rules = kube.copy(role), {}
      for _, r in ipairs(role.rules) do
        if r ~= left_out then rules[#rules + 1] = kube.copy(r) end
      end
      o.rules = kube.array(rules)
      c:apply(o, { force = true })
      local kind = o.kind .. "Binding"
      c:apply({ apiVersion = o.apiVersion, kind = kind, metadata = { name = o.metadata.name, namespace = o.metadata.namespace },
        roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = o.kind, name = o.metadata.name },
        subjects = { { kind = "User", name = USER, apiGroup = "rbac.authorization.k8s.io" } } }, { force = true })
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
  -- Runs the controller on a fresh object until `over(name, log)`.
  local function run(what, over)
    count = count + 1
    local name = "svc-" .. count
    c:create { kind = "v1/Service", name = name, namespace = NS, spec = { type = "LoadBalancer", ports = { { port = 80 } } } }
    local p = process.spawn { KUBELUA, "run", path, "--kubeconfig", s.kubeconfig, "--as", USER }
    local ok, why = pcall(wait.until_true, PATIENCE, what, function() return over(name, p:log()) end)
    local log = p:log()
    p:stop()
    c:delete("v1/Service", NS .. "/" .. name)
    assert(ok, ("%s\n%s"):format(tostring(why), log))
    return log
  end

  lazy_setup(function()
    s = servers.real()
    c = kube.connect { kubeconfig = s.kubeconfig, cache_dir = false, on_warning = "none" }
    c:apply({ kind = "v1/Namespace", name = NS })
    path = write(SCRIPT)
    roles = {}
    for _, o in ipairs(kube.yaml((rbac(path)))) do roles[#roles + 1] = o end
  end)
  lazy_teardown(function()
    if not c then return end
    for _, o in ipairs(roles or {}) do
      c:delete(("rbac.authorization.k8s.io/v1/%sBinding"):format(o.kind), o("metadata.namespace") and NS .. "/" .. o.metadata.name or o.metadata.name)
      c:delete("rbac.authorization.k8s.io/v1/" .. o.kind, o("metadata.namespace") and NS .. "/" .. o.metadata.name or o.metadata.name)
    end
    c:delete("v1/Namespace", NS)
    s:stop()
  end)

  local function refused(log) return log:find "forbidden" or log:find "403" end

  it("the controller runs with exactly that role", function()
    bind()
    local log = run("everything was done", function(name)
      local svc = c:get("v1/Service", NS, name)
      local seen = false
      for _, e in ipairs(c:list("events.k8s.io/v1/Event", { namespace = NS })) do seen = seen or e("regarding.name") == name end
      return seen and svc("metadata.annotations.done") == "yes" and svc("status.loadBalancer.ingress") and c:get("v1/ServiceAccount", NS, name)
    end)
    assert.is_nil(refused(log), log)
  end)

  it("and does not without any one rule", function()
    for _, role in ipairs(roles) do
      for _, r in ipairs(role.rules) do
        bind(r)
        run("it was refused without " .. kube.to_json(r), function(_, log) return refused(log) ~= nil end)
      end
    end
  end)
end)
