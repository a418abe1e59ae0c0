-- builtin.lua - writes builtin_data.c from what a real kube-apiserver says about itself.
--
--   lua5.4 core/schema/builtin.lua DIR OMITTED > core/schema/builtin_data.c
--
-- DIR holds api.json and apis.json (aggregated discovery of /api and /apis) and one openapi-*.json for each
-- document of /openapi/v3. OMITTED has lines "TYPE FIELD" of what JSON leaves out at its zero value, lines
-- "TYPE FIELD NAME" of texts whose type in Go has that name, and lines "TYPE FIELD =zero" or "=null" of what
-- JSON always has (spec/realserver/proto). What comes out is derived from the Kubernetes API definitions
-- (Apache License 2.0): names, types and merge rules, no prose.
-- Run it again for another Kubernetes release.

local json = require "dkjson"

local dir = assert(arg[1], "usage: lua5.4 core/schema/builtin.lua DIR OMITTED > core/schema/builtin_data.c")

local omitted, named, written = {}, {}, {}
for line in io.lines((assert(arg[2], "OMITTED is missing"))) do
  local key, name = line:match "^(%S+ %S+) (%S+)$"
  if key and name:sub(1, 1) == "=" then written[key] = name:sub(2)
  elseif key then named[key] = name else omitted[line] = true end
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return assert(json.decode(text, 1, json.null), path)
end

local function sorted(t)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys)
  return keys
end

local function short(ref)
  local name = ref:gsub("^#/components/schemas/", "")
  return (name:gsub("^io%.k8s%.api%.", ""):gsub("^io%.k8s%.apimachinery%.pkg%.apis%.", "")
    :gsub("^io%.k8s%.apiextensions%-apiserver%.pkg%.apis%.",
      ""):gsub("^io%.k8s%.kube%-aggregator%.pkg%.apis%.", "")
    :gsub("^io%.k8s%.apimachinery%.pkg%.", ""))
end

-- ---------------------------------------------------------------- what there is

local schemas, by_gvk = {}, {}
local list = assert(io.popen(("ls '%s'"):format(dir)))
for file in list:lines() do
  if file:match "^openapi%-.*%.json$" then
    local components = read(dir .. "/" .. file).components or {}
    for name, schema in pairs(components.schemas or {}) do
      schemas[short(name)] = schema
      local gvks = schema["x-kubernetes-group-version-kind"]
      if gvks and #gvks == 1 then
        by_gvk[gvks[1].group .. "/" .. gvks[1].version .. "/" .. gvks[1].kind] = short(name)
      end
    end
  end
end
list:close()

-- ---------------------------------------------------------------- types

-- One letter for what has no fields of its own; see schema.c, which reads this.
local SCALARS = { ["meta.v1.Time"] = "t", ["meta.v1.MicroTime"] = "m", ["api.resource.Quantity"] = "q",
  ["util.intstr.IntOrString"] = "x" }

