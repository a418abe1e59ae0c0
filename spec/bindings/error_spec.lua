-- error_spec.lua - errors that report failures of the world, and kube.try, which separates them from mistakes
-- in the code.

local kube = require "kubelua"
local core = require "kubelua.core"

local function not_found()
  return core.error { code = 404, kind = "not_found", reason = "NotFound", message = 'pods "x" not found',
    verb = "get",
    resource = "v1/Pod", key = "default/x" }
end

describe("a structured error", function()
  it("reads as a sentence", function()
    assert.equal('get v1/Pod default/x: pods "x" not found (404 NotFound)', tostring(not_found()))
    assert.equal("connect: refused", tostring(core.error { message = "refused", verb = "connect" }))
    assert.equal("failed", tostring(core.error {}))
  end)

  it("differs from other tables", function()
    assert.is_true(kube.is_error(not_found()))
    assert.is_false(kube.is_error { code = 404 })
    assert.is_false(kube.is_error "404")
  end)
end)

describe("kube.try", function()
  it("passes results and arguments", function()
    assert.same({ 1, 2, n = 2 }, table.pack(kube.try(function(...) return ... end, 1, 2)))
  end)

  it("turns errors of the cluster into nil, err", function()
    local value, err = kube.try(function() error(not_found()) end)
    assert.is_nil(value)
    assert.equal(404, err.code)
    assert.equal("not_found", err.kind)
  end)

  it("raises errors of the code", function()
    assert.error_matches(function() kube.try(function() error "mistake" end) end, "mistake")
    assert.error_matches(function() kube.try(function(t) return t.x end, nil) end, "index a nil value")
  end)

  it("lets a coroutine yield inside", function()
    local co = coroutine.wrap(function() return kube.try(function() return coroutine.yield(1) + 1 end) end)
    assert.equal(1, co())
    assert.equal(42, co(41))
  end)
end)

describe("the kubelua table", function()
  it("rejects unknown names, with a suggestion", function()
    assert.error_matches(function() return kube.qtty end,
      "kube%.qtty: unknown function; did you mean 'qty'%?")
  end)

  it("blames a chunk loaded from a string, whatever its name", function()
    for _, name in ipairs { "kubelua/x", "a/kubelua/x", "lua/kubelua/x", "5.4/kubelua/x" } do
      local chunk = assert(load("local x = kube.qtty return x", name, "t", { kube = kube }))
      local ok, why = pcall(chunk)
      assert.is_false(ok)
      assert.equal(('[string "%s"]:1: '):format(name), tostring(why):match "^.-:%d+: ", why)
    end
  end)

  it("cannot be changed", function()
    assert.error_matches(function() kube.mine = 1 end, "shared by all code")
  end)
end)
