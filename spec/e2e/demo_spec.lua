-- demo_spec.lua - `make demo`: without a terminal it shows the table and ends; on a terminal it keeps
-- running, and takes over saved policies.
-- not in asan, tsan: most of it is the policies' Lua; dev, reload, shadow and play have specs of their own

package.path = "controllers/koordinator/?.lua;controllers/demo/?.lua;" .. package.path

local kube = require "kubelua"
local cluster = require "cluster"
local colocation = require "colocation"
local plan = require "plan"
local prepare = require "prepare"
local process = require "support.process"
local settings = require "settings"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local PERIOD = 5 -- seconds between two reports of an agent (controllers/demo/demo.lua)
local BATCH_CPU = "kubernetes.io/batch-cpu"
local SILENT, RESERVE = "edge-02", "reserve-01"

-- ---------------------------------------------------------------- the command

-- The recipe of `make demo`, with the controllers at `dir`.
local function demo_command(dir)
  local recipe = assert(process.read "Makefile":match "\ndemo:.-\n\t@%$%(BIN%) (.-[^\\])\n",
    "the Makefile's target demo")
  return KUBELUA .. " " .. recipe:gsub("\\\n%s*", ""):gsub("build/demo/", function() return dir .. "/" end)
end

-- ---------------------------------------------------------------- what it must say

local FILES = { "15-config.yaml", "20-nodes.yaml", "25-topologies.yaml", "30-nodemetrics.yaml",
  "40-pods.yaml" }
local loaded = {}
for _, file in ipairs(FILES) do
  for _, o in ipairs(kube.yaml(process.read("controllers/demo/" .. file), file)) do
    loaded[o.kind] = loaded[o.kind] or {}
    table.insert(loaded[o.kind], o)
  end
end

local function by_name(list)
  local map = {}
  for _, o in ipairs(list) do map[o.metadata.name] = o end
  return map
end

local metrics, topologies, pods_on = by_name(loaded.NodeMetric), by_name(loaded.NodeResourceTopology), {}
for _, pod in ipairs(loaded.Pod) do
  local name = pod.spec.nodeName
  if name then
    pods_on[name] = pods_on[name] or {}
    table.insert(pods_on[name], pod)
  end
end
local known = settings.sync(settings.new(), loaded.ConfigMap[1])

-- The policy's decision about a node with its agent's report at a tick; `cpu_share` of the batch processors.
local function offered(node, tick, cpu_share)
  local name, now = node.metadata.name, tick * PERIOD
  local metric, strategy = metrics[name], colocation.strategy(known.colocation.cfg, node)
  if not cluster.silent(metric) then
    metric = { metadata = metric.metadata, status = cluster.touch(metric, os.date("!%Y-%m-%dT%H:%M:%SZ", now),
      tick) }
  end
  local decided = plan.reset "off"
  if colocation.enabled(known.colocation.cfg, strategy) then
    decided = plan.calculate { strategy = strategy, node = node, nodeMetric = metric,
      nodeResourceTopology = topologies[name], now = now,
      pods = pods_on[name] or {}, cpuNormalization = known.cpuNormalization,
      resourceAmplification = known.resourceAmplification }
  end
  local cpu = decided.resources[BATCH_CPU]
  if cpu and cpu_share then decided.resources[BATCH_CPU] = kube.qty(cpu):milli() // (1 / cpu_share) .. "m" end
  local status = prepare.status_patch(node, prepare.prepare(node, decided))
  local after = kube.copy(kube.merge(node, { status = status }))
  return cluster.rows({ after }, {})[1]
end

local OFFERS = { "batch_cpu", "batch_memory", "mid_cpu", "mid_memory" }

local function offers(row)
  local cells = {}
  for i, name in ipairs(OFFERS) do cells[i] = row[name] or "-" end
  return table.concat(cells, ", ")
end

-- The offers of a node that are right at some time between two moments.
local function right_between(node, from, to, cpu_share)
  local right = {}
  for tick = from // PERIOD - 1, to // PERIOD + 1 do right[offers(offered(node, tick, cpu_share))] = true end
  return right
end

