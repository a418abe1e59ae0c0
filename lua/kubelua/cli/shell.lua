-- shell.lua - kubelua shell: read, evaluate, print, on a cluster. Completion is in complete.lua.

local common = require "kubelua.cli.common"
local complete = require "kubelua.cli.complete"
local core = require "kubelua.core"
local kube = require "kubelua"
local printer = require "kubelua.cli.printer"
local suggest = require "kubelua.suggest"

local M = {}

M.options = {
  { "--execute", "CODE", "run this and end (may be repeated)", type = "list", brief = "-e" },
  { "--no-history", nil, "keep no history of the input", type = "flag" },
}

local HELP = [[
  get(kind, name)  get(kind, ns, name)   an object as YAML; get(kind) lists
  list(kind, { namespace=, labels=, fields=, limit= })    in the namespace; all = true: in every one
  watch(kind, { ... })                   a line for each change, until ^C
  create, update, apply, patch, patch_status, delete      as c:create and so on
  resources { ... }, resource(kind)      what the server has
  use(namespace)                         look there from now on; use() says where
  version()                              the server's
  c  kube  _                             the client, the library, the last result
  yaml(x)  json(x)                       the text of anything

  A line that begins with = or is an expression is printed. Tab completes kinds, names, fields.
  ^C ends what runs, ^D the shell.]]

-- ---------------------------------------------------------------- printing

local function age(o)
  local created = o("metadata.creationTimestamp")
  if type(created) ~= "string" then return "" end
  return common.span(math.max(os.time() - math.floor(core.time(created):unix()), 0))
end

local function state(o)
  if o("metadata.deletionTimestamp") then return "Terminating" end
  local phase = o("status.phase")
  if type(phase) == "string" then return phase end
  for _, condition in ipairs(o("status.conditions") or {}) do
    if condition("type") == "Ready" or condition("type") == "Available" then
      return (condition("status") == "True" and "" or "Not") .. condition.type
    end
  end
  return ""
end

local function is_object(x)
  return core.is_view(x) and not common.is_list(x) and type(x("metadata.name")) == "string"
end

-- A list of objects, or nil.
local function objects(x)
  local out = {}
  if type(x) ~= "table" and not core.is_view(x) then return nil end
  if type(x) == "table" and getmetatable(x) ~= nil and #x == 0 then return nil end
  for i = 1, #x do
    if not is_object(x[i]) then return nil end
    out[i] = x[i]
  end
  return #out > 0 and out or nil
end

