-- recommender_test.lua - a Deployment whose pods use more by and by, in virtual time.

local kube = require "kubelua"

local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local RECOMMENDATION = "analysis.koordinator.sh/v1alpha1/Recommendation"

describe("the recommender", function()
  local t ---@type kubelua.Testing

  local function owner(kind, object)
    return { { apiVersion = "apps/v1", kind = kind, name = object.metadata.name, uid = object.metadata.uid,
      controller = true } }
  end

  before_each(function()
    t = kube.testing.start { script = "recommender.lua", crds = "crds", namespace = "default" }
    local selector = { matchLabels = { app = "web" } }
    local template = { metadata = { labels = { app = "web" } },
      spec = { containers = { { name = "web", image = "i" } } } }
    local deployment = t:create { kind = "apps/v1/Deployment", namespace = "default", name = "web",
      spec = { selector = selector, template = template } }
    local set = t:create { apiVersion = "apps/v1", kind = "ReplicaSet", metadata = {
      namespace = "default", name = "web-1", ownerReferences = owner("Deployment", deployment) },
      spec = { selector = selector, template = template } }
    t:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = "web-1-a",
      labels = { app = "web" }, ownerReferences = owner("ReplicaSet", set) },
      spec = { nodeName = "n", containers = {
        { name = "web", image = "i", resources = { requests = { cpu = "1", memory = "1Gi" } } },
        { name = "proxy", image = "i", resources = { requests = { cpu = "250m", memory = "1Gi" } } } } } }
  end)

  local function measure(cpu, memory)
    t:load { { kind = METRIC, name = "n", spec = {}, status = { updateTime = tostring(t:now()),
      podsMetric = { { namespace = "default", name = "web-1-a",
        podUsage = { resources = { cpu = cpu, memory = memory } } } } } } }
    t:advance "1m"
  end

  local function ask(name, target)
    t:create { kind = RECOMMENDATION, namespace = "default", name = name, spec = { target = target } }
    t:advance "1s"
  end
  local function web() ask("web", { type = "workload",
    workload = { apiVersion = "apps/v1", kind = "Deployment", name = "web" } }) end
  local function status(name) return kube.copy(t:get(RECOMMENDATION, name or "web").status) end

  it("recommends the 90th percentile and a margin per container, and explains it", function()
    web()
    assert.equal("NoSamples", status().conditions[1].reason)
    for _ = 1, 20 do measure("500m", "2Gi") end
    local found = status()
    -- 400m of web end in the bucket up to 411m, 100m of proxy in that up to 103m; a day's peak of 1Gi.
    local by_name = {}
    for _, one in ipairs(found.podStatus.containerStatuses) do by_name[one.containerName] = one.resources end
    local web_cpu, proxy_cpu = kube.qty(by_name.web.cpu):milli(), kube.qty(by_name.proxy.cpu):milli()
    assert.is_true(web_cpu >= 460 and web_cpu <= 460 * 1.06, web_cpu)
    assert.is_true(proxy_cpu >= 115 and proxy_cpu <= 115 * 1.12, proxy_cpu)
    local memory = kube.qty(by_name.web.memory):value()
    assert.is_true(memory >= 1.15 * 2 ^ 30 and memory <= 1.15 * 1.07 * 2 ^ 30, memory)
    assert.equal("FewSamples", found.conditions[1].reason)
    assert.matches("web: cpu %d+m = max%(p90 %d+m %+ 15%%, floor%), within %d+m to %d+m; memory",
      found.conditions[1].message)
    assert.same({}, t:logs "error")
  end)

  it("selects pods by labels, and rejects an invalid target", function()
    ask("labels", { type = "podSelector", podSelector = { matchLabels = { app = "web" } } })
    ask("others", { type = "podSelector", podSelector = { matchLabels = { app = "db" } } })
    ask("wrong", { type = "pods" })
    ask("odd", { type = "podSelector", podSelector = {
      matchExpressions = { { key = "a", operator = "Is" } } } })
    measure("500m", "2Gi")
    t:advance "1m"
    assert.equal("True", status "labels".conditions[1].status)
    assert.equal("NoSamples", status "others".conditions[1].reason)
    assert.equal('target.type is "pods"; it is "workload" or "podSelector"',
      status "wrong".conditions[1].message)
    assert.equal("InvalidTarget", status "odd".conditions[1].reason)
  end)

  it("writes nothing while the recommendation is unchanged", function()
    web()
    measure("500m", "2Gi")
    t:advance "11m"
    local before = #t:writes()
    t:advance "9m"
    assert.equal(before, #t:writes())
  end)
end)
