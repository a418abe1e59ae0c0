-- rbac_source.lua - what a script's text says about the requests it makes: calls of ctx, and effects in
-- results, with a kind that is written there, or the reconciled object itself. What it cannot know it says,
-- with the line.

local budget = require "kubelua.reader.budget"
local result = require "kubelua.result"
local tree = require "kubelua.reader.tree"
local values = require "kubelua.reader.values"

local M = {}

local CSR = "certificates.k8s.io/v1/CertificateSigningRequest"

-- The call's word -> verbs, and on which subresource; `exact`: a read is of the subresource, too.
local CALLS = {
  create = { "create" }, update = { "update" }, delete = { "delete" }, delete_all = { "deletecollection" },
  apply = { "create", "patch" },
  patch = { "get", "patch" }, patch_status = { "get", "patch", sub = "status" },
  update_status = { "update", sub = "status" }, apply_status = { "patch", sub = "status" },
  create_or_update = { "get", "create", "update" }, create_or_patch = { "get", "create", "patch" },
  add_finalizer = { "get", "patch" }, remove_finalizer = { "get", "patch" },
  adopt = { "patch" }, release = { "patch" }, claim = { "patch" },
  evict = { "create", sub = "eviction", kind = "v1/Pod" },
  bind = { "create", sub = "binding", kind = "v1/Pod" },
  token = { "create", sub = "token", kind = "v1/ServiceAccount" },
  scale = { "get", "patch", sub = "scale", exact = true }, get_scale = { "get", sub = "scale", exact = true },
  approve = { "get", "update", sub = "approval", kind = CSR },
  deny = { "get", "update", sub = "approval", kind = CSR },
  finalize = { "get", "update", sub = "finalize", kind = "v1/Namespace" },
}
local LISTS = { list = true, owned = true, each = true }
local LIVE = { get = { "get", exact = true }, list = { "list" }, each = { "list" } }

local EVENT = "events.k8s.io/v1/Event"
local EVENT_VERBS = { "create", "patch" }
local EFFECTS = { "apply", "delete" }
local EFFECT_VERBS = { apply = { "create", "patch" }, delete = { "delete" } }

local function is_named(e, name) return e.t == "name" and e.name == name end

-- One reading of a text, `r`: program (reader.values), resources (the reconciled kinds), subjects (names that
-- hold their objects), add(what is asked) and unknown(line, what).

-- The one text that an expression is, or nil.
local function text_of(r, e)
  local texts, whole = r.program:texts(e)
  return whole and #texts == 1 and texts[1] or nil
end

-- The kinds that a call may mean: a list without doubles. `whole` is false if there may be others, `subject`
-- is true if it may be the reconciled object, and `seen` has the expressions that said so.
local function no_kinds() return { whole = true, has = {}, seen = {} } end

