-- quotaexplain.lua - explains the runtime of each quota in an annotation, with a line for each resource.

local fields = require "fields"
local lists = require "lib.lists"
local status = require "elasticquota.status"
local tree = require "elasticquota.tree"

local ANNOTATION = "kubelua.dev/quota-explain"

local calculate, changes = tree.calculate, status.changes

local LINE = "%s: runtime %s: %s has %s, others got %s; min %s (counts %s), asks for %s, max %s, lends %s, \z
  weight %s of %s"

local function line(q, info, parent, all, name)
  local function text(list) return lists.text(name, list[name] or 0) end
  local others = lists.text(name, (all.runtime[name] or 0) - (info.runtime[name] or 0))
  return LINE:format(name, text(info.runtime), q.parent, text(parent.runtime), others, text(q.min),
    text(info.auto_min), text(info.request), text(q.max), tostring(q.lends), text(q.weight), text(all.weight))
end

function tree.calculate(input)
  local infos, below = calculate(input), {} -- by parent: the sum of its children's runtimes and weights
  for _, q in ipairs(input.quotas) do
    below[q.parent] = below[q.parent] or { runtime = {}, weight = {} }
    lists.accumulate(below[q.parent].runtime, infos[q.name].runtime)
    lists.accumulate(below[q.parent].weight, q.weight)
  end
  for _, q in ipairs(input.quotas) do
    local info, parent, lines = infos[q.name], infos[q.parent], {}
    if next(info.runtime) and parent then
      for i, name in ipairs(lists.names(q.max)) do lines[i] = line(q, info, parent, below[q.parent], name) end
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
