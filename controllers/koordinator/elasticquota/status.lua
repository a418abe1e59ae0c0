-- status.lua - writes the results of tree.lua to an ElasticQuota: resource lists in annotations, and
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

-- The values for an object: { [what] = list }; nil is an empty list. The reserved quotas have no runtime, as
-- in Koordinator.
function M.carried(object)
  local out = { used = lists.of(fields.dig(object, "status", "used")) }
  for name, what in pairs(ANNOTATIONS) do
    if what ~= "runtime" or not quota.RESERVED[object.metadata.name] then
      out[what] = quota.annotated(object, name) or {}
    end
  end
  return out
end

-- The differences by value (zero and absent are equal): { annotations = { name = text }, used = list or
-- nil }, or nil.
function M.changes(object, info)
  local changes, any, carried = { annotations = {} }, false, M.carried(object)
  for name, what in pairs(ANNOTATIONS) do
    if carried[what] and not lists.same(carried[what], info[what]) then
      changes.annotations[name] = lists.json(info[what])
      any = true
    end
  end
  if not lists.same(carried.used, info.used) then
    changes.used = lists.texts(info.used)
    any = true
  end
  return any and changes or nil
end

-- Writes the differences to a draft of the object.
function M.write(draft, changes)
  for name, text in pairs(changes.annotations) do draft.metadata.annotations[name] = text end
  if changes.used then draft.status.used = changes.used end
end

return M
