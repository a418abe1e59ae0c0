-- draft_spec.lua - drafts: editing an object yields the merge patch.

local kube = require "kubelua"
local core = require "kubelua.core"

local NODE = [[{
  "kind": "Node", "apiVersion": "v1",
  "metadata": {"name": "n1", "resourceVersion": "7", "labels": {"zone": "a", "old": "x"}},
  "spec": {"taints": [{"key": "a"}, {"key": "b"}], "unschedulable": false, "none": null},
  "status": {"capacity": {"cpu": "4"}}
}]]

-- Runs fn on a draft as patch does; returns the patch (nil when nothing changed) and whether a list changed.
local function edit(fn, text)
  local draft = core.draft(kube.decode(text or NODE))
  local before = core.nil_swap(true)
  local ok, err = pcall(fn, draft)
  core.nil_swap(before)
  if not ok then error(err, 0) end
  local patch, list = core.draft_patch(draft)
  return patch and tostring(patch), list, draft
end

describe("a draft", function()
  it("works as a value in kube.dig, equal, merge, hash and template", function()
    edit(function(n)
      n.metadata.labels.zone = "b"
      assert.equal("b", kube.dig(n, "metadata", "labels", "zone"))
      assert.equal("b", kube.dig(n, "spec", "taints", 2, "key"))
      assert.is_nil(kube.dig(n, "spec", "nope", "x"))
      assert.is_true(kube.equal(n.metadata.labels, { zone = "b", old = "x" }))
      assert.is_false(kube.equal(n.metadata.labels, { zone = "a", old = "x" }))
      assert.same({ zone = "b", old = "x", more = 1 }, kube.merge(n.metadata.labels, { more = 1 }))
      assert.equal("n1 b", kube.template("{{ metadata.name }} {{ metadata.labels.zone }}", n))
      assert.equal(kube.hash { zone = "b", old = "x" }, kube.hash(n.metadata.labels))
    end)
  end)

  it("reads like the object it stands for", function()
    edit(function(n)
      assert.equal("n1", n.metadata.name)
      assert.equal("b", n.spec.taints[2].key)
      assert.equal(2, #n.spec.taints)
      assert.is_nil(n.spec.none)
      assert.is_nil(n.spec.nope)
      assert.equal("b", n("spec.taints[2].key"))
      assert.is_nil(n("status.allocatable.cpu"))
      assert.is_true(n.spec.taints == kube.decode '[{"key":"a"},{"key":"b"}]')
      local keys = {}
      for key in pairs(n.metadata.labels) do keys[#keys + 1] = key end
      assert.same({ "zone", "old" }, keys)
    end)
  end)

  it("yields no patch when nothing changed, or everything was changed back", function()
    assert.is_nil(edit(function() end))
    assert.is_nil(edit(function(n) n.metadata.labels.zone = "a" end))
    assert.is_nil(edit(function(n) n.metadata.labels.zone = "b"; n.metadata.labels.zone = "a" end))
  end)

  it("yields only what changed", function()
    assert.equal('{"metadata":{"labels":{"zone":"b"}}}', edit(function(n) n.metadata.labels.zone = "b" end))
    assert.equal('{"metadata":{"labels":{"old":null}}}', edit(function(n) n.metadata.labels.old = nil end))
    assert.equal('{"spec":{"unschedulable":true}}', edit(function(n) n("spec").unschedulable = true end))
  end)

  it("leaves the object alone", function()
    local node = kube.decode(NODE)
    local draft = core.draft(node)
    draft.metadata.labels.zone = "b"
    assert.equal("a", node.metadata.labels.zone)
    assert.equal("b", draft.metadata.labels.zone)
  end)

  it("creates maps when something is assigned below an absent field", function()
    assert.equal('{"status":{"allocatable":{"cpu":"3"}}}', edit(function(n)
      n.status.allocatable.cpu = "3"
    end))
    assert.equal('{"a":{"b":{"c":{"d":1}}}}', edit(function(n) n.a.b.c.d = 1 end))
    assert.equal('{"metadata":{"annotations":{"x/y":"1","z":"2"}}}', edit(function(n)
      n.metadata.annotations["x/y"] = "1"
      n.metadata.annotations.z = "2"
    end))
    assert.equal('{"spec":{"none":{"x":1}}}', edit(function(n) n.spec.none.x = 1 end))
    assert.equal('{"metadata":{"finalizers":["a"]}}', edit(function(n) n.metadata.finalizers[1] = "a" end))
    assert.is_nil(edit(function(n) n.metadata.annotations.gone = nil end))
  end)

  it("creates them in loops, one line for many keys", function()
    assert.equal('{"status":{"capacity":{"x":"1"},"allocatable":{"x":"1"}}}', edit(function(n)
      for _, list in ipairs { "capacity", "allocatable" } do n.status[list].x = "1" end
    end))
  end)

  it("keeps the meaning of idioms with nil", function()
    assert.equal('{"status":{"count":1}}', edit(function(n) n.status.count = (n.status.count or 0) + 1 end))
    assert.equal('{"metadata":{"annotations":{"a":"b"}}}', edit(function(n)
      n.metadata.annotations = n.metadata.annotations or {}
      n.metadata.annotations.a = "b"
    end))
    assert.is_nil(edit(function(n) if n.status.nope then n.status.x = 1 end end))
    assert.equal('{"metadata":{"finalizers":["f"]}}', edit(function(n)
      n.metadata.finalizers = n.metadata.finalizers or {}
      table.insert(n.metadata.finalizers, "f")
    end))
  end)

  it("distinguishes two statements on one line", function()
    assert.equal('{"status":{"c":{"d":1}}}', edit(function(n) n.spec.x = n.status.nope; n.status.c.d = 1 end))
  end)

  it("creates them when the statement has several lines", function()
    assert.equal('{"status":{"a":{"b":{"x":1,"y":2}}}}', edit(function(n)
      n.status.a.b = {
        x = 1,
        y = 2,
      }
    end))
    assert.equal('{"a":{"b":{"c":{"d":"x"}}}}', edit(function(n)
      n.a.b.c.d =
        "x"
    end))
    local function none(n) return n.status.none or "0" end
    assert.equal('{"status":{"a":{"b":{"x":"0","y":"y"}}}}', edit(function(n)
      n.status.a.b = {
        x = none(n),
        y = n.status.a and n.status.c or n.status.none
          or "y",
      }
    end))
    assert.equal('{"a":{"p":{"x":1},"q":{"x":2}}}', edit(function(n)
      for i, key in ipairs { "p", "q" } do
        n.a[key].x = math.max(
          0, i
        )
      end
    end))
    local outer = {}
    assert.equal('{"a":{"b":{"c":1}}}', edit(function(n)
      outer.draft = n
      outer.draft.a.b.c = (function()
        return 1
      end)()
    end))
    assert.is_true(core.is_draft(outer.draft))
  end)

  it("knows which of several absent fields a statement assigns below", function()
    assert.equal('{"status":{"a":{"b":1}}}', edit(function(n) n.status.a.b = n.status.c or 1 end))
    assert.equal('{"status":{"a":{"b":1}}}', edit(function(n)
      n.status.a.b =
        n.status.c or 1
    end))
    assert.equal('{"status":{"a":{"b":1}}}', edit(function(n) n.status.a.b = (n.status.a.b or 0) + 1 end))
    assert.equal('{"status":{"a":{"b":1}}}', edit(function(n)
      local nope = n.status.nope
      if not nope then n.status.a.b = 1 end
    end))
    local other = core.draft(kube.decode(NODE))
    assert.equal('{"a":{"b":{"x":{"c":1}}}}', edit(function(n)
      n.a.b.x = {
        c = (function()
          other.c.d = 1
          return other.c.d
        end)(),
      }
    end))
  end)

  it("refuses to guess which of two absent fields was meant", function()
    local i, j = "a", "c"
    assert.error_matches(function()
      edit(function(n) n.status[i].b = n.status[j] or 1 end)
    end, "more than one absent field")
    assert.error_matches(function()
      edit(function(n)
        n.status[i].b = { n.status[j],
          1 }
      end)
    end, "more than one absent field")
  end)

  it("does not mistake an unrelated nil for an absent field", function()
    local config = { known = {} }
    assert.error_matches(function()
      edit(function(n)
        local _ = n.status.nope
        config.known.x.y = 1
      end)
    end, "attempt to set a field of a nil value %(key 'y'%)")
    assert.is_nil(config.known.x)
    assert.error_matches(function()
      edit(function(n)
        config.known.x.y =
          n.status.nope or n.known.x
      end)
    end, "attempt to set a field of a nil value %(key 'y'%)")
    assert.error_matches(function()
      edit(function(n)
        config.known.x.y = { n.known.x,
          1 }
      end)
    end, "attempt to set a field of a nil value %(key 'y'%)")
    assert.is_nil(config.known.x)
    assert.error_matches(function()
      edit(function(n)
        local allocatable = n.status.allocatable
        allocatable.cpu = {
          x = 1,
        }
      end)
    end, "the last absent field is status%.allocatable of Node n1")
    assert.error_matches(function()
      edit(function(n)
        local allocatable = n.status.allocatable
        allocatable.cpu = "1"
      end)
    end, "the last absent field is status%.allocatable of Node n1")
  end)

  it("changes lists, which are sent whole", function()
    local patch, list = edit(function(n) n.spec.taints[1].key = "z" end)
    assert.equal('{"spec":{"taints":[{"key":"z"},{"key":"b"}]}}', patch)
    assert.is_true(list)
    patch = edit(function(n) n.spec.taints[#n.spec.taints + 1] = { key = "c" } end)
    assert.equal('{"spec":{"taints":[{"key":"a"},{"key":"b"},{"key":"c"}]}}', patch)
    patch = edit(function(n) table.insert(n.spec.taints, 1, { key = "first" }) end)
    assert.equal('{"spec":{"taints":[{"key":"first"},{"key":"a"},{"key":"b"}]}}', patch)
    patch = edit(function(n) table.remove(n.spec.taints, 1) end)
    assert.equal('{"spec":{"taints":[{"key":"b"}]}}', patch)
    patch = edit(function(n) table.sort(n.spec.taints, function(a, b) return a.key > b.key end) end)
    assert.equal('{"spec":{"taints":[{"key":"b"},{"key":"a"}]}}', patch)
    patch, list = edit(function(n) n.metadata.labels.zone = "b" end)
    assert.is_string(patch)
    assert.is_falsy(list)
  end)

  it("appends to absent lists, whose length is 0", function()
    local insert = core.bounds().table.insert
    assert.equal('{"spec":{"hosts":["a","b"]}}', edit(function(n)
      insert(n.spec.hosts, "a")
      insert(n.spec.hosts, "b")
    end))
    assert.equal('{"spec":{"deep":{"hosts":[{"name":"Node"}]}}}', edit(function(n)
      insert(
        n.spec.deep.hosts,
        { name = n.kind or n.spec.none })
    end))
    assert.equal('{"spec":{"hosts":["a","b"]}}', edit(function(n)
      for _, host in ipairs { "a", "b" } do n.spec.hosts[#n.spec.hosts + 1] = host end
    end))
    assert.equal('{"spec":{"count":0}}', edit(function(n) n.spec.count = #n.spec.hosts end))
    assert.equal('{"spec":{"first":["x"],"second":["y"]}}', edit(function(n)
      local first, second = n.spec.first, n.spec.second
      assert(first == nil and second == nil)
      insert(n.spec.first, "x") insert(n.spec.second, "y")
    end))
    -- a value that is nil for another reason, beside a read of an absent field
    assert.error_matches(function()
      edit(function(n)
        local other = {}
        return n.spec.hosts, #other.hosts
      end)
    end, "attempt to get length of a nil value; the last absent field is spec.hosts of Node n1; write")
    for _, fn in ipairs { function(n)
      local other = {}
      return n.spec.hosts, insert(other.hosts, 1)
    end, function(n)
      local hosts = n.spec.hosts
      insert(hosts, 1)
    end } do
      assert.error_matches(function() edit(fn) end, "table expected, got nil")
    end
  end)

  it("lets a loop remove its current element", function()
    assert.equal('{"metadata":{"labels":{"zone":null,"old":null}}}', edit(function(n)
      for key in pairs(n.metadata.labels) do n.metadata.labels[key] = nil end
    end))
    local met = 0
    edit(function(n)
      local labels = n.metadata.labels
      for _ in pairs(labels) do
        met = met + 1
        for key in pairs(labels) do labels[key] = nil end
      end
    end)
    assert.equal(1, met) -- not what it removed before
  end)

  it("takes tables, views, drafts and quantities", function()
    assert.equal('{"spec":{"a":{"x":[1]},"b":[{"key":"a"},{"key":"b"}],"c":"1500m","d":{"cpu":"4"}}}',
      edit(function(n)
      n.spec.a = { x = { 1 } }
      n.spec.b = n.spec.taints
      n.spec.c = kube.qty "1500m"
      n.spec.d = kube.decode(NODE).status.capacity
    end))
  end)

  it("rejects values that JSON cannot hold", function()
    assert.error_matches(function() edit(function(n) n.spec.taints.key = 1 end) end,
      "cannot set spec%.taints%.key of Node n1: the items of a list are numbered")
    assert.error_matches(function()
      edit(function(n) n.spec.taints[5] = 1 end)
    end, "the list has 2 items; the next is %[3%]")
    assert.error_matches(function() edit(function(n) n.metadata[1] = 1 end) end, "its fields have names")
    assert.error_matches(function() edit(function(n) n.spec[true] = 1 end) end, "a key is a name")
    assert.error_matches(function()
      edit(function(n) n.spec.x = print end)
    end, "spec%.x of Node n1: a function cannot be sent")
    assert.error_matches(function()
      edit(function(n) n.spec.x = { y = print } end)
    end, "%.y: a function cannot be sent")
  end)

  it("cannot be changed after it was sent", function()
    local draft = core.draft(kube.decode(NODE))
    draft.spec.x = 1
    core.draft_close(draft)
    assert.equal(1, draft.spec.x)
    assert.error_matches(function() draft.spec.x = 2 end, "this draft has been sent")
  end)

  it("frees its values", function()
    local function work()
      for i = 1, 50 do
        edit(function(n)
          n.status.marker.of = "draft " .. i
          n.spec.taints[3] = { key = "number " .. i }
        end)
      end
    end
    work()
    collectgarbage()
    collectgarbage()
    local before = core.memory()
    work()
    collectgarbage()
    collectgarbage()
    assert.equal(before, core.memory())
  end)
end)
