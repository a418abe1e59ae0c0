-- operations_spec.lua - the metrics and logs of `kubelua run`.

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local promtext = require "support.promtext"
local servers = require "support.servers"
local wait = require "support.wait"

-- Fails once, then answers, and logs its own messages.
local SCRIPT = [[
local kube = require "kubelua"
local failed = {}
return kube.controller {
  name = "%s",
  resource = "v1/ConfigMap",
  backoff = { base = "10ms" },
  reconcile = function(map, ctx)
    if map.metadata.namespace ~= %q or not map("data.ask") or map("data.answer") then return end
    if not failed[ctx.key] then
      failed[ctx.key] = true
      error "not \"yet\"\n\tperhaps"
    end
    ctx.log:info("answering %%s", map.data.ask,
      { attempts = ctx.attempt, share = 0.5, urgent = true, msg = "mine", ["zone.io"] = "eu west" })
    ctx:patch(map, function(m) m.data.answer = "yes" end)
  end,
}
]]

local function answered(client, ns, n)
  controller.await_answers(client, ns, n, 60, function() return "yes" end)
end

local function address(run, of)
  return wait.until_true(30, "the address of " .. of, function()
    return run:log():match("serving " .. of .. ".-address[\"=:]+([%d.:]+)")
  end)
end

local function get(url, ...)
  local text, code = process.run(("curl -sS --max-time 30 %s %s"):format(table.concat({ ... }, " "),
    process.quote(url)))
  assert(code == 0, text)
  return text
end

local TOKENS = process.write(process.tmpname ".csv",
  'admin-token,admin,admin,"system:masters"\nnobody-token,nobody,nobody\n')

