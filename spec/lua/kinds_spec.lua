-- kinds_spec.lua - names of kinds without a server: those of a script's own definitions and the built-in
-- ones. spec/e2e/discovery_spec.lua compares them with a server.

local kinds = require "kubelua.kinds"

describe("a kind that a script defines", function()
  local words

  before_each(function()
    words = {}
    kinds.define("example.com/v1/Site", { "sites", "site", "si" }, words)
  end)

  it("can be named with its group or without", function()
    for _, word in ipairs { "Site", "sites", "site", "si", "sites.example.com", "si.example.com",
      "example.com/Site",
      "example.com/v1/Site" } do
      assert.equal("example.com/v1/Site", kinds.full(word, words), word)
    end
    assert.same({ nil, 'no built-in kind has the name "sitez"; write a kind of a CRD in full: \z
      "group/version/Kind"' },
      { kinds.full("sitez", words) })
  end)

  it("does not hide kinds of the core group", function()
    kinds.define("example.com/v1/Pod", { "pods", "pod", "po" }, words)
    assert.equal("v1/Pod", (kinds.full("po", words)))
    assert.equal("example.com/v1/Pod", (kinds.full("po.example.com", words)))
  end)

  it("needs its group if others have the name", function()
    kinds.define("example.com/v1/Job", { "jobs", "job" }, words)
    kinds.define("a.example.com/v1/Site", { "sites", "site" }, words)
    assert.same({ nil, '"jobs" is in several API groups: name one of "batch/v1/Job" or \z
      "example.com/v1/Job"' },
      { kinds.full("jobs", words) })
    assert.same({ nil, '"site" is in several API groups: name one of "example.com/v1/Site" or \z
      "a.example.com/v1/Site"' },
      { kinds.full("site", words) })
    assert.equal("example.com/v1/Job", (kinds.full("jobs.example.com", words)))
  end)

  it("is the same kind, however often it is defined", function()
    kinds.define("example.com/v1/Site", { "sites", "site" }, words)
    assert.equal("example.com/v1/Site", (kinds.full("sites", words)))
  end)
end)

describe("a name of a kind", function()
  it("is cached, and an invalid one is rejected", function()
    for i = 1, 600 do assert.is_nil(kinds.known("nothing" .. i)) end
    for _ = 1, 2 do
      assert.equal("v1/ConfigMap", kinds.known "cm")
      assert.is_nil(kinds.known "zebra")
    end
    assert.is_nil(kinds.known(nil))
    assert.is_nil(kinds.known(7))
  end)
end)
