-- policies.lua - shared by specs of controllers/koordinator: nodes and reports about them, a copy of the
-- policies that a spec may change, saving one of its files, and the check that a policy that runs again
-- writes nothing.

local luassert = require "luassert"

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local wait = require "support.wait"

local M = {}

M.PATIENCE = 60
M.NAMESPACE = "koordinator-system"
local NODE = "v1/Node"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"

--- Creates a node that pods can be placed on. `o`: labels and annotations; ready: its condition of that name.
function M.add_node(client, name, amounts, o)
  o = o or {}
  client:patch_status(client:create { kind = NODE, name = name, labels = o.labels,
    annotations = o.annotations }, { allocatable = amounts, capacity = amounts,
    conditions = o.ready and { { type = "Ready", status = o.ready } } or nil })
  -- A real server marks new nodes as not ready until somebody says otherwise.
  client:patch(client:get(NODE, name), function(n) n.spec.taints = nil end)
end

--- The NodeMetric of an agent, as of now, with pods of the namespace "default". `o`: cpu that each pod uses
--- ("3"); priority: the class of each; node: the nodeMetric.
function M.report(client, node, pods, o)
  o = o or {}
  local reports = {}
  for i, name in ipairs(pods) do
    reports[i] = { namespace = "default", name = name, priority = o.priority,
      podUsage = { resources = { cpu = o.cpu or "3", memory = "1Gi" } } }
  end
  local object = client:get(METRIC, node) or client:create { kind = METRIC, name = node, spec = {} }
  client:patch_status(object, { updateTime = os.date "!%Y-%m-%dT%H:%M:%SZ",
    podsMetric = kube.array(reports),
    nodeMetric = o.node or { systemUsage = { resources = { cpu = "100m", memory = "0" } } } })
end

--- A copy of the policies that a spec may change.
function M.copy()
  local dir = process.tmpname ".policies"
  local out, code = process.run(("cp -r controllers/koordinator %s"):format(process.quote(dir)))
  assert(code == 0, out)
  return dir
end

--- A copy with changes in one file: each text in `changes` must occur once. Returns the path of the file and
--- the directory of the copy.
function M.changed(file, changes)
  local dir = M.copy()
  M.change(dir .. "/" .. file, changes)
  return dir .. "/" .. file, dir
end

function M.change(path, changes)
  local text = process.read(path)
  for old, new in pairs(changes) do
    local from, to = text:find(old, 1, true)
    assert(from and not text:find(old, to + 1, true), ("%s has %q not just once"):format(path, old))
    text = text:sub(1, from - 1) .. new .. text:sub(to + 1)
  end
  process.write(path, text)
end

--- `kubelua run` of a script with metrics.
function M.start(server, path, ...)
  return controller.start(server, path, "--metrics-bind-address", "127.0.0.1:0", ...)
end

--- Saves a file again, as an editor does, and waits until the running process has loaded it.
function M.save(run, path)
  process.write(path .. ".new", process.read(path) .. "\n-- saved again\n")
  assert(os.rename(path .. ".new", path))
  run:wait_for_log(M.PATIENCE, "loaded the next generation")
end

--- How many runs of a controller have ended.
function M.runs(run, name)
  local sum = 0
  for labels, n in controller.metrics(run):gmatch "\ncontroller_runtime_reconcile_total{([^}\n]*)} (%d+)" do
    if labels:find(('controller="%s"'):format(name), 1, true) then sum = sum + tonumber(n) end
  end
  return sum
end

--- The resourceVersions of all objects of a kind, by "namespace/name".
function M.versions(client, kind)
  local all = {}
  for _, o in ipairs(client:list(kind)) do
    all[(o("metadata.namespace") or "") .. "/" .. o.metadata.name] = o.metadata.resourceVersion
  end
  return all
end

local looks = 0

local function writes_nothing(run, client, name, kinds, wake)
  local before, ran = {}, M.runs(run, name)
  for _, kind in ipairs(kinds) do before[kind] = M.versions(client, kind) end
  looks = looks + 1
  wake("at-" .. looks)
  wait.until_true(M.PATIENCE, name .. " runs again", function() return M.runs(run, name) > ran end)
  for _, kind in ipairs(kinds) do luassert.same(before[kind], M.versions(client, kind)) end
  return true
end

--- Calls `wake` with a new text, waits until the controller has run again, and asserts that it changed no
--- object of the kinds. The first run may still write the rest of an earlier pass; then it is repeated.
function M.rests(run, client, name, kinds, wake)
  wait.until_true(M.PATIENCE, name .. " rests", function()
    return writes_nothing(run, client, name, kinds, wake)
  end)
end

return M
