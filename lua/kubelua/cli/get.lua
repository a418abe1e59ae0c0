-- get.lua - kubelua get: objects as the server's table, as YAML or JSON, or one value of each; with --watch,
-- also their changes.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local jsonpath = require "kubelua.cli.jsonpath"
local printer = require "kubelua.cli.printer"

local M = {}

M.options = {
  { "--all-namespaces", nil, "in every namespace", type = "flag", brief = "-A" },
  { "--selector", "SELECTOR", "only objects with these labels: app=web,tier!=db", brief = "-l" },
  { "--field-selector", "SELECTOR", "only objects with these fields: spec.nodeName=n1" },
  { "--output", "FORMAT", "yaml, json, name, wide, path=PATH, jsonpath=TEMPLATE, \z
    custom-columns=HEADER:PATH,...", brief = "-o",
    values = "yaml json name wide path= jsonpath= custom-columns=" },
  { "--watch", nil, "keep printing changes of the objects", type = "flag", brief = "-w" },
  { "--show-labels", nil, "a column with the labels", type = "flag" },
  { "--show-managed-fields", nil, "YAML and JSON with metadata.managedFields", type = "flag" },
  { "--no-headers", nil, "omit the header line", type = "flag" },
  { "--sort-by", "PATH", "sort by this field: .metadata.creationTimestamp" },
  { "--limit", "N", "maximum number of objects of each kind", type = "count" },
  { "--ignore-not-found", nil, "a missing named object is not a failure", type = "flag" },
}

