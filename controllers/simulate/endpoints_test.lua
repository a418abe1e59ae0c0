-- endpoints_test.lua - the stand-in for the EndpointSlice controller.
local kube = require "kubelua"

describe("endpoints", function()
  it("are the ready pods that a Service selects, by its ports", function()
    local t = kube.testing.start { script = "endpoints.lua", objects = {
      { kind = "v1/Service", name = "web", spec = { selector = { app = "a" }, ports = {
        { name = "http", port = 80, targetPort = "http" }, { name = "raw", port = 81 } } } },
      { kind = "v1/Service", name = "none", spec = { ports = { { port = 80 } } } } } }
    ---@return any
    local function slice() return t:list "discovery.k8s.io/v1/EndpointSlice"[1] end
    assert.equal(1, #t:list "discovery.k8s.io/v1/EndpointSlice")
    assert.is_nil(slice()("endpoints"))
    t:create { kind = "v1/Pod", name = "p", labels = { app = "a" }, spec = { nodeName = "n", containers = {
      { name = "c", image = "i", ports = { { name = "http", containerPort = 8080 } } } } } }
    t:patch_status(t:get("v1/Pod", "p"), { phase = "Running", podIP = "10.244.0.1",
      podIPs = { { ip = "10.244.0.1" } }, conditions = { { type = "Ready", status = "False" } } })
    assert.is_false(slice().endpoints[1].conditions.ready)
    t:patch_status(t:get("v1/Pod", "p"), { conditions = { { type = "Ready", status = "True" } } })
    assert.is_true(slice().endpoints[1].conditions.ready)
    assert.same({ "10.244.0.1" }, kube.copy(slice().endpoints[1].addresses))
    assert.equal(8080, slice().ports[1].port)
    assert.equal(81, slice().ports[2].port)
    assert.equal("web", slice().metadata.labels["kubernetes.io/service-name"])
    t:delete("v1/Pod", "p", { grace = 0 })
    assert.is_nil(slice()("endpoints"))
  end)
end)
