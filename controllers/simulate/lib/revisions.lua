-- revisions.lua - the templates that a StatefulSet or DaemonSet had, as ControllerRevisions: what
-- `kubectl rollout history` and `undo` go by.

local kube = require "kubelua"
local stale = require "lib.stale"

local M = {}

M.KIND = "apps/v1/ControllerRevision"
M.HASH = "controller-revision-hash"

local function data_of(owner)
  local template = kube.copy(owner.spec.template)
  template["$patch"] = "replace" -- undo applies it as a strategic merge patch
  return { spec = { template = template } }
end

--- Those of the owner by name, and the one of its template, which is made, or made the newest, when it has
--- to.
---@return table<string, kubelua.view> all, kubelua.view newest
function M.sync(owner, ctx)
  local data, all, last, found = data_of(owner), {}, 0, nil
  for _, r in ipairs(ctx:claim(M.KIND, { labels = owner.spec.selector })) do
    all[r.metadata.name] = r
    last = math.max(last, r.revision)
    if kube.equal(r.data, data) then found = r end
  end
  if not found then
    local hash = kube.hash(data)
    found = stale.create({ apiVersion = "apps/v1", kind = "ControllerRevision", revision = last + 1,
      data = data,
      metadata = { name = owner.metadata.name .. "-" .. hash, namespace = owner.metadata.namespace,
        labels = kube.merge(owner("spec.selector.matchLabels") or {}, { [M.HASH] = hash }) } },
      function(there) return kube.is_owned_by(there, owner) end, ctx)
  elseif found.revision < last then
    found = stale.patch(found, { revision = last + 1 }, ctx)
  end
  all[found.metadata.name] = found
  return all, found
end

--- What pods of a revision carry as label.
function M.hash_of(revision) return revision.metadata.labels[M.HASH] end

--- Deletes the oldest ones that no pod has, beyond `limit`.
function M.prune(all, used, limit, ctx)
  local idle = {}
  for _, r in pairs(all) do
    if not used[M.hash_of(r)] then idle[#idle + 1] = r end
  end
  table.sort(idle, function(a, b) return a.revision < b.revision end)
  for i = 1, #idle - limit do ctx:delete(idle[i]) end
end

return M
