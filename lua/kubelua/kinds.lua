-- kinds.lua - finds a kind by any of its names: "cm", "configmaps", "ConfigMap", "deployments.apps", with the
-- meaning that a server gives them. Caches, results and messages use full names, "v1/ConfigMap", so that a
-- kind has one name there.
--
-- A script is loaded without a server. Until it runs, only built-in kinds and its own (kube.crd) are known;
-- in a run the server knows the others.

local core = require "kubelua.core"

local M = {}

-- The kinds of the script's own definitions, in lists by each of their names.
local own = {}

local function add(words, word, kind)
  local list = words[word] or {}
  words[word] = list
  for _, there in ipairs(list) do
    if there == kind then return end
  end
  list[#list + 1] = kind
end

--- Makes the names mean a kind of the script's own, from now on.
---@param kind string    "example.com/v1/Site"
---@param names string[] its plural, singular and short names
---@param words? table   the table to remember them in, for M.full; by default that of this Lua state
function M.define(kind, names, words)
  words = words or own
  local group, bare = kind:match "^(.+)/[^/]+/([^/]+)$"
  add(words, bare, kind)
  add(words, group .. "/" .. bare, kind)
  for _, name in ipairs(names) do
    add(words, name, kind)
    add(words, name .. "." .. group, kind)
  end
end

local function is_full(word)
  local api, kind = word:match "^(.+)/([^/]+)$"
  return api ~= nil and kind:find "^%u%w*$" ~= nil
    and (api:find "^[%w.-]+/v%w+$" ~= nil or api:find "^v%w+$" ~= nil)
end

--- The kind in full that a word names; nil and why, when it names none or several.
---@param word string
---@param words? table   as M.define has them
---@return string? kind, string? why
function M.full(word, words)
  if is_full(word) then return word end
  local builtin, why = core.kind(word)
  local found = { table.unpack((words or own)[word] or {}) }
  if builtin then table.insert(found, 1, builtin) end
  -- The core group wins, as it does on a server.
  if #found < 2 or builtin and builtin:find "^v1/" then return found[1], why end
  for i, kind in ipairs(found) do found[i] = ("%q"):format(kind) end
  return nil, ("%q is in several API groups: name one of %s"):format(word, table.concat(found, " or "))
end

-- Scripts ask for few words; a script that generates words must not fill the memory.
local KEPT_MAX, WORD_MAX = 256, 128
local kept, count = {}, 0

--- The same, remembered: the kind in full, or nil when no kind that is known here has that name.
---@param word any
---@return string? kind
function M.known(word)
  local kind = kept[word]
  if kind == nil and type(word) == "string" then
    kind = M.full(word) or false
    if #word > WORD_MAX then return kind or nil end
    if count == KEPT_MAX then kept, count = {}, 0 end
    kept[word], count = kind, count + 1
  end
  return kind or nil
end

return M
