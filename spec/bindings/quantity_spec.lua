-- quantity_spec.lua - quantities in Lua: the arithmetic of apimachinery with Lua's operators.

local kube = require "kubelua"
local qty = kube.qty

describe("a quantity", function()
  it("is made from text, integers, floats and quantities", function()
    assert.equal("500m", tostring(qty "500m"))
    assert.equal("2", tostring(qty(2)))
    assert.equal("100m", tostring(qty(0.1)))
    assert.equal("1500m", tostring(qty(1.5)))
    assert.is_true(qty(1e20) == qty "100000000000000000000")
    assert.is_true(qty(qty "1Gi") == qty "1Gi")
  end)

  it("adds, subtracts, negates and multiplies exactly", function()
    assert.equal("2500m", tostring(qty "500m" + qty "2"))
    assert.equal("2500m", tostring(qty "500m" + 2))
    assert.equal("2500m", tostring("500m" + qty "2"))
    assert.equal("1536Mi", tostring(qty "2Gi" - "512Mi"))
    assert.equal("-5", tostring(-qty "5"))
    assert.equal("3Gi", tostring(qty "1Gi" * 3))
    assert.equal("3Gi", tostring(3 * qty "1Gi"))
    assert.is_true(qty "9223372036854775807" + 1 == qty "9223372036854775808")
  end)

  it("compares by amount", function()
    assert.is_true(qty "1" == qty "1000m")
    assert.is_true(qty "1Ki" > "1k")
    assert.is_true(qty "100m" < 1)
    assert.is_true(qty "1" <= "1")
    assert.equal(-1, qty("1"):cmp "2")
    assert.equal(0, qty("1"):cmp(1))
  end)

  it("counts thousandths without a quantity, as :milli() does", function()
    for _, text in ipairs { "0", "1", "12345m", "007", "3k", "4M", "5G", "6Ki", "7Mi", "8Gi", "9Ti", "1.5",
      "-2", "+3m",
      "1e3", "100u", "9223372036854775807m", "9007199254740993", ".5", "5P" } do
      assert.equal(qty(text):milli(), kube.to_milli(text))
    end
    assert.equal(1500, kube.to_milli(1.5))
    assert.equal(2000, kube.to_milli(qty "2"))
    for _, wrong in ipairs { "12x", "1 ", "9223372036854775807", "8589934592Gi" } do
      assert.is_false(pcall(kube.to_milli, wrong))
    end
  end)

  it("gives integers, rounded away from zero as in Go", function()
    assert.equal(2, qty("1500m"):value())
    assert.equal(1500, qty("1.5"):milli())
    assert.equal(1073741824, qty("1Gi"):value())
    assert.equal(2, qty("1100M"):scaled(9))
    assert.equal(0.5, qty("500m"):number())
    assert.equal(-1, qty("-3"):sign())
    assert.is_true(qty("0"):is_zero())
  end)

  it("refuses integers that do not fit", function()
    assert.error_matches(function() qty("9E"):milli() end,
      "quantity 9E in units of 1/1000 does not fit 64 bits")
  end)

  it("knows its canonical text and its format", function()
    assert.equal("1", qty("1000m"):canonical())
    assert.equal("BinarySI", qty("1Gi"):format())
    assert.equal("DecimalSI", qty("1G"):format())
  end)

  it("names the invalid text", function()
    assert.error_matches(function() qty "1x" end, "1x")
    assert.error_matches(function() qty "" end, "quant")
    assert.error_matches(function() qty {} end, "quantity, its text or a number expected")
    assert.error_matches(function() qty(0 / 0) end, "finite")
  end)

  it("takes integer factors, and explains how to use a ratio", function()
    assert.error_matches(function() return qty "1" * 0.5 end, "kube.milli")
  end)

  it("counts thousandths", function()
    assert.equal("1500m", tostring(kube.milli(1500)))
    assert.equal("2", tostring(kube.milli(2000)))
    assert.equal("1m", tostring(kube.milli(qty "100u")))
  end)
end)

describe("kube.max and kube.min", function()
  it("compare quantities, their texts and numbers", function()
    assert.equal("1500m", tostring(kube.max("1", qty "1500m", 1)))
    assert.equal("1", tostring(kube.min("1", "1500m")))
    assert.equal(3, kube.max(1, 3, 2))
    assert.error_matches(function() kube.max() end, "at least one")
    assert.error_matches(function() kube.max(1, nil) end, "argument 2 is nil")
  end)
end)

describe("kube.requests", function()
  local function container(cpu, memory, policy)
    return { resources = { requests = { cpu = cpu, memory = memory } }, restartPolicy = policy }
  end
  local function texts(t)
    local out = {}
    for name, q in pairs(t) do out[name] = tostring(q) end
    return out
  end

  it("sums the containers and adds the overhead", function()
    assert.same({ cpu = "1600m", memory = "3Gi" }, texts(kube.requests {
      spec = { containers = { container("500m", "1Gi"), container("1", "2Gi") },
        overhead = { cpu = "100m" } },
    }))
  end)

  it("uses the peak of initialization if it is higher", function()
    assert.same({ cpu = "2", memory = "1Gi" }, texts(kube.requests {
      spec = { containers = { container("500m", "1Gi") },
        initContainers = { container("2"), container("1", "512Mi") } },
    }))
  end)

  it("counts sidecars with the containers and with later init containers", function()
    assert.same({ cpu = "2100m" }, texts(kube.requests {
      spec = { containers = { container("500m") }, initContainers = { container("100m", nil, "Always"),
        container("2") } },
    }))
    assert.same({ cpu = "2" }, texts(kube.requests {
      spec = { containers = { container("500m") }, initContainers = { container("2"),
        container("100m", nil, "Always") } },
    }))
  end)

  it("lets pod-level requests replace those they name", function()
    assert.same({ cpu = "3", memory = "1Gi" }, texts(kube.requests {
      spec = { containers = { container("500m", "1Gi") }, resources = { requests = { cpu = "3" } } },
    }))
  end)

  it("reads views", function()
    local pod = kube.decode '{"spec":{"containers":[{"name":"a"},{"resources":{"requests":{"cpu":"250m"}}}]}}'
    assert.same({ cpu = "250m" }, texts(kube.requests(pod)))
    assert.same({}, texts(kube.requests(kube.decode "{}")))
  end)

  it("has its counterpart for limits", function()
    local pod = { spec = { containers = { { resources = { limits = { cpu = "1" } } } },
      overhead = { cpu = "100m", memory = "1Gi" } } }
    assert.same({ cpu = "1100m" }, texts(kube.limits(pod)))
    pod.spec.containers[1].resources.limits.memory = "0" -- no limit, so the overhead makes none of it
    assert.same({ cpu = "1100m", memory = "0" }, texts(kube.limits(pod)))
  end)
end)
