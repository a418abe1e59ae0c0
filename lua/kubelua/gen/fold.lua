-- gen/fold.lua - merges equal nested types into one.
-- For example, the five classes of a NodeSLO share one CpuQOS.
--
-- Only types below one kind are merged. The new name is what their paths have in common: the kind and the
-- last words (NodeSLOCpuQOS), else their common beginning and "Value". Merging inner types can make outer
-- ones equal, so it is repeated until all types differ.

local model = require "kubelua.gen.model"

local M = {}

local function text_of(of)
  if of.of then return of.k .. " of " .. text_of(of.of) end
  return of.name and of.group.accessor .. "." .. of.name or of.k
end

local function says(type_)
  local parts = { tostring(type_.open) }
  for _, field in ipairs(type_.fields) do
    parts[#parts + 1] = ("%s %s %s %s"):format(field.name, text_of(field.type), tostring(field.required),
      field.doc or "")
  end
  return table.concat(parts, "\n")
end

-- How many words all paths share at their ends, and at their beginnings.
local function common(paths, at)
  local n = 0
  while true do
    local word = at(paths[1], n)
    for _, path in ipairs(paths) do
      -- One word of each path is always left for the other side.
      if word == nil or at(path, n) ~= word or n + 1 >= #path then return n end
    end
    n = n + 1
  end
end

local function from_start(path, n) return path[n + 1] end
local function from_end(path, n) return path[#path - n] end

-- The path that replaces all of these.
local function folded(paths)
  local first = paths[1]
  local above, below = common(paths, from_start), common(paths, from_end)
  if below > 0 then
    local path = { first[1] }
    return table.move(first, #first - below + 1, #first, 2, path)
  end
  local path = table.move(first, 1, above, 1, {})
  path[#path + 1] = "Value"
  return path
end

local function rename(of, kind, group, renamed)
  if of.of then return rename(of.of, kind, group, renamed) end
  if of.k == kind and of.group == group and renamed[of.name] then of.name = renamed[of.name] end
end

-- One round over a table of types or aliases; returns old name -> new name, or nil if no two were equal.
local function round(group, things, say)
  local buckets, order, renamed = {}, {}, nil
  for _, name in ipairs(model.sorted(things)) do
    local thing = things[name]
    if thing.path then
      local text = thing.path[1] .. "\n" .. say(thing)
      if not buckets[text] then
        buckets[text] = {}
        order[#order + 1] = text
      end
      table.insert(buckets[text], name)
    end
  end
  for _, text in ipairs(order) do
    local names = buckets[text]
    if #names > 1 then
      renamed = renamed or {}
      local paths, doc = {}, things[names[1]].doc
      for i, name in ipairs(names) do
        paths[i] = things[name].path
        if things[name].doc ~= doc then doc = nil end
      end
      local thing, path = things[names[1]], folded(paths)
      local new = model.unique(group, table.concat(path))
      thing.doc, thing.path = doc, path
      for _, name in ipairs(names) do renamed[name], things[name] = new, nil end
      things[new] = thing
    end
  end
  return renamed
end

--- Merges the equal types of every group of the library.
function M.fold(library)
  for _, accessor in ipairs(model.sorted(library.groups)) do
    local group = library.groups[accessor]
    local function settle(things, say, kind)
      while true do
        local renamed = round(group, things, say)
        if not renamed then return end
        for _, type_ in pairs(group.types) do
          for _, field in ipairs(type_.fields) do rename(field.type, kind, group, renamed) end
        end
      end
    end
    settle(group.aliases, function(alias) return table.concat(alias.values, "\n") end, "enum")
    settle(group.types, says, "class")
  end
end

return M
