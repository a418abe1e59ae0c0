-- wakes.lua - the watches whose events may let a waiting pod, or a waiting Reservation, fit a node. Waiting
-- objects are in the index `state` of their kind under WAITING.

local cluster = require "scheduler.cluster"
local deviceshare = require "scheduler.deviceshare"
local kube = require "kubelua"
local loadaware = require "scheduler.loadaware"
local pods = require "pods"
local quota = require "elasticquota.quota"
local reservation = require "scheduler.reservation"
local snapshot = require "scheduler.snapshot"
local volumelimits = require "scheduler.volumelimits"
local volumes = require "scheduler.volumes"

local M = {}

M.WAITING = "waiting"

local POD = cluster.POD

-- A mapping to all waiting objects of a kind, for events that may free resources.
local function waiting(kind)
  return function(_, ctx)
    local keys = {}
    for _, object in ipairs(ctx:list(kind, { index = "state", value = M.WAITING })) do
      local meta = object.metadata
      keys[#keys + 1] = meta.namespace and meta.namespace .. "/" .. meta.name or meta.name
    end
    return keys
  end
end

-- The same for a pod with a node, once it was deleted or has ended.
local function freed(kind)
  local all = waiting(kind)
  return function(pod, ctx)
    if (pod("spec.nodeName") or "") == "" then return {} end
    local now = ctx:get(POD, pods.key(pod))
    local there = now and now.metadata.uid == pod.metadata.uid and not snapshot.ended(now)
    return there and {} or all(pod, ctx)
  end
end

-- The same for a NodeMetric: only objects whose message names overused nodes.
local function overloaded(kind)
  local all = waiting(kind)
  return function(metric, ctx)
    local keys = {}
    for _, key in ipairs(all(metric, ctx)) do
      local condition = kube.find_condition(ctx:get(kind, key) or {}, "PodScheduled")
      if condition and loadaware.refuses(condition.message or "") then keys[#keys + 1] = key end
    end
    return keys
  end
end

-- The watches for waiting objects of a kind.
function M.of(kind)
  local all = waiting(kind)
  return {
    [cluster.NODE] = { all, when = { "labels", "annotations", "spec", "status.allocatable" } },
    [POD] = { freed(kind), when = function(now, old) return snapshot.ended(now) ~= snapshot.ended(old) end },
    [quota.KIND] = { all, when = { "labels", "spec", "deletionTimestamp" } },
    [deviceshare.KIND] = { all, when = { "labels", "annotations", "spec" } },
  }
end

-- The watches for waiting pods: also those of what pods alone wait for.
function M.of_pods()
  local out, all = M.of(POD), waiting(POD)
  out[volumes.CLAIM] = { all, when = { "spec", "annotations", "deletionTimestamp" } }
  out[volumes.VOLUME] = { all, when = { "spec", "labels" } }
  out[volumes.CLASS] = all
  out[volumelimits.NODE] = { all, when = { "spec" } }
  out[volumelimits.ATTACHMENT] = { all, when = { "spec" } }
  out[cluster.METRIC] = { overloaded(POD), when = loadaware.eases }
  out[reservation.KIND] = { all, when = { "labels", "spec", "status.phase" } }
  return out
end

return M
