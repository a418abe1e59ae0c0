-- conditions_spec.lua - conditions by the rules of metav1.Condition: what is accepted and rejected, and when
-- lastTransitionTime changes.

local conditions = require "kubelua.conditions"
local core = require "kubelua.core"
local kube = require "kubelua"

local function ready(status, reason, more)
  local c = { type = "Ready", status = status, reason = reason or "Tested" }
  for key, value in pairs(more or {}) do c[key] = value end
  return c
end

describe("conditions", function()
  it("are added once, and keep their place and the others", function()
    local list, changed = conditions.merge(nil, { ready "True",
      { type = "Synced", status = "False", reason = "Waiting", message = "for b" } }, 0)
    assert.is_true(changed)
    assert.same({ "Ready", "Synced" }, { list[1].type, list[2].type })
    assert.equal("1970-01-01T00:00:00Z", list[1].lastTransitionTime)
    assert.equal("", list[1].message)
    local again, did = conditions.merge(core.value(list),
      { ready "False", { type = "Extra", status = "Unknown", reason = "New" } }, 60)
    assert.is_true(did)
    assert.same({ "Ready", "Synced", "Extra" }, { again[1].type, again[2].type, again[3].type })
    assert.equal("False", again[1].status)
    assert.equal("for b", again[2].message)
  end)

  it("keep lastTransitionTime while the status stays, and change nothing when nothing changed", function()
    local list = core.value((conditions.merge(nil, { ready("True", "A", { message = "m" }) }, 100)))
    local same, changed = conditions.merge(list, { ready("True", "A", { message = "m" }) }, 200)
    assert.is_false(changed)
    assert.equal("1970-01-01T00:01:40Z", same[1].lastTransitionTime)
    local other, did = conditions.merge(list, { ready("True", "B", { message = "m" }) }, 200)
    assert.is_true(did)
    assert.equal("B", other[1].reason)
    assert.equal("1970-01-01T00:01:40Z", other[1].lastTransitionTime)
    local moved = conditions.merge(list, { ready("False", "B") }, 200)
    assert.equal("1970-01-01T00:03:20Z", moved[1].lastTransitionTime)
  end)

  it("take a given time only if the status changes", function()
    local list = core.value((conditions.merge(nil, {
      ready("True", "A", { lastTransitionTime = "2020-01-01T00:00:00Z" }) }, 100)))
    assert.equal("2020-01-01T00:00:00Z", list[1].lastTransitionTime)
    local same = conditions.merge(list, { ready("True", "B",
      { lastTransitionTime = "2030-01-01T00:00:00Z" }) }, 100)
    assert.equal("2020-01-01T00:00:00Z", same[1].lastTransitionTime)
  end)

  it("carry the generation if requested, and keep it current", function()
    local plain = conditions.merge(nil, { ready "True" }, 0, 3)
    assert.is_nil(plain[1].observedGeneration)
    local asked = conditions.merge(nil, { ready("True", nil, { observed_generation = true }) }, 0, 3)
    assert.equal(3, asked[1].observedGeneration)
    assert.is_nil(asked[1].observed_generation)
    local later, changed = conditions.merge(core.value(asked), { ready "True" }, 50, 4)
    assert.is_true(changed)
    assert.equal(4, later[1].observedGeneration)
    assert.equal("1970-01-01T00:00:00Z", later[1].lastTransitionTime)
    assert.is_nil(conditions.merge(core.value(asked), { ready("True", nil, { observed_generation = false }) },
      50, 4)[1].observedGeneration)
    assert.equal(9, conditions.merge(core.value(asked), { ready("True", nil, { observedGeneration = 9 }) },
      50, 4)[1].observedGeneration)
  end)

  it("are not written only for a generation that was not requested and the server drops", function()
    local maybe = { type = "Ready", status = "True", reason = "Tested",
      observed_generation = conditions.MAYBE }
    local plain = core.value((conditions.merge(nil, { ready "True" }, 0, 3)))
    assert.is_false(select(2, conditions.merge(plain, { maybe }, 50, 4)))
    local kept = core.value((conditions.merge(nil, { maybe }, 0, 3)))
    assert.equal(3, kept[1].observedGeneration)
    assert.is_true(select(2, conditions.merge(kept, { maybe }, 50, 4)))
  end)

  it("accept true and false for \"True\" and \"False\"", function()
    local list = conditions.merge(nil, { ready(true), { type = "Other", status = false, reason = "No" } }, 0)
    assert.same({ "True", "False" }, { list[1].status, list[2].status })
    assert.is_false(select(2, conditions.merge(core.value(list), { ready(true) }, 0)))
  end)

  it("are set, found and removed in a status, in an object and in a draft of either", function()
    local status = {}
    assert.is_true(kube.set_condition(status, ready "True"))
    assert.is_false(kube.set_condition(status, ready "True"))
    assert.equal("True", kube.find_condition(status, "Ready").status)

    local o = core.value { apiVersion = "v1", kind = "Pod", metadata = { name = "a", generation = 7 },
      spec = {} }
    local draft = core.draft(o)
    assert.is_true(kube.set_condition(draft, ready("False", "Broken", { observed_generation = true })))
    local changed = core.value(draft)
    assert.equal("Broken", kube.find_condition(changed, "Ready").reason)
    assert.equal(7, kube.find_condition(changed, "Ready").observedGeneration)
    assert.equal("Broken", kube.find_condition(changed.status, "Ready").reason)
    assert.equal("Broken", kube.find_condition(changed.status.conditions, "Ready").reason)
    assert.is_nil(kube.find_condition(changed, "Absent"))
    assert.is_nil(kube.find_condition(o, "Ready"))

    local second = core.draft(changed)
    assert.is_false(kube.set_condition(second, ready("False", "Broken")))
    assert.is_nil(core.draft_patch(second))
    assert.is_true(kube.remove_condition(second, "Ready"))
    assert.is_false(kube.remove_condition(second, "Ready"))
    assert.equal(0, #core.value(second).status.conditions)
  end)

  it("explain invalid arguments, with advice", function()
    local cases = {
      ["type must be a string such as \"Ready\", got nil"] = { status = "True", reason = "A" },
      ["type must be a word such as \"Ready\" or \"example.com/Synced\", got \"not ready\""] = {
        type = "not ready", status = "True", reason = "A" },
      ["got \"Ready/\""] = { type = "Ready/", status = "True", reason = "A" },
      ["got \"Example.com/Ready\""] = { type = "Example.com/Ready", status = "True", reason = "A" },
      ["got \"a..b/Ready\""] = { type = "a..b/Ready", status = "True", reason = "A" },
      ["got \"" .. ("x"):rep(317) .. "\""] = { type = ("x"):rep(317), status = "True", reason = "A" },
      ["status of Ready must be \"True\", \"False\" or \"Unknown\", got \"true\"; did you mean 'True'?"] =
        ready "true",
      ["status of Ready must be \"True\", \"False\" or \"Unknown\", got nil"] = { type = "Ready",
        reason = "A" },
      ["got number"] = ready(1),
      ["reason of Ready is missing: one word in CamelCase that says why it is True"] = { type = "Ready",
        status = "True" },
      ["reason of Ready must be one word in CamelCase, got \"not there yet\"; did you mean \z
        \"NotThereYet\"?"] = ready("True", "not there yet"),
      ["got \"\""] = ready("True", ""), ["got \"9Lives\""] = ready("True", "9Lives"),
      ["got \"Ends:\""] = ready("True", "Ends:"),
      ["message of Ready must be a string, got table"] = ready("True", nil, { message = {} }),
      ["message of Ready may have at most 32768 characters, got 32769"] = ready("True", nil,
        { message = ("x"):rep(32769) }),
      ["observedGeneration of Ready must be a whole number from 0 on, got -1"] = ready("True", nil,
        { observedGeneration = -1 }),
      ["observed_generation of Ready must be true or false, got number"] = ready("True", nil,
        { observed_generation = 1 }),
      ["lastTransitionTime of Ready must be a time, got yesterday"] = ready("True", nil,
        { lastTransitionTime = "yesterday" }),
      ["unknown key 'mesage'; did you mean 'message'?"] = ready("True", nil, { mesage = "m" }),
    }
    for part, condition in pairs(cases) do
      local problem = conditions.problem(condition)
      assert.truthy(problem and problem:find(part, 1, true),
        ("%q is not in %s"):format(part, tostring(problem)))
      assert.error_matches(function() kube.set_condition({}, condition) end, "^[^\n]*kube.set_condition: ")
    end
    for _, good in ipairs {
      ready("True", "A"), ready("Unknown", "A_b,c:D1"),
      { type = "a-1.example.com/Is.Up_2", status = "False", reason = "x" },
      ready("True", nil, { message = ("x"):rep(32768), observedGeneration = 0,
        lastTransitionTime = "2020-01-01T00:00:00Z" }),
    } do assert.is_nil(conditions.problem(good)) end
    assert.equal("conditions[2]: unknown key 'y'; known are: lastTransitionTime, message, \z
      observedGeneration, observed_generation, reason, status, type",
      conditions.problems { ready "True", { type = "B", status = "True", reason = "R", y = 1 } })
    assert.is_nil(conditions.problems { "not", "conditions" })
    assert.error_matches(function()
      kube.set_condition(core.value { a = 1 }, ready "True")
    end, "a view cannot be changed")
    assert.error_matches(function()
      kube.set_condition({}, ready("True", nil, { observed_generation = true }))
    end, "needs the object for its generation")
    assert.error_matches(function() kube.set_condition("x", ready "True") end, "got string")
    assert.error_matches(function() kube.find_condition(1, "Ready") end, "got number")
  end)
end)
