-- suggest_spec.lua - "did you mean", and option tables that use it.

local suggest = require "kubelua.suggest"
local options = require "kubelua.options"

describe("did you mean", function()
  it("finds typing errors", function()
    local words = { "requeue_after", "status", "apply" }
    assert.equal("requeue_after", suggest.nearest("requeueAfter", words))
    assert.equal("requeue_after", suggest.nearest("requeue-after", words))
    assert.equal("status", suggest.nearest("staus", words))
    assert.equal("json", suggest.nearest("jsno", { "yaml", "json", "name" }))
    assert.equal("name", suggest.nearest("nmae", { "yaml", "json", "name" }))
    assert.is_nil(suggest.nearest("zzzzzz", words))
  end)

  it("finds the nearest of many words, at any position, and none for non-strings", function()
    for _, place in ipairs { 1, 32, 33, 34, 64, 65, 100 } do
      local words = {}
      for i = 1, 100 do words[i] = i % 7 == 0 and i or ("far-away-%d"):format(i) end
      words[place] = "namespace"
      assert.equal("namespace", suggest.nearest("namspace", words))
      words[50] = "namspaces"
      assert.equal("namespace", suggest.nearest("NAME_SPACE", words))
    end
    -- Of equally near ones, the one that begins alike, whatever the order.
    assert.equal("patch", suggest.nearest("pach", { "each", "patch" }))
    assert.equal("patch", suggest.nearest("pach", { "patch", "each" }))
    assert.is_nil(suggest.nearest("x", {}))
    assert.is_nil(suggest.nearest(("x"):rep(1000), { ("x"):rep(999) }))
  end)

  it("lists the known names if none is near", function()
    assert.equal("; did you mean 'status'?", suggest.hint("statuss", { status = 1, apply = 1 }))
    assert.equal("; known are: apply, status", suggest.hint("zzzzzz", { status = 1, apply = 1 }))
    assert.equal("; known are: apply, status", suggest.hint(1, { "status", "apply", "apply" }))
    local many = {}
    for i = 1, 30 do many[i] = ("word-%02d"):format(31 - i) end
    assert.match("^; known are: word%-01, word%-02, .*, word%-12 and 18 more$", suggest.hint("zzzzzz", many))
  end)
end)

describe("option tables", function()
  local known = { limit = "integer", namespace = "string", labels = "selector", wait = "duration",
    force = "boolean" }

  it("pass when they are right", function()
    assert.same({}, options.check("c:list", nil, known))
    local right = { limit = 1, namespace = "a", labels = { a = "b" }, wait = "5s", force = false }
    assert.equal(right, options.check("c:list", right, known))
  end)

  it("are refused by name, type and place of the caller", function()
    local _, err = pcall(function() options.check("c:list", { limt = 1 }, known) end)
    assert.matches("^spec/lua/suggest_spec.lua:%d+: c:list: unknown option 'limt'; did you mean 'limit'%?$",
      err)
    assert.error_matches(function()
      options.check("c:list", { limit = 1.5 }, known)
    end, "option 'limit' must be an integer, got number")
    assert.error_matches(function()
      options.check("c:list", { namespace = 1 }, known)
    end, "option 'namespace' must be a string")
    assert.error_matches(function() options.check("c:list", { 1 }, known) end, "unknown option '1'")
    assert.error_matches(function()
      options.check("c:list", "x", known)
    end, "expected a table of options, got string")
  end)
end)

describe("pairs of the library", function()
  it("has each function, loaded or not", function()
    local kube, seen = require "kubelua", {}
    for name, value in pairs(kube) do seen[name] = value end
    for name in require "support.process".read "lua/kubelua/names_meta.lua":gmatch "\nkube%.([%w_]+) =" do
      assert.truthy(seen[name], name)
    end
    assert.equal("function", type(seen.from_template))
    assert.equal("table", type(seen.testing))
  end)
end)
