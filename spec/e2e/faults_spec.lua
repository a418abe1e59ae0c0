-- faults_spec.lua - injected faults of `kubelua apiserver` as clients see them: kubectl, a controller, and
-- the client that orders the faults. spec/core/faults tests single rules.

local json = require "dkjson"
local api = require "support.api"
local both = require "support.both"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local PATH = "/kubelua/v1/faults"

local function hits(a)
  local all = {}
  for i, rule in ipairs(a:get(PATH).body.rules) do all[i] = rule.hits end
  return all
end

describe("the endpoint of faults", function()
  local s, a
  lazy_setup(function()
    s = servers.embedded()
    a = api(s)
  end)
  lazy_teardown(function() s:stop() end)
  after_each(function() a:delete(PATH) end)

  it("adds rules, counts their hits, and clears them", function()
    assert.same({ seed = 1, rules = {} }, a:get(PATH).body)
    local added = a:post(PATH, { verb = "get", name = "x", error = "server", times = 3 })
    assert.equal(200, added.code)
    a:post(PATH, { seed = 9, rules = { { path = "/version", half = true } } })
    assert.equal(500, a:get("/api/v1/namespaces/default/configmaps/x").code)
    assert.same({ seed = 9,
      rules = { { verb = "get", name = "x", error = "server", times = 3, hits = 1, left = 2 },
      { path = "/version", half = true, hits = 0 } } }, a:get(PATH).body)
    assert.same({ seed = 9, rules = {} }, a:delete(PATH).body)
    assert.equal(404, a:get("/api/v1/namespaces/default/configmaps/x").code)
    a:post(PATH, { seed = 1, rules = {} })
  end)

  it("explains an invalid request, and applies none of it", function()
    local r = a:post(PATH, { rules = { { half = true }, { eror = "conflict" } } })
    assert.same({ 400, 'rule 2: unknown field "eror"; did you mean "error"?', "Status" },
      { r.code, r.body.message, r.body.kind })
    assert.equal(400, a:post(PATH, "nonsense").code)
    assert.equal(405, a:put(PATH, { half = true }).code)
    assert.same({}, hits(a))
  end)

  it("is read and written by kubectl, too", function()
    local body = process.write(process.tmpname ".json", '{"verb":"delete","error":"forbidden"}')
    s:must_kubectl("create", "--raw", PATH, "-f", body)
    assert.equal("delete", json.decode(s:must_kubectl("get", "--raw", PATH)).rules[1].verb)
    s:must_kubectl("delete", "--raw", PATH)
    assert.same({}, hits(a))
  end)

  it("affects clients like kube-apiserver's failures", function()
    a:post(PATH, { rules = { { verb = "create", error = "throttled", retryAfter = 1, times = 2 },
      { verb = "get", path = "/api/v1/*", latency = { mean = "5ms" } } } })
    s:must_kubectl("create", "configmap", "patient") -- waits twice for a second
    assert.equal("patient", s:must_kubectl("get", "configmap", "patient", "-o", "jsonpath={.metadata.name}"))
    local seen = hits(a)
    assert.equal(2, seen[1])
    assert.is_true(seen[2] > 0)
    a:delete(PATH)
    a:post(PATH, { verb = "get", error = "conflict" })
    local out, code = s:kubectl("get", "configmap", "patient")
    assert.equal(1, code)
    assert.matches('Operation cannot be fulfilled on configmaps "patient": the object has been modified', out,
      1, true)
  end)
end)

servers.only_real(function(_, real)
  describe("injected failures", function()
    it("have the form of the real server's", function()
      local answers = {}
      for i, start in ipairs { servers.embedded, real } do
        local s = start {}
        local a = api(s)
        if i == 1 then
          a:post(PATH, { rules = { { name = "gone", error = "not_found" },
            { verb = "create", kind = "v1/Namespace",
            error = "already_exists", message = 'namespaces "default" already exists' } } })
        end
        answers[i] = { a:get("/api/v1/namespaces/default/configmaps/gone"),
          a:post("/api/v1/namespaces", { metadata = { name = "default" } }) }
        for k, r in ipairs(answers[i]) do answers[i][k] = { code = r.code, body = r.body } end
        answers[i][2].body.details = nil -- a failure that is ordered by its code has none
        s:stop()
      end
      both.same(answers[2], answers[1])
    end)
  end)
end)

