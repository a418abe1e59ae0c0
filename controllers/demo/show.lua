-- show.lua - what `make demo` shows: the nodes before and after the policy has looked at them. With nobody watching it ends
-- when the cluster has converged; on a terminal it stays and shows what changes.

local kube = require "kubelua"
local cluster = require "cluster"

local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local CONVERGE_SECONDS = 120 -- far more than it ever takes; past it something is broken
local REFRESH_SECONDS = 5

local client = kube.connect { server = dev.server }

local function rows()
  return cluster.rows(client:list "v1/Node", client:list(METRIC))
end

-- Nodes whose offer of batch or mid resources is not what the last look at them said.
local function offered(list)
  local n = 0
  for _, row in ipairs(list) do
    if row.batch_cpu then n = n + 1 end
  end
  return n
end

local function problems()
  local found = {}
  for _, c in ipairs(dev.controllers()) do
    if c.message then found[#found + 1] = c.name .. ": " .. c.message end
  end
  return found
end

-- The policy is done when every node with a living agent has an offer and nothing is queued any more.
local function converge(before)
  local silent = 0
  for _, metric in ipairs(client:list(METRIC)) do
    if cluster.silent(metric) then silent = silent + 1 end
  end
  local want, calm = #before - silent, 0
  for _ = 1, CONVERGE_SECONDS * 10 do
    local now = rows()
    calm = dev.idle() and offered(now) >= want and calm + 1 or 0
    if calm >= 3 then return now end
    if not dev.wait(0.1) then return nil end
  end
  error(("the cluster did not converge within %d s; %s"):format(CONVERGE_SECONDS, table.concat(problems(), "; ")), 0)
end

local HINTS = [[

Try next:
  - edit controllers/koordinator/batchresource.lua (or noderesource.lua) in another window and save it: the running controller
    takes the new logic and this table changes; break it, and the old logic keeps running and says why
  - kubectl --server %s get nodes
  - kubectl --server %s -n koordinator-system edit configmap slo-controller-config
Ctrl-C ends it.
]]

local before = rows()
print(("%d nodes, %d pods, %d NodeMetrics; controllers: %s\n"):format(#before, #client:list "v1/Pod",
  #client:list(METRIC), table.concat(dev.scripts, ", ")))
local after = converge(before)
if not after then return 0 end
print(cluster.format(before, after))
if not dev.tty then return 0 end

io.write(HINTS:format(dev.server, dev.server))
local shown = cluster.format(nil, after)
while dev.wait(REFRESH_SECONDS) do
  local text = cluster.format(nil, rows())
  if text ~= shown then
    print("\n" .. os.date "%H:%M:%S" .. "\n" .. text)
    shown = text
  end
end
return 0