-- "jsonpath={.x}" -> "jsonpath", "{.x}"
local function format_of(text)
  if text == nil then return "table" end
  local word, rest = text:match "^([%a-]+)=(.*)$"
  if rest == "" then
    common.usage("--output %s needs the part to show: path=spec.nodeName, jsonpath={.spec.nodeName}, \z
      custom-columns=NAME:.metadata.name", text)
  end
  return word or text, rest
end

-- ---------------------------------------------------------------- which objects

local function query(env, target, ns)
  local o = env.options
  return { namespace = ns, labels = o.selector, fields = o.field_selector,
    limit = o.limit ~= 0 and o.limit or nil, names = target.names }
end

local function named(q, name)
  return { namespace = q.namespace, fields = (q.fields and q.fields .. "," or "") .. "metadata.name="
    .. name }
end

-- Sorting by any field needs complete objects beside the cells.
local function for_table(env, opts)
  opts.include = env.options.sort_by and "Object" or nil
  return opts
end

local function listed(q)
  return { namespace = q.namespace, labels = q.labels, fields = q.fields, limit = q.limit }
end

-- Calls fn for each request of one kind: once for a list, once for each name.
local function each_query(part, fn)
  if not part.query.names then return fn(listed(part.query)) end
  for _, name in ipairs(part.query.names) do fn(named(part.query, name), name) end
end

local function not_there(env, part, name)
  if env.options.ignore_not_found then return end
  env.code = 1
  common.complain(env, "%s is not there%s", common.called(part.resource, name),
    part.query.namespace and ", in namespace " .. part.query.namespace or "")
end

local function parts_of(c, env, targets)
  local parts = {}
  for i, target in ipairs(common.expand(c, targets)) do
    local r = c:resource(target.kind)
    if target.names and env.options.all_namespaces and r.namespaced then
      common.usage "-A and names exclude each other: a name is in one namespace"
    end
    if target.names and env.options.selector then common.usage "a name and a selector exclude each other" end
    local ns = common.namespace(c, env, r)
    parts[i] = { resource = r, kind = common.kind_text(r), query = query(env, target, ns) }
  end
  return parts
end

-- ---------------------------------------------------------------- whole objects

local function bare(o)
  if o("metadata.managedFields") == nil then return o end
  local copy = core.copy(o)
  copy.metadata.managedFields = nil
  return copy
end

local function objects(c, env, parts)
  local all, single = {}, #parts == 1 and parts[1].query.names and #parts[1].query.names == 1
  for _, part in ipairs(parts) do
    if part.query.names then
      for _, name in ipairs(part.query.names) do
        local o = common.get(c, part.kind, part.query.namespace, name)
        if o then all[#all + 1] = o else not_there(env, part, name) end
      end
    else
      local items = c:list(part.kind, listed(part.query))
      table.move(items, 1, #items, #all + 1, all)
    end
  end
  local by = env.options.sort_by
  if by then printer.sort(all, function(o) return jsonpath.walk(jsonpath.path(by), o)[1] end) end
  return all, single
end

local PRINT = {}

local function document(env, all, single)
  local items = core.array {}
  for i, o in ipairs(all) do items[i] = env.options.show_managed_fields and o or bare(o) end
  if single then return items[1] end
  return core.decode(core.encode { apiVersion = "v1", kind = "List", metadata = { resourceVersion = "" },
    items = items })
end

function PRINT.yaml(env, all, single)
  local d = document(env, all, single)
  if d ~= nil then io.write((core.to_yaml(d):gsub("\n*$", "\n"))) end
end

function PRINT.json(env, all, single)
  local d = document(env, all, single)
  if d ~= nil then io.write((core.encode(d, true):gsub("\n*$", "\n"))) end
end

function PRINT.path(_, all, _, path)
  local steps = jsonpath.path(path)
  for _, o in ipairs(all) do
    for _, value in ipairs(jsonpath.walk(steps, o)) do io.write(jsonpath.text(value), "\n") end
  end
end

function PRINT.jsonpath(env, all, single, template)
  local d = document(env, all, single)
  local compiled = jsonpath.template(template)
  if d == nil then return end
  local text = jsonpath.render(compiled, core.is_view(d) and d or core.decode(core.encode(d)))
  io.write(text)
  if env.tty then io.write "\n" end
end

PRINT["custom-columns"] = function(env, all, _, text)
  local columns = {}
  for header, path in (text .. ","):gmatch "([^:,]+):(.-)," do
    columns[#columns + 1] = { name = header, steps = jsonpath.path(path) }
  end
  if #columns == 0 then
    common.usage "custom-columns are HEADER:PATH,...: NAME:.metadata.name,NODE:.spec.nodeName"
  end
  local rows = {}
  for i, o in ipairs(all) do
    rows[i] = {}
    for k, column in ipairs(columns) do
      local texts = {}
      for n, value in ipairs(jsonpath.walk(column.steps, o)) do texts[n] = jsonpath.text(value) end
      rows[i][k] = #texts > 0 and table.concat(texts, ",") or "<none>"
    end
  end
  printer.print(columns, rows, { headers = not env.options.no_headers })
end

function PRINT.name(c, env, parts)
  for _, part in ipairs(parts) do
    each_query(part, function(opts, name)
      local some = false
      for o in c:each(part.kind, opts) do
        some = true
        print(common.called(part.resource, o.metadata.name))
      end
      if name and not some then not_there(env, part, name) end
    end)
  end
end

-- ---------------------------------------------------------------- tables

-- The rows of a part, sorted if wished, and the columns.
local function rows_of(c, env, part)
  local columns, rows = nil, {}
  each_query(part, function(opts, name)
    local t = printer.fetch(c, part.kind, for_table(env, opts))
    columns = columns or t.columns
    if name and #t.rows == 0 then not_there(env, part, name) end
    table.move(t.rows, 1, #t.rows, #rows + 1, rows)
  end)
  local by = env.options.sort_by
  if by then
    local path = jsonpath.path(by)
    printer.sort(rows, function(row) return jsonpath.walk(path, row.object)[1] end)
  end
  return columns, rows
end

local function look(env, part, several)
  local o = env.options
  return {
    wide = env.format == "wide", headers = not o.no_headers, labels = o.show_labels,
    namespaces = o.all_namespaces and part.resource.namespaced,
    prefix = several and function(name) return common.called(part.resource, name) end or nil,
  }
end

local function tables(c, env, parts)
  local printed = 0
  for _, part in ipairs(parts) do
    local columns, rows = rows_of(c, env, part)
    if #rows > 0 then
      if printed > 0 then print() end
      local header, lines = printer.layout(columns, rows, look(env, part, #parts > 1))
      printer.print(header, lines, { headers = not env.options.no_headers })
      printed = printed + 1
    end
  end
  if printed == 0 and env.code == 0 then
    local part = parts[1]
    local where = part.query.namespace and #parts == 1
      and (" in namespace %s (-A searches all)"):format(part.query.namespace) or ""
    common.remark("no %s%s", #parts == 1 and common.plural(part.resource) or "such objects", where)
  end
end

-- ---------------------------------------------------------------- watching

local function key(o) return (o("metadata.namespace") or "") .. "/" .. o.metadata.name end

local Rows = {}
Rows.__index = Rows

-- All rows; after a relist only the changed ones.
function Rows:look()
  local t = printer.fetch(self.c, self.part.kind, self.opts)
  local fresh, known = {}, {}
  for _, row in ipairs(t.rows) do
    local k = key(row.object)
    known[k] = row
    if not self.known[k] or self.known[k].cells ~= row.cells then fresh[#fresh + 1] = row end
  end
  self.known, self.columns = known, t.columns
  self.stream:rows(printer.layout(t.columns, fresh, self.how))
  return t.version
end

-- A row is the server's present view of the object; for a deleted one, its last.
function Rows:follow(version)
  local o = self.opts
  for event, object in self.c:watch(self.part.kind, {
    namespace = o.namespace, labels = o.labels, fields = o.fields, resource_version = version,
    metadata_only = true,
  }) do
    local k = key(object)
    if event ~= "DELETED" then
      local t = printer.fetch(self.c, self.part.kind,
        named({ namespace = object("metadata.namespace") }, object.metadata.name))
      self.known[k] = t.rows[1] or self.known[k]
    end
    if self.known[k] then self.stream:rows(printer.layout(self.columns, { self.known[k] }, self.how)) end
    if event == "DELETED" then self.known[k] = nil end
  end
end

local function watch(c, env, part)
  if part.query.names and #part.query.names > 1 then
    common.usage "--watch takes one object, or all of a kind"
  end
  local opts = part.query.names and named(part.query, part.query.names[1]) or listed(part.query)
  opts.limit = nil
  local rows = setmetatable({
    c = c, part = part, opts = opts, known = {}, how = look(env, part, false),
    stream = printer.stream(not env.options.no_headers),
  }, Rows)
  while true do
    local _, err = pcall(rows.follow, rows, rows:look())
    -- The server's history has expired: a relist shows the missed changes.
    if not (core.is_error(err) and err.code == 410) then error(err, 0) end
  end
end

local function watch_objects(c, env, part, show)
  local opts = part.query.names and named(part.query, part.query.names[1]) or listed(part.query)
  opts.limit = nil
  for _, o in c:watch(part.kind, opts) do show(o) end
end

function M.run(env)
  env.code = 0
  local format, argument = format_of(env.options.output)
  env.format = format
  local targets = common.targets(env.words)
  local c <close> = common.connect(env)
  local parts = parts_of(c, env, targets)
  if env.options.watch then
    if #parts > 1 then common.usage "--watch takes one kind" end
    if format == "table" or format == "wide" then return watch(c, env, parts[1]) end
    if format == "name" then
      return watch_objects(c, env, parts[1], function(o)
        print(common.called(parts[1].resource, o.metadata.name))
        io.stdout:flush()
      end)
    end
    return watch_objects(c, env, parts[1], function(o)
      if format == "yaml" then print "---" end
      PRINT[format](env, { o }, true, argument)
      io.stdout:flush()
    end)
  end
  if format == "table" or format == "wide" then
    tables(c, env, parts)
  elseif format == "name" then
    PRINT.name(c, env, parts)
  else
    local all, single = objects(c, env, parts)
    PRINT[format](env, all, single, argument)
  end
  return env.code
end

return M
