--- calls.lua - the cost of every call that a script can make, in one table.
--
--   lua5.4 bench/lua/calls.lua KUBELUA DATA.json      `make -C bench lua` runs it
--
-- First what needs no cluster, in this interpreter; then what needs ctx, inside a reconcile of `kubelua
-- dev` (reconcile.lua); then whole keys through a worker (keys.c).

package.path = "bench/lua/?.lua;" .. package.path
local kube = require "kubelua"
local core = require "kubelua.core"
local measure = require "measure"

local kubelua, data, keys = table.unpack(arg)

local function first_pod()
  local file = assert(io.open(data, "rb"))
  local list = kube.decode(file:read "a")
  file:close()
  return list.items[1]
end

local pod = kube.decode(tostring(first_pod()))
local text = tostring(pod)
local labels, containers = pod.metadata.labels, pod.spec.containers
local plain = kube.copy(pod)
local fields = 0
for _ in pairs(labels) do fields = fields + 1 end
local selector = kube.selector "app=app-1,tier in (a,b)"
local cpu, memory = kube.qty "500m", kube.qty "1Gi"

local function times(n, fn) for _ = 1, n do fn() end end

print(("%-58s %13s %12s"):format("a view", "time", "allocated"))
print(measure.rows {
  { "an empty loop", function(n) for _ = 1, n do local _ = pod end end },
  { "o.spec", function(n) for _ = 1, n do local _ = pod.spec end end },
  { "o.spec.nodeName", function(n) for _ = 1, n do local _ = pod.spec.nodeName end end },
  { "o.metadata.labels.app", function(n) for _ = 1, n do local _ = pod.metadata.labels.app end end },
  { "labels.app, labels in a local", function(n) for _ = 1, n do local _ = labels.app end end },
  { "o.status.absent", function(n) for _ = 1, n do local _ = pod.status.absent end end },
  { "containers[1]", function(n) for _ = 1, n do local _ = containers[1] end end },
  { "#containers", function(n) for _ = 1, n do local _ = #containers end end },
  { "ipairs(containers), per item", function(n)
    for _ = 1, n do for _, c in ipairs(containers) do local _ = c end end
  end, #containers },
  { "pairs(o.metadata.labels), per field", function(n)
    for _ = 1, n do for _, v in pairs(labels) do local _ = v end end
  end, fields },
  { "o(\"spec.nodeName\")", function(n) for _ = 1, n do local _ = pod "spec.nodeName" end end },
  { "o(\"metadata.labels\", \"app\")", function(n)
    for _ = 1, n do local _ = pod("metadata.labels", "app") end
  end },
  { "o(\"spec.containers[1].resources\")", function(n)
    for _ = 1, n do local _ = pod "spec.containers[1].resources" end
  end },
  { "o(\"status.none.of.it\")", function(n) for _ = 1, n do local _ = pod "status.none.of.it" end end },
  { "o == o, two views of one value", function(n)
    local a, b = pod.spec, pod "spec"
    for _ = 1, n do local _ = a == b end
  end },
  { "kube.id(o)", function(n) for _ = 1, n do kube.id(pod) end end },
  { "tostring(o), 7.7 KB", function(n) for _ = 1, n do tostring(pod) end end },
  { "tostring(o.metadata.labels)", function(n) for _ = 1, n do tostring(labels) end end },
  { "kube.decode(text), 7.7 KB", function(n) for _ = 1, n do kube.decode(text) end end },
  { "kube.copy(o), 7.7 KB", function(n) for _ = 1, n do kube.copy(pod) end end },
  { "kube.copy(o.metadata.labels)", function(n) for _ = 1, n do kube.copy(labels) end end },
  { "kube.encode(table), 7.7 KB", function(n) for _ = 1, n do kube.encode(plain) end end },
})

-- A one-field patch as ctx:patch makes it, up to the request.
local function patched(edit)
  local draft = core.draft(pod)
  edit(draft)
  core.draft_close(draft)
  return core.draft_patch(draft)
end

print(("\n%-58s"):format "a draft of a pod of 7.7 KB")
local serial = 0
local before = core.nil_swap(true)
print(measure.rows {
  { "a draft", function(n) for _ = 1, n do core.draft(pod) end end },
  { "draft.spec.nodeName", function(n)
    local d = core.draft(pod)
    for _ = 1, n do local _ = d.spec.nodeName end
  end },
  { "draft.metadata.labels.app = \"x\"", function(n)
    local d = core.draft(pod)
    for i = 1, n do d.metadata.labels.app = i % 2 == 0 and "x" or "y" end
  end },
  { "a patch of one field, from draft to merge patch", function(n)
    times(n, function()
      patched(function(d) serial = serial + 1 d.metadata.labels.app = "x" .. serial end)
    end)
  end },
  { "a patch of one field in a list's item", function(n)
    times(n, function()
      patched(function(d) serial = serial + 1 d.spec.containers[1].image = "x" .. serial end)
    end)
  end },
  { "a patch below an absent field", function(n)
    times(n, function() patched(function(d) serial = serial + 1 d.status.extra.ready = serial end) end)
  end },
  { "a draft that changes nothing", function(n)
    times(n, function() patched(function(d) d.spec.nodeName = pod.spec.nodeName end) end)
  end },
})
core.nil_swap(before)

print "\nquantities, times, selectors"
print(measure.rows {
  { "kube.qty \"500m\"", function(n) for _ = 1, n do kube.qty "500m" end end },
  { "qty + qty", function(n) for _ = 1, n do local _ = cpu + cpu end end },
  { "qty < qty", function(n) for _ = 1, n do local _ = cpu < memory end end },
  { "tostring(qty)", function(n) for _ = 1, n do tostring(memory) end end },
  { "kube.time(text)", function(n) for _ = 1, n do kube.time "2026-01-02T15:04:05Z" end end },
  { "kube.duration \"1h5m\"", function(n) for _ = 1, n do kube.duration "1h5m" end end },
  { "kube.selector(text)", function(n) for _ = 1, n do kube.selector "app=app-1,tier in (a,b)" end end },
  { "selector:matches(o.metadata.labels)", function(n) for _ = 1, n do selector:matches(labels) end end },
})
io.stdout:flush()

-- What `kubelua dev` says about itself comes before the table.
local here = "bench/lua"
local run = assert(io.popen(
  ("%s dev %s/reconcile.lua --load %s --play %s/show.lua --log-level error 2>&1"):format(kubelua, here, data,
  here)))
local said, table_began = {}, false
for line in run:lines() do
  if not table_began and line == "ctx" then
    table_began = true
    print()
  end
  if table_began then print(line) else said[#said + 1] = line end
end
if not run:close() then error("kubelua dev: " .. table.concat(said, "\n")) end
io.stdout:flush()
if keys then assert(os.execute(keys .. " " .. here .. "/empty.lua " .. here .. "/fields.lua")) end
