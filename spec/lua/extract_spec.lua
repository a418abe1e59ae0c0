-- extract_spec.lua - kube.extract against the answers of Go's typed client (spec/fixtures/extract).

local kube = require "kubelua"
local process = require "support.process"

local CASES = kube.decode(process.read "spec/fixtures/extract/table.json").cases

local function json(x) return kube.encode(kube.copy(x)) end

-- The manager "first" applied an empty emptyDir, and "second" filled it. Go omits the emptyDir, so applying
-- Go's result gives up the field; ours keeps it empty, so applying it again changes nothing
-- (spec/e2e/typed_spec.lua shows that).
local function ours(name, want)
  if name == "filled: first" then want.spec.template.spec.volumes[1].emptyDir = kube.object {} end
  return want
end

describe("what Go extracts for", function()
  for _, case in ipairs(CASES) do
    it(case.name, function()
      local want = ours(case.name, kube.copy(case.want))
      assert.equal(json(want), json(kube.extract(case.object, case.manager, case "subresource")))
      -- The same from plain tables.
      assert.equal(json(want), json(kube.extract(kube.copy(case.object), case.manager, case "subresource")))
    end)
  end
end)

describe("kube.extract", function()
  local function object(fields, more)
    local o = { apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = "a", managedFields = { { manager = "m", operation = "Apply",
      fieldsV1 = fields } } } }
    for key, value in pairs(more or {}) do o[key] = value end
    return o
  end

  it("finds items of a list by value and by place", function()
    local fields = { ["f:set"] = { ['v:"b"'] = {}, ["v:3"] = {} }, ["f:places"] = { ["i:1"] = {} } }
    local mine = kube.extract(object(fields, { set = { "a", "b", 3 }, places = { "x", "y" } }), "m")
    assert.same({ "b", 3 }, mine.set)
    assert.same({ "y" }, mine.places)
  end)

  it("omits deleted fields", function()
    local fields = { ["f:data"] = { ["f:x"] = {}, ["f:gone"] = {} },
      ["f:list"] = { ['k:{"name":"gone"}'] = { ["f:name"] = {} } }, ["f:lost"] = { ["f:a"] = {} } }
    local mine = kube.extract(object(fields, { data = { x = "1" }, list = { { name = "there" } } }), "m")
    assert.same({ x = "1" }, mine.data)
    assert.equal("[]", kube.encode(mine.list))
    assert.is_nil(mine.lost)
  end)

  it("rejects a value that is not an object, and a missing manager", function()
    assert.error_matches(function() kube.extract(nil, "m") end, "kube.extract: expected an object, got nil")
    assert.error_matches(function() kube.extract("x", "m") end, "expected an object, got string")
    assert.error_matches(function() kube.extract({ kind = "Pod" }, "m") end, "has no metadata.name")
    assert.error_matches(function()
      kube.extract(object {}, "")
    end, 'the field manager must be a string that is not empty, got ""')
    assert.error_matches(function()
      kube.extract(object {})
    end, "the field manager must be a string that is not empty, got nil")
    assert.error_matches(function()
      kube.extract(object {}, "m", {})
    end, "the subresource must be a string such as \"status\", got table")
  end)

  it("tolerates unusual managed fields", function()
    for _, fields in ipairs { { ["k:{"] = {}, ["v:"] = {} }, { ["f:data"] = { ["k:{bad"] = {} } },
      { ["f:data"] = "x" } } do
      local ok, why = pcall(kube.extract, object(fields, { data = { "a" } }), "m")
      assert.is_true(ok or kube.is_error(why), tostring(why))
    end
  end)
end)
