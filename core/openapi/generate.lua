-- generate.lua - writes definitions.txt: the definitions of the Kubernetes API as a real kube-apiserver
-- publishes them.
--
--   lua5.4 core/openapi/generate.lua DIR > core/openapi/definitions.txt
--
-- DIR holds one openapi-*.json for each document of /openapi/v3. A line is a name, a blank and the schema;
-- the first lines, with a "#", say where it all comes from. What is in several documents is written once.

local json = require "dkjson"

local dir = assert(arg[1], "usage: lua5.4 core/openapi/generate.lua DIR > core/openapi/definitions.txt")

local function sorted(t)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys)
  return keys
end

local function encode(v)
  if type(v) ~= "table" or v == json.null then return json.encode(v) end
  local out = {}
  if getmetatable(v).__jsontype == "array" then
    for i, item in ipairs(v) do out[i] = encode(item) end
    return "[" .. table.concat(out, ",") .. "]"
  end
  for _, key in ipairs(sorted(v)) do out[#out + 1] = json.encode(key) .. ":" .. encode(v[key]) end
  return "{" .. table.concat(out, ",") .. "}"
end

local texts = {}
local list = assert(io.popen(("ls '%s'"):format(dir)))
for name in list:lines() do
  if name:match "^openapi%-%d+%.json$" then
    local file = assert(io.open(dir .. "/" .. name, "rb"))
    local document = assert(json.decode(file:read "a", 1, json.null), name)
    file:close()
    for key, schema in pairs((document.components or {}).schemas or {}) do
      local text = encode(schema)
      assert(not texts[key] or texts[key] == text, key .. " differs between documents")
      texts[key] = text
    end
  end
end
list:close()

io.write [[
# The definitions of the Kubernetes API, as kube-apiserver 1.34.3 publishes them under /openapi/v3.
# Copyright The Kubernetes Authors. Apache License 2.0. Written by generate.lua; do not edit.
]]
for _, key in ipairs(sorted(texts)) do io.write(key, " ", texts[key], "\n") end
