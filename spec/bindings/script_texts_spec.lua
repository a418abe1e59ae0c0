-- script_texts_spec.lua - a text with a NUL is rejected where C would read a shorter text; and the bounds of
-- what functions emit.

local kube = require "kubelua"

local SCRIPT = [[
local kube = require "kubelua"
local attempts = {
  delete = function(_, ctx) ctx:delete("v1/ConfigMap", "victim\0-backup") end,
  delete_in = function(_, ctx) ctx:delete("v1/ConfigMap", "default\0x", "victim") end,
  kind = function(_, ctx) ctx:delete("v1/ConfigMap\0", "victim") end,
  get = function(_, ctx) ctx:get("v1/ConfigMap", "victim\0x") end,
  get_in = function(_, ctx) ctx:get("v1/ConfigMap", "default\0x", "victim") end,
  live = function(_, ctx) ctx.live:get("v1/ConfigMap", "victim\0x") end,
  list = function(_, ctx) ctx:list("v1/ConfigMap", { labels = "a=b\0" }) end,
  index = function(_, ctx) ctx:list("v1/ConfigMap", { index = "letter\0", value = "v" }) end,
  value = function(_, ctx) ctx:list("v1/ConfigMap", { index = "letter", value = "v\0x" }) end,
  path = function(o) return o("metadata.name\0.x") end,
  memo = function(_, ctx) ctx.memo["a\0b"] = 1 end,
  shared = function(_, ctx) kube.shared.x = 1 return kube.shared["x\0y"] end,
  event = function(_, ctx) ctx:event("Normal", "Because\0", "text") end,
  selector = function() kube.selector "a=b\0c" end,
  quantity = function() kube.qty "1\0Ki" end,
  duration = function() kube.duration "1s\0m" end,
  time = function() kube.time "2026-01-02T03:04:05Z\0" end,
}
return {
  kube.controller { name = "texts", resource = "v1/ConfigMap",
    indexes = { letter = function(o) return o.metadata.name:sub(1, 1) end },
    reconcile = function(o, ctx)
      local attempt = attempts[o("data.attempt") or ""]
      if attempt then attempt(o, ctx) end
    end },
  kube.controller { name = "many", resource = "v1/ServiceAccount", reads = { "v1/ConfigMap" },
    indexes = { values = function(o)
      local list = {}
      for i = 1, math.tointeger(o("metadata.annotations", "values") or "1") do list[i] = "v" .. i % 9000 end
      return list
    end }, reconcile = function(o, ctx)
    local found = #ctx:list("v1/ServiceAccount", { index = "values", value = "v8" })
    if o("metadata.annotations", "found") then return end
    ctx:patch(o, function(m) m.metadata.annotations.found = tostring(found) end)
  end },
}
]]

describe("a text with a NUL", function()
  local t
  lazy_setup(function()
    t = kube.testing.start { source = SCRIPT }
    t:create { kind = "v1/ConfigMap", name = "victim" }
  end)
  lazy_teardown(function() if t then t:stop() end end)

  for _, name in ipairs { "delete", "delete_in", "kind", "get", "get_in", "live", "list", "index", "value",
    "path", "memo", "shared", "event", "selector", "quantity",
    "duration", "time" } do
    it("is an error: " .. name, function()
      local key = "try-" .. name:gsub("_", "-")
      t:create { kind = "v1/ConfigMap", name = key, data = { attempt = name } }
      local runs = t:runs("default/" .. key, { controller = "texts" })
      assert.equal("error", runs[#runs].result)
      assert.is_string(t:get("v1/ConfigMap", "victim").metadata.name)
    end)
  end
end)

describe("an index function", function()
  local t
  lazy_setup(function() t = kube.testing.start { source = SCRIPT } end)
  lazy_teardown(function() if t then t:stop() end end)

  local function found(name, values)
    t:create { kind = "v1/ServiceAccount", name = name, annotations = { values = tostring(values) } }
    return t:get("v1/ServiceAccount", name).metadata.annotations.found
  end

  it("may return many keys for one object, with \z
    duplicates", function() assert.equal("1", found("twice", 10000)) end)

  it("is stopped when it returns too many, and others continue", function()
    found("endless", 300000)
    assert.is_string(found("after", 10))
  end)
end)
