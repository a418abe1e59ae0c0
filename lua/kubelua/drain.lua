-- drain.lua - a node without its pods: cordoned, then every pod evicted that may be, by kubectl's rules,
-- and waited for.
--
--   pod -> skip     a mirror pod, or a daemon set's pod with ignore_daemonsets
--          refuse   an error, before any pod is evicted
--          evict
--
-- M.judge decides about a pod, from the pod and the options alone. An eviction that a budget forbids (429)
-- is tried again later.

local clock = require "kubelua.clock"
local core = require "kubelua.core"
local options = require "kubelua.options"
local owner = require "kubelua.owner"

local M = {}

---@class kubelua.DrainOptions
---@field force boolean?                 pods that have no controller, too
---@field ignore_daemonsets boolean?     leave pods of daemon sets where they are: their controller would bring them back
---@field delete_emptydir_data boolean?  pods with emptyDir volumes, whose data is lost, too
---@field grace integer?                 seconds for each pod to end; its own when absent
---@field timeout kubelua.Duration?      of the whole; forever when absent
---@field pod_labels kubelua.LabelSelector?  only these pods
---@field disable_eviction boolean?      delete, past all budgets
---@field skip_wait_for_delete integer?  do not wait for pods whose deletion began this many seconds ago
---@field retry kubelua.Duration?        until a budget that said no is asked again; 5s
---@field dry_run boolean?
---@field on_pod (fun(pod: kubelua.view, what: "evicting"|"waiting"|"gone"|"skipped"|"refused by budget", why: string?))?

local OPTIONS = {
  force = "boolean", ignore_daemonsets = "boolean", delete_emptydir_data = "boolean", grace = "integer",
  timeout = "duration",
  pod_labels = "selector", disable_eviction = "boolean", skip_wait_for_delete = "integer", retry = "duration",
  dry_run = "boolean", on_pod = "function",
}

local MIRROR = "kubernetes.io/config.mirror"
local RETRY = 5          -- seconds; kubectl's

-- ---------------------------------------------------------------- judging

local function finished(pod) return pod("status.phase") == "Succeeded" or pod("status.phase") == "Failed" end

local function has_local_data(pod)
  for _, volume in ipairs(pod("spec.volumes") or {}) do
    if volume("emptyDir") then return true end
  end
  return false
end

local function long_gone(pod, opts, now)
  local since = pod("metadata.deletionTimestamp")
  local least = opts.skip_wait_for_delete or 0
  return since and least > 0 and now - core.time(since):unix() > least
end

--- Decides about a pod: "evict", "skip" or "refuse", and why. `has_daemonset(namespace, name)` says whether a
--- daemon set exists.
---@param pod kubelua.view
---@param opts kubelua.DrainOptions
---@param has_daemonset fun(namespace: string, name: string): boolean
---@param now number  seconds since 1970
---@return "evict"|"skip"|"refuse", string?
function M.judge(pod, opts, has_daemonset, now)
  if long_gone(pod, opts, now) then return "skip", "it has been terminating for a long time" end
  local controller, warning = owner.controller_of(pod), nil
  if controller and controller.kind == "DaemonSet" and controller.apiVersion == "apps/v1"
    and not finished(pod) then
    if has_daemonset(pod.metadata.namespace, controller.name) then
      if opts.ignore_daemonsets then return "skip", "a daemon set would recreate it" end
      return "refuse",
        "it belongs to a daemon set, which would recreate it (ignore_daemonsets = true leaves such \z
        pods alone)"
    elseif not opts.force then
      return "refuse", ("its daemon set %s does not exist (force = true evicts it)"):format(controller.name)
    end
    warning = "its daemon set does not exist"
  end
  if pod("metadata.annotations", MIRROR) then return "skip", "it is a mirror of a static pod" end
  if has_local_data(pod) and not finished(pod) then
    if not opts.delete_emptydir_data then
      return "refuse", "its emptyDir data would be lost (delete_emptydir_data = true accepts that)"
    end
    warning = "its emptyDir data is lost"
  end
  if not controller and not finished(pod) then
    if not opts.force then
      return "refuse", "it has no controller that would recreate it (force = true evicts it)"
    end
    warning = "nothing recreates it"
  end
  return "evict", warning
end

-- ---------------------------------------------------------------- the node

local function name_of(what, node)
  if type(node) == "string" and node ~= "" then return node end
  local metadata = (type(node) == "table" or core.is_view(node)) and node.metadata
  local name = metadata and metadata.name or type(node) == "table" and node.name
  if type(name) ~= "string" then core.blame(what .. ": expected the name of a node, or a node") end
  return name
end

function M.cordon(client, what, node, on)
  local name = name_of(what, node)
  local o = client:get("v1/Node", name)
  if not o then
    error(core.error { kind = "not_found", code = 404, verb = "cordon", resource = "v1/Node", key = name,
      message = "the node does not exist" }, 0)
  end
  return client:patch(o, function(draft)
    if on then
      draft.spec.unschedulable = true
    elseif draft("spec.unschedulable") then
      draft.spec.unschedulable = nil
    end
  end)
end

-- ---------------------------------------------------------------- the pods

