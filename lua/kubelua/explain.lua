-- explain.lua - what the caches of controllers hold and cost: the wanted caches from the controllers' tables,
-- their sizes from informers, and what would make them smaller.

local core = require "kubelua.core"

local M = {}

-- The most objects whose parts are measured; more would have the same shares.
local SAMPLE = 500
-- A part, or a namespace, with a smaller share gets no line.
local WORTH = 0.05

-- ---------------------------------------------------------------- what is wanted

local function keep_of(c, kind)
  for _, f in ipairs(c.fields or {}) do
    if f.kind == kind then return f.paths end
  end
end

local function uses_of(c)
  local uses = {}
  local function use(kind, role)
    uses[kind] = uses[kind] or {}
    table.insert(uses[kind], role)
  end
  use(c.resource, "resource")
  for _, w in ipairs(c.watches or {}) do use(w.kind, "watches") end
  for _, o in ipairs(c.owns or {}) do use(o.kind, "owns") end
  for _, kind in ipairs(c.reads or {}) do use(kind, "reads") end
  for _, i in ipairs(c.indexes or {}) do use(i.kind, "index " .. i.name) end
  return uses
end

local function selection_of(c, kind)
  for _, s in ipairs(c.selects) do
    if s.kind == kind then return s end
  end
  return {}
end

