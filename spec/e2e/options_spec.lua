-- options_spec.lua - the options of writes, in the query and in the body of a deletion: what both servers
-- refuse, and in which words.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"

both.describe("options of writes in the query", function(ns)
  local path = ("/api/v1/namespaces/%s/configmaps"):format(ns)
  local rows = { { "an object", "POST", path, { metadata = { name = "a" } }, 201 } }
  local M = ("m"):rep(129)
  local APPLIED = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" } }
  local WRITES = {
    { "POST", path, { metadata = { name = "z" } }, 201 },
    { "PUT", path .. "/a", { metadata = { name = "a" }, data = { x = "1" } }, 200 },
    { "PATCH", path .. "/a", { data = { x = "1" } }, 200 },
    { "JSON", path .. "/a", "[]", 200 },
    { "APPLY", path .. "/a", APPLIED, 200 },
  }
  -- Each query, and the code of all writes; `apply`: the code of an apply.
  for _, case in ipairs {
    { "dryRun=x", 422 }, { "dryRun=", 422 }, { "dryRun=All&dryRun=x", 422 }, { "fieldValidation=x", 422 },
    { "fieldValidation=strict", 422 }, { "fieldManager=%01", 422 }, { "fieldManager=a%7Fb%02%09%22", 422 },
    { "fieldManager=" .. M, 422 }, { "dryRun=x&fieldValidation=y&fieldManager=" .. M, 422 },
    { "timeout=x", 400 }, { "timeout=5", 400 }, { "fieldManager=a&timeout=9s&dryRun=All" },
    { "fieldManager=&dryRun=All", apply = 422 }, { "force=true&fieldManager=a&dryRun=All", patch = 422 },
    { "force=false&fieldManager=a&dryRun=All", patch = 422 },
  } do
    for _, w in ipairs(WRITES) do
      local code = case[2] or w[1] == "APPLY" and case.apply
        or (w[1] == "PATCH" or w[1] == "JSON") and case.patch or w[4]
      rows[#rows + 1] = { w[1] .. " " .. case[1], w[1], w[2] .. "?" .. case[1], w[3], code }
    end
  end
  rows[#rows + 1] = { "an eviction", "POST", ("/api/v1/namespaces/%s/pods/x/eviction?dryRun=x"):format(ns),
    { apiVersion = "policy/v1", kind = "Eviction", metadata = { name = "x" } }, 422 }
  rows[#rows + 1] = { "a read", "GET", path .. "/b?dryRun=x&fieldValidation=x", nil, 404 }
  rows[#rows + 1] = { "the timeout of a read", "GET", path .. "/a?timeout=x", nil, 400 }
  return rows
end)

-- The body of a deletion, and the code.
local BODIES = {
  { "[]", 500 }, { "[1]", 500 }, { '"x"', 500 }, { "5", 500 }, { "true", 500 }, { '{"kind":5}', 500 },
  { '{"apiVersion":5}', 500 }, { '{"kind":"Pod"}', 500 }, { '{"kind":"Pod","apiVersion":"v1"}', 500 },
  { '{"kind":"DeleteOptions","apiVersion":"v9","dryRun":["All"]}', 200 },
  { '{"apiVersion":"v9","dryRun":["All"]}', 200 }, { '{"gracePeriodSeconds":"x"}', 500 },
  { '{"gracePeriodSeconds":1.5}', 500 }, { '{"gracePeriodSeconds":true}', 500 },
  { '{"propagationPolicy":5}', 500 }, { '{"propagationPolicy":{}}', 500 },
  { '{"propagationPolicy":"Never"}', 422 },
  { '{"propagationPolicy":"Orphan","orphanDependents":true}', 422 }, { '{"preconditions":5}', 500 },
  { '{"preconditions":[]}', 500 }, { '{"preconditions":{"uid":5}}', 500 },
  { '{"preconditions":{"resourceVersion":5}}', 500 }, { '{"orphanDependents":5}', 500 },
  { '{"dryRun":[5]}', 500 },
  { '{"dryRun":5}', 500 }, { '{"dryRun":["x"]}', 422 }, { '{"dryRun":["All","x"]}', 422 },
  { '{"dryRun":[null]}', 422 }, { '{"unknown":1,"dryRun":["All"]}', 200 },
}

local QUERIES = {
  { "gracePeriodSeconds=x", 400 }, { "gracePeriodSeconds=1.5", 400 }, { "gracePeriodSeconds=", 400 },
  { "gracePeriodSeconds=99999999999999999999", 400 }, { "propagationPolicy=x", 422 }, { "dryRun=x", 422 },
  { "propagationPolicy=Orphan&orphanDependents=true", 422 }, { "orphanDependents=x&dryRun=All", 200 },
  { "gracePeriodSeconds=-5&dryRun=All", 200 }, { "dryRun=All&dryRun=All", 200 }, { "timeout=x", 400 },
}

both.describe("options of a deletion", function(ns)
  local path = ("/api/v1/namespaces/%s/configmaps"):format(ns)
  local rows = { { "an object", "POST", path, { metadata = { name = "a" } }, 201 } }
  local all = path .. "?labelSelector=no%3Done"
  for _, case in ipairs(BODIES) do
    local body, code = case[1], case[2]
    rows[#rows + 1] = { "body " .. body, "DELETE", path .. "/a", body, code }
    rows[#rows + 1] = { "of all, body " .. body, "DELETE", all, body, code }
  end
  for _, case in ipairs(QUERIES) do
    local query, code = case[1], case[2]
    rows[#rows + 1] = { query, "DELETE", path .. "/a?" .. query, nil, code }
    rows[#rows + 1] = { "of all, " .. query, "DELETE", all .. "&" .. query, nil, code }
  end
  rows[#rows + 1] = { "a uid in the query", "DELETE", path .. "/a?uid=x", nil, 409 }
  rows[#rows + 1] = { "a body hides the query", "DELETE", path .. "/a?dryRun=All", "{}", 200 }
  rows[#rows + 1] = { "and so it is deleted", "GET", path .. "/a", nil, 404 }
  return rows
end)

both.describe("types of fields whose Go type has a name", function(ns)
  local rows = {}
  local function add(what, path, body)
    both.merge(body, { metadata = { name = "x" } })
    rows[#rows + 1] = { what, "POST", path:format(ns), body, 400 }
  end
  local PODS, CORE = "/api/v1/namespaces/%s/pods", "/api/v1/namespaces/%s/"
  add("a restart policy", PODS, { spec = { restartPolicy = 5 } })
  add("a pull policy", PODS, { spec = {
    containers = { { name = "a", image = "b", imagePullPolicy = {} } } } })
  add("a capability", PODS, { spec = { containers = { { name = "a",
    securityContext = { capabilities = { add = { 5 } } } } } } })
  add("capabilities", PODS, { spec = { containers = { { name = "a",
    securityContext = { capabilities = { add = "x" } } } } } })
  add("a toleration", PODS, { spec = { tolerations = { { operator = 1, effect = "x" } } } })
  add("an access mode", CORE .. "persistentvolumeclaims", { spec = { accessModes = { 1 } } })
  add("access modes", CORE .. "persistentvolumeclaims", { spec = { accessModes = "x" } })
  add("a type of Service", CORE .. "services", { spec = { type = 5 } })
  add("a protocol", CORE .. "services", { spec = { ports = { { port = 1, protocol = 5 } } } })
  add("a plain text", CORE .. "services", { spec = { clusterIP = 5 } })
  add("a uid", CORE .. "configmaps", { metadata = { uid = 5 } })
  add("an owner's uid", CORE .. "configmaps", { metadata = { ownerReferences = { { uid = 5 } } } })
  add("a strategy", "/apis/apps/v1/namespaces/%s/deployments", { spec = { strategy = { type = 5 } } })
  add("a policy", "/apis/batch/v1/namespaces/%s/cronjobs", { spec = { concurrencyPolicy = 5 } })
  return rows
end)
