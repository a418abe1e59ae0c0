-- placement.lua - `kubelua sim --placement POLICY,... --trace openb:DIR`: places the pods of a trace on nodes
-- with GPUs until they ask for more than there is, as in the study "Beware of Fragmentation" (USENIX ATC
-- 2023): how many GPUs are allocated, and how much of the rest nobody can use.
--
-- A run places pods one after the other, in an order by the seed; none ends. When the trace is over, more of
-- its pods are drawn. Two pods that ask for the same are of one kind.

local core = require "kubelua.core"
local dice = require "kubelua.sim.dice"
local openb = require "kubelua.sim.trace_openb"
local suggest = require "kubelua.suggest"
local sweep = require "kubelua.sim.sweep"

local M = {}

-- Pods are placed until they have asked for so many times the cluster's GPUs.
local ARRIVALS = 1.3

-- A policy is a function (fragments of the node, fragments with the pod, free share of its cpu, of its GPUs,
-- the pod's share of its cpu, of its GPUs, free GPUs, pods there that ask for the same GPUs); the lowest
-- result is the best. `choice` says which GPU a pod that needs a part of one gets: the GPU that leaves the
-- fewest fragments, or the one with the least left.
local POLICIES = {
  fgd = { choice = "fewest", words = "the fewest new fragments (the study's own)",
    score = function(now, after) return after - now end },
  bestfit = { choice = "least", words = "the least left",
    score = function(_, _, cpu, gpus, asked, asked_gpus) return cpu - asked + gpus - asked_gpus end },
  dotprod = { choice = "least", words = "the smallest product of free and requested resources",
    score = function(_, _, cpu, gpus, asked, asked_gpus) return cpu * asked + gpus * asked_gpus end },
  packing = { choice = "least", words = "the fewest free GPUs",
    score = function(_, _, _, _, _, _, free) return free end },
  clustering = { choice = "least", words = "the most pods that ask for the same GPUs",
    score = function(_, _, _, _, _, _, free, alike) return free - 1000 * alike end },
  random = { choice = "least", words = "any node that fits", any = true, score = function() return 0 end },
}

--- The policy of a name, or of a Lua file that returns such a function; raises.
function M.policy(name)
  if POLICIES[name] then return POLICIES[name] end
  if not name:find "%.lua$" then
    error(("--placement: unknown policy %q%s (a name in .lua is a Lua file that returns a function)")
      :format(name, suggest.hint(name, POLICIES)), 0)
  end
  local chunk, why = loadfile(name, "t")
  local score = chunk and chunk()
  if type(score) ~= "function" then
    error(("--placement %s: %s"):format(name, why or "the file must return a function"), 0)
  end
  return { choice = "fewest", words = "of this file", score = score }
end

-- ---------------------------------------------------------------- a run

-- The models of a trace as bits, in order of their appearance.
local function bits_of(nodes)
  local bits, n = {}, 0
  for _, node in ipairs(nodes) do
    if node.model ~= "" and not bits[node.model] then
      if n == 62 then error("the trace has more than 62 models of GPUs", 0) end
      bits[node.model], n = 1 << n, n + 1
    end
  end
  return bits
end

-- A model that no node has is a bit of its own, so that a pod that asks for it fits nowhere.
local NOWHERE = 1 << 62

local function mask_of(models, bits)
  local mask = 0
  for name in models:gmatch "[^|]+" do mask = mask | (bits[name] or NOWHERE) end
  return mask
end

-- Adds the kinds of pods to a cluster; returns the kind of each pod.
local function kinds_of(gpus, pods, bits)
  local known, list, kind = {}, {}, {}
  for i, p in ipairs(pods) do
    local key = ("%d %d %d %d %s"):format(p.cpu, p.memory, p.gpus, p.milli, p.models)
    if not known[key] then
      known[key] = { pod = p, n = 0 }
      list[#list + 1] = known[key]
    end
    known[key].n, kind[i] = known[key].n + 1, known[key]
  end
  for _, k in ipairs(list) do
    k.number = gpus:kind(k.pod.cpu, k.pod.memory, k.pod.gpus, k.pod.milli, mask_of(k.pod.models, bits),
      k.n / #pods)
  end
  for i in ipairs(pods) do kind[i] = kind[i].number end
  return kind
end

-- The places of pods in the order of their arrival: all of them once, then any.
local function order_of(pods, seed)
  local order = {}
  for i = 1, #pods do order[i] = i end
  for i = #pods, 2, -1 do
    local k = 1 + dice.unit(seed, i, 8) * i // 1 | 0
    order[i], order[k] = order[k], order[i]
  end
  return function(n) return order[n] or 1 + dice.unit(seed, n, 9) * #pods // 1 | 0 end
end

--- One run: { gpus, nodes, allocated, fragments, pods, failed, rows = { { arrived, allocated, fragments } ...
--- } }, in percent of all GPUs; a row for each twentieth of the GPUs that were asked for.
---@param o { dir: string, policy: string, seed: integer }
function M.once(o)
  local nodes, pods = openb.gpu_nodes(o.dir), openb.gpu_pods(o.dir)
  local policy, bits = M.policy(o.policy), bits_of(nodes)
  local gpus = core.gpus(policy.choice)
  for _, n in ipairs(nodes) do gpus:node(n.cpu, n.memory, n.gpus, bits[n.model] or 0) end
  local kind, all, asked = kinds_of(gpus, pods, bits), 0, 0
  for _, n in ipairs(nodes) do all = all + n.gpus end
  for _, p in ipairs(pods) do asked = asked + p.gpus * p.milli / 1000 end
  if all == 0 or asked == 0 then
    error(("the trace in %s has no GPUs, or no pod asks for one"):format(o.dir), 0)
  end
  local place_of, rows, n, failed = order_of(pods, o.seed), {}, 0, 0
  asked = 0
  while asked < ARRIVALS * all do
    n = n + 1
    local i = place_of(n)
    asked = asked + pods[i].gpus * pods[i].milli / 1000
    if not gpus:put(kind[i], policy.score, policy.any and dice.unit(o.seed, n, 10) or nil) then
      failed = failed + 1
    end
    if asked >= (#rows + 1) * all / 20 then
      local _, left, fragments = gpus:sums()
      rows[#rows + 1] = { 100 * asked / all, 100 * (all - left) / all, 100 * fragments / all }
    end
  end
  local _, left, fragments = gpus:sums()
  return { gpus = all, nodes = #nodes, allocated = 100 * (all - left) / all,
    fragments = 100 * fragments / all, pods = n, failed = failed, rows = rows }
end

--- Runs each policy with each seed, in processes of their own: a list of { name, words, allocated,
--- fragments, failed, runs }, the sums as sweep.spread makes them. o: { dir, policies, seed, seeds, jobs,
--- progress }.
function M.run(o)
  local cells, rows = {}, {}
  for _, name in ipairs(o.policies) do
    M.policy(name)
    for k = 1, o.seeds do
      cells[#cells + 1] = { placement = { dir = o.dir, policy = name, seed = o.seed + k - 1 } }
    end
  end
  local results = sweep.run(cells, { jobs = o.jobs, progress = o.progress })
  for i, name in ipairs(o.policies) do
    local runs = table.move(results, (i - 1) * o.seeds + 1, i * o.seeds, 1, {})
    local row = { name = name, words = M.policy(name).words, runs = runs }
    for _, what in ipairs { "allocated", "fragments", "failed" } do
      local list = {}
      for k, r in ipairs(runs) do list[k] = r[what] end
      row[what] = sweep.spread(list)
    end
    rows[i] = row
  end
  return rows
end

local function with_half(s)
  return (s.half > 0 and "%.2f ±%.2f" or "%.2f"):format(s.mean, s.half)
end

--- The table for a terminal.
function M.text(rows)
  local first = rows[1].runs[1]
  local out = { ("%d nodes with %d GPUs; pods arrive until they have asked for %d %% of the GPUs"):format(
    first.nodes, first.gpus // 1 | 0, 100 * ARRIVALS // 1 | 0), "",
    ("%-16s %16s %16s %16s"):format("", "allocated %", "fragments %", "not placed") }
  for _, r in ipairs(rows) do
    out[#out + 1] = ("%-16s %16s %16s %16s"):format(r.name, with_half(r.allocated), with_half(r.fragments),
      with_half(r.failed))
  end
  out[#out + 1] = ""
  out[#out + 1] = "shares of all GPUs; fragments: free GPUs that pods of the trace could not use"
  for _, r in ipairs(rows) do out[#out + 1] = ("%-16s %s"):format(r.name, r.words) end
  return table.concat(out, "\n") .. "\n"
end

--- All runs: policy, seed and the state after each twentieth of the GPUs was asked for.
function M.csv(rows, seed)
  local out = { "policy,seed,arrived,allocated,fragments\n" }
  for _, r in ipairs(rows) do
    for k, run in ipairs(r.runs) do
      for _, row in ipairs(run.rows) do
        out[#out + 1] = ("%s,%d,%.10g,%.10g,%.10g\n"):format(r.name, seed + k - 1, row[1], row[2], row[3])
      end
    end
  end
  return table.concat(out)
end

return M
