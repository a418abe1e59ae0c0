-- gen/model.lua - the data of `kubelua gen` between reading and writing.
--
--   library: name "kubelua.koordinator", prefix "koordinator", groups by accessor "slo_v1alpha1"
--   group:   accessor, word "slo", version, class "koordinator.slo.v1alpha1", resources by plural, types by
--            name, aliases by name
--   type:    doc, fields = { { name, type, required, doc } ... } by name, open (accepts unknown fields)
--
-- The type of a value is a table: { k = "string" } and so on; lists and maps have `of`, a class is { k =
-- "class", group =, name = }. API groups that begin with the same word (scheduling.koordinator.sh,
-- scheduling.sigs.k8s.io) share an accessor unless two of their kinds have the same name; then more of their
-- labels become part of it.

local M = {}

--- "resource-qos" -> "ResourceQos": the part that a JSON name adds to the name of a class.
function M.camel(name)
  return (name:gsub("[^%w]+(%w?)", function(c) return c:upper() end):gsub("^%l", string.upper))
end

--- A name that is still free in this group.
function M.unique(group, name)
  while group.taken[name] do name = name .. "_" end
  group.taken[name] = true
  return name
end

-- The longest text of a comment; whole sentences up to it.
local DOC = 220

--- Cuts a description to one line: its first sentences.
function M.doc(text)
  if type(text) ~= "string" then return nil end
  text = text:gsub("\n%s*\nPossible enum values.*", ""):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")
  if #text > DOC then
    local cut
    for stop in text:gmatch "%.()%s" do
      if stop <= DOC then cut = stop - 1 end
    end
    if not cut then
      cut = DOC
      while cut > 1 and text:sub(cut, cut) ~= " " do cut = cut - 1 end
      text = text:sub(1, cut - 1) .. " ..."
    else
      text = text:sub(1, cut)
    end
  end
  -- A comment is one line of printable text; the byte at a cut is never inside a character, since it is a
  -- space or a dot.
  text = text:gsub("%c", " ")
  if text ~= "" then return text end
end

local function labels(group)
  if group == "" then return { "core" } end
  local list = {}
  for label in group:gmatch "[^.]+" do list[#list + 1] = (label:gsub("[^%w]", "_")) end
  return list
end

local function first_labels(group, n)
  local list = labels(group)
  return table.concat(list, "_", 1, math.min(n, #list))
end

-- Whether two of these groups have kinds of the same name in the same version.
local function collide(groups, kinds)
  local owner = {}
  for _, group in ipairs(groups) do
    for version, names in pairs(kinds[group]) do
      for name in pairs(names) do
        local key = version .. "/" .. name
        if owner[key] and owner[key] ~= group then return true end
        owner[key] = group
      end
    end
  end
  return false
end

--- The word of each API group: kinds[group][version][kind] = true -> words[group].
function M.words(kinds)
  local by_word, words = {}, {}
  for group in pairs(kinds) do
    local word = first_labels(group, 1)
    by_word[word] = by_word[word] or {}
    table.insert(by_word[word], group)
  end
  for word, groups in pairs(by_word) do
    local n = 1
    if collide(groups, kinds) then
      local distinct
      repeat
        n, distinct = n + 1, true
        local seen = {}
        for _, group in ipairs(groups) do
          local name = first_labels(group, n)
          if seen[name] then distinct = false end
          seen[name] = true
        end
      until distinct
    end
    for _, group in ipairs(groups) do words[group] = n == 1 and word or first_labels(group, n) end
  end
  return words
end

--- An empty library of this module name.
function M.new(name) return { name = name, prefix = name:match "[^.]+$", groups = {}, notes = {} } end

--- The group of a word and a version, created if it is new. The version becomes part of a file's name.
function M.group(library, word, version)
  version = version:gsub("[^%w]", "_")
  local accessor = word .. "_" .. version
  local group = library.groups[accessor]
  if not group then
    group = {
      accessor = accessor, word = word, version = version,
      class = ("%s.%s.%s"):format(library.prefix, word, version),
      resources = {}, types = {}, aliases = {}, taken = { Client = true, Builders = true, Listers = true,
        Informers = true }, sources = {},
    }
    library.groups[accessor] = group
  end
  return group
end

--- The items of a value that should be a list; none if it is not one.
function M.items(x)
  local out = {}
  if type(x) == "userdata" then
    for _, item in ipairs(x) do out[#out + 1] = item end
  end
  return out
end

function M.sorted(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

return M
