-- given_values_spec.lua - values that a script passes to C are read within bounds: depth, parts (a shared
-- part counts each time), bytes of text, and only plain tables.
-- not in tsan: a walk of 10^6 parts takes it as long as a load may; the script's thread is the only one

local kube = require "kubelua"
local process = require "support.process"
local sizes = require "support.sizes"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

--- What pcall says of each attempt, made at the top level of a script: {name = {ok, message}}.
local function loading(attempts)
  local path = process.tmpname()
  process.write(path, ([[
local kube = require "kubelua"
local out = {}
local function try(name, fn, ...)
  local ok, e = pcall(fn, ...)
  out[#out + 1] = ("%%s=%%s=%%s"):format(name, ok, tostring(e):sub(1, 300))
end
local shared = { 1 }
for _ = 1, 11 do
  local t = {}
  for k = 1, 10 do t[k] = shared end
  shared = t
end
%s
error(table.concat(out, "\n"), 0)
]]):format(attempts))
  local said, code = process.run(("%s check %s"):format(process.quote(KUBELUA), process.quote(path)))
  assert.equal(1, code, said)
  local results = {}
  for name, ok, message in said:gmatch "([%w_]+)=(%a+)=([^\n]*)" do
    results[name] = { ok = ok == "true", message = message }
  end
  assert.not_nil(next(results), said)
  return results
end

local function each_refused(results, names, part)
  for name in names:gmatch "%S+" do
    local r = results[name]
    assert.is_table(r, name)
    assert.is_false(r.ok, name)
    if not r.message:find(part, 1, true) then
      error(("%s: %q is not in %q"):format(name, part, r.message), 2)
    end
  end
end

describe("a table that stands for 10^12 parts", function()
  local results
  lazy_setup(function()
    -- Each in a load of its own: a sanitizer makes ten walks longer than a load may take.
    results = {}
    for _, attempt in ipairs {
      [[try("encode", kube.encode, shared)]],
      [[try("id", kube.id, shared)]],
      [[try("to_yaml", kube.to_yaml, shared)]],
      [[try("copy", kube.copy, { a = shared })]],
      [[try("merge", kube.merge_patch, { a = 1 }, { a = shared })]],
      [[try("selector", kube.selector, { matchLabels = shared })]],
      [[try("params", kube.controller,
        { name = "x", resource = "v1/Pod", reconcile = function() end, params = { v = shared } })]],
      [[try("webhook", kube.webhook, { name = "x", resource = "v1/Pod", validate = function() end,
        object_selector = { matchLabels = shared } })]],
      [[try("doubled", function()
        local v = kube.merge_patch({}, { a = { 1, 2, 3 } })
        for _ = 1, 40 do v = kube.merge_patch({}, { a = v, b = v }) end
      end)]],
      [[try("made", function()
        local v = kube.merge_patch({}, { a = { 1, 2, 3 } })
        for i = 1, 40 do v = kube.merge_patch({ [tostring(i)] = v }, { a = v, b = v }) end
      end)]],
    } do
      for name, result in pairs(loading(attempt)) do results[name] = result end
    end
  end)

  it("is rejected wherever a script passes it while loading", function()
    each_refused(results, "encode id to_yaml copy merge selector params webhook",
      "more than 1000000 parts in one value")
  end)

  it("is rejected if it grew from a table made in C", function()
    each_refused(results, "doubled made", "more than 1000000 parts in one value")
  end)
end)

describe("a value that a script passes", function()
  local results
  lazy_setup(function()
    results = loading [[
      local cycle = {}
      cycle.t = cycle
      try("cycle", kube.encode, cycle)
      try("deep", function()
        local v = kube.merge_patch({}, { a = 1 })
        for _ = 1, 5000 do v = kube.merge_patch({}, { a = v }) end
      end)
      local long, text = {}, ("x"):rep(1 << 20)
      for i = 1, 200 do long[i] = text end
      try("long", kube.encode, long)
      try("index", kube.encode, { a = setmetatable({}, { __index = function() return 1 end }) })
      try("empty", kube.encode, { a = { setmetatable({}, {}) } })
      try("key", kube.encode, { [setmetatable({}, { __tostring = function() error "asked" end })] = 1 })
      try("marked", kube.encode,
        { a = kube.array {}, o = kube.object {}, c = kube.copy(kube.merge_patch({}, { l = {} })) })
    ]]
  end)

  it("has a bounded depth", function()
    each_refused(results, "cycle deep", "nested deeper than 512")
  end)

  it("has a bounded size", function()
    each_refused(results, "long", "the value[65]: more than 64 MiB of text in one value")
  end)

  it("consists of plain tables or the library's values", function()
    each_refused(results, "index", "the value.a: a table with a metatable cannot be sent")
    each_refused(results, "empty", "the value.a[1]: a table with a metatable")
    each_refused(results, "key", "the value: the key table is neither a name nor a place in a list")
    assert.is_true(results.marked.ok, results.marked.message)
  end)
end)

local SCRIPT = [[
local kube = require "kubelua"
local shared = { 1 }
for _ = 1, 11 do
  local t = {}
  for k = 1, 10 do t[k] = shared end
  shared = t
end
local edits = {
  deep = function(d)
    local p = d.data
    for _ = 1, 100000 do
      p.a = {}
      p = p.a
    end
  end,
  chain = function(d)
    local p = d.metadata.annotations
    for _ = 1, 100000 do
      p.a.b = {}
      p = p.a.b
    end
  end,
  whole = function(d) for _ = 1, 100000 do d.data = { a = d.data } end end,
  shared = function(d) d.data = shared end,
  doubled = function(d)
    d.data = { a = "x" }
    for _ = 1, 60 do d.data = { a = d.data, b = d.data } end
  end,
  summed = function(d)
    local wide = {}
    for i = 1, 100000 do wide[i] = i end
    for i = 1, 40 do d[tostring(i)] = wide end
    return tostring(d)
  end,
  gone = function(d)
    d.data = { l = {} }
    local l = d.data.l
    d.data = nil
    l[1] = "x"
  end,
}
return {
  -- Counting to a million takes a sanitized process longer than a run may compute.
  kube.controller { name = "edits", resource = "v1/ConfigMap", reads = { "v1/Secret" }, cpu = "30s",
    reconcile = function(o, ctx)
      local name = o.metadata.name
      if edits[name] then ctx:patch(o, edits[name]) end
      if name == "log" then ctx.log:info("x", { v = shared }) end
      if name == "memo" then ctx.memo.x = shared end
      if name == "apply" then
        ctx:apply { apiVersion = "v1", kind = "Secret", metadata = { name = "x" }, data = shared }
      end
      if name == "list" then
        local list = ctx:list "v1/Secret"
        list[1] = list
        return tostring(list)
      end
      if name == "keep" then ctx:patch(o, function(d) d.data.kept = "yes" end) end
    end },
  kube.controller { name = "indexed", resource = "v1/ServiceAccount", indexes = {
    text = function(o) if o.metadata.name == "stuck" then return kube.encode(shared) end return "x" end,
  }, reconcile = function() end },
}
]]

describe("a run that passes too much", function()
  local t
  lazy_setup(function() t = kube.testing.start { source = SCRIPT } end)
  lazy_teardown(function() if t then t:stop() end end)

  local function last(name)
    t:create { kind = "v1/ConfigMap", name = name, data = { x = "y" }, annotations = { k = "v" } }
    local runs = t:runs("default/" .. name, { controller = "edits" })
    return runs[#runs]
  end

  for name, part in pairs {
    deep = "nested deeper than 512", chain = "nested deeper than 512", whole = "nested deeper than 512",
    shared = "more than 1000000 parts",
    doubled = "more than 1000000 parts", summed = "more than 1000000 parts", memo = "more than 1000000 parts",
    apply = "more than 1000000 parts", list = "nested deeper than 512",
  } do
    it("fails alone: " .. name, function()
      local run = last(name)
      assert.equal("error", run.result, name)
      assert.truthy(run.message:find(part, 1, true), run.message)
    end)
  end

  it("logs the beginning", function() assert.equal("done", last("log").result) end)

  it("writes harmlessly into parts that left the draft", function()
    assert.is_string(last("gone").result)
  end)

  it("ends an index function, and no other controller", function()
    t:create { kind = "v1/ServiceAccount", name = "stuck" }
    last "keep"
    assert.equal("yes", t:get("v1/ConfigMap", "keep").data.kept)
  end)
end)

-- A load has two seconds of the processor, under a sanitizer as well.
local MERGED = sizes.of { short = 20000, long = 20000, sanitized = 8000 }

describe("long lists", function()
  it("are merged and selected in one call, well within the budget", function()
    -- Each in a load of its own, too.
    local results = loading(([[
      local n = %d
      local function pod(from, to, by, image)
        local list = {}
        for i = from, to, by do list[#list + 1] = { name = "c" .. i, image = image } end
        return { apiVersion = "v1", kind = "Pod", metadata = { name = "x" }, spec = { containers = list } }
      end
      try("smp", function()
        assert(#kube.strategic_patch(pod(1, n, 1, "a"), pod(n, 1, -1, "b")).spec.containers == n)
      end)
    ]]):format(MERGED))
    assert.is_true(results.smp.ok, results.smp.message)
    results = loading [[
      local fields = {}
      for i = 1, 1001 do fields["k" .. i] = "v" end
      local map = { apiVersion = "v1", kind = "ConfigMap", data = fields }
      try("wide", kube.strategic_patch, map, map)
    ]]
    each_refused(results, "wide", "an object in it has more than 1000 fields: make a merge patch")
    results = loading [[
      local words = {}
      for i = 1, 50000 do words[i] = "k" .. i .. "=v" end
      try("selector", kube.selector, table.concat(words, ","))
    ]]
    assert.is_true(results.selector.ok, results.selector.message)
  end)
end)

describe("a string that a script parses", function()
  it("has a bounded length, so that parsing is a short call", function()
    local results = loading [[
      try("yaml", kube.yaml, ("#"):rep((2 << 20) + 1))
      try("decode", kube.decode, (" "):rep(16 << 20) .. "1")
      try("small_yaml", kube.yaml, "a: 1" .. (" "):rep((2 << 20) - 4))
      try("small_decode", kube.decode, (" "):rep((16 << 20) - 1) .. "1")
    ]]
    each_refused(results, "yaml", "at most 2 MiB")
    each_refused(results, "decode", "at most 16 MiB")
    assert.is_true(results.small_yaml.ok, results.small_yaml.message)
    assert.is_true(results.small_decode.ok, results.small_decode.message)
  end)
end)
