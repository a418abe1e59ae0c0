-- scaler_owners_spec.lua - autoscalers written in both of their versions: the owners of their fields, and the
-- targets in a table.

local api_of = require "support.api"
local servers = require "support.servers"

local TABLE = { "Accept: application/json;as=Table;g=meta.k8s.io;v=v1" }
local PATH = "/apis/autoscaling/%s/namespaces/default/horizontalpodautoscalers"
local V1, V2 = PATH:format "v1", PATH:format "v2"
local CPU = "targetCPUUtilizationPercentage"

local function scaler(name, spec)
  spec.maxReplicas = spec.maxReplicas or 5
  spec.scaleTargetRef = { apiVersion = "apps/v1", kind = "Deployment", name = "web" }
  return { metadata = { name = name }, spec = spec }
end

local function resource(name, part, target)
  return { type = "Resource",
    resource = { name = name, target = { type = part == "averageValue" and "AverageValue"
    or "Utilization", [part] = target } } }
end

-- "manager version: fields of its spec", sorted.
local function owners(object)
  local list = {}
  for _, entry in ipairs(object.metadata.managedFields) do
    local fields = {}
    for field in pairs(entry.fieldsV1["f:spec"] or {}) do fields[#fields + 1] = field:sub(3) end
    table.sort(fields)
    list[#list + 1] = ("%s %s: %s"):format(entry.manager, entry.apiVersion:match "v%d$",
      table.concat(fields, " "))
  end
  table.sort(list)
  return list
end

servers.each(function(name, start)
  describe("an autoscaler of " .. name, function()
    local s, api

    lazy_setup(function()
      s = start {}
      api = api_of(s)
    end)

    lazy_teardown(function() s:stop() end)

    local function made(code, r)
      assert.equal(code, r.code, r.text)
      return r.body
    end

    it("loses fields of v2 to a writer of v1, and vice versa", function()
      local at1, at2 = V1 .. "/owned", V2 .. "/owned"
      made(201, api:post(V2 .. "?fieldManager=new", scaler("owned", { minReplicas = 1,
        metrics = { resource("memory", "averageValue", "1Gi"),
          resource("cpu", "averageUtilization", 40) } })))
      local o = made(200, api:patch("merge", at1 .. "?fieldManager=old", { spec = { [CPU] = 44 } }))
      assert.same({ "new v2: maxReplicas minReplicas scaleTargetRef", "old v1: " .. CPU }, owners(o))
      o = made(200, api:patch("merge", at2 .. "?fieldManager=third", { spec = { metrics = {
        resource("cpu", "averageUtilization", 50) } } }))
      assert.same({ "new v2: maxReplicas minReplicas scaleTargetRef", "third v2: metrics" }, owners(o))
      made(200, api:delete(at2))
    end)

    it("is applied in either version", function()
      local function apply(version, manager, spec)
        local body = scaler("applied", spec)
        body.apiVersion, body.kind = "autoscaling/" .. version, "HorizontalPodAutoscaler"
        return api:apply(PATH:format(version) .. "/applied", manager, body, true).body
      end
      apply("v2", "new", { metrics = { resource("cpu", "averageUtilization", 40) } })
      local o = apply("v1", "old", { [CPU] = 61 })
      assert.same({ "new v2: maxReplicas scaleTargetRef", "old v1: maxReplicas scaleTargetRef " .. CPU },
        owners(o))
      o = apply("v2", "new", { metrics = { resource("cpu", "averageUtilization", 61) } })
      assert.same({ "new v2: maxReplicas metrics scaleTargetRef",
        "old v1: maxReplicas scaleTargetRef " .. CPU }, owners(o))
      made(200, api:delete(V1 .. "/applied"))
    end)

    it("shows the target of each metric", function()
      local at = V2 .. "/shown"
      local function pods(average) return { type = "Pods", pods = { metric = { name = "q" }, target = {
        type = "AverageValue", averageValue = average } } } end
      local function outside(part, value) return { type = "External", external = { metric = { name = "e" },
        target = { type = part == "value" and "Value" or "AverageValue", [part] = value } } } end
      local function current(of, key, what) return { type = of,
        [key] = { name = key == "resource" and "cpu" or nil,
        metric = key ~= "resource" and { name = "m" } or nil, current = what } } end
      local share, average = { averageUtilization = 20 }, { averageUtilization = 20, averageValue = "10m" }
      local cases = {
        { { resource("memory", "averageValue", "1Gi"), pods "3" }, { current("Resource", "resource", average),
          current("Resource", "resource", average) }, "memory: 10m/1Gi, <unknown>/3" },
        { { resource("memory", "averageValue", "1Gi") }, { current("Resource", "resource", share) },
          "memory: <nil>/1Gi" },
        { { resource("cpu", "averageUtilization", 40) },
          { current("Resource", "resource", { averageValue = "1" }) },
          "cpu: <unknown>/40%" },
        { { pods "3" }, { current("Pods", "pods", { averageValue = "2" }) }, "2/3" },
        { { outside("value", "7"), outside("averageValue", "8"), pods "1" }, { current("External", "external",
          { value = "6" }), current("External", "external", { value = "6" }) },
            "6/7, <unknown>/8 (avg) + 1 more..." },
        { { outside("averageValue", "8") }, { current("External", "external", { averageValue = "5" }) },
          "5/8 (avg)" },
        { { outside("value", "8") }, { current("External", "external", { averageValue = "5" }) }, "<nil>/8" },
      }
      made(201, api:post(V2, scaler("shown", {})))
      for i, case in ipairs(cases) do
        made(200, api:patch("merge", at, { spec = { metrics = case[1] } }))
        made(200, api:patch("merge", at .. "/status", { status = { currentReplicas = 1, desiredReplicas = 1,
          currentMetrics = case[2] } }))
        assert.equal(case[3], api:get(at, TABLE).body.rows[1].cells[3], "case " .. i)
      end
      made(200, api:delete(at))
    end)
  end)
end)