local function key_of(pod) return pod.metadata.namespace .. "/" .. pod.metadata.name end

local function told(opts, pod, ...)
  if opts.on_pod then opts.on_pod(pod, ...) end
end

-- The pods to evict; an error that names every pod that may not be evicted.
local function chosen(client, name, opts)
  local exists = {}
  local function has_daemonset(ns, set)
    local key = ns .. "/" .. set
    if exists[key] == nil then exists[key] = client:get("apps/v1/DaemonSet", ns, set) ~= nil end
    return exists[key]
  end
  local evict, refused = {}, {}
  for _, pod in ipairs((client:list("v1/Pod", { fields = "spec.nodeName=" .. name,
    labels = opts.pod_labels }))) do
    local fate, why = M.judge(pod, opts, has_daemonset, core.wall())
    if fate == "evict" then
      evict[#evict + 1] = pod
    elseif fate == "skip" then
      told(opts, pod, "skipped", why)
    else
      refused[#refused + 1] = ("%s: %s"):format(key_of(pod), why)
    end
  end
  if #refused > 0 then
    table.sort(refused)
    error(core.error {
      kind = "refused", verb = "drain", resource = "v1/Node", key = name,
      message = "these pods may not be evicted: " .. table.concat(refused, "; "),
    }, 0)
  end
  return evict
end

local function remove(client, pod, opts)
  local how = { grace = opts.grace, dry_run = opts.dry_run, uid = pod.metadata.uid }
  if opts.disable_eviction then
    return client:delete("v1/Pod", pod.metadata.namespace, pod.metadata.name, how)
  end
  return client:evict(pod, how)
end

local function in_ending_namespace(err)
  for _, cause in ipairs(err.details and err.details("causes") or {}) do
    if cause("reason") == "NamespaceTerminating" then return true end
  end
  return false
end

-- One try: "gone", "waiting" for its end, or nil and the seconds until the next try.
local function try(client, pod, opts)
  told(opts, pod, "evicting")
  local ok, err = pcall(remove, client, pod, opts)
  if ok then return opts.dry_run and "gone" or "waiting" end
  if not core.is_error(err) then error(err, 0) end
  if err.code == 404 or err.kind == "conflict" then return "gone" end      -- or another pod has its name
  if err.code == 429 then
    told(opts, pod, "refused by budget", err.message)
    return nil, err.retry_after and err.retry_after > 0 and err.retry_after
      or core.duration(opts.retry or RETRY)
  end
  if err.code == 403 and in_ending_namespace(err) then
    if pod("metadata.deletionTimestamp") then return "waiting" end
    return nil, core.duration(opts.retry or RETRY)
  end
  error(err, 0)
end

local function names(pods)
  local list = {}
  for _, pod in pairs(pods) do list[#list + 1] = key_of(pod) end
  table.sort(list)
  return table.concat(list, ", ")
end

local function time_is_over(node, pods, timeout)
  error(core.error {
    kind = "timeout", verb = "drain", resource = "v1/Node", key = node,
    message = ("pods still exist after %s: %s"):format(core.format_duration(timeout),
      names(pods)),
  }, 0)
end

function M.drain(client, node, opts)
  local name = name_of("c:drain", node)
  opts = options.check("c:drain", opts, OPTIONS)
  if opts.grace and opts.grace < 0 then
    core.blame(("c:drain: grace must be at least 0 seconds, got %d"):format(opts.grace))
  end
  local timeout = opts.timeout and core.duration(opts.timeout)
  local deadline = timeout and timeout > 0 and core.monotonic() + timeout or math.huge
  if not opts.dry_run then M.cordon(client, "c:drain", name, true) end
  local pods = chosen(client, name, opts)
  if #pods == 0 then return pods end

  -- An informer reports when they are gone, so nothing is read twice.
  local informers <close> = require("kubelua.informers").informers(client,
    { fields = "spec.nodeName=" .. name, keep = { "spec.nodeName" } })
  local store = informers:informer("v1/Pod"):store()
  informers:start()
  local due, waiting = {}, {}
  for _, pod in ipairs(pods) do due[pod] = 0 end
  local synced = false
  while next(due) or next(waiting) do
    local now = core.monotonic()
    if now >= deadline then
      for pod in pairs(waiting) do due[pod] = 0 end
      local left = {}
      for pod in pairs(due) do left[#left + 1] = pod end
      time_is_over(name, left, timeout)
    end
    for _, pod in ipairs(pods) do
      if due[pod] and now >= due[pod] then
        local state, pause = try(client, pod, opts)
        due[pod] = not state and now + pause or nil
        if state == "waiting" then waiting[pod] = true end
        if state then told(opts, pod, state) end
      end
    end
    synced = synced or informers:wait_synced(0)
    for pod in pairs(synced and waiting or {}) do
      local there = store:get(key_of(pod))
      if not there or there.metadata.uid ~= pod.metadata.uid then
        waiting[pod] = nil
        told(opts, pod, "gone")
      elseif long_gone(there, opts, core.wall()) then
        waiting[pod] = nil
        told(opts, pod, "skipped", "it has been terminating for a long time")
      end
    end
    if next(due) or next(waiting) then clock.sleep(0.1) end
  end
  return pods
end

return M
