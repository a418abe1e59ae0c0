-- fixtures.lua DIR - runs the cases of Koordinator's behaviour in DIR with the policies in
-- controllers/koordinator.
--
-- DIR holds *.json files { calc, cases = { { name, input, expect } } }: spec/fixtures/koordinator/README.md
-- says what they mean. Prints each case that fails and ends with `N passed, N failed`; exit status 1 when
-- something failed. A calculation that no policy knows yet is named and is not a failure; a file that cannot
-- be read or has no sense is one.

package.path = "controllers/koordinator/?.lua;spec/?.lua;" .. package.path

local kube = require "kubelua"
local batchresource = require "batchresource"
local bisect = require "kubelua.sim.bisect"
local colocation = require "colocation"
local cpunormalization = require "cpunormalization"
local devices = require "devices"
local fields = require "fields"
local load_fixtures = require "support.load_fixtures"
local midresource = require "midresource"
local node_fixtures = require "support.node_fixtures"
local prepare = require "prepare"
local process = require "support.process"
local quota_fixtures = require "support.quota_fixtures"
local resourceamplification = require "resourceamplification"

local M = {}

local NOW = "2026-01-01T00:00:00Z"

local function seconds(text) return kube.time(text or NOW):unix() end

-- ---------------------------------------------------------------- comparing

local function show(v)
  if type(v) ~= "table" then return type(v) == "string" and ("%q"):format(v) or tostring(v) end
  local names, parts = {}, {}
  for name in pairs(v) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for i, name in ipairs(names) do parts[i] = ("%s = %s"):format(tostring(name), show(v[name])) end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local function same_quantity(want, got) return got ~= nil and kube.qty(got) == kube.qty(want) end

-- Each of these returns what is wrong, or nil.
local function value(what, want, got)
  if not fields.equal(want, got) then
    return ("%s: expected %s, got %s"):format(what, show(want), show(got))
  end
end

local function quantities(what, want, got)
  got = got or {}
  for name, quantity in pairs(want) do
    if not same_quantity(quantity, got[name]) then
      return ("%s: %s: expected %s, got %s"):format(what, name, quantity, tostring(got[name]))
    end
  end
  for name in pairs(got) do
    if want[name] == nil then
      return ("%s: %s was not expected, got %s"):format(what, name, tostring(got[name]))
    end
  end
end

local function some_of(what, want, got)
  for name, text in pairs(want) do
    local wrong = value(what .. ": " .. name, text, (got or {})[name])
    if wrong then return wrong end
  end
end

local function first(...)
  for i = 1, select("#", ...) do
    local wrong = select(i, ...)
    if wrong then return wrong end
  end
end

-- Runs `compare(expected)` for what the case asserts.
local function when(expect, compare) return expect ~= nil and compare(expect) or nil end

-- ---------------------------------------------------------------- the calculations
-- Each takes input and expect, and returns what is wrong; a calculation that fails returns nil and why, as
-- policies do.

local calcs = {}
M.calcs = calcs

local function failing(expect, result, why)
  if expect.error then
    if result ~= nil then return "expected an error, got " .. show(result) end
    return nil, true
  end
  if result == nil then return "failed: " .. tostring(why) end
end

local function resources(module)
  return function(input, expect)
    local result, why = module.calculate {
      strategy = input.strategy, node = input.node, pods = input.pods, nodeMetric = input.nodeMetric,
      nodeResourceTopology = input.nodeResourceTopology, now = seconds(input.now),
    }
    local wrong, done = failing(expect, result, why)
    if wrong or done then return wrong end
    return first(
      when(expect.resources, function(want) return quantities("resources", want, result.resources) end),
      when(expect.messages, function(want)
        local said = {}
        for name, say in pairs(result.messages) do said[name] = say() end
        return some_of("messages", want, said)
      end),
      when(expect.zones, function(want)
        for zone, list in pairs(want) do
          local bad = quantities("zone " .. zone, list, (result.zones or {})[zone])
          if bad then return bad end
        end
      end),
      when(expect.reset, function(want)
        local names = {}
        for _, name in ipairs(want) do names[name] = true end
        return value("reset", names, result.resets)
      end))
  end
end

calcs.batchresource = resources(batchresource)
calcs.midresource = resources(midresource)

