-- cron-job_test.lua - an hour of schedules in a moment.

local kube = require "kubelua"

local CRON, JOB = "examples.kubelua.dev/v1/CronJob", "batch/v1/Job"

describe("cron-job", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "cron-job.lua", crds = "crd.yaml", files = "sample.yaml" }
  end)

  local function complete(job)
    t:patch_status(job, { startTime = tostring(t:now()), completionTime = tostring(t:now()), succeeded = 1,
      conditions = { { type = "SuccessCriteriaMet", status = "True" },
        { type = "Complete", status = "True" } } })
  end

  it("creates a job on time and not before", function()
    assert.equal(0, #t:list(JOB))
    t:advance "61s"
    assert.equal(1, #t:list(JOB))
    assert.equal("CronJob", t:list(JOB)[1].metadata.ownerReferences[1].kind)
  end)

  it("waits for the last job if concurrency is forbidden", function()
    t:advance "3m"
    assert.equal(1, #t:list(JOB))
    complete(t:list(JOB)[1])
    t:advance "61s"
    assert.equal(2, #t:list(JOB))
  end)

  it("keeps the latest ones", function()
    for _ = 1, 5 do
      t:advance "61s"
      for _, job in ipairs(t:list(JOB)) do
        if not job("status.succeeded") then complete(job) end
      end
    end
    assert.equal(2, #t:list(JOB))
  end)

  it("does nothing while it is suspended", function()
    t:patch(t:get(CRON, "hourly"), { spec = { suspend = true } })
    t:advance "10m"
    assert.equal(0, #t:list(JOB))
  end)
end)
