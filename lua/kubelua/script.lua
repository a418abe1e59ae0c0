-- script.lua - what the runtime calls in a script's state (bindings/script/program.c). Scripts do not require
-- it.

local context = require "kubelua.context"
local controller = require "kubelua.controller"
local conversion = require "kubelua.conversion"
local core = require "kubelua.core"
local crd = require "kubelua.crd"
local finalizer = require "kubelua.finalizer"
local metrics = require "kubelua.metrics"
local params = require "kubelua.params"
local result = require "kubelua.result"
local saying = require "kubelua.saying"
local scheduling = require "kubelua.scheduling"
local webhook = require "kubelua.webhook"

local M = {}

-- ---------------------------------------------------------------- loading

local EXPECTED = "%s: a script returns kube.controller { ... } or kube.webhook { ... }, or a list of them; \z
  this one returned %s"

-- What a controller or a webhook is made of, or nil.
local function opened(x) return controller.opened(x) or webhook.opened(x) end

-- A controller of several kinds is a list inside the list. Raw: it is the script's, and so is its metatable.
local function flat(list, out, inside)
  for i = 1, rawlen(list) do
    local c = rawget(list, i)
    if not inside and type(c) == "table" and not opened(c) and controller.is_controller(rawget(c, 1)) then
      flat(c, out, true)
    else
      out[#out + 1] = c
    end
  end
  return out
end

--- The controllers that a script returned, as a list; its webhooks after them, and what converts its kinds.
function M.controllers(returned, path)
  metrics.close()
  crd.close()
  if opened(returned) then returned = { returned } end
  if type(returned) ~= "table" or rawlen(returned) == 0 then
    local what = "a " .. type(returned)
    if returned == nil then
      what = "nothing (is `return` missing?)"
    elseif type(returned) == "table" then
      what = "a plain table; wrap it in kube.controller"
    end
    error(EXPECTED:format(path, what), 0)
  end
  local names, list = {}, flat(returned, {})
  for i, sealed in ipairs(list) do
    local c = opened(sealed)
    if not c then error(EXPECTED:format(path, ("a list whose element %d is neither"):format(i)), 0) end
    if names[c.name] then
      error(("%s: two %s are named %q; names are unique"):format(path,
        c.webhook and "webhooks" or "controllers", c.name), 0)
    end
    names[c.name] = true
    list[i] = c
  end
  local sorted = {}
  for _, wanted in ipairs { false, true } do
    for _, c in ipairs(list) do if (c.webhook or false) == wanted then sorted[#sorted + 1] = c end end
  end
  for _, c in ipairs(crd.conversions()) do
    if names[c.name] then
      error(("%s: %q is the name of a webhook, and of a definition with a conversion; names are unique")
        :format(path, c.name), 0)
    end
    sorted[#sorted + 1] = c
  end
  return sorted
end

local function line(out, word, text) out[#out + 1] = ("  %-12s%s"):format(word, text) end

local function changes(when)
  if not when then return nil end
  local parts = {}
  if when.selector then
    parts[1] = "of objects with " .. (when.selector == "" and "any labels" or when.selector)
  end
  if when.words and #when.words > 0 then parts[#parts + 1] = table.concat(when.words, ", ") end
  if when.fn then parts[#parts + 1] = "a function" end
  return table.concat(parts, "; ")
end

local HOW = { owner = "its owners", ["same-name"] = "the same name", ["function"] = "a function" }

local function describe_one(c, out)
  if c.converts then
    out[#out + 1] = ("conversion %s"):format(c.name)
    return conversion.describe(c, function(word, text) line(out, word, text) end)
  end
  if c.webhook then
    out[#out + 1] = ("webhook %s"):format(c.name)
    return webhook.describe(c, function(word, text) line(out, word, text) end)
  end
  out[#out + 1] = ("controller %s"):format(c.name)
  line(out, "resource", c.resource)
  if c.manager then line(out, "manager", c.manager) end
  if c.namespaces then line(out, "namespaces", table.concat(c.namespaces, ", ")) end
  if c.select_labels then line(out, "selector", c.select_labels) end
  if c.select_fields then line(out, "selector", "fields " .. c.select_fields) end
  for _, s in ipairs(c.selects) do
    local parts = { s.labels }
    if s.fields then parts[#parts + 1] = "fields " .. s.fields end
    if s.namespaces then parts[#parts + 1] = "namespaces " .. table.concat(s.namespaces, ", ") end
    line(out, "selector", ("%s of %s"):format(table.concat(parts, "; "), s.kind))
  end
  for _, w in ipairs(c.watches) do
    line(out, "watches", ("%s -> %s%s"):format(w.kind, w.via and "index " .. w.via or HOW[w.how],
      w.when and "; when " .. changes(w.when) or ""))
  end
  for _, o in ipairs(c.owns) do
    line(out, "owns", o.kind .. (o.when and "; when " .. changes(o.when) or "")
      .. (o.unforced and "; applied without force" or ""))
  end
  for _, kind in ipairs(c.reads or {}) do line(out, "reads", kind) end
  for _, i in ipairs(c.indexes) do
    line(out, "index", ("%s of %s: %s"):format(i.name, i.kind, i.path or "a function"))
  end
  for _, f in ipairs(c.fields) do
    line(out, "fields", ("%s: %s"):format(f.kind, #f.paths > 0 and table.concat(f.paths, ", ")
      or "what every object has"))
  end
  if c.managed_fields ~= nil then line(out, "managedFields", c.managed_fields and "kept" or "dropped") end
  for _, kind in ipairs(c.metadata or {}) do line(out, "metadata", kind) end
  if c.when then line(out, "when", changes(c.when)) end
  if c.finalizer then line(out, "finalizer", c.finalizer) end
  if c.workers then line(out, "workers", c.workers) end
  if c.timeout then line(out, "timeout", ("%gs"):format(c.timeout)) end
  if c.resync then line(out, "resync", ("%gs"):format(c.resync)) end
  scheduling.describe(c, function(word, text) line(out, word, text) end)
  for _, rule in ipairs(c.http or {}) do
    line(out, "http", (rule:gsub(" ", ", which reads with ", 1)) .. "; with --allow-http")
  end
  params.describe(c, function(word, text) line(out, word, text) end)
end

--- The text of `kubelua check`.
function M.describe(controllers)
  local out = {}
  for _, c in ipairs(controllers) do describe_one(c, out) end
  for _, o in ipairs(crd.declared() or {}) do
    out[#out + 1] = ("definition %s"):format(o.metadata.name)
    local versions = {}
    for i, v in ipairs(o.spec.versions) do versions[i] = v.name .. (v.storage and " (stored)" or "") end
    line(out, "versions", table.concat(versions, ", "))
  end
  metrics.describe(function(word, text) line(out, word, text) end)
  return table.concat(out, "\n") .. "\n"
end

-- What commands read of a controller or a webhook (rbac, explain, sim).
local TOLD = { "name", "manager", "resource", "namespaces", "select_labels", "select_fields", "selects",
  "watches", "owns", "reads", "indexes", "fields", "metadata", "managed_fields", "finalize", "shard",
  "shard_own", "leader", "http", "params", "param_rules", "webhook", "converts", "mutating", "asked_in" }

-- Of a function it says that it is there.
local function told(x)
  if type(x) == "function" then return true end
  if type(x) == "userdata" then return core.is_view(x) and x or nil end
  if type(x) ~= "table" then return x end
  local out, list = {}, #x > 0
  for key, value in next, x do
    if list == (type(key) ~= "string") then out[key] = told(value) end
  end
  return out
end

--- The tables of a script as a value: commands look at it, and nothing of the script runs where they do.
function M.tables(controllers)
  local out = {}
  for i, c in ipairs(controllers) do
    out[i] = {}
    for _, name in ipairs(TOLD) do out[i][name] = told(c[name]) end
  end
  return core.value(core.array(out), "the tables of the script")
end

M.metrics, M.crds = metrics.declared, crd.declared

-- ---------------------------------------------------------------- running

local function settled(ctx, obj, r, why)
  if r == nil and why == nil then return end      -- done, as most are
  return result.settle(context.hands, ctx, obj, r, why)
end

--- One reconcile, or one finalize: what became of it, as result.settle says; nothing means done.
function M.run(c, obj, ctx)
  if c.finalize then return finalizer.run(context.hands, result.settle, c, obj, ctx) end
  return settled(ctx, obj, c.reconcile(obj, ctx))
end

M.verdict, M.shown = result.verdict, saying.shown

--- One request of a webhook, and what became of it when it raised.
function M.review(h, request, ctx)
  if h.converts then return conversion.review(h, request) end
  return webhook.review(h, request, ctx)
end

function M.raised(h, e) return (h.converts and conversion or webhook).raised(h, e) end

local function key_of(k, fn)
  if type(k) == "string" then return k end
  if type(k) == "table" and type(k.name) == "string" then
    return k.namespace and k.namespace .. "/" .. k.name or k.name
  end
  error(("mapping function %d: a key must be \"name\", \"namespace/name\" or {namespace, name}, got \z
    %s"):format(fn,
    type(k)), 0)
end

--- A watched object to keys.
function M.map(c, fn, obj, _, emit)
  local keys = c.functions[fn](obj, context.reading())
  if keys == nil then return end
  if type(keys) == "string" or type(keys) == "table" and keys.name then
    emit(key_of(keys, fn))
  elseif type(keys) == "table" then
    for _, k in ipairs(keys) do emit(key_of(k, fn)) end
  else
    error(("mapping function %d: it must return a list of keys, a key or nothing, got %s")
      :format(fn, type(keys)),
      0)
  end
end

--- An object to the values of an index.
function M.index(c, fn, obj, _, emit)
  local values = c.functions[fn](obj)
  if values == nil then return end
  if type(values) ~= "table" then values = { values } end
  for _, v in ipairs(values) do
    if type(v) ~= "string" and type(v) ~= "number" and type(v) ~= "boolean" then
      error(("an index function must return a string, a list of strings or nothing, got %s")
        :format(type(v)), 0)
    end
    emit(tostring(v))
  end
end

--- Whether a change counts.
function M.predicate(c, fn, now, old) return c.functions[fn](now, old) and true or false end

return M
