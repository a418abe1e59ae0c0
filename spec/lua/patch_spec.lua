-- patch_spec.lua - functions that edit become requests; a conflict runs them again. The server here is a
-- table.

local kube = require "kubelua"
local core = require "kubelua.core"
local patch = require "kubelua.patch"

local NODE = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","uid":"u1","resourceVersion":"7",\z
  "labels":{"a":"b"},'
  .. '"finalizers":["f"]},"status":{"phase":"x"}}'

-- A server that answers each request with the next of `answers` (a view, or an error to raise) and records
-- the requests.
local function server(answers)
  local self = { sent = {}, gets = 0, status = true }
  function self.send(op)
    self.sent[#self.sent + 1] = { subresource = op.subresource, type = op.patch_type,
      body = tostring(op.body), name = op.name, kind = op.kind }
    local answer = answers and answers[#self.sent] or kube.decode(NODE)
    if core.is_error(answer) then error(answer, 0) end
    return answer
  end
  function self.get()
    self.gets = self.gets + 1
    return self.fresh
  end
  function self.has() return self.status end
  return self
end

local function conflict()
  return core.error { code = 409, kind = "conflict", reason = "Conflict", message = "changed" }
end

describe("patch with a function", function()
  local node
  before_each(function() node = kube.decode(NODE) end)

  it("sends changes, and nothing without changes", function()
    local s = server()
    patch.patch(s, "c:patch", node, function(n) n.metadata.labels.a = "c" end)
    assert.same({ { type = "merge", name = "n1", kind = "v1/Node",
      body = '{"metadata":{"labels":{"a":"c"}}}' } }, s.sent)
    s = server()
    assert.equal(node, patch.patch(s, "c:patch", node, function() end))
    assert.same({}, s.sent)
  end)

  it("ends with the function: its draft, and assignments below absent fields", function()
    local kept
    patch.patch(server(), "c:patch", node, function(n)
      kept = n
      n.spec.x = 1
    end)
    assert.is_false(pcall(function() kept.metadata.labels.a = "c" end))
    assert.is_false(pcall(function() node.spec.x = 1 end))
    assert.is_false(pcall(function() node.absent.x = 1 end))
  end)

  it("sends status by itself, after the rest", function()
    local s = server()
    patch.patch(s, "c:patch", node, function(n) n.status.phase = "y"; n.spec.x = 1 end)
    assert.equal(2, #s.sent)
    assert.equal('{"spec":{"x":1}}', s.sent[1].body)
    assert.is_nil(s.sent[1].subresource)
    assert.equal('{"status":{"phase":"y"}}', s.sent[2].body)
    assert.equal("status", s.sent[2].subresource)
  end)

  it("sends both at once to kinds without a status subresource", function()
    local s = server()
    s.status = false
    patch.patch(s, "c:patch", node, function(n) n.status.phase = "y"; n.spec.x = 1 end)
    assert.same({ '{"spec":{"x":1},"status":{"phase":"y"}}' }, { s.sent[1].body, s.sent[2] })
  end)

  it("sends the resourceVersion when a list changed, or with lock", function()
    local s = server()
    patch.patch(s, "c:patch", node, function(n) table.insert(n.metadata.finalizers, "g") end)
    assert.is_true(kube.decode(
      s.sent[1].body) == kube.decode '{"metadata":{"finalizers":["f","g"],"resourceVersion":"7"}}')
    patch.patch(s, "c:patch", node, function(n) n.metadata.labels.a = nil end, { lock = true })
    assert.is_true(kube.decode(
      s.sent[2].body) == kube.decode '{"metadata":{"labels":{"a":null},"resourceVersion":"7"}}')
  end)

  it("takes the version of the first answer for the second request", function()
    local s = server { kube.decode '{"metadata":{"resourceVersion":"8"}}' }
    patch.patch(s, "c:patch", node, function(n) n.spec.x = 1; n.status.phase = "y" end, { lock = true })
    assert.matches('"resourceVersion":"7"', s.sent[1].body, 1, true)
    assert.matches('"resourceVersion":"8"', s.sent[2].body, 1, true)
  end)

  it("runs again on the fresh object after a conflict", function()
    local s = server { conflict() }
    s.fresh = kube.decode '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","uid":"u1",\z
      "resourceVersion":"9"},"spec":{"n":5}}'
    patch.patch(s, "c:patch", node, function(n) n.spec.n = (n("spec.n") or 0) + 1 end)
    assert.equal(1, s.gets)
    assert.equal('{"spec":{"n":1}}', s.sent[1].body)
    assert.equal('{"spec":{"n":6}}', s.sent[2].body)
  end)

  it("gives up if the object is gone or replaced", function()
    local s = server { conflict() }
    assert.equal(409, select(2, kube.try(patch.patch, s, "c:patch", node, function(n) n.spec.x = 1 end)).code)
    s = server { conflict() }
    s.fresh = kube.decode '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","uid":"u2"}}'
    assert.equal(409, select(2, kube.try(patch.patch, s, "c:patch", node, function(n) n.spec.x = 1 end)).code)
    assert.equal(1, #s.sent)
  end)

  it("gives up after some conflicts in a row", function()
    local answers = {}
    for i = 1, 20 do answers[i] = conflict() end
    local s = server(answers)
    s.fresh = node
    assert.equal(409, select(2, kube.try(patch.patch, s, "c:patch", node, function(n) n.spec.x = 1 end)).code)
    assert.equal(8, #s.sent)
  end)

  it("passes on other errors, those of the function with their place", function()
    local s = server { core.error { code = 403, kind = "forbidden", message = "no" } }
    assert.equal(403, select(2, kube.try(patch.patch, s, "c:patch", node, function(n) n.spec.x = 1 end)).code)
    local _, err = pcall(patch.patch, s, "c:patch", node, function() error "mine" end)
    assert.matches("patch_spec.lua:%d+: mine", err)
    assert.is_nil(debug.getmetatable(nil))
  end)
end)

describe("patch with a table", function()
  local node = kube.decode(NODE)

  it("sends it unchanged, with the named type", function()
    local s = server()
    patch.patch(s, "c:patch", node, { spec = { x = 1 } })
    patch.patch(s, "c:patch", node, { { op = "add", path = "/spec/x", value = 1 } }, { type = "json" })
    patch.patch(s, "c:patch", { kind = "v1/Node", name = "n1" }, { spec = {} },
      { type = "strategic", subresource = "status" })
    assert.equal('{"spec":{"x":1}}', s.sent[1].body)
    assert.equal("json", s.sent[2].type)
    assert.equal('[{"op":"add","path":"/spec/x","value":1}]', s.sent[2].body)
    assert.equal("status", s.sent[3].subresource)
    assert.equal("strategic", s.sent[3].type)
  end)

  it("can be locked to the version", function()
    local s = server()
    patch.patch(s, "c:patch", node, { spec = { x = 1 } }, { lock = true })
    patch.patch(s, "c:patch", node, { { op = "add", path = "/spec/x", value = 1 } },
      { type = "json", lock = true })
    assert.equal('{"metadata":{"resourceVersion":"7"},"spec":{"x":1}}', s.sent[1].body)
    assert.is_true(kube.decode(
      s.sent[2].body)[1] == kube.decode '{"op":"test","path":"/metadata/resourceVersion","value":"7"}')
  end)

  it("is rejected with contradictory types and options", function()
    local s = server()
    assert.error_matches(function()
      patch.patch(s, "c:patch", node, {}, { type = "xml" })
    end, "merge, json or strategic")
    assert.error_matches(function()
      patch.patch(s, "c:patch", node, function() end, { type = "json" })
    end, "makes a merge patch")
    assert.error_matches(function()
      patch.patch(s, "c:patch", node, 5)
    end, "expected a function that edits a draft")
    assert.error_matches(function()
      patch.patch(s, "c:patch", { kind = "v1/Node" }, {})
    end, "kind and metadata.name")
    assert.error_matches(function()
      patch.patch(s, "c:patch", node, {}, { subresourc = "x" })
    end, "did you mean 'subresource'")
  end)
end)

describe("patch_status", function()
  local node = kube.decode(NODE)

  it("takes a function on the whole object, or the status fields", function()
    local s = server()
    patch.patch_status(s, "c:patch_status", node, function(n) n.status.allocatable.cpu = "1" end)
    patch.patch_status(s, "c:patch_status", node, { phase = "z" })
    assert.same({ "status", '{"status":{"allocatable":{"cpu":"1"}}}' },
      { s.sent[1].subresource, s.sent[1].body })
    assert.same({ "status", '{"status":{"phase":"z"}}' }, { s.sent[2].subresource, s.sent[2].body })
  end)

  it("refuses changes of anything else", function()
    assert.error_matches(function()
      patch.patch_status(server(), "c:patch_status", node, function(n) n.spec.x = 1 end)
    end, "also changed 'spec'")
  end)
end)
