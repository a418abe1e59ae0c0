-- jobs_test.lua - the stand-in for the Job controller: parallel pods, failures, the end.
local kube = require "kubelua"

describe("jobs", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { scripts = { "jobs.lua", "scheduler.lua", "pods.lua" }, objects = {
      { kind = "v1/Node", name = "n", status = {
        allocatable = { cpu = "8", pods = "110" },
        conditions = { { type = "Ready", status = "True" } } } } } }
  end)
  local function make(spec, annotations)
    t:create { kind = "batch/v1/Job", name = "job", spec = kube.merge({ template = {
      metadata = { annotations = kube.merge({ ["simulate.kubelua.dev/runs-for"] = "10s" }, annotations) },
      spec = { restartPolicy = "Never",
        containers = { { name = "c", image = "i" } } } } }, spec) }
  end
  local function status() return t:get("batch/v1/Job", "job").status end
  local function condition()
    local last = status()("conditions")
    return last and last[#last].type .. " " .. last[#last].reason
  end

  it("complete when enough pods have succeeded, a few at a time", function()
    make { completions = 3, parallelism = 2 }
    assert.equal(2, status().active)
    t:advance "10s"
    assert.equal(1, status().active)
    assert.equal(2, status().succeeded)
    t:advance "10s"
    assert.equal("Complete CompletionsReached", condition())
    assert.equal(3, status().succeeded)
    assert.is_not_nil(status().completionTime)
  end)

  it("know which indexes are done", function()
    make { completions = 3, parallelism = 3, completionMode = "Indexed" }
    t:advance "10s"
    assert.equal("0-2", status().completedIndexes)
    local pod = t:list "v1/Pod"[3]
    assert.equal("job-2", pod.spec.hostname)
  end)

  it("fail after too many failures, each after a longer pause", function()
    make({ backoffLimit = 1 }, { ["simulate.kubelua.dev/exit-code"] = "1" })
    t:advance "19s"
    assert.equal(1, #t:list "v1/Pod")
    t:advance "1s"
    assert.equal(2, #t:list "v1/Pod")
    t:advance "10s"
    assert.equal("Failed BackoffLimitExceeded", condition())
    assert.equal(2, status().failed)
  end)

  it("fail at their deadline, and leave no running pods", function()
    make { activeDeadlineSeconds = 5 }
    t:advance "5s"
    assert.equal("Failed DeadlineExceeded", condition())
    assert.equal(0, #t:list "v1/Pod")
  end)

  it("rest while they are suspended", function()
    make { suspend = true }
    assert.equal("Suspended JobSuspended", condition())
    assert.equal(0, #t:list "v1/Pod")
    t:patch(t:get("batch/v1/Job", "job"), { spec = { suspend = false } })
    t:advance "10s"
    assert.equal("Complete CompletionsReached", condition())
  end)

  it("go when their time to live is over", function()
    make { ttlSecondsAfterFinished = 30 }
    t:advance "39s"
    assert.is_not_nil(t:get("batch/v1/Job", "job"))
    t:advance "2s"
    assert.is_nil(t:get("batch/v1/Job", "job"))
  end)
end)
