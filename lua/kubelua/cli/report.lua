-- report.lua - results of a command on objects: a line for each as it happens, or with -o json one document
-- at the end. Failures are also on stderr, in both.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"

local M = {}

---@class kubelua.cli.Report
---@field code integer exit status of the command so far
---@field private env table
---@field private json boolean
---@field private rows table[]
local Report = {}
Report.__index = Report

---@return kubelua.cli.Report
function M.new(env)
  return setmetatable({ env = env, json = common.wants_json(env), code = 0, rows = {} }, Report)
end

-- { kind, namespace, name, result }: `thing` is { kind, namespace, name } as commands have it.
local function row(thing, result)
  return { kind = thing.kind, namespace = thing.namespace, name = thing.name, result = result }
end

--- `result` is one word: "created", "deleted". Returns the row of the document, for what else it shall have.
---@param thing { kind: string, namespace: string?, name: string? }
---@param result string
---@param fmt string
function Report:tell(thing, result, fmt, ...)
  local r = row(thing, result)
  self.rows[#self.rows + 1] = r
  if not self.json then print(fmt:format(...)) end
  return r
end

--- The same for a failure: the status becomes 1.
function Report:fail(thing, fmt, ...)
  self.code = 1
  local r = row(thing, "failed")
  r.error = fmt:format(...)
  self.rows[#self.rows + 1] = r
  common.complain(self.env, fmt, ...)
end

--- A line for people alone.
function Report:say(fmt, ...)
  if not self.json then print(fmt:format(...)) end
end

--- Prints the document; returns the exit status. `more`: what stands beside the objects in it.
---@param more table?
---@return integer
function Report:finish(more)
  if self.json then
    local document = { objects = core.array(self.rows) }
    for name, value in pairs(more or {}) do document[name] = value end
    common.print_json(document)
  end
  return self.code
end

return M
