-- rbac_spec.lua - the RBAC rules that a script's tables and text need.
local rbac = require "kubelua.rbac"
local source = require "kubelua.rbac_source"

-- The needs of a script with its modules, by their names.
local function needs_of(text, modules)
  local out, unknown, sources = {}, {}, { { path = "dir/script.lua", text = text } }
  for name, of in pairs(modules or {}) do
    sources[#sources + 1] = { path = ("dir/%s.lua"):format(name:gsub("%.", "/")), text = of }
  end
  source.read_all(sources, { "v1/Service" }, function(n)
    out[#out + 1] = ("%s%s %s"):format(n.kind, n.subresource and "/" .. n.subresource or "",
      table.concat(n.verbs, ","))
  end, function(_, line, what) unknown[#unknown + 1] = line .. " " .. what end)
  table.sort(out)
  return out, unknown
end

describe("a script's source", function()
  it("says which kinds its calls write, where they are written there", function()
    assert.same({ "apps/v1/Deployment delete", "batch/v1/Job create,patch", "v1/Secret create",
      "v1/Secret get" }, (needs_of [[
      local JOB = "batch/v1/Job"
      ctx:create { kind = "v1/Secret", name = "a" }
      ctx:apply({ apiVersion = "batch/v1", kind = "Job", metadata = {} })
      ctx.live:get("v1/Secret", "a")
      ctx:delete("apps/v1/Deployment", key)
    ]]))
  end)

  it("knows constants and the reconciled object", function()
    assert.same({ "batch/v1/Job delete", "v1/Service get", "v1/Service get,patch",
      "v1/Service/status patch" }, (needs_of [[
      local JOB, OTHER = "batch/v1/Job", "x"
      return kube.controller { reconcile = function(svc, ctx)
        ctx:delete(JOB, "a")
        ctx:patch(svc, function(s) end)
        return { status = { ready = true } }
      end }
    ]]))
  end)

  it("does not take the argument of a method for the kind that it returns", function()
    local needs, unknown = needs_of 'ctx:delete(self:beside("v1/Secret"), "a")'
    assert.same({}, needs)
    assert.equal(1, #unknown)
  end)

  it("takes what a module returns for a result only where it may be one", function()
    local SCRIPT = [[
      local conditions = require "conditions"
      return kube.controller { reconcile = function(svc, ctx) return conditions.of(svc) end }
    ]]
    for returned, needs in pairs {
      ["{ status = { ready = true }, requeue_after = 5 }"] = { "v1/Service get",
        "v1/Service/status patch" },
      ["{ events = { reason = 'A' } }"] = { "events.k8s.io/v1/Event create,patch" },
      ["{ type = 'Ready', status = 'True' }"] = {},
      ["{ metadata = svc.metadata, status = {}, events = {} }"] = {},
      ["{ 'a', status = {} }"] = {},
      ["{ ['kind'] = 'Pod', delete = { kind = 'v1/Pod' } }"] = {},
      ["{ [how] = 5, delete = { kind = 'v1/Pod' } }"] = { "v1/Pod delete" },
    } do
      local module = "local M = {} function M.of(svc) return " .. returned .. " end return M"
      assert.same(needs, (needs_of(SCRIPT, { conditions = module })), returned)
    end
  end)

  it("knows subresources, by the call or by its options", function()
    assert.same({ "apps/v1/Deployment get", "apps/v1/Deployment/scale get",
      "apps/v1/Deployment/scale get,patch",
      "apps/v1/Deployment/scale patch", "certificates.k8s.io/v1/CertificateSigningRequest get",
      "certificates.k8s.io/v1/CertificateSigningRequest/approval update", "v1/Pod/eviction create",
      "v1/Service get", "v1/Service/status patch" }, (needs_of [[
      return kube.controller { reconcile = function(svc, ctx)
        ctx:patch({ kind = "apps/v1/Deployment", name = "a" }, {}, { subresource = "scale" })
        ctx:scale("apps/v1/Deployment", "a", 3)
        ctx.live:get("apps/v1/Deployment", "a", { subresource = "scale" })
        ctx:create(eviction, { of = "v1/Pod", subresource = "eviction" })
        ctx:approve(csr)
        ctx:patch(svc, {}, { subresource = "status" })
      end }
    ]]))
    local _, unknown = needs_of 'ctx:patch({ kind = "v1/Pod", name = "a" }, {}, { subresource = which })'
    assert.same({ "1 the subresource of ctx:patch({ kind = ... })" }, unknown)
  end)

  it("knows the kind of an object that was read, or made of a template", function()
    local needs, unknown = needs_of [[
      local POD = "v1/Pod"
      for _, pod in ipairs(ctx:owned(POD)) do ctx:delete(pod) end
      for job in ctx:each("batch/v1/Job") do ctx:delete(job) end
      for i, job in ctx:each("batch/v1/Job") do ctx:delete(i, job) end
      local old = ctx:list("v1/Endpoints")
      ctx:delete(old[1])
      ctx:create(kube.from_template(spec, { kind = "apps/v1/Deployment" }))
      local secret = ctx:get("v1/Secret", "a")
      ctx:delete(secret)
      for i in ipairs(ctx:owned(POD)) do ctx:delete(i) end
      for _, other in pairs(found) do ctx:delete(other) end
    ]]
    assert.same({ "apps/v1/Deployment create", "batch/v1/Job delete", "batch/v1/Job delete",
      "v1/Endpoints delete",
      "v1/Pod delete", "v1/Secret delete" }, needs)
    assert.same({ "10 ctx:delete(i)", "11 ctx:delete(other)" }, unknown)
  end)

  it("knows what its modules hold, and what they are given", function()
    local needs, unknown = needs_of([[
      local keeper, kinds = require "lib.keeper", require "lib.kinds"
      local SECRET = kinds.SECRET
      ctx:delete(SECRET, "a")
      ctx:delete(kinds.group .. "/CronJob", "a")
      ctx:create { kind = kinds.group .. "/Job", name = "a" }
      ctx:patch(kinds.newest(ctx), function() end)
      return { keeper.of { kind = "v1/Endpoints" }, keeper.of { kind = kinds.MAP } }
    ]], { ["lib.keeper"] = [[
      local M = {}
      local function keep(o, object) ctx:create_or_patch({ kind = o.kind, name = object }, function() end) end
      function M.of(o) return function(object) pcall(keep, o, object) end end
      return M
    ]], ["lib.kinds"] = [[
      local M = { MAP = "v1/ConfigMap", group = "batch/v1" }
      M.SECRET, M.POD = "v1/Secret", "v1/Pod"
      function M.newest(c) return c:list(M.POD)[1] or c.live:get(M.POD, "a") end
      return M
    ]] })
    assert.same({ "batch/v1/CronJob delete", "batch/v1/Job create", "v1/ConfigMap get,create,patch",
      "v1/Endpoints get,create,patch", "v1/Pod get,patch", "v1/Secret delete" }, needs)
    assert.same({}, unknown)
  end)

  it("knows all arguments of a function, unless it is passed on", function()
    local CALLED = [[
      local function forget(ctx, kind) ctx:delete(kind, "a") end
      forget(ctx, "v1/Secret")
      forget(ctx, other and "v1/Pod" or nil)
    ]]
    local needs, unknown = needs_of(CALLED)
    assert.same({ "v1/Pod delete", "v1/Secret delete" }, needs)
    assert.same({}, unknown)
    for _, more in ipairs { "call(forget)", "forget(ctx, unknown)", "forget(ctx, table.unpack(list))",
      "forget(...)", "return { forget = forget }" } do
      needs, unknown = needs_of(CALLED .. more)
      assert.same({ "v1/Pod delete", "v1/Secret delete" }, needs, more)
      assert.same({ "1 ctx:delete(kind)" }, unknown, more)
    end
  end)

  it("terminates with mutual recursion, and long chains of locals", function()
    local lines = { [[local a, b
      local function x(kind) return b0(kind) end
      local function y(kind) ctx:delete(kind, "a") y(kind) end
      y "v1/Secret"
      local function z(object) z(ctx:get(object)) ctx:patch(object, {}) end
      z "v1/ConfigMap"
      local n0 = "v1/Pod"]] }
    for i = 1, 3000 do lines[#lines + 1] = ("local function n%d() return n%d end"):format(i, i - 1) end
    lines[#lines + 1] = "do local k = n3000()()() ctx:delete(k, 'a') end"
    local needs, unknown = needs_of(table.concat(lines, "\n"))
    assert.same({ "v1/ConfigMap get,patch", "v1/Secret delete" }, needs)
    assert.equal(1, #unknown)
  end)

  it("ignores comments and strings", function()
    assert.same({}, (needs_of [==[
      -- ctx:create { kind = "v1/Secret" }
      --[[ ctx:delete("v1/Pod", "a") ]]
      --[=[ ctx:event("A", "b") ]=]
    ]==]))
  end)

  it("reports what it cannot know, and where", function()
    local _, unknown = needs_of "local x\nctx:patch(x, function() end)\nreturn { apply = list }"
    assert.equal(2, #unknown)
    assert.matches("^2 ctx:patch%(x", unknown[1])
    assert.matches("^3 `apply`", unknown[2])
  end)
end)

describe("the texts of a program", function()
  local DELETES = 'ctx:delete("v1/Secret", "a")\n'
  -- The findings before the clock, which advances by `step` at each call, exceeds the budget.
  local function read_all(step, ...)
    local now, found, sources = 0, {}, {}
    for i, text in ipairs { ... } do sources[i] = { path = i .. ".lua", text = text } end
    local whole = source.read_all(sources, {},
      function(need, path) found[#found + 1] = path .. " " .. need.kind end,
      function(path, line, what) found[#found + 1] = ("%s:%d %s"):format(path, line, what) end, function()
        now = now + step
        return now
      end)
    return whole, found
  end

  it("are read one after the other", function()
    local whole, found = read_all(0, DELETES, "ctx:delete(x)\n")
    assert.same({ "1.lua v1/Secret", "2.lua:1 ctx:delete(x)" }, found)
    assert.is_true(whole)
  end)

  it("are skipped if they take too long, even partially, with a note", function()
    local whole, found = read_all(6, DELETES, "local x = 1" .. ("+1"):rep(100000), DELETES)
    assert.same({ "1.lua v1/Secret" }, found)
    assert.is_false(whole)
  end)
end)

describe("rules", function()
  local KINDS = { ["v1/Pod"] = { group = "", plural = "pods", namespaced = true },
    ["v1/Secret"] = { group = "", plural = "secrets", namespaced = true },
    ["v1/Node"] = { group = "", plural = "nodes", namespaced = false },
    CSR = { group = "certificates.k8s.io", plural = "certificatesigningrequests", namespaced = false } }
  local function resolve(kind) return KINDS[kind] end
  local function text(rules)
    local out = {}
    for i, r in ipairs(rules) do
      out[i] = table.concat(r.resources, ",") .. " " .. table.concat(r.verbs, ",")
    end
    return table.concat(out, "; ")
  end

  it("merge equal needs, in a fixed order", function()
    local needs = { { kind = "v1/Secret", verbs = { "watch", "list", "get" }, namespaces = false, why = "b" },
      { kind = "v1/Pod", verbs = { "list", "watch" }, namespaces = false, why = "a" },
      { kind = "v1/Pod", verbs = { "get" }, namespaces = false, why = "c" },
      { kind = "v1/Pod", subresource = "status", verbs = { "patch" }, namespaces = false, why = "d" } }
    local once = text(rbac.rules(needs, resolve)[""])
    assert.equal("pods,secrets get,list,watch; pods/status patch", once)
    local back = {}
    for i = #needs, 1, -1 do back[#back + 1] = needs[i] end
    assert.equal(once, text(rbac.rules(back, resolve)[""]))
  end)

  it("include the signers for approvers of certificates", function()
    local function of(verb)
      return text(rbac.rules({ { kind = "CSR", subresource = "approval", verbs = { verb }, why = "x" } },
        resolve)[""])
    end
    assert.equal("certificatesigningrequests/approval patch; signers approve", of "patch")
    assert.equal("certificatesigningrequests/approval get", of "get")
  end)

  it("stay in their namespaces, except cluster-scoped kinds and rules granted cluster-wide", function()
    local scopes = rbac.rules({ { kind = "v1/Pod", verbs = { "list" }, namespaces = { "a", "b" }, why = "x" },
      { kind = "v1/Node", verbs = { "get" }, namespaces = { "a" }, why = "x" },
      { kind = "v1/Secret", verbs = { "get" }, namespaces = { "a" }, why = "x" },
      { kind = "v1/Secret", verbs = { "get" }, namespaces = false, why = "y" } }, resolve)
    assert.equal("nodes,secrets get", text(scopes[""]))
    assert.equal("pods list", text(scopes.a))
    assert.equal("pods list", text(scopes.b))
  end)
end)

describe("kubelua rbac", function()
  it("knows the plural of a kind that the script itself defines", function()
    local process = require "support.process"
    local path = process.write(process.tmpname ".lua", [[
local kube = require "kubelua"
local Box = kube.crd { group = "example.com", kind = "Box", plural = "crates",
  schema = kube.schema { spec = "object" } }
return kube.controller { name = "boxes", resource = Box, reconcile = function() end }
]])
    local out, code = process.run(("%s rbac %s 2>&1"):format(os.getenv "KUBELUA" or "build/kubelua", path))
    assert.equal(0, code, out)
    assert.truthy(out:find('resources: ["crates"]', 1, true), out)
    assert.is_nil(out:find("guess", 1, true), out)
  end)
end)

describe("an observed call", function()
  local function needs(verb, kind)
    local out = {}
    rbac.of_call({ verb = verb, kind = kind }, nil, "why", function(n)
      out[#out + 1] = table.concat(n.verbs, ",")
    end)
    return table.concat(out, " ")
  end

  it("needs its verb, and those of its retry and of event series", function()
    for _, row in ipairs { { "patch", "v1/Pod", "patch get" }, { "delete", "v1/Pod", "delete" },
      { "create", "v1/Pod", "create" }, { "create", "events.k8s.io/v1/Event", "create patch" },
      { "patch", "events.k8s.io/v1/Event", "patch" }, { "http", nil, "" } } do
      assert.equal(row[3], needs(row[1], row[2]), row[1])
    end
  end)
end)
