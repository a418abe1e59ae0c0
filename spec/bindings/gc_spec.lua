-- gc_spec.lua - views, drafts and other values under a collector that runs at the worst moments, and the
-- garbage that reading makes.

local kube = require "kubelua"
local core = require "kubelua.core"
local process = require "support.process"


local function torture(words, environment)
  local out, code = process.run(("env %s %s spec/support/gc_torture.lua %s 2>&1"):format(environment or "",
    process.lua(), words))
  assert.equal("ok\n0", out .. tostring(code))
end

describe("the library", function()
  it("works with a full collection every few instructions", function() torture "calls 25" end)

  -- Lua collects inside an allocation when memory is refused once; the sanitizers' host can do that.
  it("works with a full collection at each allocation", function()
    torture("calls", "KUBELUA_GC_STRESS=1")
  end)

  it("survives a state that closes early, and finalizers that use finalized objects",
    function() torture "close" end)
  it("does so with a collection at each allocation", function()
    torture("close", "KUBELUA_GC_STRESS=1")
  end)
end)

describe("reading", function()
  local POD = [[{"kind": "Pod", "apiVersion": "v1",
    "metadata": {"name": "web", "namespace": "shop", "uid": "u", "labels": {"app": "web"}},
    "spec": {"nodeName": "a-node-with-a-name-of-more-than-forty-characters",
      "priority": 7, "serviceAccountName": "default",
      "containers": [{"name": "a", "image": "registry.example.com/web:1",
        "resources": {"limits": {}, "requests": {}}}]},
    "status": {"phase": "Running", "podIP": "10.0.0.1"}}]]

  local function ten_fields(o)
    local m, s, st = o.metadata, o.spec, o.status
    return m.name, m.namespace, m.labels.app, m.uid, s.nodeName, s.priority, s.serviceAccountName,
      s.containers[1].image, st.phase, st.podIP
  end

  local function allocated(fn)
    collectgarbage()
    collectgarbage()
    collectgarbage "stop"
    local before = collectgarbage "count"
    fn()
    local bytes = (collectgarbage "count" - before) * 1024
    collectgarbage "restart"
    return bytes
  end

  it("allocates nothing the second time: ten fields of an object cost no byte", function()
    local pod = kube.decode(POD)
    local found = { ten_fields(pod) }
    assert.equal(10, #found)
    local held = { pod.metadata, pod.spec, pod.status, pod.metadata.labels, pod.spec.containers,
      pod.spec.containers[1] }
    assert.equal(0, allocated(function() for _ = 1, 100 do ten_fields(pod) end end))
    assert.equal(6, #held)
  end)

  it("allocates one view per new part of an object: ten fields cost less than 1 KB",
    function()
    local pods = {}
    for i = 1, 50 do pods[i] = kube.decode((POD:gsub("web", "web" .. i))) end
    local bytes = allocated(function() for i = 1, 50 do ten_fields(pods[i]) end end)
    assert.is_true(bytes > 0)
    assert.is_true(bytes / 50 < 1024, ("%.0f bytes for ten fields"):format(bytes / 50))
  end)

  it("returns the existing view while it is referenced", function()
    local pod = kube.decode(POD)
    local spec, container = pod.spec, pod.spec.containers[1]
    assert.is_true(rawequal(spec, pod.spec))
    assert.is_true(rawequal(container, pod.spec.containers[1]))
    assert.is_true(rawequal(pod "spec.containers", pod "spec.containers"))
  end)

  it("distinguishes equal parts of one object by their paths", function()
    local pod = kube.decode(POD)
    local resources = pod.spec.containers[1].resources
    for _ = 1, 2 do
      for _, part in ipairs { "limits", "requests" } do
        local ok, err = pcall(function() resources[part].cpu = "1" end)
        assert.is_false(ok)
        assert.matches("spec.containers[1].resources." .. part .. ".cpu of Pod shop/web", err, 1, true)
      end
    end
  end)

  it("distinguishes equal parts of two objects", function()
    local a, b = kube.decode(POD), kube.decode((POD:gsub('"web", "namespace"', '"other", "namespace"')))
    local _ = a.spec
    local ok, err = pcall(function() b.spec.priority = 1 end)
    assert.is_false(ok)
    assert.matches("of Pod shop/other", err, 1, true)
  end)

  it("keeps no object alive through what it remembers", function()
    local function nodes() collectgarbage() collectgarbage() return (core.memory()) end
    local _ = kube.decode('{"spec": {"a": [654321987]}}').spec.a
    _ = nil
    local before = nodes()
    _ = kube.decode('{"spec": {"a": [98765432198765]}}').spec.a
    _ = nil
    assert.equal(before, nodes())
  end)

  it("distinguishes paths when there are more than it remembers", function()
    local pod = kube.decode(POD)
    for round = 1, 2 do
      for i = 1, 700 do assert.is_nil(pod(("metadata.labels[x%d]"):format(i))) end
      assert.equal("web", pod "metadata.labels.app", round)
      assert.equal("10.0.0.1", pod "status.podIP", round)
    end
  end)
end)