describe("kubelua apiserver --faults", function()
  local RULES = [[
seed: 11
rules:
- {verb: [patch, update, create], error: conflict, probability: 0.2, except: kubectl}
- {error: unavailable, probability: 0.05, except: kubectl}
- {verb: [get, patch], half: true, probability: 0.05, except: kubectl}
- {verb: list, stale: 5, except: kubectl}
- {verb: [patch, list], latency: {p50: 1ms, p99: 20ms}, except: kubectl}
- {verb: watch, kind: v1/ConfigMap, cut: half, events: 7, times: 3}
- {verb: watch, kind: v1/ConfigMap, cut: reset, events: 5, times: 3}
- {verb: watch, kind: v1/ConfigMap, cut: expired, events: 5, times: 2}
- {verb: watch, twice: 0.2, old: 0.2, bookmarks: none, lag: 5ms}
]]

  it("does not keep a controller from converging", function()
    local s = servers.embedded { args = { "--faults", process.write(process.tmpname ".yaml", RULES) } }
    local a = api(s)
    local run = process.spawn { KUBELUA, "run", "controllers/hello.lua", "--kubeconfig", s.kubeconfig,
      name = "kubelua run" }
    local cards = {}
    for i = 1, 40 do
      cards[i] = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "card-" .. i,
        namespace = "default", labels = { hello = "n" .. i } } }
    end
    s:must_kubectl("create", "-f", process.write(process.tmpname ".json",
      json.encode { apiVersion = "v1", kind = "List", items = cards }))
    local function greeted()
      local _, n = s:must_kubectl("get", "configmaps", "-o",
        "jsonpath={.items[*].data.greeting}"):gsub("Hello, n%d+!", "")
      return n
    end
    wait.until_true(120, "every card is greeted", function() return greeted() == 40 end)
    s:must_kubectl("label", "configmaps", "--all", "--overwrite", "hello=n0")
    wait.until_true(120, "every card is greeted again", function()
      local _, n = s:must_kubectl("get", "configmaps", "-o",
        "jsonpath={.items[*].data.greeting}"):gsub("Hello, n0!", "")
      return n == 40
    end)
    local seen = hits(a)
    for _, i in ipairs { 1, 2, 4, 5, 6, 9 } do assert.is_true(seen[i] > 0, "rule " .. i) end
    run:stop()
    s:stop()
  end)

  it("names a missing file, and an invalid rule", function()
    local function fails(path)
      local out, code = process.run(("%s apiserver --listen 127.0.0.1:0 --faults %s 2>&1"):format(KUBELUA,
        path))
      assert.equal(1, code)
      return out
    end
    assert.matches("/nowhere.yaml", fails "/nowhere.yaml", 1, true)
    local path = process.write(process.tmpname ".yaml", "rules:\n- {cut: now}\n")
    assert.matches(path .. ': rule 1: cut: must be "end", "reset", "half" or "expired", not "now"',
      fails(path), 1, true)
  end)
end)

describe("faults under RBAC", function()
  it("are injected by users with the right to post to their URL", function()
    local users = process.write(process.tmpname ".csv", "t-ann,ann,2,\n")
    local s = servers.embedded { args = { "--authorization-mode", "RBAC", "--token-auth-file", users } }
    local function code(user)
      local words = "curl -sk -o /dev/null -w '%%{http_code}' -H 'Authorization: Bearer %s' -d \z
        '{\"half\":true}' %s%s"
      return (process.run(words:format(user, s.url, PATH)))
    end
    assert.equal("403", code "t-ann")
    s:must_kubectl("create", "clusterrole", "faults", "--verb=get,post", "--non-resource-url=" .. PATH)
    s:must_kubectl("create", "clusterrolebinding", "faults", "--clusterrole=faults", "--user=ann")
    assert.equal("200", code "t-ann")
    s:stop()
  end)
end)
