-- selector_spec.lua - label selectors in Lua.

local kube = require "kubelua"

describe("kube.selector", function()
  it("reads the text form and matches labels", function()
    local s = kube.selector "app in (a,b), !old, tier!=back"
    assert.is_true(s:matches { app = "a" })
    assert.is_false(s:matches { app = "c" })
    assert.is_false(s:matches { app = "a", old = "" })
    assert.is_false(s:matches { app = "a", tier = "back" })
    assert.is_false(s:matches(nil))
  end)

  it("reads metav1.LabelSelector from tables and views", function()
    local text = '{"matchLabels":{"app":"a"},"matchExpressions":[{"key":"x","operator":"Exists"}]}'
    for _, from in ipairs { kube.decode(text), kube.copy(kube.decode(text)) } do
      local s = kube.selector(from)
      assert.is_true(s:matches { app = "a", x = "1" })
      assert.is_false(s:matches { app = "a" })
    end
  end)

  it("matches the labels of an object", function()
    local pod = kube.decode '{"metadata":{"labels":{"app":"a"}}}'
    assert.is_true(kube.selector "app=a":matches(pod))
    assert.is_true(kube.selector "app=a":matches(pod.metadata.labels))
    assert.is_false(kube.selector "app=a":matches(kube.decode '{"metadata":{}}'))
  end)

  it("selects everything when empty and nothing when absent", function()
    assert.is_true(kube.selector "":matches {})
    assert.is_true(kube.selector {}:matches { a = "b" })
    assert.is_true(kube.selector "":is_empty())
    assert.is_false(kube.selector(nil):matches { a = "b" })
  end)

  it("is canonical as a string", function()
    assert.equal("a in (x,y),b=c", tostring(kube.selector " b = c, a in (y, x)"))
    assert.is_true(kube.selector "a=b,c=d" == kube.selector "c=d,a=b")
  end)

  it("rejects ambiguous selectors", function()
    assert.error_matches(function()
      kube.selector { app = "a" }
    end, "unknown field 'app'; a selector has matchLabels")
    assert.error_matches(function() kube.selector { "a=b" } end, "a selector is a string, or a table")
    assert.error_matches(function() kube.selector "a in b" end, "bad argument")
    assert.error_matches(function() kube.selector(1) end, "a selector is a string")
  end)
end)
