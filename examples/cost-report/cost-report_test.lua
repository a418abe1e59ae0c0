-- cost-report_test.lua - sums by namespace, again every five minutes.

local kube = require "kubelua"

local REPORT, POD = "examples.kubelua.dev/v1/CostReport", "v1/Pod"

describe("cost-report", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "cost-report.lua", crds = "crd.yaml", files = "sample.yaml" }
  end)

  local function lines() return kube.copy(t:get(REPORT, "all").status.namespaces) end

  it("reports the requests and costs of a namespace", function()
    assert.same({ { namespace = "default", pods = 1, cores = "0.50", gib = "2.00", monthly = "21.90" } },
      lines())
  end)

  it("counts new pods at the next pass, and ignores finished ones", function()
    t:create { kind = POD, name = "b", namespace = "default",
      spec = { containers = { { name = "a", image = "a", resources = { requests = { cpu = "1" } } } } } }
    assert.equal(1, lines()[1].pods)
    t:advance "5m"
    assert.equal("1.50", lines()[1].cores)
    t:patch_status(t:get(POD, "b"), { phase = "Succeeded" })
    t:advance "5m"
    assert.equal("0.50", lines()[1].cores)
  end)

  it("writes nothing while nothing changes", function()
    local before = #t:writes()
    t:advance "1h"
    assert.equal(before, #t:writes())
  end)
end)