-- The rows of the last table in a text: { node, capacity, usage, before = { 4 cells }, after = { 4 cells },
-- note }.
local function last_table(text)
  local rows, order = nil, nil
  for line in text:gmatch "[^\r\n]+" do
    if line:find "^NODE%s+CAPACITY" then
      rows, order = {}, {}
    elseif rows and line:find " %-> " then
      local cells = {}
      for cell in (line .. "  "):gmatch "(%S.-)%s%s+" do cells[#cells + 1] = cell end
      local row = { node = cells[1], capacity = cells[2], usage = cells[3], before = {}, after = {},
        note = cells[8] }
      for i = 4, 7 do row.before[i - 3], row.after[i - 3] = cells[i]:match "^(%S+) %-> (%S+)$" end
      rows[row.node] = row
      order[#order + 1] = row.node
    end
  end
  return rows, order
end

-- ----------------------------------------------------------------

describe("`make demo` without a terminal", function()
  local text, code, from, to
  lazy_setup(function()
    from = os.time()
    text, code = process.run(demo_command "controllers" .. " </dev/null")
    to = os.time()
  end)

  it("exits with status 0", function() assert.equal(0, code, text) end)

  it("shows every node in the order of the files, with its capacity", function()
    local rows, order = last_table(text)
    assert.equal(#loaded.Node, #order, text)
    for i, node in ipairs(loaded.Node) do
      assert.equal(node.metadata.name, order[i])
      assert.equal(cluster.rows({ node }, {})[1].capacity, rows[order[i]].capacity)
    end
  end)

  it("shows the resources of nodes before and after the policy ran", function()
    local rows = last_table(text)
    for _, node in ipairs(loaded.Node) do
      local row, right = rows[node.metadata.name], right_between(node, from, to)
      assert.equal(offers(cluster.rows({ node }, {})[1]), table.concat(row.before, ", "))
      local got = table.concat(row.after, ", ")
      if not right[got] then
        local list = {}
        for cells in pairs(right) do list[#list + 1] = cells end
        error(("%s offers %s; right is one of:\n%s"):format(row.node, got, table.concat(list, "\n")))
      end
    end
  end)

  it("gives nothing to the node whose agent fell silent", function()
    local rows = last_table(text)
    assert.same({ "-", "-", "-", "-" }, rows[SILENT].after)
    assert.equal("agent silent", rows[SILENT].note)
    assert.same({ "-", "-", "-", "-" }, rows[RESERVE].after)
    assert.truthy(text:find(("%d of %d nodes offer"):format(#loaded.Node - 2, #loaded.Node), 1, true), text)
  end)

  it("shows a webhook that makes a new pod a batch pod, and its node", function()
    local said = assert(text:match "\nWebhook: (.-)\n\n", text)
    assert.matches("asked for: cpu 2, memory 4Gi\n", said, 1, true)
    assert.matches("was made:  batch-cpu 2000 (milli-cores), batch-memory 4Gi, priority 5000, QoS BE\n", said,
      1, true)
    assert.truthy(by_name(loaded.Node)[said:match "runs on (%S+),"], said)
  end)

  it("shows a quota that lends what it does not need, and takes it back", function()
    local said, may = assert(text:match "\nQuota: (.-)\n\n", text), {}
    for team, asks, uses in said:gmatch "(%a+)%s+guaranteed 20, asks for +(%d+), may use +(%d+)" do
      may[#may + 1] = ("%s %s %s"):format(team, asks, uses)
    end
    assert.same({ "search 32 32", "vision 8 8", "search 32 20", "vision 24 20" }, may)
  end)

  it("shows a pod that moves to its reservation", function()
    local said = assert(text:match "\nMigration: (.*)", text)
    local moved, from_node = said:match "(checkout%S+) runs on (%S+)\n"
    local place = said:match "a Reservation holds a place on (%S+)\n"
    assert.truthy(said:find(moved .. " was evicted\n", 1, true), said)
    local other, to_node = said:match "(checkout%S+) took that place on (%S+): the PodMigrationJob has \z
      succeeded"
    assert.not_equal(moved, other)
    assert.not_equal(from_node, to_node)
    assert.equal(place, to_node)
  end)
end)

describe("`make demo` without a terminal, with its own controllers", function()
  local dir, text, code, from, to
  lazy_setup(function()
    dir, from = process.tmpname ".controllers", os.time()
    assert(select(2, process.run(("cp -R controllers %s"):format(process.quote(dir)))) == 0)
    text, code = process.run(demo_command(dir) .. " </dev/null 2>&1")
    to = os.time()
  end)

  it("edits the policy and shows the new resources, without a restart", function()
    assert.equal(0, code, text)
    local edited = text:match "Half of the processors.-\n\n(.-)\nThe same file, broken"
    local rows = last_table(assert(edited, text))
    for _, node in ipairs(loaded.Node) do
      local got = table.concat(rows[node.metadata.name].after, ", ")
      assert.is_true(right_between(node, from, to, 0.5)[got],
        ("%s offers %s\n%s"):format(node.metadata.name, got, text))
    end
  end)

  it("shows a rejected policy with the place of the mistake, and restores the file",
    function()
    assert.truthy(text:find("Refused: [^\n]*batchresource%.lua:%d+: "), text)
    assert.truthy(text:find("Repaired", 1, true), text)
    assert.is_true(process.read(dir
      .. "/koordinator/batchresource.lua") == process.read "controllers/koordinator/batchresource.lua")
  end)

  it("shows the history of a node", function()
    local said = text:match "%$ kubelua why node general%-01\n(.-)\n\n"
    assert.truthy(said and said:find "ran [^\n]* ago" and said:find "listed %d+ v1/Pod", text)
  end)

  -- For other nodes, a new generation writes small differences that the running one leaves for later.
  it("shows the effect of another version", function()
    local said = text:match "%$ kubelua shadow next%.lua %-%-all\n(.*)"
    assert.truthy(said and said:find "%d+ same, %d+ differs?, 0 fail", text)
    assert.truthy(said:find 'noderesource general%-01 differs: [^\n]*batch%-cpu%]: "%d+" %-> none', text)
  end)
end)

describe("`make demo` on a terminal", function()
  local dir, pidfile, p, client
  lazy_setup(function()
    dir, pidfile = process.tmpname ".controllers", process.tmpname ".pid"
    assert(select(2, process.run(("cp -R controllers %s"):format(process.quote(dir)))) == 0)
    p = process.spawn { "script", "-qefc", ("echo $$ > %s; exec %s"):format(pidfile, demo_command(dir)),
      "/dev/null", name = "make demo" }
    p:wait_for_log(60, "Ctrl-C ends it")
    client = kube.connect { server = assert(p:log():match "embedded API server: (%S+)") }
  end)
  lazy_teardown(function()
    if client then client:close() end
    if p and p:alive() then p:stop() end
  end)

  local function module() return dir .. "/koordinator/batchresource.lua" end
  local original = process.read "controllers/koordinator/batchresource.lua"

  local since -- when the policy that runs was saved

  -- Saves like an editor: a new file, renamed over the old one.
  local function save(text)
    process.write(module() .. "~", text)
    assert(os.rename(module() .. "~", module()))
  end

  local halved, n = original:gsub("return M%s*$", ([[
local whole = M.calculate
function M.calculate(input)
  local result, why = whole(input)
  local cpu = result and result.resources and result.resources[M.CPU]
  if cpu then result.resources[M.CPU] = kube.qty(cpu):milli() // 2 .. "m" end
  return result, why
end
return M
]]))
  assert(n == 1, "batchresource.lua ends with `return M`")

  -- Whether every node has the right resources, with this share of the batch processors. A new generation
  -- writes each node once, and again only after a relevant change, so any value that was right since the save
  -- is accepted.
  local function all_right(cpu_share)
    for _, node in ipairs(loaded.Node) do
      local got = offers(cluster.rows({ client:get("v1/Node", node.metadata.name) }, {})[1])
      local right = right_between(node, since, os.time(), cpu_share)
      if not right[got] then error(("%s offers %s"):format(node.metadata.name, got), 0) end
    end
    return true
  end

  it("keeps running", function() assert.is_true(p:alive()) end)

  it("takes a saved policy, and the table shows it", function()
    since = os.time()
    save(halved)
    p:wait_for_log(30, "The policy was reloaded (generation 2)")
    wait.until_true(60, "every node offers half the processors", function() return all_right(0.5) end)
    local rows, smaller = nil, 0
    wait.until_true(60, "a second table, whole", function()
      local lines = p:log():match "^(.*)\n"
      local order
      rows, order = last_table(lines)
      return select(2, lines:gsub("NODE%s+CAPACITY", "")) >= 2 and #order == #loaded.Node
    end)
    for _, row in pairs(rows) do
      local before, after = tonumber(row.before[1]), tonumber(row.after[1])
      -- The usage varies by less than half of what these nodes offer.
      if before and after and before > 5000 and after < 0.75 * before then smaller = smaller + 1 end
    end
    assert.is_true(smaller >= 10, p:log())
    assert.same({ "-", "-", "-", "-" }, rows[SILENT].after)
  end)

  it("rejects a broken one with the place, and continues with the old one", function()
    save(original .. "\nlocal = 1\n")
    local line = select(2, original:gsub("\n", "")) + 2
    p:wait_for_log(30, "the new script was refused; the old one keeps running")
    p:wait_for_log(5, ("batchresource.lua:%d:"):format(line))
    -- The old policy handles the next reports.
    local metric = client:get("slo.koordinator.sh/v1alpha1/NodeMetric", "general-01")
    wait.until_true(30, "two more reports", function()
      local newer = client:get("slo.koordinator.sh/v1alpha1/NodeMetric", "general-01")
      return kube.time(newer.status.updateTime):unix() >= kube.time(
        metric.status.updateTime):unix() + 2 * PERIOD
    end)
    wait.until_true(30, "every node offers half the processors", function() return all_right(0.5) end)
    assert.is_nil(p:log():find("generation 3", 1, true))
  end)

  it("takes the repaired one", function()
    since = os.time()
    save(original)
    p:wait_for_log(30, "The policy was reloaded (generation 3)")
    wait.until_true(60, "every node offers all again", function() return all_right() end)
  end)

  it("exits with status 0 when asked to", function()
    process.run("kill -TERM " .. assert(tonumber(process.read(pidfile))))
    assert.equal(0, p:wait(30), p:log())
  end)
end)
