-- columns.lua - the descriptions of the columns of tables, as a C file. generate.lua uses it.

local new_api = require "support.api"
local process = require "support.process"

local M = {}

local TABLE = { "Accept: application/json;as=Table;v=v1;g=meta.k8s.io" }
local JSON = { "Accept: application/json" }

local HEAD = [[
/* columns_data.c - what the columns of each built-in kind mean, in kube-apiserver 1.34.
 *
 * Texts of the Kubernetes project (see NOTICE). `make generate` writes this file. */
#include "show/columns.h"

#include <stddef.h>

/* clang-format off */
]]

local WIDTH = 100 -- of a piece of a text

local function quoted(text)
  local pieces = {}
  text = text:gsub('[\\"]', "\\%0"):gsub("\n", "\\n")
  while #text > WIDTH do
    local cut = text:sub(1, WIDTH):match "^.* ()" or WIDTH + 1
    pieces[#pieces + 1], text = text:sub(1, cut - 1), text:sub(cut)
  end
  pieces[#pieces + 1] = text
  return '    "' .. table.concat(pieces, '"\n        "') .. '",\n'
end

-- The group versions of a server, the preferred one of each group.
local function versions(api)
  local out = { { group = "", path = "/api/v1" } }
  for _, g in ipairs(api:get("/apis/", JSON).body.groups) do
    out[#out + 1] = { group = g.name, path = "/apis/" .. g.preferredVersion.groupVersion }
  end
  return out
end

--- Writes the descriptions of the columns of all kinds of `server`, and those of the columns that a
--- definition has when it says none.
function M.file(server, file)
  local api, texts, rows, n = new_api(server), {}, {}, 0
  local function add(kind, columns)
    n = n + 1
    texts[n] = ("static const char *const texts_%d[] = {\n"):format(n)
    for _, column in ipairs(columns) do texts[n] = texts[n] .. quoted(column.description) end
    texts[n] = texts[n] .. "    NULL,\n};\n"
    rows[n] = ('    {"%s", texts_%d},\n'):format(kind, n)
  end
  for _, v in ipairs(versions(api)) do
    for _, r in ipairs(api:get(v.path, JSON).body.resources) do
      local lists = table.concat(r.verbs, " "):find "list"
      if lists and not r.name:find "/" then
        local path = ("%s/%s?limit=1"):format(v.path, r.name)
        add(v.group .. "/" .. r.name, api:get(path, TABLE).body.columnDefinitions)
        if r.name == "configmaps" then
          local c = api:get(path, TABLE).body.columnDefinitions
          add("*", { c[1], c[3] })
        end
      end
    end
  end
  process.write(file, HEAD .. table.concat(texts) .. "\nconst kl_column_texts kl__column_texts[] = {\n"
    .. table.concat(rows) .. "    {NULL, NULL},\n};\n/* clang-format on */\n")
  print(file .. ": the columns of " .. n .. " kinds of kube-apiserver 1.34.3")
end

return M
