-- clock_spec.lua - `kubelua apiserver --clock virtual`: the time changes only when a client moves it, for
-- time stamps, watches and stand-ins. The real server has no such clock.

local json = require "dkjson"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local PATH = "/kubelua/v1/clock"

-- The answer's code and body; `token` nil: none.
local function curl(s, path, body, token)
  local words = { "curl -sk -w '\n%{http_code}' --max-time 60" }
  if body then words[#words + 1] = "-d " .. process.quote(body) end
  if token then words[#words + 1] = "-H " .. process.quote("Authorization: Bearer " .. token) end
  words[#words + 1] = process.quote(s.url .. path)
  local text, code = process.run(table.concat(words, " ")):match "^(.*)\n(%d+)$"
  return tonumber(code), (json.decode(text) or {}), text
end

local function advance(s, by)
  local code, body, text = curl(s, PATH, json.encode { advance = by })
  assert.equal(200, code, text)
  return body.now
end

local function unix(text) return tonumber((process.run("date -d " .. text .. " +%s"))) end

describe("a virtual clock", function()
  local s
  lazy_setup(function()
    s = servers.embedded { collects = true,
      args = { "--simulate", "--simulate-nodes", "1", "--clock", "virtual" } }
  end)
  lazy_teardown(function() if s then s:stop() end end)

  local function create(kind, name, spec)
    s:must_kubectl("create", "-f", process.write(process.tmpname ".json", json.encode {
      apiVersion = "batch/v1", kind = kind, metadata = { name = name }, spec = spec }))
  end
  local function get(kind, name, path)
    return s:must_kubectl("get", kind, name, "-o", "jsonpath={" .. path .. "}")
  end
  local JOB = { template = { spec = { restartPolicy = "Never",
    containers = { { name = "c", image = "i" } } } } }

  it("stands still, and dates writes", function()
    local _, before = curl(s, PATH)
    s:must_kubectl("create", "configmap", "first")
    assert.equal(before.now, get("configmap", "first", ".metadata.creationTimestamp"))
    assert.equal(90, unix(advance(s, "1m30s")) - unix(before.now))
    s:must_kubectl("create", "configmap", "second")
    local _, now = curl(s, PATH)
    assert.equal(now.now, get("configmap", "second", ".metadata.creationTimestamp"))
  end)

  it("renews the server's own Lease every 10 seconds, and brings a deleted one back", function()
    local LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    local function lease()
      local _, list = curl(s, LEASES .. "?labelSelector=apiserver.kubernetes.io/identity%3Dkube-apiserver")
      return list.items[1]
    end
    advance(s, "10s")
    local before = lease()
    advance(s, "9s")
    assert.equal(before.spec.renewTime, lease().spec.renewTime)
    advance(s, "1s")
    local after = lease()
    assert.equal(10, unix(after.spec.renewTime) - unix(before.spec.renewTime))
    after.spec.renewTime = before.spec.renewTime
    assert.same(before.spec, after.spec)
    s:must_kubectl("delete", "lease", "-n", "kube-system", before.metadata.name)
    assert.is_nil(lease())
    advance(s, "10s")
    assert.equal(before.metadata.name, lease().metadata.name)
    assert.not_equal(before.metadata.uid, lease().metadata.uid)
  end)

  it("lets stand-ins do immediate work at once, and the rest when it is moved", function()
    local spec = { ttlSecondsAfterFinished = 30, template = JOB.template }
    create("Job", "once", spec)
    s:must_kubectl("wait", "job/once", "--for=jsonpath={.status.active}=1", "--timeout=60s")
    advance(s, "1s")
    assert.equal("1", get("job", "once", ".status.succeeded"))
    advance(s, "29s")
    assert.equal("once", get("job", "once", ".metadata.name"))
    advance(s, "2s")
    assert.equal(1, select(2, s:kubectl("get", "job", "once")))
  end)

  it("moves from one due moment to the next", function()
    create("CronJob", "often",
      { schedule = "* * * * *", successfulJobsHistoryLimit = 10, jobTemplate = { spec = JOB } })
    s:must_kubectl("wait", "cronjob/often", "--for=jsonpath={.kind}=CronJob", "--timeout=60s")
    advance(s, "5m")
    local _, count = s:must_kubectl("get", "jobs", "-o", "name"):gsub("often%-", "")
    assert.equal(5, count)
    s:must_kubectl("delete", "cronjob", "often")
  end)

  it("renews leases", function()
    local function renewed()
      return unix(s:must_kubectl("get", "lease", "node-1", "-n", "kube-node-lease", "-o",
        "jsonpath={.spec.renewTime}"))
    end
    local before = renewed()
    advance(s, "20s")
    assert.equal(20, renewed() - before)
  end)

  it("ends watches at their timeout", function()
    local out = process.tmpname ".watch"
    local watch = process.spawn { "sh", "-c",
      ("curl -sN '%s/api/v1/configmaps?watch=1&timeoutSeconds=60' >%s")
      :format(s.url, out), name = "curl" }
    wait.until_true(60, "the watch has begun", function() return (process.read(out) or ""):find "first" end)
    advance(s, "59s")
    assert.is_true(watch:alive())
    advance(s, "1s")
    wait.until_true(60, "the watch has ended", function() return not watch:alive() end)
  end)

  it("is read and moved by kubectl, too", function()
    local _, before = curl(s, PATH)
    assert.equal(before.now, json.decode(s:must_kubectl("get", "--raw", PATH)).now)
    local body = process.write(process.tmpname ".json", '{"advance":"1m"}')
    local after = json.decode(s:must_kubectl("create", "--raw", PATH, "-f", body)).now
    assert.equal(60, unix(after) - unix(before.now))
  end)

  it("says what is wrong with a request", function()
    local function refused(body, path, ...)
      local code, status = curl(s, path or PATH, body, ...)
      return code .. " " .. tostring(status.message)
    end
    local wrong = '400 the body must be {"advance": "10m"}, the time by which the clock moves'
    assert.equal(wrong, refused '{"by":"1m"}')
    assert.equal(wrong, refused '{"advance":5}')
    assert.equal("400 advance: expected a duration from 0 to ten years, got -1m",
      refused '{"advance":"-1m"}')
    assert.matches("^400 .*soon", refused '{"advance":"soon"}')
    assert.matches("^400 ", refused "nonsense")
    assert.equal("404 there are /kubelua/v1/clock and /kubelua/v1/faults, and nothing else below /kubelua/",
      refused("{}", "/kubelua/v1/clocks"))
  end)

  it("does not keep the server from stopping", function()
    local other = servers.embedded { args = { "--simulate=nodes", "--clock", "virtual" } }
    other:must_kubectl("wait", "--for=create", "node/node-3", "--timeout=60s")
    local out = process.tmpname ".answer"
    local long = process.spawn { "sh", "-c",
      ("curl -s '%s%s' -d '{\"advance\":\"87600h\"}' >%s"):format(other.url, PATH,
      out), name = "curl" }
    local _, before = curl(other, PATH)
    wait.until_true(60, "time passes", function() return select(2, curl(other, PATH)).now ~= before.now end)
    other:stop()
    wait.until_true(60, "the request has ended", function() return not long:alive() end)
  end)

  it("is rejected with persistent data, and under another name", function()
    local function fails(words)
      local out, code = process.run(KUBELUA .. " apiserver --listen 127.0.0.1:0 " .. words .. " 2>&1")
      assert.equal(2, code)
      return out
    end
    assert.matches("use only one of them", fails("--clock virtual --data " .. process.tmpname ".data"))
    assert.matches('--clock must be real or virtual, not "fake"', fails "--clock fake", 1, true)
  end)
end)

describe("a clock that runs by itself", function()
  it("has no such path", function()
    local s = servers.embedded()
    local code = curl(s, PATH)
    s:stop()
    assert.equal(404, code)
  end)
end)

describe("a virtual clock under RBAC", function()
  it("is moved by users with the right to post to its URL", function()
    local users = process.write(process.tmpname ".csv", "t-admin,admin,1,system:masters\nt-ann,ann,2,\n")
    local s = servers.embedded { args = { "--clock", "virtual", "--authorization-mode", "RBAC",
      "--token-auth-file",
      users } }
    assert.equal(403, (curl(s, PATH, '{"advance":"1m"}', "t-ann")))
    assert.equal(200, (curl(s, PATH, '{"advance":"1m"}', "t-admin")))
    s:must_kubectl("create", "clusterrole", "clock", "--verb=get", "--non-resource-url=" .. PATH)
    s:must_kubectl("create", "clusterrolebinding", "clock", "--clusterrole=clock", "--user=ann")
    assert.equal(200, (curl(s, PATH, nil, "t-ann")))
    assert.equal(403, (curl(s, PATH, '{"advance":"1m"}', "t-ann")))
    s:stop()
  end)
end)
