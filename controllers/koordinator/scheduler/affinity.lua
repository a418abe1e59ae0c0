-- affinity.lua - InterPodAffinity: pods that require or avoid the domains of certain other pods. A domain is
-- the set of nodes with one value of the label topologyKey.
--
--   affinity       the node's domain has a pod that all terms match; if no domain has one and the terms match
--                  the pod itself, it may be the first
--   anti-affinity  the domain has no pod that the term matches, and none whose own term matches the pod
--   score          Σ weight of the preferred terms that hold: the pod's own, and those of the domain's pods
--                  that match the pod, whose required affinity counts 1; scaled to 0..100 over all nodes

local fields = require "fields"
local range = require("scheduler.scores").range
local selection = require "scheduler.selection"

local dig = fields.dig

local M = { name = "InterPodAffinity" }

local MAX = 100
local HARD = 1 -- the weight of another pod's required affinity: Kubernetes' hardPodAffinityWeight

local function terms(pod, kind, how)
  return dig(pod, "spec", "affinity", kind, how .. "DuringSchedulingIgnoredDuringExecution") or {}
end

local function read(list, pod, known)
  local out = {}
  for i, term in ipairs(list) do
    out[i] = { key = term.topologyKey, means = selection.term(term, pod, known), in_domain = {} }
  end
  return out
end

local function all_mean(list, pod)
  for _, term in ipairs(list) do
    if not term.means(pod) then return false end
  end
  return #list > 0
end

local function note(term, info, weight)
  local value = selection.label(info, term.key)
  if value ~= nil then term.in_domain[value] = (term.in_domain[value] or 0) + weight end
end

local function preferred(pod, known)
  local out = {}
  local function add(kind, sign)
    for _, one in ipairs(terms(pod, kind, "preferred")) do
      local term = read({ one.podAffinityTerm }, pod, known)[1]
      term.weight = sign * (one.weight or 0)
      out[#out + 1] = term
    end
  end
  add("podAffinity", 1)
  add("podAntiAffinity", -1)
  return out
end

-- The terms of a node's pods, read once: { repelling, drawing }, the required anti-affinity, and the others
-- with a weight, which is negative for preferred anti-affinity.
local function minding(info, known)
  if info.minding_at ~= info.stamp then
    local own = { repelling = {}, drawing = {} }
    for _, entry in pairs(info.pods) do
      local pod = entry.pod
      for _, term in ipairs(read(terms(pod, "podAntiAffinity", "required"), pod, known)) do
        table.insert(own.repelling, term)
      end
      for _, term in ipairs(read(terms(pod, "podAffinity", "required"), pod, known)) do
        term.weight = HARD
        table.insert(own.drawing, term)
      end
      for _, term in ipairs(preferred(pod, known)) do table.insert(own.drawing, term) end
    end
    info.minding_at, info.minding = info.stamp, own
  end
  return info.minding
end

-- Adds the terms of a node's pods that match this pod.
local function mind(mine, pod, info, known)
  local own = minding(info, known)
  for _, term in ipairs(own.repelling) do
    local value = term.means(pod) and selection.label(info, term.key)
    if value then mine.kept_off[#mine.kept_off + 1] = { key = term.key, value = value } end
  end
  for _, term in ipairs(own.drawing) do
    local value = term.means(pod) and selection.label(info, term.key)
    if value then
      mine.drawn[term.key] = mine.drawn[term.key] or {}
      mine.drawn[term.key][value] = (mine.drawn[term.key][value] or 0) + term.weight
    end
  end
end

local function count(mine, info)
  for _, entry in pairs(info.pods) do
    if all_mean(mine.near, entry.pod) then
      mine.anywhere = true
      for _, term in ipairs(mine.near) do note(term, info, 1) end
    end
    for _, term in ipairs(mine.far) do
      if term.means(entry.pod) then note(term, info, 1) end
    end
    for _, term in ipairs(mine.preferred) do
      if term.means(entry.pod) then note(term, info, term.weight) end
    end
  end
end

function M.prefilter(pod, cycle)
  local known = cycle.state.namespaces
  local mine = { near = read(terms(pod, "podAffinity", "required"), pod, known),
    far = read(terms(pod, "podAntiAffinity", "required"), pod, known), preferred = preferred(pod, known),
    kept_off = {}, drawn = {} }
  mine.asks = #mine.near + #mine.far + #mine.preferred > 0
  for name in pairs(cycle.state.minding or {}) do
    cycle.unlike = true
    mind(mine, pod, cycle.state.sums[name], known)
  end
  if mine.asks then
    cycle.unlike = true
    for _, info in ipairs(cycle.infos) do count(mine, info) end
  end
  mine.first = not mine.anywhere and all_mean(mine.near, pod)
  cycle.affinity_terms = mine
  return nil
end

local function near(mine, info)
  for _, term in ipairs(mine.near) do
    local value = selection.label(info, term.key)
    if value == nil or not mine.first and (term.in_domain[value] or 0) == 0 then return false end
  end
  return true
end

local function far(mine, info)
  for _, term in ipairs(mine.far) do
    local value = selection.label(info, term.key)
    if value ~= nil and (term.in_domain[value] or 0) > 0 then return false end
  end
  return true
end

function M.agrees(_, cycle)
  local mine = cycle.affinity_terms
  return #mine.near + #mine.far + #mine.kept_off == 0
end

function M.filter(_, info, cycle)
  local mine = cycle.affinity_terms
  if not near(mine, info) then return { "node(s) didn't match pod affinity rules" } end
  if not far(mine, info) then return { "node(s) didn't match pod anti-affinity rules" } end
  for _, one in ipairs(mine.kept_off) do
    if selection.label(info, one.key) == one.value then
      return { "node(s) didn't satisfy existing pods anti-affinity rules" }
    end
  end
  return nil
end

function M.silent(_, cycle)
  local mine = cycle.affinity_terms
  return #mine.preferred == 0 and next(mine.drawn) == nil
end

function M.score(_, info, cycle)
  local sum = 0
  for _, term in ipairs(cycle.affinity_terms.preferred) do
    local value = selection.label(info, term.key)
    if value ~= nil then sum = sum + (term.in_domain[value] or 0) end
  end
  for key, weights in pairs(cycle.affinity_terms.drawn) do
    sum = sum + (weights[selection.label(info, key) or ""] or 0)
  end
  return sum
end

function M.normalize(scores)
  local least, most = range(scores)
  for name, n in pairs(scores) do scores[name] = most > least and MAX * (n - least) // (most - least) or 0 end
end

return M
