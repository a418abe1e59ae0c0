-- rbac_source.lua - what a script's text says about the requests it makes: calls of ctx, and effects in
-- results, with a kind that is written there, or the reconciled object itself. What it cannot know it says,
-- with the line.

local budget = require "kubelua.reader.budget"
local tree = require "kubelua.reader.tree"

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

local kind_of

-- The kind of the objects in a list: of ctx:list, ctx:owned, ctx:each and their like.
local function kind_in(e)
  local t = tree.behind(e)
  if t and t.t == "method" and LISTS[t.name] then return kind_of(t.args[1]) end
end

-- The kind of an expression other than a table: an object that was read, one of a list, one from a template.
local function kind_of_object(e)
  if e.t == "method" and e.name == "get" then return kind_of(e.args[1]) end
  if e.t == "index" then return kind_in(e.obj) end
  if e.t == "call" and e.fn.t == "index" and tree.text(e.fn.key) == "from_template" then
    return kind_of(e.args[2])
  end
  local from, place = table.unpack(e.t == "name" and e.def and not e.def.set and e.def.each or {})
  if not from then return end
  local pairwise = from.t == "call" and is_named(from.fn, "ipairs")
  if place == (pairwise and 2 or 1) then return kind_in(pairwise and from.args[1] or from) end
end

-- The kind that an argument says: a text, kind and apiVersion of a table, or an object that was read.
function kind_of(e)
  if not e then return end
  local text = tree.text(e)
  if text then return text end
  local t = tree.behind(e)
  if t.t ~= "table" then return kind_of_object(t) end
  local kind, api = tree.text(tree.field(t, "kind")), tree.text(tree.field(t, "apiVersion"))
  if kind and kind:find("/", 1, true) then return kind end
  return kind and api and api .. "/" .. kind
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

-- One reading of a text, `r`: resources (the reconciled kinds), subjects (names that hold their objects),
-- add(what is asked) and unknown(line, what).

local function each_resource(r, verbs, sub, line)
  for _, kind in ipairs(r.resources) do
    r.add { kind = kind, verbs = verbs, subresource = sub, exact = verbs.exact, line = line }
  end
end

-- The verbs on the `subresource`, and of the kind `of`, that the options of a call name.
local function aimed(r, verbs, node, word)
  for i = 2, #node.args do
    local opts = tree.behind(node.args[i])
    local sub = tree.field(opts, "subresource")
    if sub then
      local said = tree.text(sub)
      if not said then
        r.unknown(node.line, ("the subresource of %s(%s)"):format(word, shown(node.args[1])))
      end
      return table.move(verbs, 1, #verbs, 1, { sub = said or verbs.sub, exact = verbs.exact,
        kind = tree.text(tree.field(opts, "of")) or verbs.kind })
    end
  end
  return verbs
end

local function call(r, verbs, node, word)
  local first = node.args[1]
  verbs = aimed(r, verbs, node, word)
  local kind = verbs.kind or first and kind_of(first)
  if kind then
    r.add { kind = kind, verbs = verbs, subresource = verbs.sub, exact = verbs.exact, line = node.line }
  elseif first and first.t == "name" and r.subjects[first.name] then
    each_resource(r, verbs, verbs.sub, node.line)
  else
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
  local found = kind_of(value)
  if found then
    r.add { kind = found, verbs = EFFECT_VERBS[word], line = line }
    return
  end
  local items = tree.behind(value)
  local some
  for _, item in ipairs(items and items.t == "table" and items.items or {}) do
    local kind = not item.name and kind_of(item.value)
    some = true
    if kind then
      r.add { kind = kind, verbs = EFFECT_VERBS[word], line = item.line }
    elseif item.name ~= "force" then
      r.unknown(item.line, ("`%s` in a result"):format(word))
    end
  end
  if not some then r.unknown(line, ("`%s` in a result"):format(word)) end
end

local function effects(r, t, line)
  if tree.field(t, "status") then each_resource(r, { "get", "patch" }, "status", line) end
  if tree.field(t, "events") then event(r, line) end
  for _, word in ipairs(EFFECTS) do
    local value = tree.field(t, word)
    if value then effect(r, word, value, line) end
  end
end

--- Reads a text. `add(need)` gets needs without a place, `unknown(line, what)` what cannot be known.
---@param text string
---@param resources string[]  the kinds that the script's controllers reconcile
---@param add fun(need: {kind: string, verbs: string[], subresource: string?, exact: boolean?, line: integer})
---@param unknown fun(line: integer, what: string)
function M.read(text, resources, add, unknown)
  local list, wrong = tree.of(text)
  if not list then return unknown(wrong, "this and the rest cannot be parsed") end
  local r = { resources = resources, subjects = subjects_of(list), add = with_reads(add), unknown = unknown }
  tree.each(list, function(node)
    if node.t == "method" then method(r, node) end
    if node.t == "call" then protected(r, node) end
    if node.t == "return" and #node.values == 1 then effects(r, node.values[1], node.line) end
  end)
end

--- Reads the texts of a program, as long as that takes no more than reader.budget allows. False: it took
--- longer, and what the rest needs is missing.
---@param sources {path: string, text: string}[]
---@param resources string[]
---@param add fun(need: table, path: string)  as of M.read
---@param unknown fun(path: string, line: integer, what: string)
---@param clock? fun(): number  the processor time so far, in seconds (os.clock)
---@return boolean whole
function M.read_all(sources, resources, add, unknown, clock)
  return (budget.within(function()
    for _, t in ipairs(sources) do
      M.read(t.text, resources, function(need) add(need, t.path) end,
        function(line, what) unknown(t.path, line, what) end)
    end
  end, clock))
end

return M
