-- watch.lua - kubelua watch: a line for every event, with the changes.
--
-- The initial state comes from a list, so that the first change can be compared; when the server's history
-- has expired there is another list, and missed changes appear as differences.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local diff = require "kubelua.cli.diff"
local object = require "kubelua.object"

local M = {}

M.options = {
  { "--all-namespaces", nil, "in every namespace", type = "flag", brief = "-A" },
  { "--selector", "SELECTOR", "only objects with these labels: app=web,tier!=db", brief = "-l" },
  { "--field-selector", "SELECTOR", "only objects with these fields: spec.nodeName=n1" },
  { "--initial", nil, "start with a line for each existing object", type = "flag" },
  { "--events", "N", "stop after this many lines", type = "count" },
  { "--output", "FORMAT", "plain, or json: one object per line (plain)", brief = "-o",
    values = "plain json" },
}

local function key(o)
  local ns = o("metadata.namespace")
  return (ns and ns .. "/" or "") .. o("metadata.name")
end

local Printer = {}
Printer.__index = Printer

local function json_line(event, o, old)
  print(core.encode(core.value({ time = os.date "!%Y-%m-%dT%H:%M:%SZ", type = event, kind = object.kind_of(o),
    namespace = o("metadata.namespace"), name = o("metadata.name"),
    changes = old and core.array(diff.shown(old, o)) or nil }, "the line")))
end

-- `old`: the previous object, where `text` has the differences.
function Printer:line(event, o, text, old)
  if self.json then
    json_line(event, o, old)
  else
    print(common.cell(("%s %-8s %s%s%s"):format(os.date "%H:%M:%S", event, self.prefix, key(o),
      text and text ~= "" and "  " .. text or "")))
  end
  io.stdout:flush()
  self.left = self.left and self.left - 1
  return self.left == 0
end

-- Handles an object; true when the output is complete.
function Printer:now(o)
  local k = key(o)
  local old = self.known[k]
  self.known[k] = o
  if not old then return self:line("ADDED", o) end
  if old.metadata.uid ~= o.metadata.uid then return self:line("REPLACED", o, diff.text(old, o), old) end
  local text = diff.text(old, o)
  if text == "" then
    if old == o or old.metadata.resourceVersion == o.metadata.resourceVersion then return false end
    text = "(only bookkeeping: resourceVersion, managedFields)"
  end
  return self:line("MODIFIED", o, text, old)
end

function Printer:gone(o)
  self.known[key(o)] = nil
  return self:line("DELETED", o)
end

local function list(c, kind, opts, printer, silent)
  local items, version = c:list(kind, { namespace = opts.namespace, labels = opts.labels,
    fields = opts.fields })
  local missing = {}
  for k, o in pairs(printer.known) do missing[k] = o end
  for _, o in ipairs(items) do
    missing[key(o)] = nil
    if silent then
      printer.known[key(o)] = o
    elseif printer:now(o) then
      return nil
    end
  end
  for _, o in pairs(missing) do
    if printer:gone(o) then return nil end
  end
  return version, #items
end

local function follow(c, kind, opts, printer)
  for event, o in c:watch(kind, opts) do
    if event == "DELETED" then
      if printer:gone(o) then return true end
    elseif printer:now(o) then
      return true
    end
  end
end

function M.run(env)
  local targets = common.targets(env.words)
  if #targets > 1 or targets[1].names and #targets[1].names > 1 then
    common.usage "give one kind, and at most one name"
  end
  local c <close> = common.connect(env)
  local r = c:resource(targets[1].kind)
  local kind = common.kind_text(r)
  local fields = env.options.field_selector
  if targets[1].names then
    fields = (fields and fields .. "," or "") .. "metadata.name=" .. targets[1].names[1]
  end
  local opts = { namespace = common.namespace(c, env, r), labels = env.options.selector, fields = fields }
  local printer = setmetatable({ known = {}, prefix = "", left = env.options.events,
    json = common.wants_json(env) }, Printer)
  if printer.left == 0 then return 0 end
  local version, n = list(c, kind, opts, printer, not env.options.initial)
  if not version then return 0 end
  common.remark("watching %s%s (%d now)", common.plural(r),
    opts.namespace and " in namespace " .. opts.namespace or "", n)
  while true do
    opts.resource_version = version
    local ok, done = pcall(follow, c, kind, opts, printer)
    if ok and done then return 0 end
    if not ok then
      if not (core.is_error(done) and done.code == 410) then error(done, 0) end
      version = list(c, kind, opts, printer)
      if not version then return 0 end
    end
  end
end

return M
