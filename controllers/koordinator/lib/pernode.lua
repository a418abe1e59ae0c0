-- pernode.lua - controllers of a kind that has one object for each node, with the node's name. The object is
-- created with the node, gets the spec of the policy, and is deleted after the node.
--   pernode.controllers { name = "nodeslo", kind = "slo.../NodeSLO", desired = function(node, old, ctx),
--     same = function(old, spec) }
-- `desired` returns the spec, or nil to change nothing; `old` is the existing spec, or nil. `same(old, spec)`
-- tells whether no write is needed.

local kube = require "kubelua"
local fields = require "fields"
local sloconfig = require "sloconfig"

local M = {}

local NODE = "v1/Node"

local function keeper(o)
  return kube.controller {
    name = o.name,
    resource = NODE,
    when = { "labels", "annotations" },
    fields = { "metadata" },
    namespaces = { sloconfig.NAMESPACE },
    watches = {
      [o.kind] = { "same-name", when = "generation" },
      [sloconfig.KIND] = sloconfig.wakes_all_nodes,
    },
    workers = 1,
    params = o.params,

    reconcile = function(node, ctx)
      local name = node.metadata.name
      local object = ctx:get(o.kind, name)
      local old = object and (fields.copy(object("spec")) or {})
      local spec = o.desired(node, old, ctx)
      if spec == nil or object and o.same(old, spec) then return end
      ctx:create_or_patch({ kind = o.kind, name = name }, function(draft) draft.spec = spec end)
    end,
  }
end

-- Koordinator deletes an object when its cache has no such node. Here the server is asked, too: the cache may
-- not show a new node yet.
local function sweeper(o)
  return kube.controller {
    name = o.name .. "-orphans",
    resource = o.kind,
    metadata = true,
    watches = { [NODE] = "same-name" },
    workers = 1,

    reconcile = function(object, ctx)
      local name = object.metadata.name
      if ctx:get(NODE, name) or ctx.live:get(NODE, name) then return end
      ctx:delete(o.kind, name, { uid = object.metadata.uid })
    end,
  }
end

function M.controllers(o) return { keeper(o), sweeper(o) } end

return M
