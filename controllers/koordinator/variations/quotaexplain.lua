-- quotaexplain.lua - each quota says how its runtime came about, in an annotation: a line for each resource.

local fields = require "fields"
local lists = require "lib.lists"
local status = require "elasticquota.status"
local tree = require "elasticquota.tree"

local ANNOTATION = "kubelua.dev/quota-explain"

local calculate, changes = tree.calculate, status.changes

local LINE = "%s: runtime %s: %s has %s, others got %s; min %s (counts %s), asks for %s, max %s, lends %s, \z
  weight %s of %s"

local function line(q, quotas, infos, name)
  local info, parent, got, weights = infos[q.name], infos[q.parent], {}, {}
  local function text(list) return lists.text(name, list[name] or 0) end
  for _, other in ipairs(quotas) do
    if other.parent == q.parent then
      lists.accumulate(weights, other.weight)
      if other ~= q then lists.accumulate(got, infos[other.name].runtime) end
    end
  end
  return LINE:format(name, text(info.runtime), q.parent, text(parent.runtime), text(got), text(q.min),
    text(info.auto_min), text(info.request), text(q.max), tostring(q.lends), text(q.weight), text(weights))
end

function tree.calculate(input)
  local infos = calculate(input)
  for _, q in ipairs(input.quotas) do
    local info, lines = infos[q.name], {}
    if next(info.runtime) and infos[q.parent] then
      for i, name in ipairs(lists.names(q.max)) do lines[i] = line(q, input.quotas, infos, name) end
      info.explained = table.concat(lines, "\n")
    end
  end
  return infos
end

function status.changes(object, info)
  local out = changes(object, info)
  if not info.explained or fields.annotation(object, ANNOTATION) == info.explained then return out end
  out = out or { annotations = {} }
  out.annotations[ANNOTATION] = info.explained
  return out
end
