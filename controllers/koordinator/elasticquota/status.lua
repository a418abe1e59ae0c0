-- status.lua - the numbers of tree.lua as an ElasticQuota carries them: resource lists in annotations, and
-- status.used.

local fields = require "fields"
local keys = require "elasticquota.keys"
local lists = require "lib.lists"
local quota = require "elasticquota.quota"

local M = {}

local ANNOTATIONS = {
  [keys.runtime] = "runtime",
  [keys.request] = "request",
  [keys.child_request] = "child_request",
  [keys.guaranteed] = "guaranteed",
  [keys.allocated] = "allocated",
  [keys.non_preemptible_request] = "non_preemptible_request",
  [keys.non_preemptible_used] = "non_preemptible_used",
}

-- What differs, by value, zero and absent being the same: { annotations = { name = text }, used = list or
-- nil }, or nil. The reserved quotas have no runtime written: Koordinator writes none.
function M.changes(object, info)
  local changes, any = { annotations = {} }, false
  for name, what in pairs(ANNOTATIONS) do
    local hidden = what == "runtime" and quota.RESERVED[object.metadata.name]
    if not hidden and not lists.same(quota.annotated(object, name) or {}, info[what]) then
      changes.annotations[name] = lists.json(info[what])
      any = true
    end
  end
  if not lists.same(lists.of(fields.dig(object, "status", "used")), info.used) then
    changes.used = lists.texts(info.used)
    any = true
  end
  return any and changes or nil
end

-- Puts them into a draft of the object.
function M.write(draft, changes)
  for name, text in pairs(changes.annotations) do draft.metadata.annotations[name] = text end
  if changes.used then draft.status.used = changes.used end
end

return M
