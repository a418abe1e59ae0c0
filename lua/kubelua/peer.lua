-- peer.lua - another cluster of this process, inside a reconcile: ctx:at("b") has the calls of a client
-- (client.lua), sent through that cluster's door by the run under way. They yield as ctx's do. All reads
-- come from the server: what that cluster's caches hold belongs to its own controllers.

local client = require "kubelua.client"
local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local run = core.run

local M = {}

-- What client.lua needs of a connection.
local Wire = {}

function Wire:namespace() return nil end -- luacheck: no self

function Wire:begin(op)
  local number = self.number
  return { poll = function() return true, run.call(op, number) end }
end

function Wire:resource(kind)
  local found = run.resource(kind, self.number)
  return { kind = kind, plural = found.plural, namespaced = found.namespaced,
    subresources = found.status and { "status" } or {} }
end

local function missing(self, name)
  core.blame(("ctx:at(%q) reads and writes objects; it has no %s: use a standalone program, with \z
    kube.connect()"):format(
    self.name, tostring(name)))
end

local mt = { __index = function(self, name) return Wire[name] or missing(self, name) end }

local peers = {}

--- The cluster of that name, for the run under way.
---@param name string
---@return kubelua.Client
function M.at(name)
  local names = run.clusters()
  if #names == 0 then
    core.blame("ctx:at: this process manages one cluster; start it with several: kubelua run --context a \z
      --context b")
  end
  for i, known in ipairs(names) do
    if known == name then
      peers[name] = peers[name] or client.over(setmetatable({ name = name, number = i - 1 }, mt))
      return peers[name]
    end
  end
  core.blame(("ctx:at: this process manages no cluster %s%s"):format(type(name) == "string"
    and ("%q"):format(name) or tostring(name),
    suggest.hint(name, names)))
end

return M