local function print_objects(list)
  local rows, kinds, namespaces, states = {}, {}, false, false
  for _, o in ipairs(list) do
    kinds[o("kind") or ""] = true
    namespaces = namespaces or o("metadata.namespace") ~= nil
    states = states or state(o) ~= ""
  end
  local several = next(kinds, next(kinds)) ~= nil
  local header = {}
  local function column(name, wanted) if wanted then header[#header + 1] = { name = name } end end
  column("NAMESPACE", namespaces)
  column("KIND", several)
  column("NAME", true)
  column("STATE", states)
  column("AGE", true)
  for i, o in ipairs(list) do
    local row = {}
    if namespaces then row[#row + 1] = o("metadata.namespace") or "" end
    if several then row[#row + 1] = o("kind") or "" end
    row[#row + 1] = o.metadata.name
    if states then row[#row + 1] = state(o) end
    row[#row + 1] = age(o)
    rows[i] = row
  end
  printer.print(header, rows, { headers = true })
end

local function without_managed_fields(x)
  if not is_object(x) or x("metadata.managedFields") == nil then return x end
  local copy = core.copy(x)
  copy.metadata.managedFields = nil
  return copy
end

--- The text of a value as the shell shows it.
function M.text(x)
  if type(x) == "string" then return x end
  if core.is_error(x) then return tostring(x) end
  local meta = type(x) == "table" and getmetatable(x)
  if core.is_view(x) or type(x) == "table" and not (meta and (meta.__name or meta.__tostring)) then
    local ok, text = pcall(core.to_yaml, without_managed_fields(x))
    if ok then return (text:gsub("\n+$", "")) end
    if type(x) ~= "table" then return tostring(x) end
    -- A table that YAML cannot express: its fields, by name.
    local lines = {}
    for k, v in pairs(x) do lines[#lines + 1] = ("%s: %s"):format(tostring(k), tostring(v)) end
    table.sort(lines)
    return table.concat(lines, "\n")
  end
  return tostring(x)
end

-- Lists without an object -> what was asked for, which a list itself does not say.
local nothing = setmetatable({}, { __mode = "k" })

local function show(...)
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    local list = objects(x)
    if x ~= nil and nothing[x] and #x == 0 then
      print(nothing[x])
    elseif list then
      print_objects(list)
    elseif x ~= nil or select("#", ...) == 1 then
      print(M.text(x))
    end
  end
end

-- ---------------------------------------------------------------- what a line can name

local Shell = {}
Shell.__index = Shell

local VERBS = { "create", "update", "apply", "patch", "patch_status", "delete", "each", "resource",
  "resources", "version" }

local function scope(self, opts)
  local o = {}
  for k, v in pairs(opts or {}) do o[k] = v end
  local all = o.all
  o.all = nil
  if not all and o.namespace == nil then o.namespace = self.c:namespace() end
  return o
end

local function scoped(self, kind, opts)
  local o = scope(self, opts)
  if not self.c:resource(kind).namespaced then o.namespace = nil end
  return o
end

local function watching(self, kind, opts)
  local diff = require "kubelua.cli.diff"
  local known = {}
  for event, o in self.c:watch(kind, scoped(self, kind, opts)) do
    local key = (o("metadata.namespace") or "") .. "/" .. o.metadata.name
    local old = known[key]
    print(("%s %-8s %s%s"):format(os.date "%H:%M:%S", event, (key:gsub("^/", "")),
      old and "  " .. diff.text(old, o) or ""))
    io.stdout:flush()
    known[key] = event ~= "DELETED" and o or nil
  end
end

local function connect(self, namespace)
  local connection = {}
  for k, v in pairs(self.env.connect) do connection[k] = v end
  connection.namespace = namespace or connection.namespace
  self.c = kube.connect(connection)
  self.globals.c = self.c
end

local function use(self, namespace)
  if namespace ~= nil then
    local old = self.c
    connect(self, namespace)
    old:close()
  end
  return self.c:namespace()
end

local function globals(self)
  local g = setmetatable({}, { __index = _G })
  g._G, g.kube = g, kube
  function g.help() print(HELP) end
  function g.get(kind, a, ...)
    if a == nil then return g.list(kind) end
    return self.c:get(kind, a, ...)
  end
  function g.list(kind, opts)
    local o = scoped(self, kind, opts)
    local list = self.c:list(kind, o)
    if #list == 0 then
      nothing[list] = ("no %s%s"):format(self.c:resource(kind).plural, o.namespace and " in namespace "
        .. o.namespace or "")
    end
    return list
  end
  function g.watch(kind, opts) return watching(self, kind, opts) end
  function g.use(namespace) return use(self, namespace) end
  function g.yaml(x) return type(x) == "string" and core.yaml(x, "the text") or core.to_yaml(x) end
  function g.json(x) return core.encode(x, true) end
  for _, verb in ipairs(VERBS) do
    g[verb] = function(...) return self.c[verb](self.c, ...) end
  end
  for _, name in ipairs { "qty", "duration", "time", "try", "copy" } do g[name] = kube[name] end
  return g
end

-- ---------------------------------------------------------------- lines

-- A local would be lost after its line.
local function lasting(text)
  local rest = text:match "^%s*local%s+(function%s.*)$" or text:match "^%s*local%s+([%a_][%w_,%s]*=.*)$"
  return rest or text
end

--- A chunk from the typed text, or nil and whether more is expected, and the message. `line` is the number of
--- its first line (1).
function M.compile(text, env, line)
  text = lasting(text:gsub("^%s*=", "return "))
  local above = ("\n"):rep((line or 1) - 1)
  local chunk, as_value = load(above .. "return " .. text, "=input", "t", env)
  if chunk then return chunk end
  local fn, why = load(above .. text, "=input", "t", env)
  if fn then return fn end
  if why:find "<eof>$" then return nil, true, why end
  -- Text that does not begin as a statement is an expression.
  local near = why:match "near '(.-)'$"
  local begins = near and text:match("^%s*()" .. near:gsub("%p", "%%%0"))
  return nil, false, begins and as_value or why
end

-- "; did you mean 'list'?" after Lua's error about a missing global.
local function meant(self, text)
  local name = text:match "a nil value %(global '([%w_]+)'%)"
  if not name then return "" end
  local names = {}
  for _, set in ipairs { self.globals, _G } do
    for known in pairs(set) do if type(known) == "string" then names[#names + 1] = known end end
  end
  table.sort(names)
  local near = suggest.nearest(name, names)
  return near and ("; did you mean '%s'?"):format(near) or ""
end

local function message(self, err)
  if type(err) == "table" and not err.usage and not getmetatable(err) then return M.text(err) end
  local text = common.message(err)
  if text:find "interrupted$" then return "interrupted" end
  return (text:gsub("^input:", "line ")) .. meant(self, text)
end

function Shell:prompt() return self.c:namespace() .. "> " end

-- Runs a chunk under ^C; true when it went well.
local function run(self, chunk)
  local out = table.pack(self.terminal:run(chunk))
  if out[1] then
    if out.n > 1 then
      local shown = table.pack(self.terminal:run(show, table.unpack(out, 2, out.n)))
      if not shown[1] then common.remark("%s", message(self, shown[2])) end
      rawset(self.globals, "_", out[2])
    end
    io.stdout:flush()
    return true
  end
  common.remark("%s", message(self, out[2]))
  return false
end

-- The next statement: its text, false when it was aborted, nil at the end.
local function statement(self)
  local text, first
  while true do
    local line = self.terminal:read(text and "      >> " or self:prompt())
    self.lines = line and (self.lines or 0) + 1 or self.lines
    if not line then
      if line == nil and text then
        local _, _, why = M.compile(text, self.globals, first)
        return text, why
      end
      return line
    end
    -- Line numbers matter for a file, not for typed lines.
    first = text and first or not self.terminal:edits() and self.lines or 1
    text = text and text .. "\n" .. line or line
    if text:find "%S" then
      local chunk, more, why = M.compile(text, self.globals, first)
      if chunk or not more then return text, why, chunk end
    else
      text = nil
    end
  end
end

local function loop(self)
  local good = true
  while true do
    local text, why, chunk = statement(self)
    if text == nil then return good end
    if text then
      self.terminal:remember((text:gsub("\n", " ")))
      if not chunk then
        common.remark("%s", message(self, why))
        good = false
      elseif not run(self, chunk) then
        good = false
      end
    end
  end
end

--- Runs -e, or the typed or read statements; returns the command's status. `self` has env, globals, terminal,
--- prompt(self), and greeting(self) for a person.
function M.converse(self)
  local good = true
  if self.env.options.execute then
    for _, text in ipairs(self.env.options.execute) do
      local chunk, _, why = M.compile(text, self.globals)
      if not chunk then error(message(self, why), 0) end
      good = run(self, chunk) and good
    end
  else
    if self.terminal:edits() then print(self:greeting()) end
    good = loop(self)
    if self.terminal:edits() then good = true end
  end
  self.terminal:close()
  return good and 0 or 1
end

-- $XDG_STATE_HOME/kubelua/history
local function history(name)
  local home = os.getenv "HOME"
  local state_home = os.getenv "XDG_STATE_HOME" or home and home .. "/.local/state"
  return state_home and state_home .. "/kubelua/" .. name
end

--- A terminal with a history of its own, which only its owner can read.
function M.terminal(env, name, completer)
  local file = env.interactive and not env.options.no_history and history(name) or nil
  if file then env.make_dir((file:gsub("/[^/]*$", "")), true) end
  return env.terminal(file, completer)
end

function Shell:greeting()
  return ("kubelua %s on %s, namespace %s; help() lists the functions"):format(self.env.version,
    self.c:server(), self.c:namespace())
end

function M.run(env)
  if #env.words > 0 then common.usage("takes no arguments, got %s (give code with -e)", env.words[1]) end
  local self = setmetatable({ env = env }, Shell)
  self.globals = globals(self)
  connect(self)
  self.terminal = M.terminal(env, "history", function(head) return complete.at(self, head) end)
  local status = M.converse(self)
  self.c:close()
  return status
end

return M