--- The informers that controllers need: { kind, keep, namespaces, labels, fields, used_by = { { controller,
--- roles } }, texts }.
---@param scripts {controllers: kubelua.Controller[], text: string}[]
---@param namespace string?  of --namespace
function M.wants(scripts, namespace)
  local out, by = {}, {}
  for _, script in ipairs(scripts) do
    for _, c in ipairs(script.controllers) do
      for kind, roles in pairs(uses_of(c)) do
        local selected = { labels = c.select_labels, fields = c.select_fields }
        if kind ~= c.resource then selected = selection_of(c, kind) end
        local w = { kind = kind, keep = keep_of(c, kind),
          namespaces = selected.namespaces or c.namespaces or namespace and { namespace },
          labels = selected.labels, fields = selected.fields,
          managed_fields = c.managed_fields == true }
        local key = table.concat({ kind, w.keep and table.concat(w.keep, ",") or "*",
          table.concat(w.namespaces or {}, ","), w.labels or "", w.fields or "",
          tostring(w.managed_fields) }, "\0")
        if not by[key] then
          by[key], w.used_by, w.texts = w, {}, {}
          out[#out + 1] = w
        end
        table.insert(by[key].used_by, { controller = c.name, roles = roles })
        by[key].texts[script.text] = true
      end
    end
  end
  table.sort(out, function(a, b)
    if a.kind ~= b.kind then return a.kind < b.kind end
    return table.concat(a.keep or {}, ",") < table.concat(b.keep or {}, ",")
  end)
  for _, w in ipairs(out) do
    table.sort(w.used_by, function(a, b) return a.controller < b.controller end)
  end
  return out
end

--- "v1/Pod (spec.nodeName; labels app=x; in a, b)"
function M.name_of(w)
  local more = {}
  if w.keep then more[#more + 1] = #w.keep > 0 and table.concat(w.keep, ", ") or "what every object has" end
  if w.labels then more[#more + 1] = "labels " .. w.labels end
  if w.fields then more[#more + 1] = "fields " .. w.fields end
  if w.namespaces then more[#more + 1] = "in " .. table.concat(w.namespaces, ", ") end
  return w.kind .. (#more > 0 and (" (%s)"):format(table.concat(more, "; ")) or "")
end

-- ---------------------------------------------------------------- measuring

--- Begins the informers of wants on a client; each want gets its `informers`.
function M.begin(client, wants)
  local set = require "kubelua.informers".informers(client)
  for _, w in ipairs(wants) do
    w.informers = {}
    for _, ns in ipairs(w.namespaces or { false }) do
      local opts = { namespace = ns or nil, labels = w.labels, fields = w.fields, keep = w.keep }
      if not w.keep and not w.managed_fields then opts.managed_fields = false end
      table.insert(w.informers, set:informer(w.kind, opts))
    end
  end
  set:start()
  return set
end

local function sum(w, name)
  local n = 0
  for _, i in ipairs(w.informers) do n = n + i:stats()[name] end
  return n
end
M.sum = sum

--- What keeps a want's informers from being synced, or nil.
function M.trouble(w)
  for _, i in ipairs(w.informers) do
    local s = i:stats()
    if s.parked or not s.synced then return s.message or s.state end
  end
end

local function sample_of(w)
  local all = {}
  for _, i in ipairs(w.informers) do
    for _, o in ipairs(i:store():list()) do all[#all + 1] = o end
  end
  if #all <= SAMPLE then return all, all end
  local out = {}
  for k = 1, SAMPLE do out[k] = all[math.floor((k - 1) * #all / SAMPLE) + 1] end
  return out, all
end

local ALWAYS = { apiVersion = true, kind = true }

local function size(value) return #(type(value) == "userdata" and core.encode(value) or tostring(value)) end

-- Bytes of JSON by part: "spec", "status", "metadata.annotations", and "metadata" for the rest of it.
local function parts_of(objects)
  local parts, whole = {}, 0
  local function add(name, n)
    parts[name] = (parts[name] or 0) + n
    whole = whole + n
  end
  for _, o in ipairs(objects) do
    for key, value in pairs(o) do
      local annotations = key == "metadata" and o "metadata.annotations"
      if annotations then
        local n = size(annotations)
        add("metadata.annotations", n)
        add("metadata", size(value) - n)
      elseif not ALWAYS[key] then
        add(key, size(value))
      end
    end
  end
  for name, n in pairs(parts) do parts[name] = whole > 0 and n / whole or 0 end
  return parts
end

local function mentions(texts, part)
  local word = part:match "[^.]+$"
  for text in pairs(texts) do
    if text:find("%f[%w_]" .. word .. "%f[^%w_]") then return true end
  end
  return false
end

-- The bytes that a smaller cut would save, as far as the scripts' text tells.
local function savings(w, parts, bytes)
  local out = {}
  if w.keep or bytes == 0 then return out end
  local kept, share, dropped = {}, parts.metadata or 0, {}
  for name, part in pairs(parts) do
    if name ~= "metadata" and mentions(w.texts, name) then
      kept[#kept + 1] = name
      share = share + part
    elseif name ~= "metadata" and part >= WORTH then
      dropped[#dropped + 1] = name
    end
  end
  table.sort(kept)
  table.sort(dropped)
  if #dropped == 0 then return out end
  if #kept == 0 or #kept == 1 and kept[1] == "metadata.annotations" then
    out[1] = { how = ("metadata = { %q }"):format(w.kind), share = share,
      why = ("the script does not define %s"):format(table.concat(dropped, ", ")) }
  else
    for i, name in ipairs(kept) do kept[i] = ("%q"):format(name) end
    out[1] = { how = ("fields = { [%q] = { %s } }"):format(w.kind, table.concat(kept, ", ")), share = share,
      why = ("the script does not define %s"):format(table.concat(dropped, ", ")) }
  end
  return out
end

local function namespaces_of(w, all)
  if w.namespaces or #all == 0 then return {} end
  local count, out = {}, {}
  for _, o in ipairs(all) do
    local ns = o "metadata.namespace"
    if not ns then return {} end
    count[ns] = (count[ns] or 0) + 1
  end
  for ns, n in pairs(count) do
    if n / #all >= WORTH then out[#out + 1] = { name = ns, share = n / #all } end
  end
  table.sort(out, function(a, b) return a.share > b.share or a.share == b.share and a.name < b.name end)
  return table.move(out, 1, math.min(3, #out), 1, {})
end

--- The report on a want after `seconds` of watching, with `events` received.
function M.report(w, events, seconds)
  local objects, all = sample_of(w)
  local bytes, parts = sum(w, "bytes"), parts_of(objects)
  return {
    kind = w.kind, name = M.name_of(w), keep = w.keep, namespaces = w.namespaces, objects = sum(w, "objects"),
    bytes = bytes,
    events_per_second = events / seconds, used_by = w.used_by, parts = parts,
    saves = savings(w, parts, bytes), by_namespace = namespaces_of(w, all),
    problem = M.trouble(w),
  }
end

return M
