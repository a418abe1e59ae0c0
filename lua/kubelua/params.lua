-- params.lua - what a controller's table says of its params: values that are defaults, and rules for what a
-- deployment may set. core/run/params.h holds values against rules.

local checks = require "kubelua.checks"
local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.Param   a rule: what a deployment may set
---@field type "string"|"integer"|"number"|"boolean"|"duration"|"list"|"object"|"secret"
---@field default? any       without it the deployment has to say it
---@field optional? boolean  ... or it stays absent
---@field min? number        of numbers
---@field max? number        of numbers
---@field enum? any[]        the values that it may have
---@field doc? string        one line for who deploys it

local TYPES = {
  string = true, integer = true, number = true, boolean = true, duration = true, list = true, object = true,
  secret = true,
}
local KEYS = { type = true, default = true, optional = true, min = true, max = true, enum = true, doc = true }

local fail = checks.fail

-- A table is a rule when its `type` is a type's name, or when it has a type and a default or a doc.
local function is_rule(x)
  return type(x) == "table" and type(x.type) == "string"
    and (TYPES[x.type] ~= nil or x.default ~= nil or x.doc ~= nil)
end

local function check_bound(self, where, rule, key)
  local bound = rule[key]
  if bound == nil then return end
  if rule.type ~= "integer" and rule.type ~= "number" then
    fail(self, "%s.%s: only numbers have a %s, got %s", where, key, key, rule.type)
  end
  if type(bound) ~= "number" then fail(self, "%s.%s must be a number, got %s", where, key, type(bound)) end
end

local function check_rule(self, where, rule)
  if not TYPES[rule.type] then
    fail(self, "%s: unknown type %q%s", where, rule.type, suggest.hint(rule.type, TYPES))
  end
  for _, key in ipairs(checks.sorted(rule)) do
    if not KEYS[key] then
      fail(self,
        "%s: unknown field '%s' of a rule%s (if this is a value: { type = \"object\", default = { ... } })",
        where, tostring(key), suggest.hint(key, KEYS))
    end
  end
  check_bound(self, where, rule, "min")
  check_bound(self, where, rule, "max")
  if rule.min and rule.max and rule.min > rule.max then
    fail(self, "%s: min is %s, and max %s", where, rule.min, rule.max)
  end
  if rule.enum ~= nil and (type(rule.enum) ~= "table" or #rule.enum == 0) then
    fail(self, "%s.enum must be a list of the values that it may have", where)
  end
  if rule.doc ~= nil and type(rule.doc) ~= "string" then
    fail(self, "%s.doc must be a string, got %s", where, type(rule.doc))
  end
  checks.boolean(self, where .. ".optional", rule.optional)
  if rule.type == "secret" and (rule.default ~= nil or rule.enum ~= nil) then
    fail(self, "%s: a secret cannot have %s: it is set at deployment", where,
      rule.default ~= nil and "default" or "enum")
  end
  if rule.optional and rule.default ~= nil then
    fail(self, "%s: a param with a default is already optional", where)
  end
end

local function default_of(rule)
  local empty = type(rule.default) == "table" and next(rule.default) == nil
  if not empty then return rule.default end
  return rule.type == "list" and core.array {} or core.object {}
end

--- Sets self.params, the values, and self.param_rules.
function M.declare(self, params)
  if params == nil then return end
  if type(params) ~= "table" then fail(self, "params must be a table, got %s", type(params)) end
  if params[1] ~= nil then fail(self, "params must be a table of names, got a list") end
  local values, rules = {}, {}
  for _, name in ipairs(checks.sorted(params)) do
    local x, where = params[name], ("params.%s"):format(tostring(name))
    if type(name) ~= "string" or name == "" or name:find "[.=/%s]" then
      fail(self, "%s: the name of a param must be a string without spaces, dots, = and /", where)
    end
    if is_rule(x) then
      check_rule(self, where, x)
      rules[name] = {
        type = x.type, min = x.min, max = x.max, enum = x.enum, doc = x.doc,
        required = x.default == nil and not x.optional,
      }
      values[name] = default_of(x)
    else
      values[name] = x
    end
  end
  self.params = core.value(next(values) == nil and core.object {} or values, "params")
  if next(rules) then self.param_rules = core.value(rules, "params") end
end

local function bounds(rule)
  if rule.min and rule.max then return (", %s to %s"):format(rule.min, rule.max) end
  if rule.min then return (", %s at least"):format(rule.min) end
  return rule.max and (", %s at most"):format(rule.max) or ""
end

local function described(name, value, rule)
  local words = { rule.type, bounds(rule) }
  if rule.enum then words[#words + 1] = ", one of " .. tostring(rule.enum) end
  if rule.required then words[#words + 1] = ", needed" end
  return ("%s%s (%s)%s"):format(name, value ~= nil and " = " .. core.encode(value) or "", table.concat(words),
    rule.doc and ": " .. rule.doc or "")
end

--- For `kubelua check`: say(word, text) for each line.
function M.describe(c, say)
  local plain = {}
  for name, value in pairs(c.params or {}) do
    if not (c.param_rules and c.param_rules[name]) then plain[name] = value end
  end
  if next(plain) then say("params", tostring(core.value(plain, "params"))) end
  for _, name in ipairs(c.param_rules and checks.sorted(c.param_rules) or {}) do
    say("param", described(name, c.params[name], c.param_rules[name]))
  end
end

return M
