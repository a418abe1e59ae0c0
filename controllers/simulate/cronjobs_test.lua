-- cronjobs_test.lua - the stand-in for the CronJob controller over days of virtual time.
local kube = require "kubelua"

describe("cronjobs", function()
  local t ---@type kubelua.Testing
  local function start(spec)
    t = kube.testing.start { scripts = { "cronjobs.lua", "jobs.lua", "scheduler.lua", "pods.lua" },
      now = "2026-01-01T00:00:30Z", objects = {
      { kind = "v1/Node", name = "n", status = {
        allocatable = { cpu = "8", pods = "110" }, conditions = { { type = "Ready", status = "True" } } } },
      { kind = "batch/v1/CronJob", name = "c", spec = kube.merge({ schedule = "*/10 * * * *", jobTemplate = {
        spec = { template = { spec = { restartPolicy = "Never",
          containers = { { name = "c", image = "i" } } } } } } }, spec) } } }
  end
  local function get() return t:get("batch/v1/CronJob", "c") end
  local function names()
    local list = {}
    for _, job in ipairs(t:list "batch/v1/Job") do list[#list + 1] = job.metadata.name end
    return list
  end

  it("make a Job at each time of the schedule and keep the last ones", function()
    start {}
    assert.same({}, names())
    t:advance "9m30s"
    assert.same({ "c-29453770" }, names())
    assert.equal("2026-01-01T00:10:00Z", get().status.lastScheduleTime)
    assert.equal(1, #get().status.active)
    t:advance "5s"
    assert.is_nil(get()("status.active"))
    t:advance "50m"
    assert.equal(3, #names())
    assert.matches("^2026%-01%-01T01:00:0", get().status.lastSuccessfulTime)
  end)

  it("do not start a second Job beside the first under concurrencyPolicy Forbid", function()
    start { concurrencyPolicy = "Forbid", jobTemplate = { spec = { template = { metadata = {
      annotations = { ["simulate.kubelua.dev/runs-for"] = "15m" } } } } } }
    t:advance "24m"
    assert.same({ "c-29453770" }, names())
    t:advance "6m"
    assert.same({ "c-29453770", "c-29453790" }, names())
  end)

  it("replace the running Job under concurrencyPolicy Replace", function()
    start { concurrencyPolicy = "Replace", jobTemplate = { spec = { template = { metadata = {
      annotations = { ["simulate.kubelua.dev/runs-for"] = "15m" } } } } } }
    t:advance "21m"
    assert.same({ "c-29453780" }, names())
  end)

  it("rest while they are suspended", function()
    start { suspend = true }
    t:advance "1h"
    assert.same({}, names())
  end)
end)