local wanted, queue = {}, {}
local function want(name)
  if not wanted[name] then
    wanted[name] = true
    queue[#queue + 1] = name
  end
  return name
end

local function type_of(s)
  local ref = s["$ref"] or (s.allOf and s.allOf[1]["$ref"])
  if ref then
    local name = short(ref)
    if SCALARS[name] then return SCALARS[name] end
    local target = assert(schemas[name], name)
    if not target.properties then return "o" end
    -- "NAME+": the type NAME, here with owners of its single fields
    return want(s["x-kubernetes-map-type"] == "granular" and name .. "+" or name)
  end
  if s.type == "array" then return "[" .. type_of(s.items) .. "]" end
  if s.type == "object" then
    if s.additionalProperties then return "{" .. type_of(s.additionalProperties) .. "}" end
    return "o"
  end
  if s.type == "string" then return s.format == "byte" and "B" or "s" end
  if s.type == "integer" then return s.format == "int32" and "j" or "i" end
  if s.type == "number" then return "n" end
  if s.type == "boolean" then return "b" end
  return "o"
end

-- No stored object lacks it, and messages show an empty list as it was sent.
local AS_SENT = { ["apiextensions.v1.CustomResourceDefinitionSpec versions"] = true }

local function field(owner, name, s, required)
  local out = { name .. ":" .. type_of(s) }
  local function flag(text) out[#out + 1] = ";" .. text end
  -- a Go struct: there even when nobody gave it
  if type(s.default) == "table" and s.default ~= json.null then flag "d" end
  if required then flag "r" end
  if omitted[owner .. " " .. name] then flag "o" end
  if written[owner .. " " .. name] == "zero" then flag "z" end
  if written[owner .. " " .. name] == "null" and not AS_SENT[owner .. " " .. name] then flag "n" end
  if named[owner .. " " .. name] then flag("go=" .. named[owner .. " " .. name]) end
  local kind = s["x-kubernetes-list-type"]
  if kind == "set" then flag "set" end
  if kind == "map" then flag("key=" .. table.concat(s["x-kubernetes-list-map-keys"], ",")) end
  if s["x-kubernetes-map-type"] == "atomic" then flag "atomic" end
  local strategy = s["x-kubernetes-patch-strategy"] or ""
  if strategy:find "merge" then flag("patch=" .. (s["x-kubernetes-patch-merge-key"] or "")) end
  if strategy:find "retainKeys" then flag "retain" end
  local d = s.default
  if type(d) == "string" and d ~= "" then flag("default=" .. d) end
  if type(d) == "number" and d ~= 0 then flag("default=" .. math.tointeger(d)) end
  return table.concat(out)
end

local function type_line(name)
  local whole, apart = name:match "^([^+]+)(%+?)"
  local s = schemas[whole]
  local required = {}
  for _, key in ipairs(s.required or {}) do required[key] = true end
  local out = { name .. (apart == "" and s["x-kubernetes-map-type"] == "atomic" and ";atomic" or "") }
  for _, key in ipairs(sorted(s.properties)) do
    out[#out + 1] = field(whole, key, s.properties[key], required[key])
  end
  return table.concat(out, " ")
end

-- ---------------------------------------------------------------- kinds

local kinds = {}
local function add_kinds(doc)
  for _, group in ipairs(doc.items) do
    local gname = group.metadata.name or ""
    for _, version in ipairs(group.versions) do
      for _, r in ipairs(version.resources) do
        local kind = r.responseKind.kind
        local subs = {}
        for _, sub in ipairs(r.subresources or {}) do
          local rk = sub.responseKind
          subs[#subs + 1] = ("%s:%s:%s"):format(sub.subresource,
            rk and ("%s/%s/%s"):format(rk.group, rk.version, rk.kind) or "//", table.concat(sub.verbs, ","))
        end
        local type_name = by_gvk[gname .. "/" .. version.version .. "/" .. kind]
        kinds[#kinds + 1] = table.concat({ gname == "" and "-" or gname, version.version, kind, r.resource,
          r.singularResource ~= "" and r.singularResource or "-",
          r.scope == "Namespaced" and "ns" or "cluster", table.concat(r.verbs, ","),
          r.shortNames and table.concat(r.shortNames, ",") or "-",
          r.categories and table.concat(r.categories, ",") or "-", type_name and want(type_name) or "-",
          table.concat(subs, "|") }, " ")
      end
    end
  end
end
add_kinds(read(dir .. "/api.json"))
add_kinds(read(dir .. "/apis.json"))
-- Kinds that only subresources speak of.
for _, name in ipairs { "autoscaling.v1.Scale", "policy.v1.Eviction", "meta.v1.DeleteOptions" } do
  want(name)
end

local i = 1
while i <= #queue do
  type_line(queue[i])
  i = i + 1
end

-- ---------------------------------------------------------------- C

local WIDTH = 99 -- of a piece of a text, without its quotes and indentation

local function literal(line)
  local pieces = {}
  line = line:gsub("\\", "\\\\"):gsub('"', '\\"')
  while #line > WIDTH do
    local cut = line:sub(1, WIDTH):match "^.* ()" or WIDTH + 1
    pieces[#pieces + 1] = '"' .. line:sub(1, cut - 1) .. '"'
    line = line:sub(cut)
  end
  pieces[#pieces + 1] = '"' .. line .. '"'
  return "    " .. table.concat(pieces, "\n        ") .. ","
end

print [[
/* builtin_data.c - the built-in kinds of Kubernetes 1.34 and their types, as text.
 *
 * Written by builtin.lua; do not edit. Derived from the Kubernetes API definitions, Copyright The Kubernetes
 * Authors, Apache License 2.0: names, types and merge rules of the API, without its descriptions. kinds.c and
 * schema.c say how a line reads. */
#include "schema/builtin.h"

/* clang-format off */
const char *const kl__builtin_kinds[] = {]]
for _, line in ipairs(kinds) do print(literal(line)) end
print [[    NULL,
};

const char *const kl__builtin_types[] = {]]
table.sort(queue)
for _, name in ipairs(queue) do print(literal(type_line(name))) end
print [[    NULL,
};
/* clang-format on */]]
