-- long_lists_spec.lua - lists and maps of 60,000 items in one object: the embedded server answers in time. A
-- check that compares each item with all others would block it for minutes. kube-apiserver is not asked: for
-- the resources of a quota it times out itself (504), since it compares each of its errors with all others.
-- not in asan, tsan: one request after the other; spec/core/value/finder_test.c has the memory

local api_of = require "support.api"
local servers = require "support.servers"
local sizes = require "support.sizes"

local LONG = sizes.of { short = 60000, long = 120000 }

-- LONG times `item`, whose @ is the number of the item.
local function many(item)
  local out = {}
  for i = 1, LONG do out[i] = item:gsub("@", i) end
  return table.concat(out, ",")
end
local function list(item) return "[" .. many(item) .. "]" end
local function map(value) return "{" .. many('"k@":' .. value) .. "}" end

local POD = '{"containers":[{"name":"a","image":"i"}],%s}'
local function pod(rest) return { "/api/v1/namespaces/default/pods", "v1", "Pod",
  '"spec":' .. POD:format(rest) } end
local ADMISSION = "admissionregistration.k8s.io/v1"
local function hooks(spec)
  return { "/apis/" .. ADMISSION .. "/validatingadmissionpolicies", ADMISSION, "ValidatingAdmissionPolicy",
    '"spec":' .. spec }
end

-- The name; path, version, kind and members; the expected code.
local CASES = {
  { "containers", { "/api/v1/namespaces/default/pods", "v1", "Pod",
    '"spec":{"containers":' .. list '{"name":"a@","image":"i"}' .. "}" }, 201 },
  { "volumes and their mounts", { "/api/v1/namespaces/default/pods", "v1", "Pod", '"spec":{"volumes":'
    .. list '{"name":"v@"}' .. ',"containers":[{"name":"a","image":"i","volumeMounts":'
    .. list '{"name":"v@"}' .. "}]}" }, 422 },
  { "constraints of a spread", pod('"topologySpreadConstraints":' .. list '{"topologyKey":"k@"}'), 422 },
  { "gates", pod('"schedulingGates":' .. list '{"name":"g@"}'), 201 },
  { "ports of a Service", { "/api/v1/namespaces/default/services", "v1", "Service",
    '"spec":{"ports":' .. list '{"port":@,"name":"p@"}' .. "}" }, 201 },
  { "scopes of a quota", { "/api/v1/namespaces/default/resourcequotas", "v1", "ResourceQuota",
    '"spec":{"scopes":' .. list '"s@"' .. "}" }, 422 },
  { "resources of a quota", { "/api/v1/namespaces/default/resourcequotas", "v1", "ResourceQuota",
    '"spec":{"hard":' .. map '"1"' .. "}" }, 422 },
  { "texts of a Secret",
    { "/api/v1/namespaces/default/secrets", "v1", "Secret", '"stringData":' .. map '""' }, 201 },
  { "limits", { "/api/v1/namespaces/default/limitranges", "v1", "LimitRange",
    '"spec":{"limits":[{"type":"Container","max":' .. map '"1"' .. "}]}" }, 422 },
  { "drivers of a node", { "/apis/storage.k8s.io/v1/csinodes", "storage.k8s.io/v1", "CSINode",
    '"spec":{"drivers":' .. list '{"name":"d@","nodeID":"n"}' .. "}" }, 201 },
  { "names in a policy's rule", hooks('{"matchConstraints":{"resourceRules":[{"resourceNames":' .. list '"n@"'
    .. "}]}}"), 422 },
  { "resources in a policy's rule",
    hooks('{"matchConstraints":{"resourceRules":[{"resources":' .. list '"r@/s"'
    .. "}]}}"), 422 },
  { "taints", { "/api/v1/nodes", "v1", "Node",
    '"spec":{"taints":' .. list '{"key":"k@","effect":"NoSchedule"}'
    .. "}" }, 201 },
}

