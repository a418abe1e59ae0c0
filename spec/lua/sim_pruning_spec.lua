-- sim_pruning_spec.lua - what controllers of a simulation see of custom resources that were put as they are:
-- pruned and with defaults, whatever was put before.
-- not in asan, tsan: what comes out is the subject; e2e/sim_spec and its like run the engine

local core = require "kubelua.core"

local function crd()
  local size = { type = "integer", default = 1 }
  local named = { type = "object", properties = { name = { type = "string" }, size = size } }
  local whole = { type = "object", properties = {
    spec = { type = "object", properties = { list = { type = "array", items = named }, one = named,
      text = { type = "string" }, share = { type = "integer" },
      inner = { type = "object", ["x-kubernetes-embedded-resource"] = true,
        ["x-kubernetes-preserve-unknown-fields"] = true } } },
  } }
  return { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = "things.example.com" },
    spec = { group = "example.com", scope = "Cluster", names = { plural = "things", kind = "Thing" },
      versions = { { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = whole } } } } }
end

local WATCHER = [[
local kube = require "kubelua"
return kube.controller { name = "watcher", resource = "example.com/v1/Thing", reconcile = function(o, ctx)
  ctx:create_or_patch({ kind = "v1/ConfigMap", namespace = "default", name = "saw-" .. o.metadata.name },
    function(c)
      c.data = { spec = kube.encode(o.spec), meta = kube.encode(o.metadata.labels or {}) }
    end)
end }
]]

-- A simulation with the kind, and a function that puts a spec and tells what the controller saw of it.
local function simulation()
  local sim = core.sim(0.0, 1)
  sim:load(core.value(crd(), "a definition"))
  sim:start({ { path = "watcher.lua", text = WATCHER } }, nil)
  return function(name, spec, labels)
    sim:put(core.value({ apiVersion = "example.com/v1", kind = "Thing", spec = spec,
      metadata = { name = name, uid = "uid-" .. name, labels = labels,
        creationTimestamp = "2026-01-01T00:00:00Z" } }, "an object"))
    sim:settle()
    local saw = sim:call { verb = "get", kind = "v1/ConfigMap", ns = "default", name = "saw-" .. name }
    return saw.data.spec .. saw.data.meta
  end
end

local state = 11
local function dice(n)
  state = (state * 1103515245 + 12345) % (1 << 31)
  return state // 65536 % n
end

-- Nothing in it is pruned, and no default is missing.
local function whole(inner)
  return { list = { { name = "a", size = 1 }, { name = "b", size = 0 } }, one = { name = "c", size = 1 },
    text = "x", share = 1,
    inner = inner and { apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = "x", labels = { a = "b" } } } or nil }
end

local EDITS = {
  function(s) s.list[1 + dice(2)].zone = dice(2) end,
  function(s) s.list[1 + dice(2)].size = nil end,
  function(s) s.list[1 + dice(2)].name = ({ "", core.null, 1.5 })[1 + dice(3)] end,
  function(s) s.list[3] = ({ core.null, {}, { name = "d", size = 3 } })[1 + dice(3)] end,
  function(s) s.list = core.array {} end,
  function(s) s.one.zone, s.one.size = { 1 }, nil end,
  function(s) s.one = ({ core.null, {} })[1 + dice(2)] end,
  function(s) s.text = ({ "", 3, core.null })[1 + dice(3)] end,
  function(s) s.share = ({ 0, 1.5, "1" })[1 + dice(3)] end,
  function(s) s.zone = 1 end,
  function(s) s.inner.metadata.stray = 1 end,
  function(s) s.inner.metadata.name = "" end,
  function(s) s.inner.metadata.labels = {} end,
  function(s) s.inner.metadata.creationTimestamp = "2026-01-01T00:00:00+00:00" end,
}

describe("a custom resource that is put as it is", function()
  it("looks to controllers as in a new simulation, whatever was put before", function()
    local seen = simulation()
    for i = 1, 120 do
      local edit, labels = 1 + i % #EDITS, ({ [0] = {}, { a = "" } })[dice(8)]
      local inner = edit > 10 -- an embedded object is never taken for the one before
      local spec = whole(inner)
      EDITS[edit](spec)
      seen("whole", whole(inner), nil)
      assert.equal(simulation()("o", spec, labels), seen("o", spec, labels), core.encode(spec))
    end
  end)

  it("is pruned and gets its defaults", function()
    local seen = simulation()
    local saw = seen("a", { list = { { name = "a", gone = 1 } } }, nil)
    assert.equal('{"list":[{"name":"a","size":1}]}{}', saw)
  end)
end)
