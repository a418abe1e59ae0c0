-- compute.lua - computations on objects without a server: patches between two of them, names, percentages. As
-- client-go's strategicpatch, apimachinery's validation and intstr.

local core = require "kubelua.core"
local options = require "kubelua.options"
local suggest = require "kubelua.suggest"

local M = {}

--- The merge patch that turns `from` into `to`.
---@param from kubelua.view|table
---@param to kubelua.view|table
---@return kubelua.view
function M.merge_patch(from, to) return core.merge_patch(from, to) end

--- The strategic merge patch that turns `from` into `to`, objects of one built-in kind. With `original` it is
--- a three-way patch: the changes from original to `to` are applied to `from`, and changes of others stay; if
--- both changed the same field it is a conflict, unless `overwrite`.
---@param from kubelua.view|table
---@param to kubelua.view|table
---@param opts {original: kubelua.view|table|nil, overwrite: boolean?}?
---@return kubelua.view
function M.strategic_patch(from, to, opts)
  opts = options.check("kube.strategic_patch", opts, { original = "table", overwrite = "boolean" })
  return core.strategic_patch(from, to, opts.original, opts.overwrite)
end

---@alias kubelua.NameRule
---| "dns1123_label"
---| "dns1123_subdomain"
---| "dns1035_label"
---| "qualified"
---| "label_value"
---| "port"
---| "config_map_key"
---| "env_var"
---| "percent"
---| "annotation_key"
---| "ip"
---| "cidr"

--- Why a text is not a valid name of that kind, "must consist of ..."; nil when it is.
---@param rule kubelua.NameRule
---@param text string
---@return string?
function M.name_problem(rule, text)
  local problem, known = core.name_problem(rule, text)
  if known == false then
    core.blame(("kube.name_problem: unknown rule '%s'%s"):format(rule,
      suggest.hint(rule, core.name_rules())))
  end
  return problem
end

--- A new name: the base, cut to fit, and five random characters, as generateName makes it.
---@param base string
---@return string
function M.generate_name(base) return core.generate_name(base) end

--- A share of `total`: a whole number stays, "25%" is that part of it, rounded down, or up with `up`.
--- For fields such as maxUnavailable.
---@param x integer|string|nil
---@param total integer
---@param up "up"|nil
---@return integer
function M.share(x, total, up)
  if up ~= nil and up ~= "up" then
    core.blame(("kube.share: the rounding must be \"up\" or absent, got %s"):format(tostring(up)))
  end
  return core.share(x == nil and core.null or x, total, up == "up")
end

return M
