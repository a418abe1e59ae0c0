-- reference_spec.lua - the reference of the site is complete, and its examples run.
-- not in asan, tsan: the pages are the subject

package.path = "docs/site/?.lua;" .. package.path

local controller = require "support.controller"
local examples = require "examples"
local http = require "support.http"
local kube = require "kubelua"
local reference = require "reference"
local servers = require "support.servers"

-- The text of a value behind "-->".
local SHOW = [[
local function show(x)
  local kind = type(x)
  if kind == "nil" or kind == "number" or kind == "boolean" then return tostring(x) end
  if kind == "userdata" and not kube.is_view(x) then return tostring(x) end
  if kube.is_quantity(x) or (getmetatable(x) or {}).__name == "kubelua.time" then return tostring(x) end
  return kube.encode(x)
end
local function claim(expected, x)
  if show(x) ~= expected then error("says " .. expected .. ", is " .. show(x), 2) end
end
]]

-- "A --> B" becomes claim("B", A); an expression may begin on a line above.
local function claims(text)
  local out, open, n = {}, {}, 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    local code, expected = line:match "^(.-)%s*%-%->%s*(.-)%s*$"
    if code then
      n = n + 1
      local whole = code
      -- the statements above are complete, so the shortest tail that is an expression is the right one
      local first = #open + 1
      while not load("return " .. whole) and first > 1 do
        first = first - 1
        whole = table.concat(open, "\n", first) .. "\n" .. code
      end
      assert(load("return " .. whole), text)
      for i = 1, first - 1 do out[#out + 1] = open[i] end
      out[#out + 1] = ("claim(%q, (%s))"):format(expected, whole)
      open = {}
    else
      open[#open + 1] = line
    end
  end
  for _, line in ipairs(open) do out[#out + 1] = line end
  return table.concat(out, "\n"), n
end

local function sorted(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

describe("examples in stock Lua", function()
  for _, name in ipairs(sorted(examples.plain)) do
    it(name, function()
      local text, n = claims(examples.plain[name])
      assert.is_true(n > 0)
      assert(load(SHOW .. text, "=" .. name, "t", setmetatable({ kube = kube }, { __index = _G })))()
    end)
  end
end)

local web = kube.testing.http {
  ["* https://dns.example.com/records/a"] = { json = { ip = "10.0.0.1" } },
  ["GET https://dns.example.com/records/b"] = 404,
}

describe("examples of ctx", function()
  local world = kube.yaml(examples.WORLD)
  for _, name in ipairs(sorted(examples.run)) do
    it(name, function()
      local text, result = examples.run[name], "done"
      if text:find "^return" then text, result = text:match "^(.-) %-%-> (%w+)$" end
      local t = kube.testing.start { objects = world, http = web, params = { token = "abc" }, source = ([[
local kube = require "kubelua"
%s
return kube.controller {
  name = "example", resource = "v1/ConfigMap", owns = { "v1/Secret" }, reads = { "v1/Pod" },
  http = { "https://dns.example.com" }, params = { token = { type = "secret" } },
  reconcile = function(obj, ctx)
    if ctx.memo.done or obj.metadata.name ~= "card" then return end
    ctx.memo.done = true
    %s
  end,
}]]):format(SHOW, (claims(text))) }
      local run = assert(t:runs("card")[1], "it did not run")
      t:stop()
      assert.equal(result, run.result, run.message)
    end)
  end
end)

describe("examples of programs", function()
  local world, t, c = kube.yaml(examples.WORLD), nil, nil
  before_each(function()
    t = kube.testing.start { objects = world, source = [[
return require "kubelua".controller {
  name = "none", resource = "coordination.k8s.io/v1/Lease", reconcile = function() end,
}]] }
    c = kube.connect { server = t.client:server(), cache_dir = false, on_warning = "none" }
  end)
  after_each(function()
    c:close()
    t:stop()
  end)

  -- An informer that has all existing objects.
  local function synced(kind)
    local f = kube.informers(c)
    local informer = f:informer(kind)
    f:start()
    assert(f:wait_synced "30s")
    return informer
  end

  for _, name in ipairs(sorted(examples.client)) do
    it(name, function()
      local env = setmetatable({ kube = kube, c = c, synced = synced }, { __index = _G })
      assert(load(SHOW .. claims(examples.client[name]), "=" .. name, "t", env))()
    end)
  end
end)

servers.only_real(function(name, start)
  describe("examples of a pod, of " .. name, function()
    local server, kubelet, c, page
    lazy_setup(function()
      server = start {}
      kubelet = assert(server:kubelet())
      page = http.web()
      local admin <close> = kube.connect { kubeconfig = server.kubeconfig, cache_dir = false }
      local ns = controller.namespace(admin, "examples")
      kubelet:pod(ns, "web-0", { app = "2026-01-02T15:04:05Z one\n2026-01-02T15:04:06Z two\n" })
      c = kube.connect { kubeconfig = server.kubeconfig, namespace = ns, cache_dir = false }
    end)
    lazy_teardown(function()
      if c then c:close() end
      if page then page:stop() end
      if kubelet then kubelet:stop() end
      if server then server:stop() end
    end)

    for _, example in ipairs(sorted(examples.pod)) do
      it(example, function()
        local text = claims(examples.pod[example]):gsub("8080", page.port)
        local env = setmetatable({ kube = kube, c = c }, { __index = _G })
        assert(load(SHOW .. text, "=" .. example, "t", env))()
      end)
    end
  end)
end)

describe("examples that are scripts", function()
  for _, name in ipairs(sorted(examples.script)) do
    it(name, function()
      local t = kube.testing.start { objects = kube.yaml(examples.WORLD), source = examples.script[name] }
      for _, run in ipairs(t:runs()) do assert.equal("done", run.result, run.message) end
      t:stop()
    end)
  end
end)

describe("the reference", function()
  local pages = reference.pages()

  it("names every function that is exported, with an example", function()
    local text, missing = pages["kube.md"] .. pages["values.md"] .. pages["ctx.md"], {}
    local init = assert(io.open "lua/kubelua/init.lua"):read "a"
    for _, list in ipairs { "FROM_FILES", "FOR_PROGRAMS" } do
      for name in init:match("\nlocal " .. list .. " = (%b{})"):gmatch "([%w_]+) = {" do
        local table = name == "shared" or name == "testing" or name == "http"
        if not table and not text:find("### kube." .. name .. "\n", 1, true) then
          missing[#missing + 1] = name
        end
      end
    end
    assert.same({}, missing)
  end)

  it("has an example for each function, and no example of nothing", function()
    assert.same({}, reference.without_example())
    assert.same({}, reference.stray_examples())
  end)

  it("has each class on a page", function()
    assert.same({}, reference.unplaced())
  end)
end)
