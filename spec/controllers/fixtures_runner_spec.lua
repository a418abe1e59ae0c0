-- fixtures_runner_spec.lua - the fixture runner (support/fixtures.lua) reports failed cases, unknown
-- calculations and invalid files.
-- not in asan, tsan: functions of tables, in Lua
local fixtures = require "support.fixtures"
local kube = require "kubelua"
local process = require "support.process"

-- Runs the text of one file; returns the numbers, the unknown calculation and the output.
local function run(text)
  local said = {}
  local passed, failed, unknown = fixtures.run("mine.json", text, function(line) said[#said + 1] = line end)
  return passed, failed, unknown, table.concat(said, "\n")
end

local function run_directory(dir)
  local said = {}
  local ok = fixtures.run_directory(dir, function(line) said[#said + 1] = line end)
  return ok, table.concat(said, "\n")
end

local function directory(files)
  local dir = process.tmpname ".cases"
  process.run("mkdir -p " .. process.quote(dir))
  for name, text in pairs(files) do process.write(dir .. "/" .. name, text) end
  return dir
end

local VALID = [[{"calc": "colocation_strategy",
  "cases": [{"name": "%s", "input": {"op": "isColocationStrategyValid",
    "strategy": {"degradeTimeMinutes": 15}}, "expect": {"valid": %s}}]}]]

-- `kubelua sim --bisect` writes decisions (spec/lua/bisect_spec.lua), not Koordinator;
-- koordinator_differential_spec.lua compares the others with its functions at random inputs.
local OURS = { decision = true, devices = true, low_node_load_passes = true, numa = true, pod_webhook = true }

-- Calls fn with each calculation of Koordinator's that a policy knows, and the text of its cases.
local function each_calculation(fn)
  for calc in pairs(fixtures.calcs) do
    if not OURS[calc] then fn(calc,
      assert(process.read("spec/fixtures/koordinator/" .. calc .. ".json"), calc)) end
  end
end

-- The number of their cases.
local function known_cases()
  local total = 0
  each_calculation(function(_, text) total = total + #kube.decode(text, { duplicates = "last" }).cases end)
  return total
end

describe("the fixture runner", function()
  it("runs Koordinator's own cases, and all of them pass", function()
    local ok, said = run_directory "spec/fixtures/koordinator"
    assert.is_true(ok, said)
    assert.matches(("%d passed, 0 failed$"):format(known_cases()), said)
    assert.is_true(known_cases() >= 141)
    for _, calc in ipairs { "batchresource", "midresource", "colocation_strategy", "cpu_normalization",
      "resource_amplification", "noderesource_prepare", "elastic_quota", "quota_overuse_revoke",
        "quota_profile",
    } do assert.is_truthy(fixtures.calcs[calc], calc) end
  end)

  it("finds the policies the same on views of objects as on plain tables", function()
    local total = 0
    each_calculation(function(calc, text)
      local said = {}
      local passed, failed = fixtures.run(calc, text, function(line) said[#said + 1] = line end, true)
      assert.equal(0, failed, table.concat(said, "\n"))
      total = total + passed
    end)
    assert.equal(known_cases(), total)
  end)

  it("counts a case that fails, and shows what was expected", function()
    local passed, failed, _, said = run(VALID:format("my case", "false"))
    assert.same({ 0, 1 }, { passed, failed })
    assert.matches("FAIL mine.json: my case", said, 1, true)
    assert.matches("valid: expected false, got true", said, 1, true)
  end)

  it("compares quantities by value, in both directions", function()
    local case = [[{"calc": "noderesource_prepare",
      "cases": [{"name": "x", "input": {"op": "prepare", "plugin": "BatchResource",
        "node": {"metadata": {}, "status": {"capacity": {"cpu": 1}, "allocatable": {"cpu": "1000m"}}},
        "nodeResource": {"resources":
        {"kubernetes.io/batch-cpu": 5000, "kubernetes.io/batch-memory": "1Gi"}}},
          "expect": {"allocatable": {"cpu": 1,
          "kubernetes.io/batch-memory": "1024Mi"%s}}}]}]]
    assert.equal(1, (run(case:format ', "kubernetes.io/batch-cpu": "5k"')))
    local _, failed, _, said = run(case:format ', "kubernetes.io/batch-cpu": "5001"')
    assert.equal(1, failed)
    assert.matches("allocatable: kubernetes.io/batch-cpu: expected 5001, got 5k", said, 1, true)
    _, failed, _, said = run(case:format "")
    assert.equal(1, failed)
    assert.matches("kubernetes.io/batch-cpu was not expected", said, 1, true)
  end)

  it("checks resets, errors and zones, where a case asserts them", function()
    local case = [[{"calc": "batchresource",
      "cases": [{"name": "x", "input": {"strategy": {"enable": true}, "node": {"metadata": {"name": "n"}},
        "pods": [], "nodeMetric": {}}, "expect": %s}]}]]
    assert.equal(1, (run(case:format '{"reset": ["kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"]}')))
    assert.equal(0, (run(case:format '{"reset": ["kubernetes.io/batch-cpu"]}')))
    assert.equal(0, (run(case:format '{"error": true}')))
    assert.equal(0, (run(case:format '{"zones": {"node-0": {"kubernetes.io/batch-cpu": 1}}}')))
  end)

  it("names an unknown calculation, without failing", function()
    local passed, failed, unknown = run '{"calc": "tea_leaves", "cases": [{}]}'
    assert.same({ 0, 0, "tea_leaves" }, { passed, failed, unknown })
  end)

  it("names missing fields of a file", function()
    for text, want in pairs {
      ["{]"] = "not valid JSON", ['"x"'] = "not a JSON object", ["{}"] = 'has no "calc"',
      ['{"calc": "midresource"}'] = 'has no "cases"',
      ['{"calc": "midresource", "cases": [{"name": "n"}]}'] = "a case is { name, input, expect }",
      ['{"calc": "cpu_normalization", "cases": [{"input": {"op": "guess"}, "expect": {}}]}'] =
        'input.op is "guess"; it is one of: calculate',
      ['{"calc": "noderesource_prepare", "cases": [{"input": {"op": "prepare"}, "expect": {}}]}'] =
        "input.plugin is missing",
      ['{"calc": "midresource", "cases": [{"input": {"strategy": {}, "now": "noon"}, "expect": {}}]}'] =
        "raised: ",
    } do
      local passed, failed, _, said = run(text)
      assert.same({ 0, 1 }, { passed, failed }, text)
      assert.is_truthy(said:find(want, 1, true), said)
    end
  end)

  it("takes any directory, and continues after a bad file", function()
    local ok, said = run_directory(directory { ["a.json"] = "{", ["b.json"] = VALID:format("b", "true"),
      ["notes.txt"] = "{" })
    assert.is_false(ok)
    assert.matches("FAIL a.json: not valid JSON", said, 1, true)
    assert.matches("\n1 passed, 1 failed$", said)
  end)

  it("fails on a missing directory, and on one without cases", function()
    for _, dir in ipairs { directory {}, "/nowhere/it's gone" } do
      local ok, said = run_directory(dir)
      assert.is_false(ok)
      assert.is_truthy(said:find(dir .. ": no *.json files here", 1, true), said)
      assert.matches("\n0 passed, 1 failed$", said)
    end
  end)
end)