servers.each(function(name, start)
  describe("`kubelua run` against " .. name, function()
    local server, client
    lazy_setup(function()
      server = start { args = name:find "embedded" and { "--token-auth-file", TOKENS } or nil }
      if name:find "embedded" then server.tokens = { admin = "admin-token", nobody = "nobody-token" } end
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it("has metrics in strict format, under controller-runtime's names", function()
      local ns = controller.namespace(client, "metrics")
      controller.ask(client, ns, 1, 3)
      local run = controller.start(server, SCRIPT:format("asker-" .. ns, ns), "--metrics-bind-address",
        "127.0.0.1:0", "--leader-elect",
        "--leader-elect-resource-namespace", ns)
      answered(client, ns, 3)
      local at = address(run, "metrics")
      local who = "asker-" .. ns
      local families = wait.until_true(30, "three runs that failed and three that did not", function()
        local all = promtext.parse(get("http://" .. at .. "/metrics"))
        return promtext.value(all, "controller_runtime_reconcile_total",
          { controller = who, result = "error" }) == 3
          and promtext.value(all, "controller_runtime_reconcile_total",
            { controller = who, result = "success" }) >= 3 and all
      end)
      assert.equal(3, promtext.value(families, "controller_runtime_reconcile_errors_total",
        { controller = who }))
      assert.equal(0, promtext.value(families, "controller_runtime_reconcile_panics_total",
        { controller = who }))
      assert.equal(1, promtext.value(families, "leader_election_master_status"))
      assert.is_true(promtext.value(families, "rest_client_request_size_bytes_count",
        { verb = "PATCH" }) >= 3)
      assert.is_true(promtext.value(families, "rest_client_response_size_bytes_sum",
        { verb = "PATCH" }) > 100)
      assert.is_true(promtext.value(families, "workqueue_adds_total", { name = who, controller = who }) >= 6)
      assert.equal(1, promtext.value(families, "kubelua_informer_synced", { kind = "v1/ConfigMap" }))
      assert.equal(0, promtext.value(families, "kubelua_informer_relists_total", { kind = "v1/ConfigMap" }))
      assert.is_true(promtext.value(families, "kubelua_informer_lag_seconds",
        { kind = "v1/ConfigMap" }) < 600)
      assert.is_true(promtext.value(families, "process_resident_memory_bytes") > 1e6)
      assert.is_true(promtext.value(families, "process_open_fds") > 3)
      -- All metrics of controller-runtime, except those of webhooks and of events that did not happen.
      local absent = {}
      for line in io.lines "spec/fixtures/metrics/controller_runtime.txt" do
        local family, kind = line:match "^([%w_]+)\t(%w+)"
        if family and not families[family] then
          absent[#absent + 1] = family
        elseif family then
          assert.equal(kind, families[family].type)
        end
      end
      for _, family in ipairs(absent) do
        -- specs of their own
        assert.truthy(family:find "webhook" or family:find "retries_total" or family:find "rate_limiter"
          or family:find "dns_resolution",
          family .. " is missing")
      end
      controller.finish(run)
    end)

    it("measures DNS lookups of the server's name", function()
      local ns = controller.namespace(client, "names")
      controller.ask(client, ns, 1, 1)
      local named = process.write(process.tmpname ".kubeconfig",
        (process.read(server.kubeconfig):gsub("127%.0%.0%.1", "localhost")))
      local function lookups(kubeconfig, who)
        local run = controller.start({ kubeconfig = kubeconfig }, SCRIPT:format(who, ns),
          "--metrics-bind-address", "127.0.0.1:0")
        run:wait_for_log(30, who .. ": running")
        local families = promtext.parse(get("http://" .. address(run, "metrics") .. "/metrics"))
        controller.finish(run)
        return families["rest_client_dns_resolution_duration_seconds"], families
      end
      local found, families = lookups(named, "named")
      assert.equal("histogram", found.type)
      assert.is_true(promtext.value(families, "rest_client_dns_resolution_duration_seconds_count",
        { host = "localhost" }) >= 1)
      -- as client-go has it: an address is not looked up
      assert.is_nil((lookups(server.kubeconfig, "addressed")))
    end)

    it("writes logs as JSON, with all fields of a run", function()
      local ns = controller.namespace(client, "logs")
      controller.ask(client, ns, 1, 1)
      local who = "asker-" .. ns
      local run = controller.start(server, SCRIPT:format(who, ns), "--log-format", "json")
      answered(client, ns, 1)
      run:wait_for_log(30, '"answering q1"')
      controller.finish(run)
      local by_message = {}
      for line in run:log():gmatch "[^\n]+" do
        local record = kube.json(line)                       -- every line is one
        assert.truthy(record.ts:find "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", line)
        by_message[record.msg] = record
      end
      assert.equal(who, by_message["controller state"].controller)
      local failed, said = by_message["reconcile failed"], by_message["answering q1"]
      for _, record in ipairs { failed, said } do
        assert.equal(who, record.controller)
        assert.equal("", record.controllerGroup)
        assert.equal("ConfigMap", record.controllerKind)
        assert.equal(ns, record.namespace)
        assert.equal("question-1", record.name)
        assert.equal(ns .. "/question-1", record.key)
        assert.equal(1, record.generation)
        assert.truthy(record.reconcileID:find "^%x+%-%x+%-4%x+%-%x+%-%x+$")
        assert.equal((record.reconcileID:gsub("-", "")), record.traceID)
        assert.equal(32, #record.traceID)
        assert.truthy(record.spanID:find "^%x+$" and #record.spanID == 16)
      end
      assert.not_equal(failed.reconcileID, said.reconcileID)
      assert.equal("error", failed.level)
      assert.equal("info", said.level)
      assert.truthy(failed.error:find('not "yet"\n\tperhaps', 1, true))
      assert.truthy(failed.stacktrace:find("stack traceback", 1, true))
      assert.equal(2, said.attempts)
      assert.equal(0.5, said.share)
      assert.is_true(said.urgent)
      assert.equal("mine", said["field.msg"])
      assert.equal("eu west", said["zone.io"])
    end)

    it("is ready when everything runs, and names what is not ready and why", function()
      local ns = controller.namespace(client, "health")
      local run = controller.start(server, ([[
        local kube = require "kubelua"
        local function reconcile() end
        return {
          kube.controller { name = "fine-%s", resource = "v1/ConfigMap", reconcile = reconcile },
          kube.controller { name = "parked-%s", resource = "example.com/v1/Nowhere", reconcile = reconcile },
        }
      ]]):format(ns, ns), "--health-probe-bind-address", "127.0.0.1:0", "--leader-elect",
        "--leader-elect-resource-namespace", ns)
      local at = "http://" .. address(run, "health probes")
      local function code_of(path) return tonumber((get(at .. path, "-o /dev/null -w '%{http_code}'"))) end
      local fine, parked = "fine-" .. ns, "parked-" .. ns
      local text = wait.until_true(60, fine .. " runs", function()
        local out = get(at .. "/readyz")
        return out:find("[+]" .. fine .. " ok", 1, true) and out:find(parked .. " failed: parked: ", 1, true)
          and out
      end)
      assert.equal(500, code_of "/readyz")
      assert.truthy(text:find("[-]" .. parked .. " failed: parked: example.com/v1/Nowhere: ", 1, true), text)
      assert.truthy(text:find("[+]informer/v1/ConfigMap ok\n", 1, true), text)
      assert.truthy(text:find("[+]ping ok\n", 1, true), text)
      assert.truthy(text:find("[+]shutdown ok\n", 1, true), text)
      assert.truthy(text:find "healthz check failed\n$", text)
      run:wait_for_log(30, "not ready checks=")

      -- A single check.
      assert.equal("ok", get(at .. "/readyz/" .. fine))
      assert.equal("ok", get(at .. "/readyz/informer/v1/ConfigMap/"))
      assert.truthy(get(at .. "/readyz/" .. parked):find "^internal server error: parked: ")
      assert.equal(500, code_of("/readyz/" .. parked))
      assert.equal(404, code_of "/readyz/nobody")

      -- Without the failed check, the result is ok.
      assert.equal("ok", get(at .. "/readyz?exclude=" .. parked))
      text = get(at .. "/readyz?verbose&exclude=" .. parked .. "&exclude=nobody")
      assert.truthy(text:find("[+]" .. parked .. " excluded: ok\n", 1, true), text)
      assert.truthy(text:find('warn: some health checks cannot be excluded: no matches for "nobody"\n', 1,
        true), text)
      assert.truthy(text:find "healthz check passed$", text)

      assert.equal("ok", get(at .. "/healthz"))
      assert.equal("[+]leaderElection ok\n[+]ping ok\nhealthz check passed", get(at .. "/healthz?verbose"))
      assert.equal("ok", get(at .. "/healthz/ping"))
      assert.equal("ok", get(at .. "/livez"))
      assert.equal("405", (get(at .. "/healthz", "-X POST -o /dev/null -w '%{http_code}'")))
      assert.equal(404, code_of "/metrics")
      for host, code in pairs { ["web.default.svc:80"] = 200, ["10.0.0.7"] = 200, ["evil.example"] = 403 } do
        local said = get(at .. "/healthz", ("-H 'Host: %s' -w ' %%{http_code}'"):format(host))
        assert.equal(code, tonumber(said:match " (%d+)$"), said)
      end
      controller.finish(run)
    end)

    it("serves metrics over HTTPS to authorized users, with a certificate that may change",
      function()
      local dir = process.tmpname ".certs"
      process.run("mkdir -p " .. process.quote(dir))
      local function certificate(subject)
        local out,
          code = process.run(("cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \z
          -nodes -days 2 -subj /CN=%s "
          .. "-keyout new.key -out new.crt 2>&1 && mv new.key tls.key && mv new.crt tls.crt"):format(
            process.quote(dir), subject))
        assert(code == 0, out)
      end
      certificate "first"
      local ns = controller.namespace(client, "private")
      local run = controller.start(server,
        ("return require('kubelua').controller { name = 'private-%s', resource = 'v1/ConfigMap', reconcile \z
        = function() end }")
        :format(ns), "--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0",
          "--metrics-cert-dir", dir, "--metrics-auth")
      local at = "https://" .. address(run, "metrics") .. "/metrics"
      local function ask(token)
        local header = token and "-H " .. process.quote("Authorization: Bearer " .. token) or ""
        local out = get(at, "-k", header, "-w '\n%{http_code}'")
        local body, code = out:match "^(.*)\n(%d+)$"
        return tonumber(code), body
      end
      local code, body = ask()
      assert.equal(401, code)
      assert.equal("Unauthorized\n", body)
      assert.equal(401, (ask "a-made-up-token"))
      code, body = ask(server.tokens.nobody)
      assert.equal(403, code)
      assert.truthy(body:find("Authorization denied for user nobody", 1, true), body)
      code, body = ask(server.tokens.admin)
      assert.equal(200, code)
      promtext.parse(body)
      local health = "http://" .. address(run, "health probes")
      assert.equal("ok", get(health .. "/healthz"))
      assert.equal("404", (get(health .. "/metrics", "-o /dev/null -w '%{http_code}'")))

      local function shown()
        local out = process.run(("openssl s_client -connect %s </dev/null 2>/dev/null | openssl x509 -noout \z
          -subject"):format(at:match "//([^/]+)"))
        return out:match "CN ?= ?(%w+)"
      end
      assert.equal("first", shown())
      certificate "second"
      wait.until_true(60, "the new certificate is shown", function() return shown() == "second" end)
      process.write(dir .. "/tls.crt", "nonsense")
      run:wait_for_log(60, "the new certificate is invalid; the old one stays in use")
      assert.equal("second", shown())
      code, body = ask(server.tokens.admin)
      assert.equal(200, code)
      local families = promtext.parse(body)
      assert.is_true(promtext.value(families, "certwatcher_read_certificate_total") >= 3)
      assert.is_true(promtext.value(families, "certwatcher_read_certificate_errors_total") >= 1)
      controller.finish(run)
    end)
  end)
end)

describe("--log-format", function()
  it("is text or json", function()
    local out, code = process.run((os.getenv "KUBELUA" or "build/kubelua") .. " run --log-format yaml x.lua")
    assert.equal(2, code)
    assert.truthy(out:find("--log-format must be text or json, not \"yaml\"", 1, true), out)
  end)
end)
