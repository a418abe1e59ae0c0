-- first.lua - the objects that a real kube-apiserver makes at its start, as C texts. generate.lua uses it.

local json = require "dkjson"
local new_api = require "support.api"
local process = require "support.process"
local wait = require "support.wait"

local M = {}

local FILE = [[
/* %s - %s that kube-apiserver 1.34 has at its start.
 *
 * Data of the Kubernetes project (see NOTICE), without uids; NOW stands for the start. Roles that gather
 * others have no rules. `make generate` writes this file. */
%s

/* clang-format off */
const char %s[] =
%s
    "]";
/* clang-format on */
]]

local ORDER = { "apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations" }
local CHANCE = { "uid", "resourceVersion", "creationTimestamp", "generation" }
local NOW = "NOW" -- the server's start
-- Roles that gather the rules of others come behind them, for each role that is added gathers again.
local LAST = { view = 1, edit = 2, admin = 3 }

local function plain(o, kind, version)
  o.kind, o.apiVersion = kind, version
  for _, key in ipairs(CHANCE) do o.metadata[key] = nil end
  if o.aggregationRule then o.rules = nil end
  for _, condition in ipairs(o.status and o.status.conditions or {}) do condition.lastTransitionTime = NOW end
  for _, entry in ipairs(o.metadata.managedFields) do entry.time = NOW end
  if kind == "ServiceCIDR" then o.spec.cidrs = { "10.96.0.0/12" } end
  return o
end

-- All keys in a value, sorted behind those of ORDER, so that the same objects give the same text.
local function order_of(value)
  local seen, keys = {}, {}
  local function walk(v)
    for key, x in pairs(type(v) == "table" and v or {}) do
      if type(key) == "string" and not seen[key] then
        seen[key] = true
        keys[#keys + 1] = key
      end
      walk(x)
    end
  end
  for _, key in ipairs(ORDER) do seen[key] = true end
  walk(value)
  table.sort(keys)
  return table.move(keys, 1, #keys, #ORDER + 1, { table.unpack(ORDER) })
end

local WIDTH = 102 -- of a line of a C text, without its quotes and indentation

-- A C text in lines that end behind a comma, a brace or a space.
local function quoted(text)
  local lines, line = {}, ""
  for part in text:gsub("[\\\"]", "\\%0"):gmatch "[^,{ ]*[,{ ]?" do
    if line ~= "" and #line + #part > WIDTH then lines[#lines + 1], line = line, "" end
    line = line .. part
  end
  lines[#lines + 1] = line
  for i, x in ipairs(lines) do lines[i] = '    "' .. x .. '"' end
  return table.concat(lines, "\n")
end

--- Writes a C file with the objects of these lists, which are named `what`, as the text `name`.
function M.file(server, file, what, includes, name, paths)
  local api, out = new_api(server), {}
  -- Controllers make them, also after the server is ready.
  wait.until_true(60, "the server has what it makes for itself", function()
    local last = api:get "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all".body
    return last.status and last.status.conditions and api:get(paths[#paths]).body.items[1]
  end)
  for _, path in ipairs(paths) do
    local list = api:get(path).body
    local kind = list.kind:gsub("List$", "")
    table.sort(list.items, function(a, b)
      local x, y = LAST[a.metadata.name] or 0, LAST[b.metadata.name] or 0
      if x ~= y then return x < y end
      return (a.metadata.namespace or "") .. a.metadata.name < (b.metadata.namespace or "") .. b.metadata.name
    end)
    for _, o in ipairs(list.items) do
      out[#out + 1] = quoted((#out > 0 and "," or "[")
        .. json.encode(plain(o, kind, list.apiVersion), { keyorder = order_of(o) }))
    end
  end
  process.write(file, FILE:format(file:match "[^/]+$", what, includes, name, table.concat(out, "\n")))
  print(file .. ": " .. #out .. " objects of kube-apiserver 1.34.3")
end

return M
