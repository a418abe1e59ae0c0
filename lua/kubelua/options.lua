-- options.lua - tables of named options: an unknown name, or a value of the wrong type, is the caller's
-- mistake and says so.

local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

-- What type() calls the values that each word allows.
local ALLOWS = {
  string = { string = true },
  path = { string = true, boolean = true },
  integer = { number = true }, number = { number = true },
  handler = { ["function"] = true, string = true },
  boolean = { boolean = true },
  table = { table = true, userdata = true },
  duration = { string = true, number = true },
  selector = { string = true, table = true, userdata = true },
  index = { string = true, table = true },
  value = { string = true, table = true, boolean = true },
  ["function"] = { ["function"] = true },
  input = { string = true, ["function"] = true },
  moment = { string = true, number = true, userdata = true },
}

local A = {
  integer = "an integer", path = "a path, or false for none", index = "a name or a table { name = value }",
  value = "a string or a list of strings",
  input = "a string or a function that returns strings", handler = "a function or a string",
}

--- Checks `options` against `known`, which maps each name to a word of ALLOWS. nil passes as an empty table.
---@param what string  how messages call the call: "c:list"
---@param options table?
---@param known table<string, string>
---@return table
function M.check(what, options, known)
  if options == nil then return {} end
  if type(options) ~= "table" then
    core.blame(("%s: expected a table of options, got %s"):format(what, type(options)))
  end
  for name, value in pairs(options) do
    local word = known[name]
    if not word then
      core.blame(("%s: unknown option '%s'%s"):format(what, tostring(name), suggest.hint(name, known)))
    elseif not ALLOWS[word][type(value)] or word == "integer" and math.type(value) ~= "integer" then
      core.blame(("%s: option '%s' must be %s, got %s"):format(what, name, A[word] or "a " .. word,
        type(value)))
    end
  end
  return options
end

--- What `resource_version` says; `resourceVersion`, as the object has it, is the same.
---@return string?
function M.version(opts)
  if opts.resource_version ~= nil then return opts.resource_version end
  return opts.resourceVersion
end

return M
