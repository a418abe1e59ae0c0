-- attacks_spec.lua - values that are too deep or have shared parts, endless drafts, values of another run,
-- functions of the host, memory that C holds, endless keys: in `kubelua run` on both API servers. Each fails
-- only its own key or load, with a message that names the cause.
-- real in asan: what scripts do to the process, on both servers

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local PARTS, DEPTH = "more than 1000000 parts in one value", "nested deeper than 512"
local MEMORY = "not enough memory: a worker's state may hold 16Mi"
local ANOTHER = "it is waiting in its own run"

-- A table of a few kilobytes that stands for 10^12 parts when it is walked.
local SHARED = [[
local shared = { 1 }
for _ = 1, 11 do
  local t = {}
  for k = 1, 10 do t[k] = shared end
  shared = t
end
]]

-- name, code in a run with o, ctx, kube and shared, what the log says
local WAYS = {
  -- drafts
  { "draft-deep", "ctx:patch(o, function(d) local p = d.data for _ = 1, 1e5 do p.a = {} p = p.a end end)",
    DEPTH },
  { "draft-whole", "ctx:patch(o, function(d) for _ = 1, 1e5 do d.data = { a = d.data } end end)", DEPTH },
  { "draft-shared", "ctx:patch(o, function(d) d.data = shared end)", PARTS },
  -- values with shared parts
  { "encode", "kube.encode(shared)", PARTS },
  { "id", "kube.id(shared)", PARTS },
  { "to-yaml", "kube.to_yaml(shared)", PARTS },
  { "merge-patch", "kube.merge_patch({ a = 1 }, { a = shared })", PARTS },
  { "memo", "ctx.memo.x = shared", PARTS },
  { "apply", [[ctx:apply { apiVersion = "v1", kind = "Secret", metadata = { name = "x" }, data = shared }]],
    PARTS },
  { "view", [[local v = kube.merge_patch({}, { a = { 1, 2, 3 } })
    for _ = 1, 40 do v = kube.merge_patch({}, { a = v, b = v }) end return tostring(v)]], PARTS },
  -- what belongs to others
  { "resume", "assert(coroutine.resume(waiting))", ANOTHER },
  { "close", "return coroutine.close(waiting)", ANOTHER },
  { "old-ctx", [[old:get("v1/ConfigMap", o.metadata.namespace, "victim")]],
    "ctx.get: the reconcile of this ctx is over" },
  { "host-connect", [[getmetatable(kube).__index(kube, "connect") {}]], "attempt to index" },
  { "host-write", [[kube.connect { server = "http://127.0.0.1:1" }]],
    "kube.connect is for standalone programs" },
  { "host-files", [[kube.certificate { dir = "/tmp" }]], "is for standalone programs" },
  -- memory that C holds
  { "memory-decode", [[for i = 1, 1e7 do
    kept[i] = kube.decode('{"a":{"b":"' .. ("x"):rep(1000) .. i .. '"}}')
  end]], MEMORY },
  { "memory-quantities", [[for i = 1, 1e7 do kept[i] = kube.qty(i .. "m") end]], MEMORY },
  { "text-encode", [[local t, s = {}, ("x"):rep(1e6) for i = 1, 100 do t[i] = s end kube.encode(t)]],
    "more than 64 MiB of text" },
  { "memory-encode", [[local t, s = {}, ("x"):rep(1e5) for i = 1, 600 do
    t[i] = s
  end return #kube.encode(t)]], MEMORY },
}

local SCRIPT = SHARED .. [[
local kube = require "kubelua"
local waiting, old
local kept = {}
local WAYS = {
%s
}
local function c(name, spec)
  spec.name, spec.resource, spec.namespaces = name .. "-%s", spec.resource or "v1/ConfigMap", { %q }
  spec.backoff = { base = "1h", max = "1h" }
  return kube.controller(spec)
end
return {
  -- Counting to a million takes a sanitized process longer than a run may compute.
  c("attacks", { reads = { "v1/Secret" }, cpu = "30s", memory = "16Mi", reconcile = function(o, ctx)
    local name = o.metadata.name
    if name == "finished" then old = ctx end
    if name == "victim" and not waiting then
      waiting = coroutine.running()
      while not o("data.free") do
        ctx:sleep "20ms"
        o = ctx:get("v1/ConfigMap", o.metadata.namespace, name)
      end
      ctx:patch(o, function(d) d.data.answer = "unhurt" end)
    end
    if WAYS[name] then return WAYS[name](o, ctx) end
    ctx.log:info("seen: %%s", name)
  end }),
  c("emits", { indexes = { endless = function(o)
    if o.metadata.name ~= "emits" then return "x" end
    return setmetatable({},
      { __index = function(_, i) return "k" .. i end, __len = function() return 1 << 53 end })
  end }, reconcile = function() end }),
}
]]

-- Under ThreadSanitizer the time of a load may be over before a million parts are counted.
local WATCHED = os.getenv "KL_VARIANT" == "tsan"

-- What is saved in place of a sound script: what it is, its text, what the refusal says.
local LOADS = {
  { "params with shared parts", SHARED .. [[
local kube = require "kubelua"
return kube.controller { name = "load", resource = "v1/ConfigMap", params = { v = shared },
  reconcile = function() end }
]], PARTS },
  { "a value with shared parts as it loads", SHARED .. [[
local kube = require "kubelua"
kube.encode(shared)
return kube.controller { name = "load", resource = "v1/ConfigMap", reconcile = function() end }
]], PARTS },
  { "a controller that is changed before it is returned", [[
local kube = require "kubelua"
local c = kube.controller { name = "load", resource = "v1/ConfigMap", reconcile = function() end }
c.watches = { {} }
return c
]], "kubelua.Controller: watches cannot be set afterwards" },
}

local SOUND = [[
string.format = function() while true do end end
local kube = require "kubelua"
return kube.controller { name = "load-%s", resource = "v1/ConfigMap", namespaces = { %q },
  reconcile = function(o, ctx)
    ctx.log:info("seen: %%s", o.metadata.name)
  end }
]]

servers.each(function(name, start)
  describe("an attack of a script, against " .. name .. ",", function()
    local server, client, ns, run
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "attacks")
      local ways = {}
      for i, way in ipairs(WAYS) do ways[i] = ("  [%q] = function(o, ctx) %s end,"):format(way[1], way[2]) end
      run = controller.start(server, SCRIPT:format(table.concat(ways, "\n"), ns, ns))
      for _, key in ipairs { "finished", "victim" } do
        client:create { kind = "v1/ConfigMap", namespace = ns, name = key, data = { a = "b" } }
      end
      run:wait_for_log(60, "seen: finished")
    end)
    lazy_teardown(function()
      if run then controller.finish(run) end
      if server then server:stop() end
    end)

    local function map(key) client:create { kind = "v1/ConfigMap", namespace = ns, name = key,
      data = { x = "y" } } end

    for _, way in ipairs(WAYS) do
      it("fails its key alone: " .. way[1], function()
        map(way[1])
        local said = wait.until_true(60, "the failure of " .. way[1], function()
          for line in run:log():gmatch "([^\n]+)\n" do -- whole lines
            if line:find("reconcile failed controller=attacks-" .. ns, 1, true)
              and line:find("key=" .. ns .. "/" .. way[1] .. " ", 1, true) then return line end
          end
        end)
        assert.truthy(said:find(way[3], 1, true), said)
        map("after-" .. way[1])
        run:wait_for_log(60, "seen: after-" .. way[1])
      end)
    end

    it("does not affect a run that another one closed and resumed", function()
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "victim" }, { data = { free = "yes" } })
      wait.until_true(60, "the victim's end", function()
        return client:get("v1/ConfigMap", ns, "victim")("data.answer") == "unhurt"
      end)
    end)

    it("skips the object in an index with endless keys, and delays no other", function()
      map "emits"
      run:wait_for_log(60, "index function failed; the object is not in this index controller=emits-" .. ns)
      assert.truthy(run:log():find("more than 10000 values from one object", 1, true), run:log())
      map "after-emits"
      run:wait_for_log(60, "seen: after-emits")
    end)
  end)

  describe("an attack of a script that is loaded, against " .. name .. ",", function()
    local server, client, ns, run
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "attacks")
      run = controller.start(server, SOUND:format(ns, ns))
      run:wait_for_log(60, "controller is running controller=load-" .. ns)
    end)
    lazy_teardown(function()
      if run then controller.finish(run) end
      if server then server:stop() end
    end)

    for n, case in ipairs(LOADS) do
      it("fails that load alone: " .. case[1], function()
        process.write(run.script_path, case[2])
        local said, code = process.run(("%s reload --pid %d"):format(KUBELUA, run.pid))
        assert.equal(1, code, said)
        assert.truthy(said:find("refused, generation 1 runs on: ", 1, true), said)
        local late = WATCHED and said:find("loading takes longer than 2s of processor time", 1, true)
        assert.truthy(late or said:find(case[3], 1, true), said)
        client:create { kind = "v1/ConfigMap", namespace = ns, name = "after-" .. n }
        run:wait_for_log(60, "seen: after-" .. n)
      end)
    end
  end)
end)
