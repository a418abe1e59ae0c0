-- view_spec.lua - views: how a script reads a cached object, and that it cannot change it.

local kube = require "kubelua"
local core = require "kubelua.core"

local POD = [[{
  "kind": "Pod", "apiVersion": "v1",
  "metadata": {"name": "web", "namespace": "shop",
               "labels": {"app.kubernetes.io/name": "web", "tier": "front"}},
  "spec": {"nodeName": "n1", "priority": 9007199254740993,
           "containers": [{"name": "a", "image": "x"}, {"name": "b"}],
           "tolerations": [], "nothing": null, "ratio": 0.25, "big": 18446744073709551615, "off": false}
}]]

describe("a view", function()
  local pod
  before_each(function() pod = kube.decode(POD) end)

  it("reads fields, list items from 1, and scalars as Lua has them", function()
    assert.equal("web", pod.metadata.name)
    assert.equal("b", pod.spec.containers[2].name)
    assert.equal(9007199254740993, pod.spec.priority)
    assert.equal("integer", math.type(pod.spec.priority))
    assert.equal(0.25, pod.spec.ratio)
    assert.is_false(pod.spec.off)
  end)

  it("reads absent fields, JSON null and places outside of a list as nil", function()
    assert.is_nil(pod.status)
    assert.is_nil(pod.spec.nothing)
    assert.is_nil(pod.spec.containers[3])
    assert.is_nil(pod.spec.containers[0])
    assert.is_nil(pod.spec.containers.name)
    assert.is_nil(pod.spec[1])
  end)

  it("keeps integers beyond int64 exact", function()
    assert.equal("18446744073709551615", tostring(pod.spec.big))
    assert.equal(kube.uint64 "18446744073709551615", pod.spec.big)
    assert.is_true(pod.spec.big > math.maxinteger)
    assert.is_false(pod.spec.big < 1.5)
  end)

  it("follows paths through absent fields", function()
    assert.equal("b", pod("spec.containers[2].name"))
    assert.equal("web", pod("metadata.labels", "app.kubernetes.io/name"))
    assert.equal("web", pod("metadata.labels[app.kubernetes.io/name]"))
    assert.equal("a", pod("spec", "containers", 1, "name"))
    assert.is_nil(pod("status.conditions[1].type"))
    assert.is_nil(pod("metadata.name.of.what"))
    assert.is_nil(pod("metadata.annotations", "x"))
  end)

  it("rejects an invalid path", function()
    assert.error_matches(function() pod("spec..name") end, "spec%.%.name")
    assert.error_matches(function() pod("spec.containers[0]") end, "lists count from 1")
    assert.error_matches(function() pod() end, "string expected")
  end)

  it("has the length of a list, and none for an object", function()
    assert.equal(2, #pod.spec.containers)
    assert.equal(0, #pod.spec.tolerations)
    assert.equal(0, #pod.spec)
  end)

  it("iterates in the order of the text", function()
    local keys = {}
    for key in pairs(pod.spec) do keys[#keys + 1] = key end
    assert.same({ "nodeName", "priority", "containers", "tolerations", "nothing", "ratio", "big", "off" },
      keys)
    local names = {}
    for i, c in ipairs(pod.spec.containers) do names[i] = c.name end
    assert.same({ "a", "b" }, names)
    local items = {}
    for i, c in pairs(pod.spec.containers) do items[i] = c.name end
    assert.same({ "a", "b" }, items)
  end)

  it("iterates in nested loops, over the same object too, and continues from any key", function()
    local seen = {}
    for a in pairs(pod.metadata) do
      for b in pairs(pod.metadata) do seen[#seen + 1] = #a .. "." .. #b end
      for _ in pairs(pod.spec) do seen.n = (seen.n or 0) + 1 end
    end
    assert.equal("4.4 4.9 4.6 9.4 9.9 9.6 6.4 6.9 6.6", table.concat(seen, " "))
    assert.equal(24, seen.n)
    local step, view = pairs(pod.spec)
    assert.equal("containers", (step(view, "priority")))
    assert.equal("nodeName", (step(view)))
    assert.is_nil(step(view, "off"))
    assert.error_matches(function() step(view, "none") end, "'none' is not a field")
    step, view = pairs(pod.spec.containers)
    assert.equal(2, (step(view, 1)))
    assert.is_nil(step(view, 2))
    assert.is_nil(step(view, 99))
    assert.is_nil(step(view, -5))
  end)

  it("gives null members their key in pairs", function()
    local seen
    for key, value in pairs(pod.spec) do
      if key == "nothing" then seen = value == nil end
    end
    assert.is_true(seen)
  end)

  it("works with the reading functions of the table library", function()
    local list = kube.decode '["a","b","c"]'
    assert.equal("a-b-c", table.concat(list, "-"))
    assert.same({ "a", "b", "c" }, { table.unpack(list) })
    assert.same({ "x", "a", "b", "c" }, table.move(list, 1, 3, 2, { "x" }))
  end)

  it("is JSON as a string", function()
    assert.equal('{"name":"a","image":"x"}', tostring(pod.spec.containers[1]))
  end)

  it("compares by value", function()
    local again = kube.decode(POD)
    assert.is_true(pod == again)
    assert.is_true(pod.spec.containers[1] == kube.decode '{"image":"x","name":"a"}')
    assert.is_false(pod.spec == pod.metadata)
    assert.is_true(kube.decode "[1]" == kube.decode "[1.0]")
  end)

  it("has an id that equal values share, for table keys", function()
    assert.equal(kube.id(pod.spec.containers[1]), kube.id(kube.decode '{"image":"x","name":"a"}'))
    assert.not_equal(kube.id(pod.spec), kube.id(pod.metadata))
    assert.not_equal(kube.id(kube.decode "{}"), kube.id(kube.decode "[]"))
    assert.equal(kube.id(kube.decode "[1]"), kube.id { 1.0 })
    assert.equal("n1", kube.id(pod.spec.nodeName))
  end)

  it("rejects writes, and says where and what to do instead", function()
    local ok, err = pcall(function() pod.spec.containers[1].image = "y" end)
    assert.is_false(ok)
    assert.matches("view_spec.lua:%d+: read%-only: cannot set spec%.containers%[1%]%.image of Pod shop/web",
      err)
    assert.matches("ctx:patch", err, 1, true)
    assert.matches("kube.copy", err, 1, true)
    assert.error_matches(function() table.insert(pod.spec.containers, 1) end, "read%-only")
    assert.error_matches(function()
      pod("metadata.labels")["a.b/c"] = 1
    end, "metadata%.labels%[a%.b/c%] of Pod shop/web")
  end)

  it("keeps the object alive from any place in it", function()
    local container = kube.decode(POD).spec.containers[2]
    collectgarbage()
    collectgarbage()
    assert.equal("b", container.name)
  end)

  it("hides its metatable", function()
    assert.equal("kubelua.view", getmetatable(pod))
    assert.equal("kubelua.view", getmetatable(pod.spec))
  end)

  it("frees the value with the last view", function()
    -- the names of fields are cached
    local known = kube.decode '{"spec":{"number":1,"items":[1]}}'.spec.items
    assert.equal(1, known[1])
    known = nil                                                                   -- luacheck: ignore 311
    collectgarbage()
    collectgarbage()
    local before = core.memory()
    do
      local list = {}
      for i = 1, 100 do
        list[i] = kube.decode(('{"spec":{"number":%d,"items":[%d]}}'):format(i + 123456,
          i + 654321)).spec.items
      end
      assert.is_true(core.memory() > before)
      assert.equal(654321 + 100, list[100][1])
    end
    collectgarbage()
    collectgarbage()
    assert.equal(before, core.memory())
  end)

  it("is safe in finalisers that run after its own", function()
    local seen
    do
      local holder = setmetatable({}, { __gc = function(t)
        seen = pcall(function() return t.view.name end) ~= nil
      end })
      holder.view = kube.decode(POD).metadata
    end
    collectgarbage()
    collectgarbage()
    assert.is_true(seen)
  end)
end)

describe("nil in a script's state", function()
  local function strictly(fn)
    local before = core.nil_swap(true)
    local ok, err = pcall(fn)
    core.nil_swap(before)
    return ok, err
  end

  it("names the object and the absent path", function()
    local pod = kube.decode(POD)
    local ok, err = strictly(function() return pod.spec.affinity.nodeAffinity end)
    assert.is_false(ok)
    assert.matches("view_spec.lua:%d+: attempt to index a nil value %(key 'nodeAffinity'%); "
      .. "the last absent field is spec%.affinity of Pod shop/web", err)
    ok, err = strictly(function() return kube.dig(pod, "spec", "tolerations", 1).key end)
    assert.is_false(ok)
    assert.matches("attempt to index a nil value %(key 'key'%)$", err) -- and not the one before
    ok, err = strictly(function()
      local containers = pod("spec.containers")
      local resources = containers[2].resources
      return resources.requests
    end)
    assert.is_false(ok)
    assert.matches("spec.containers[2].resources of Pod shop/web", err, 1, true)
  end)

  it("is restored for the host", function()
    local mine = { __index = function() return "mine" end }
    debug.setmetatable(nil, mine)
    strictly(function() end)
    local now = debug.getmetatable(nil)
    debug.setmetatable(nil, nil)
    assert.equal(mine, now)
  end)
end)
