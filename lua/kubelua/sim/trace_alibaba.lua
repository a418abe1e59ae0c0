-- trace_alibaba.lua - Alibaba's trace of 2018: machines with long-running containers, whose use is known, and
-- batch tasks beside them. Its CSV files have no header; these columns are read:
--
--   machine_meta     1 machine, 5 cores, 6 memory
--   container_meta   1 container, 2 machine, 4 app, 6 requested cpu, 8 memory
--   container_usage  1 container, 3 time, 4 cpu
--   batch_task       1 task, 2 instances, 3 job, 5 status, 6 start, 7 end, 8 cpu, 9 memory
--
-- A requested cpu of 100 is a core, used cpu is a percentage of the request, times are seconds. Memory is a
-- percentage of the largest machine's, which the setting `memory` gives.

local csv = require "kubelua.sim.csv"
local dice = require "kubelua.sim.dice"
local files = require "kubelua.sim.trace_files"

local M = {}

M.ASSUMED = {
  "of the trace: a memory of 100 is the setting memory; batch tasks run at full speed from their start to \z
    their end, with equal instances",
  "of the trace: between two samples, a container's usage is that of the earlier one",
}

-- Converts hundredths of a core, and percentages of the largest memory.
local function millis(row, k) return math.max(1, row.number(k, "the cpu") * 10 // 1 | 0) end
local function bytes(row, k, settings)
  local share = row.number(k, "the memory")
  if share > 100 then row.fail(("the memory must be from 0 to 100: %q"):format(row[k])) end
  return share * settings.memory // 100 | 0
end

-- The most pods that are simulated: a line may stand for any number of instances.
local PODS_MAX = 1000000

--- Its machines; the first row of each counts.
function M.nodes(dir, settings)
  local out, seen = {}, {}
  for row in csv.rows(csv.find(dir, "machine_meta")) do
    if not seen[row[1]] then
      seen[row[1]] = true
      out[#out + 1] = { id = row[1], name = csv.name(row[1]),
        cpu = row.number(5, "the number of cores") * 1000 // 1 | 0, memory = bytes(row, 6, settings) }
    end
  end
  return out
end

-- The use of each container, { second, percent, ... }; the first is the last sample before the span.
local function uses(dir, wanted, from, to)
  local out = {}
  for row in csv.rows(csv.find(dir, "container_usage")) do
    local t, percent = tonumber(row[3]), tonumber(row[4])
    if wanted[row[1]] and t and percent and t < to and percent >= 0 and percent <= 100 then
      local list = out[row[1]] or {}
      out[row[1]] = list
      if t > from then
        list[#list + 1], list[#list + 2] = t - from, percent
      elseif not list.before or t > list.before then
        list.before, list.held = t, percent
      end
    end
  end
  for _, list in pairs(out) do
    if list.before then list[#list + 1], list[#list + 2] = 0, list.held end
    files.sort(list)
  end
  return out
end

local function containers(dir, settings, kept, from, to)
  local out, by_id = {}, {}
  for row in csv.rows(csv.find(dir, "container_meta")) do
    if kept[row[2]] and not by_id[row[1]] then
      by_id[row[1]] = { name = csv.name(row[1]), class = "prod", namespace = "default",
        app = csv.name(row.text(4, "the app")), on = kept[row[2]], cpu = millis(row, 6),
        memory = bytes(row, 8, settings), created = 0, ends = math.huge }
      out[#out + 1] = by_id[row[1]]
    end
  end
  for id, list in pairs(uses(dir, by_id, from, to)) do
    for k = 2, #list, 2 do list[k] = by_id[id].cpu * list[k] / 100 end
    by_id[id].uses = list
  end
  return out
end

local function tasks(dir, settings, share, from, to, out)
  for row in csv.rows(csv.find(dir, "batch_task")) do
    local starts, ends = tonumber(row[6]), tonumber(row[7])
    local task = row.text(3, "the job") .. "-" .. row[1]
    if row[5] == "Terminated" and starts and ends and starts < to and starts >= from and ends > starts
      and (share == 1 or dice.unit(0, dice.of(task), 7) < share) then
      local n = row.number(2, "the number of instances")
      if #out + n > PODS_MAX then
        row.fail(("that is more than %d pods: --cut from=DURATION,nodes=N takes a part of the trace"):format(
          PODS_MAX))
      end
      for k = 1, n do
        out[#out + 1] = { name = csv.name(("%s-%d"):format(task, k)), class = "batch", namespace = "batch",
          app = csv.name(row[3]), cpu = millis(row, 8), memory = bytes(row, 9, settings),
          created = starts - from, ends = ends - from }
      end
    end
  end
end

--- The pods on the kept machines ({ [id] = its place }) and a share of the tasks, from one moment to another.
function M.pods(dir, settings, kept, share, from, to)
  local out = containers(dir, settings, kept, from, to)
  tasks(dir, settings, share, from, to, out)
  return out
end

return M