describe("long lists at the embedded server", function()
  local s, api
  lazy_setup(function()
    s = servers.embedded()
    api = api_of(s)
  end)
  lazy_teardown(function() if s then s:stop() end end)

  it("a strategic patch of them", function()
    local path = "/api/v1/namespaces/default/configmaps"
    assert.equal(201, api:post(path, { metadata = { name = "long" } }).code)
    for _, value in ipairs { '"a"', '"b"', "null" } do
      local r = api:request("PATCH", path .. "/long", '{"data":' .. map(value) .. "}",
        { "Content-Type: application/strategic-merge-patch+json" })
      assert.equal(200, r.code, r.text:sub(1, 400))
    end
    assert.is_nil(next(api:get(path .. "/long").body.data or {}))
  end)

  for _, case in ipairs(CASES) do
    local what, object, code = table.unpack(case)
    it(what, function()
      local path, version, kind, members = table.unpack(object)
      local r = api:post(path .. "?dryRun=All", ('{"apiVersion":%q,"kind":%q,"metadata":{"name":"long"},%s}')
        :format(version, kind, members))
      assert.equal(code, r.code, r.text:sub(1, 400))
    end)
  end

  -- Two long lists meet in the pod: what each names, or each may complain of, would be their product.
  local SOME = LONG // 12
  local function amounts(value)
    local out = {}
    for i = 1, SOME do out[i] = ('"example.com/r%d":%q'):format(i, value) end
    return "{" .. table.concat(out, ",") .. "}"
  end
  local function containers(first)
    local out = { ('{"name":"a","image":"i"%s}'):format(first) }
    for i = 2, SOME do out[i] = ('{"name":"a%d","image":"i"}'):format(i) end
    return '{"metadata":{"name":"p"},"spec":{"containers":[' .. table.concat(out, ",") .. "]}}"
  end
  local function meets(ns, kind, member, what, pod_as, code)
    local space = "/api/v1/namespaces/" .. ns
    assert.equal(201, api:post("/api/v1/namespaces", { metadata = { name = ns } }).code)
    local made = api:post(space .. "/" .. kind,
      ('{"metadata":{"name":"l"},"spec":{%s:%s}}'):format(member, what))
    assert.equal(201, made.code, made.text:sub(1, 400))
    if kind == "resourcequotas" then -- what counts is what its controller has seen
      local seen = api:request("PATCH", space .. "/resourcequotas/l/status",
        ('{"status":{"hard":%s}}'):format(what), { "Content-Type: application/merge-patch+json" })
      assert.equal(200, seen.code, seen.text:sub(1, 400))
    end
    local r = api:post(space .. "/pods", pod_as)
    assert.equal(code, r.code, r.text:sub(1, 400))
  end
  for i, case in ipairs {
    { "min", "Container", 422 }, { "maxLimitRequestRatio", "Container", 403 }, { "min", "Pod", 403 },
  } do
    local bound, about, code = table.unpack(case)
    it(("containers under a limit, %s of a %s"):format(bound, about), function()
      meets("limits-" .. i, "limitranges", '"limits"',
        ('[{"type":%q,%q:%s}]'):format(about, bound, amounts "5"), containers "", code)
    end)
  end

  it("containers under a quota of long lists", function()
    local all = amounts "1"
    meets("quota", "resourcequotas", '"hard"', (amounts "5":gsub('"example', '"requests.example')),
      containers((',"resources":{"requests":%s,"limits":%s}'):format(all, all)), 201)
    local used = api:get("/api/v1/namespaces/quota/resourcequotas/l").body.status.used
    assert.equal("1", used["requests.example.com/r" .. SOME])
  end)
end)

servers.each(function(server_name, start)
  it("a Service with more node ports than there are is refused by " .. server_name, function()
    local s = start {}
    local r = api_of(s):post("/api/v1/namespaces/default/services", { metadata = { name = "long" }, spec = {
      type = "NodePort", ports = (function()
        local ports = {}
        for i = 1, 2769 do ports[i] = { port = i, name = "p" .. i } end
        return ports
      end)() } })
    s:stop()
    assert.equal(500, r.code)
    assert.equal("Internal error occurred: failed to allocate a nodePort: range is full", r.body.message)
    assert.equal("failed to allocate a nodePort: range is full", r.body.details.causes[1].message)
  end)
end)
