-- compute_spec.lua - the functions of lua/kubelua/compute.lua; spec/oracle tests the rules themselves.

local kube = require "kubelua"

local function pod(image, extra)
  local p = { apiVersion = "v1", kind = "Pod", metadata = { name = "p" },
    spec = { containers = { { name = "c", image = image } } } }
  for key, value in pairs(extra or {}) do p.metadata[key] = value end
  return p
end

describe("patches", function()
  it("express a difference as a merge patch", function()
    assert.equal('{"b":null,"c":2}', kube.encode(kube.merge_patch({ a = 1, b = 1 }, { a = 1, c = 2 })))
  end)

  it("merge lists by key when they are strategic", function()
    local patch = kube.strategic_patch(pod "i1", pod "i2")
    assert.same({ spec = { ["$setElementOrder/containers"] = { { name = "c" } },
      containers = { { image = "i2", name = "c" } } } }, kube.copy(patch))
  end)

  it("keep keys that exclude each other consistent", function()
    local function deployment(strategy)
      return { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "d" },
        spec = { strategy = strategy } }
    end
    local rolling = deployment { type = "RollingUpdate", rollingUpdate = { maxSurge = 1 } }
    assert.equal('{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null,"$retainKeys":["type"]}}}',
      kube.encode(kube.strategic_patch(rolling, deployment { type = "Recreate" })))
  end)

  it("keep changes of others, in a three-way merge", function()
    local original, current, modified = pod "i1", pod("i1", { labels = { theirs = "1" } }), pod "i2"
    local patch = kube.strategic_patch(current, modified, { original = original })
    assert.is_nil(patch("metadata"))
    assert.equal("i2", patch("spec.containers[1].image"))
  end)

  it("name a conflict, and override it on demand", function()
    local _, err = kube.try(kube.strategic_patch, pod "i3", pod "i2", { original = pod "i1" })
    assert.equal(409, err.code)
    assert.equal("i2", kube.strategic_patch(pod "i3", pod "i2",
      { original = pod "i1", overwrite = true })("spec.containers[1].image"))
  end)

  it("refuse kinds that merge no lists, and mistakes in options", function()
    local own = { apiVersion = "example.com/v1", kind = "Own" }
    assert.error_matches(function() kube.strategic_patch(own, own) end, "not a built%-in kind")
    assert.error_matches(function() kube.strategic_patch({}, {}) end, "no apiVersion and kind")
    assert.error_matches(function()
      kube.strategic_patch(pod "a", pod "b", { orginal = {} })
    end, "unknown option 'orginal'.*original")
    local _, err = kube.try(kube.strategic_patch, pod "a",
      { apiVersion = "v1", kind = "Pod", spec = { containers = { { image = "x" } } } })
    assert.matches("merge key", err.message)
  end)
end)

-- Ordered trees of `n` nodes, as JSON arrays in arrays without the outermost brackets.
local function forests(n)
  local known = { [0] = { "" } }
  for k = 1, n do
    known[k] = {}
    for a = 1, k do
      for _, first in ipairs(known[a - 1]) do
        for _, rest in ipairs(known[k - a]) do
          known[k][#known[k] + 1] = ("[%s]%s%s"):format(first, rest ~= "" and "," or "", rest)
        end
      end
    end
  end
  return known[n]
end

describe("long merged lists", function()
  local function pod_of(names, image)
    local parts = {}
    for i, name in ipairs(names) do parts[i] = ('{"name":%s,"image":%q}'):format(name, image) end
    return kube.decode('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":['
      .. table.concat(parts, ",") .. "]}}")
  end

  -- With a linear search for each item, each of these would take from a minute to an hour.
  local function patched(names)
    local n = #kube.strategic_patch(pod_of(names, "old"), pod_of(names, "new")).spec.containers
    assert.equal(#names, n)
  end

  it("are patched in a time that grows with them", function()
    local names = {}
    for i = 1, 50000 do names[i] = ('"c%d"'):format(i) end
    patched(names)
  end)

  it("also with hostile keys", function()
    local names = {}
    for i, forest in ipairs(forests(11)) do names[i] = "[" .. forest .. "]" end
    assert.equal(58786, #names)
    patched(names)
  end)
end)

describe("names", function()
  it("have rules with error messages", function()
    assert.is_nil(kube.name_problem("dns1123_label", "a-b"))
    assert.matches("lower case", kube.name_problem("dns1123_label", "A"))
    assert.is_nil(kube.name_problem("ip", "2001:db8::1"))
    assert.matches("prefix length", kube.name_problem("cidr", "10.0.0.0/33"))
    assert.matches("NUL", kube.name_problem("qualified", "a\0b"))
  end)

  it("know their rules", function()
    assert.error_matches(function()
      kube.name_problem("dns1123_lable", "x")
    end, "unknown rule 'dns1123_lable'.*dns1123_label")
  end)

  it("can be made", function()
    local name = kube.generate_name(("x"):rep(80))
    assert.equal(63, #name)
    assert.is_nil(kube.name_problem("dns1123_label", name))
  end)
end)

describe("kube.share", function()
  it("takes a number or a part", function()
    assert.equal(3, kube.share(3, 10))
    assert.equal(2, kube.share("25%", 10))
    assert.equal(3, kube.share("25%", 10, "up"))
    assert.equal(0, kube.share(nil, 10))
  end)

  it("refuses anything else", function()
    assert.error_matches(function() kube.share("a quarter", 10) end, "is not a percentage")
    assert.error_matches(function() kube.share("25%", 10, "down") end, "round")
    assert.error_matches(function() kube.share(2.5, 10) end, "32%-bit whole number")
  end)
end)