-- The values of an expression that were not looked at yet: a function may call itself with what it read.
local function fresh_values(r, e, out)
  local list = {}
  for _, v in ipairs(r.program:values(e)) do
    if not out.seen[v] then list[#list + 1] = v end
    out.seen[v] = true
  end
  return list
end

local function add_kind(out, kind)
  if out.has[kind] then return end
  out.has[kind] = true
  out[#out + 1] = kind
end

local kinds_of

-- Adds the kinds of the objects in a list: of ctx:list, ctx:owned, ctx:each and their like.
local function add_kinds_in(r, e, out)
  for _, v in ipairs(fresh_values(r, e, out)) do
    if v.t == "method" and LISTS[v.name] and v.args[1] then
      kinds_of(r, v.args[1], out)
    else
      out.whole = false
    end
  end
end

-- Adds kind and apiVersion of a table.
local function add_kind_of_table(r, t, out)
  local kind, api = tree.field(t, "kind"), tree.field(t, "apiVersion")
  if not kind then
    out.whole = false
    return
  end
  local kinds, whole = r.program:texts(kind)
  local apis = api and r.program:texts(api) or {}
  out.whole = out.whole and whole
  for _, text in ipairs(kinds) do
    if text:find("/", 1, true) then
      add_kind(out, text)
    elseif #apis == 1 then
      add_kind(out, apis[1] .. "/" .. text)
    else
      out.whole = false
    end
  end
end

-- Adds the kinds of the value of a loop's name: an object of a list.
local function add_kinds_of_loop(r, name, out)
  local from, place = table.unpack(name.def and not name.def.set and name.def.each or {})
  local pairwise = from and from.t == "call" and is_named(from.fn, "ipairs")
  if from and place == (pairwise and 2 or 1) then
    add_kinds_in(r, pairwise and from.args[1] or from, out)
  elseif r.subjects[name.name] then
    out.subject = true
  else
    out.whole = false
  end
end

-- Adds the kinds that an argument says: a text, kind and apiVersion of a table, an object that was read, one
-- of a list, one from a template, the reconciled one.
function kinds_of(r, e, out)
  for _, v in ipairs(fresh_values(r, e, out)) do
    local text = v.t ~= "table" and text_of(r, v)
    if text then
      add_kind(out, text)
    elseif v.t == "table" then
      add_kind_of_table(r, v, out)
    elseif v.t == "method" and v.name == "get" and v.args[1] then
      kinds_of(r, v.args[1], out)
    elseif v.t == "index" then
      add_kinds_in(r, v.obj, out)
    elseif v.t == "name" then
      add_kinds_of_loop(r, v, out)
    elseif v.t == "call" and v.fn.t == "index" and tree.text(v.fn.key) == "from_template" and v.args[2] then
      kinds_of(r, v.args[2], out)
    else
      out.whole = false
    end
  end
  return out
end

-- An argument for people.
local function shown(e)
  if not e then return "" end
  if e.t == "name" then return e.name end
  if e.t == "index" and e.key.t == "string" then return shown(e.obj) .. "." .. e.key.value end
  if e.t == "call" then return shown(e.fn) .. "(...)" end
  local kind = tree.field(e, "kind")
  if kind then return ("{ kind = %s }"):format(shown(kind)) end
  return "..."
end

-- Names under which functions of the text get the reconciled object.
local function subjects_of(list)
  local out = {}
  local function take(name, value)
    local fn = name and (name:find "reconcile$" or name == "finalize") and tree.behind(value)
    local first = fn and fn.t == "function" and fn.params[1]
    if first then out[first.name] = true end
  end
  tree.each(list, function(node)
    for _, item in ipairs(node.t == "table" and node.items or {}) do take(item.name, item.value) end
    for i, def in ipairs(node.t == "local" and node.defs or {}) do take(def.name, node.values[i]) end
  end)
  return out
end

-- After a conflict the object itself is read again, whichever subresource is written.
local function with_reads(add)
  return function(need)
    if not need.subresource or need.exact then return add(need) end
    local below = {}
    for _, v in ipairs(need.verbs) do
      if v == "get" then
        add { kind = need.kind, verbs = { "get" }, line = need.line }
      else
        below[#below + 1] = v
      end
    end
    add { kind = need.kind, verbs = below, subresource = need.subresource, line = need.line }
  end
end

local function each_resource(r, verbs, sub, line)
  for _, kind in ipairs(r.resources) do
    r.add { kind = kind, verbs = verbs, subresource = sub, exact = verbs.exact, line = line }
  end
end

-- The verbs on the `subresource`, and of the kind `of`, that the options of a call name.
local function aimed(r, verbs, node, word)
  for i = 2, #node.args do
    for _, opts in ipairs(r.program:values(node.args[i])) do
      local sub, of = tree.field(opts, "subresource"), tree.field(opts, "of")
      if sub then
        local said = text_of(r, sub)
        if not said then
          r.unknown(node.line, ("the subresource of %s(%s)"):format(word, shown(node.args[1])))
        end
        return table.move(verbs, 1, #verbs, 1, { sub = said or verbs.sub, exact = verbs.exact,
          kind = of and text_of(r, of) or verbs.kind })
      end
    end
  end
  return verbs
end

local function call(r, verbs, node, word)
  local first, kinds = node.args[1], no_kinds()
  verbs = aimed(r, verbs, node, word)
  if verbs.kind then
    add_kind(kinds, verbs.kind)
  elseif first then
    kinds_of(r, first, kinds)
  end
  for _, kind in ipairs(kinds) do
    r.add { kind = kind, verbs = verbs, subresource = verbs.sub, exact = verbs.exact, line = node.line }
  end
  -- Of a name that holds the reconciled object elsewhere, that is believed here.
  if not kinds.whole and first and first.t == "name" and r.subjects[first.name] then
    kinds.whole, kinds.subject = true, true
  end
  if kinds.subject then each_resource(r, verbs, verbs.sub, node.line) end
  if not kinds.whole or not verbs.kind and not first then
    r.unknown(node.line, ("%s(%s)"):format(word, shown(first)))
  end
end

local function event(r, line) r.add { kind = EVENT, verbs = EVENT_VERBS, line = line } end

-- ctx, or ctx.try
local function is_ctx(e)
  if e.t == "index" and tree.text(e.key) == "try" then e = e.obj end
  return is_named(e, "ctx")
end

local function method(r, node)
  local live = node.obj.t == "index" and tree.text(node.obj.key) == "live"
    and (is_ctx(node.obj.obj) or is_named(node.obj.obj, "req"))
  if live and LIVE[node.name] then
    call(r, LIVE[node.name], node, ("%s.live:%s"):format(node.obj.obj.name or "ctx.try", node.name))
  elseif is_named(node.obj, "req") and node.name == "event" then
    event(r, node.line)
  elseif is_ctx(node.obj) then
    if CALLS[node.name] then call(r, CALLS[node.name], node, "ctx:" .. node.name) end
    if node.name == "event" or node.name == "warn" then event(r, node.line) end
  end
end

-- pcall(ctx.create, ctx, object) or kube.try(ctx.create, ctx, object), as ctx:create(object) would be.
local function protected(r, node)
  local fn, object = node.args[1], node.args[2]
  if fn and object and fn.t == "index" and is_ctx(fn.obj) and is_ctx(object) then
    method(r, { obj = object, name = tree.text(fn.key), args = { table.unpack(node.args, 3) },
      line = node.line })
  end
end

-- The kinds of one effect, a kind alone or a list of objects.
local function effect(r, word, value, line)
  local function take(e, at)
    local kinds = kinds_of(r, e, no_kinds())
    for _, kind in ipairs(kinds) do r.add { kind = kind, verbs = EFFECT_VERBS[word], line = at } end
    if not kinds.whole then r.unknown(at, ("`%s` in a result"):format(word)) end
  end
  for _, v in ipairs(r.program:values(value)) do
    local is_list = v.t == "table" and #v.items > 0 and not tree.field(v, "kind")
    if not is_list then take(v, line) end
    for _, item in ipairs(is_list and v.items or {}) do
      if item.name ~= "force" then take(item.value, item.line) end
    end
  end
end

-- Whether a table that is returned may be a reconcile's result: the runtime refuses one with other keys, such
-- as an object with a status or a condition.
local function is_result(t)
  for _, item in ipairs(t.t == "table" and t.items or {}) do
    local computed = item.key ~= nil and item.name == nil
    if not computed and not result.KEYS[item.name or ""] then return false end
  end
  return t.t == "table"
end

local function effects(r, t, line)
  if not is_result(t) then return end
  if tree.field(t, "status") then each_resource(r, { "get", "patch" }, "status", line) end
  if tree.field(t, "events") then event(r, line) end
  for _, word in ipairs(EFFECTS) do
    local value = tree.field(t, word)
    if value then effect(r, word, value, line) end
  end
end

-- Reads one text of a program. `add(need)` gets needs without a place.
local function read(program, list, resources, add, unknown)
  local r = { program = program, resources = resources, subjects = subjects_of(list), add = with_reads(add),
    unknown = unknown }
  tree.each(list, function(node)
    if node.t == "method" then method(r, node) end
    if node.t == "call" then protected(r, node) end
    if node.t == "return" and #node.values == 1 then effects(r, node.values[1], node.line) end
  end)
end

---@class (private) kubelua.rbac.Need
---@field kind string
---@field verbs string[]
---@field subresource string?
---@field exact boolean?
---@field line integer

--- Reads the texts of a program, as long as that takes no more than reader.budget allows: once for their
--- trees and once for what these say. False: it took longer, and what the rest needs is missing.
---@param sources {path: string, text: string}[]
---@param resources string[]  the kinds that the script's controllers reconcile
---@param add fun(need: kubelua.rbac.Need, path: string)
---@param unknown fun(path: string, line: integer, what: string)  what cannot be known
---@param clock? fun(): number  the processor time so far, in seconds (os.clock)
---@return boolean whole
function M.read_all(sources, resources, add, unknown, clock)
  local texts = {}
  local all = budget.within(function()
    for _, t in ipairs(sources) do
      local list, wrong = tree.of(t.text)
      if not list then unknown(t.path, wrong, "the rest from here cannot be parsed") end
      texts[#texts + 1] = { path = t.path, list = list or {} }
    end
  end, clock)
  return budget.within(function()
    local program = values.program(texts)
    for _, t in ipairs(texts) do
      read(program, t.list, resources, function(need) add(need, t.path) end,
        function(line, what) unknown(t.path, line, what) end)
    end
  end, clock) and all
end

return M
