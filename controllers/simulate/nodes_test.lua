-- nodes_test.lua - the stand-in for kubelets and for the controller that taints nodes.
local kube = require "kubelua"

local function ready(node)
  for _, c in ipairs(node.status.conditions) do
    if c.type == "Ready" then return c.status end
  end
end

describe("nodes", function()
  it("are created if there are none", function()
    local t = kube.testing.start { script = "nodes.lua", params = { nodes = 2 } }
    local nodes = t:list "v1/Node"
    assert.equal(2, #nodes)
    assert.equal("True", ready(nodes[1]))
    assert.equal("8", nodes[2]("status.allocatable.cpu"))
    assert.equal("zone-2", nodes[2]("metadata.labels", "topology.kubernetes.io/zone"))
    t:delete("v1/Node", "node-1")
    t:delete("v1/Node", "node-2")
    assert.equal(0, #t:list "v1/Node")
  end)

  it("of others suffice, and keep their status", function()
    local status = { capacity = { cpu = "2" }, allocatable = { cpu = "1" } }
    local t = kube.testing.start { script = "nodes.lua", objects = {
      { kind = "v1/Node", name = "own", status = status } } }
    local nodes = t:list "v1/Node"
    assert.equal(1, #nodes)
    assert.equal("1", nodes[1]("status.allocatable.cpu"))
    assert.equal("True", ready(nodes[1]))
  end)

  describe("(the only node)", function()
    local t ---@type kubelua.Testing
    before_each(function() t = kube.testing.start { script = "nodes.lua", params = { nodes = 1 } } end)
    local function node() return t:get("v1/Node", "node-1") end
    local function keys()
      local list = {}
      for i, taint in ipairs(node()("spec.taints") or {}) do list[i] = taint.key .. ":" .. taint.effect end
      return list
    end

    it("renew their lease", function()
      local function renewed()
        return t:get("coordination.k8s.io/v1/Lease", "kube-node-lease", "node-1").spec.renewTime
      end
      local before = kube.time(renewed())
      t:advance "30s"
      assert.equal(30, kube.time(renewed()) - before)
    end)

    it("are tainted while they are cordoned", function()
      t:patch(node(), { spec = { taints = {
        { key = "node.kubernetes.io/not-ready", effect = "NoSchedule" } } } })
      assert.same({}, keys())
      local mine = { key = "mine", effect = "NoSchedule" }
      t:patch(node(), { spec = { unschedulable = true, taints = { mine } } })
      assert.same({ "mine:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule" }, keys())
      t:patch(node(), function(n) n.spec.unschedulable = nil end)
      assert.same({ "mine:NoSchedule" }, keys())
    end)

    it("go down and come back by an annotation", function()
      t:patch(node(), { metadata = { annotations = { ["simulate.kubelua.dev/down"] = "true" } } })
      assert.equal("Unknown", ready(node()))
      assert.same({ "node.kubernetes.io/unreachable:NoSchedule",
        "node.kubernetes.io/unreachable:NoExecute" }, keys())
      assert.is_nil(t:next())
      t:patch(node(), { metadata = { annotations = { ["simulate.kubelua.dev/down"] = kube.null } } })
      assert.equal("True", ready(node()))
      assert.same({}, keys())
    end)
  end)
end)