-- One file holds several operations; `ops` maps input.op to such a function.
local function by_op(ops)
  return function(input, expect)
    local op = ops[input.op]
    if not op then
      local known = {}
      for name in pairs(ops) do known[#known + 1] = name end
      table.sort(known)
      return ("input.op is %s; it is one of: %s"):format(show(input.op), table.concat(known, ", "))
    end
    return op(input, expect)
  end
end

local function needs(input, ...)
  for _, name in ipairs { ... } do
    if input[name] == nil then error(("input.%s is missing"):format(name), 0) end
  end
end

calcs.colocation_strategy = by_op {
  getNodeColocationStrategy = function(input, expect)
    return value("strategy", expect.strategy, colocation.strategy(input.cfg, input.node))
  end,
  updateColocationStrategyForNode = function(input, expect)
    needs(input, "strategy", "node")
    return value("strategy", expect.strategy, colocation.bend(input.strategy, input.node))
  end,
  isColocationStrategyValid = function(input, expect)
    return value("valid", expect.valid, (colocation.valid(input.strategy)))
  end,
  syncColocationConfig = function(input, expect)
    needs(input, "cache")
    local cache, changed = colocation.sync(fields.copy(input.cache), input.configMap)
    return first(value("changed", expect.changed, changed), some_of("cache", expect.cache or {}, cache))
  end,
}

local function annotations(expect, result, why)
  local wrong, done = failing(expect, result, why)
  if wrong or done then return wrong end
  return when(expect.annotations, function(want) return value("annotations", want, result.annotations) end)
end

local function ratio(compute)
  return function(input, expect)
    needs(input, "cpuBasicInfo", "strategy")
    local result, why = compute(input.cpuBasicInfo, input.strategy)
    local wrong, done = failing(expect, result, why)
    if wrong or done then return wrong end
    return when(expect.ratio, function(want) return value("ratio", want, result) end)
  end
end

calcs.cpu_normalization = by_op {
  getCPUNormalizationRatioFromModel = ratio(cpunormalization.ratio_from_model),
  getCPUNormalizationRatio = ratio(cpunormalization.ratio),
  calculate = function(input, expect)
    return annotations(expect, cpunormalization.calculate {
      cpuNormalization = input.config, node = input.node, nodeResourceTopology = input.nodeResourceTopology,
    })
  end,
  needSyncMeta = function(input, expect)
    return value("needSync", expect.needSync, cpunormalization.differs(
      fields.annotation(input.oldNode, cpunormalization.ANNOTATION),
      fields.annotation(input.newNode, cpunormalization.ANNOTATION)))
  end,
}

calcs.resource_amplification = function(input, expect)
  return annotations(expect, resourceamplification.calculate { resourceAmplification = input.config,
    node = input.node })
end

local PLUGIN_NAMES = { BatchResource = batchresource.NAMES, MidResource = midresource.NAMES }

local function only(list, names)
  local out = {}
  for _, name in ipairs(names) do out[name] = list[name] end
  return out
end

-- A case prepares one plugin, the policy all of them: the names of the other plugins stay as they are.
local function prepared(input)
  local names = PLUGIN_NAMES[input.plugin] or error(
    ("input.plugin is %s; it is one of: BatchResource, MidResource")
    :format(show(input.plugin)), 0)
  local node = fields.copy(input.node)
  node.metadata.annotations = node.metadata.annotations or {}
  local plan = fields.copy(input.nodeResource)
  plan.zones = plan.zoneResources
  local desired = prepare.prepare(node, plan)
  local own = { resources = only(desired.resources, names), annotations = desired.annotations, labels = {} }
  local status = prepare.status_patch(node, own)
  return kube.copy(kube.merge(node, { status = status }, prepare.meta_patch(node, own)))
end

-- The new allocatable list of a case, where an absent amount is one that goes.
local function with_absent(list)
  local out = fields.copy(list)
  for _, module in ipairs { batchresource, midresource, devices } do
    for _, name in ipairs(module.NAMES) do out[name] = out[name] or false end
  end
  return out
end

calcs.noderesource_prepare = by_op {
  prepare = function(input, expect)
    needs(input, "plugin", "node", "nodeResource")
    local node = prepared(input)
    return first(
      when(expect.capacity, function(want) return quantities("capacity", want, node.status.capacity) end),
      when(expect.allocatable, function(want)
        return quantities("allocatable", want, node.status.allocatable)
      end),
      when(expect.originExtendedAllocatable, function(want)
        local text = fields.annotation(node, "node.koordinator.sh/originExtendedAllocatable")
        return quantities("originExtendedAllocatable", want,
          fields.dig(text and fields.json(text), "resources"))
      end))
  end,
  needSync = function(input, expect)
    needs(input, "plugin", "strategy", "oldNode", "newNode")
    local just_now = { resourceDiffThreshold = input.strategy.resourceDiffThreshold,
      updateTimeThresholdSeconds = 0 }
    return value("needSync", expect.needSync, prepare.need_sync_status(just_now,
      input.oldNode.status.allocatable,
      only(with_absent(input.newNode.status.allocatable), PLUGIN_NAMES[input.plugin]), 0, 0))
  end,
  needSyncStatus = function(input, expect)
    needs(input, "strategy", "oldNode", "newNode")
    return value("needSync", expect.needSync, prepare.need_sync_status(input.strategy,
      input.oldNode.status.allocatable,
      with_absent(input.newNode.status.allocatable),
      input.lastUpdate and seconds(input.lastUpdate), seconds(input.now)))
  end,
}

-- The decision of a policy in a simulation; kubelua sim --bisect writes such cases.
calcs.decision = function(input, expect)
  needs(input, "cell", "n")
  local got, want = bisect.decision(fields.copy(input.cell), input.n), expect.decision
  if got == nil then return "the simulation ends before that" end
  return first(value("at", want.at, got.at), value("controller", want.controller, got.controller),
    value("key", want.key, got.key), value("result", want.result, got.result),
    value("wrote", want.wrote, got.wrote))
end

local tools = { by_op = by_op, failing = failing, first = first, quantities = quantities, show = show,
  some_of = some_of, value = value, when = when }
quota_fixtures(calcs, tools)
load_fixtures(calcs, tools)
node_fixtures(calcs, tools)

-- ---------------------------------------------------------------- running

-- Runs the cases in the text of a file. `say` is called with each line of output. With `as_views` the
-- policies get views, as in a controller, instead of plain tables. Returns the numbers of passed and failed
-- cases, and the calculation if no policy knows it.
function M.run(name, text, say, as_views)
  local function broken(why)
    say(("FAIL %s: %s"):format(name, why))
    return 0, 1
  end
  local document, why = fields.json(text)
  if not document then return broken(why) end
  if type(document.calc) ~= "string" then
    return broken 'has no "calc": which calculation are its cases of?'
  end
  if type(document.cases) ~= "table" then
    return broken 'has no "cases": a list of { name, input, expect }'
  end
  local calc = calcs[document.calc]
  if not calc then return 0, 0, document.calc end

  local passed, failed = 0, 0
  local views = as_views and kube.decode(text, { duplicates = "last" })
  for i, case in ipairs(document.cases) do
    local ok, wrong
    if type(case) ~= "table" or type(case.input) ~= "table" or type(case.expect) ~= "table" then
      ok, wrong = true, "a case is { name, input, expect }, with input and expect objects"
    else
      ok, wrong = pcall(calc, views and views.cases[i].input or case.input, case.expect, case.derived)
    end
    if ok and not wrong then
      passed = passed + 1
    else
      failed = failed + 1
      local label = type(case) == "table" and case.name or ("case %d"):format(i)
      say(("FAIL %s: %s\n     %s"):format(name, tostring(label),
        ok and wrong or "raised: " .. tostring(wrong)))
    end
  end
  return passed, failed
end

-- Runs every *.json file of a directory, and prints the last line. Returns whether all cases passed.
function M.run_directory(dir, say)
  local listing, status = process.run(("find %s/ -maxdepth 1 -name '*.json' 2>/dev/null | sort"):format(
    process.quote(dir)))
  local total_passed, total_failed, unknown = 0, 0, {}
  local any = false
  for path in listing:gmatch "[^\n]+" do
    any = true
    local name = path:match "[^/]+$"
    local file, why = io.open(path, "rb")
    local text
    if file then
      text, why = file:read "a"
      file:close()
    end
    if not text then
      say(("FAIL %s: cannot be read: %s"):format(name, why))
      total_failed = total_failed + 1
    else
      local passed, failed, calc = M.run(name, text, say)
      total_passed, total_failed = total_passed + passed, total_failed + failed
      unknown[#unknown + 1] = calc
    end
  end
  if status ~= 0 or not any then
    say(("%s: no *.json files here; `make fixtures DIR=...` takes a directory of cases, \z
      spec/fixtures/koordinator has examples")
      :format(dir))
    total_failed = total_failed + 1
  end
  if #unknown > 0 then say("not known yet: " .. table.concat(unknown, ", ")) end
  say(("%d passed, %d failed"):format(total_passed, total_failed))
  return total_failed == 0
end

if arg and arg[0] and arg[0]:find "fixtures%.lua$" then
  if not arg[1] or arg[2] then
    io.stderr:write "usage: lua5.4 spec/support/fixtures.lua DIR\n"
    os.exit(2)
  end
  os.exit(M.run_directory(arg[1], print))
end

return M
