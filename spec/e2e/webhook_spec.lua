-- webhook_spec.lua - admission webhooks of `kubelua run`, called by both API servers: their changes,
-- rejections and messages, their failures, and that neither a new generation nor a new certificate costs a
-- request.
-- real in asan: the real server calls over TLS

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local kube = require "kubelua"

-- A webhook of one namespace, so that other specs on a shared server never call it.
local SCRIPT = [[
local kube = require "kubelua"
return kube.webhook {
  name = %q, resource = "v1/ConfigMap", namespaces = { %q }, %s
}
]]

local function script(name, ns, rest) return SCRIPT:format(name, ns, rest) end

local function run_webhook(server, text, ...)
  return controller.start(server, text, "--webhook-listen", "127.0.0.1:0", "--webhook-url", "auto", ...)
end

local function count(text, what)
  local n, at = 0, 1
  while true do
    local from, to = text:find(what, at, true)
    if not from then return n end
    n, at = n + 1, to + 1
  end
end

local function write_pair(dir, ca, name)
  process.write(dir .. "/san", "subjectAltName=IP:127.0.0.1\n")
  local commands = {
    "cd " .. process.quote(dir),
    ca and "true"
    or "openssl ecparam -name prime256v1 -genkey -noout -out ca.key && openssl req -x509 -new -key ca.key \z
      -subj /CN=webhook-spec-ca -days 30 -out ca.crt",
    "openssl ecparam -name prime256v1 -genkey -noout -out new.key",
    "openssl req -new -key new.key -subj /CN=" .. name .. " -out new.csr",
    "openssl x509 -req -in new.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile san -out \z
      new.crt",
    "mv new.key tls.key", "mv new.crt tls.crt",
  }
  local out, code = process.run("(" .. table.concat(commands, " && ") .. ") 2>&1")
  assert(code == 0, out)
end

servers.each(function(name, start)
  describe("webhooks of `kubelua run` against " .. name, function()
    local server, client, ns, hook, runs
    local said
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function()
      ns = controller.namespace(client, "hooks")
      hook, runs = ns .. "-hook", {}
      said = ""
      client:warnings()
    end)
    after_each(function()
      for _, kind in ipairs { "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration" } do
        client:delete("admissionregistration.k8s.io/v1/" .. kind, hook)
      end
      for _, run in ipairs(runs) do controller.finish(run) end
    end)

    local function map(key, data, opts)
      return client:create({ kind = "v1/ConfigMap", namespace = ns, name = key, data = data }, opts)
    end

    local function refused(key, data, opts)
      local o, e = kube.try(map, key, data, opts)
      assert(not o, "it was let in")
      return e
    end

    -- A server needs a moment to notice a new configuration: it knows the webhook once that answers `asked`.
    local function begin(text, ...)
      local run = run_webhook(server, text, ...)
      runs[#runs + 1] = run
      return run
    end

    local function in_force(fn) wait.until_true(60, "the API server calls the webhook", fn) end

    -- The server's warnings so far.
    local function warned(part)
      for _, w in ipairs((client:warnings())) do said = said .. w.text .. "\n" end
      return said:find(part, 1, true) ~= nil
    end

    local PROBE = 'if obj.metadata.name == "probe" then return kube.deny("the probe") end\n'

    local function probed()
      return function()
        local o, e = kube.try(map, "probe", nil, { dry_run = true })
        return not o and e.message:find("the probe", 1, true) ~= nil
      end
    end

    it("changes objects through a draft", function()
      begin(script(hook, ns, "mutate = function(obj, req) " .. PROBE .. [[
        obj.metadata.labels["example.com/by"] = req.operation
        obj.data["a/b~c"] = nil
        obj.data.list = kube.to_json(obj.data)
        end]]))
      in_force(probed())
      local o = map("one", { x = "1", ["drop"] = "2" })
      assert.equal("CREATE", o.metadata.labels["example.com/by"])
      assert.same({ x = "1", drop = "2" }, kube.json(o.data.list) and kube.copy(kube.json(o.data.list)))
      local p = client:patch(o, { data = { x = "3" } })
      assert.equal("UPDATE", p.metadata.labels["example.com/by"])
      assert.equal("3", p.data.x)
      local gen = client:create { apiVersion = "v1", kind = "ConfigMap",
        metadata = { namespace = ns, generateName = "made-" } }
      assert.truthy(gen.metadata.name:find "^made%-%w+$")
      assert.equal("CREATE", gen.metadata.labels["example.com/by"])
    end)

    it("leaves its changes unowned: an apply neither owns nor removes them", function()
      begin(script(hook, ns, "mutate = function(obj) " .. PROBE .. 'obj.metadata.labels.hooked = "yes" end'))
      in_force(probed())
      local function apply(value)
        return client:apply({ apiVersion = "v1", kind = "ConfigMap",
          metadata = { namespace = ns, name = "applied" }, data = { x = value } }, { manager = "spec" })
      end
      assert.equal("yes", apply "1".metadata.labels.hooked)
      local o = apply "2"
      assert.equal("2", o.data.x)
      assert.equal("yes", o.metadata.labels.hooked)
      for _, entry in ipairs(o.metadata.managedFields or {}) do
        if entry.manager == "spec" then assert.is_nil(entry("fieldsV1.f:metadata")) end
      end
    end)

    it("rejects with its own message and code, and sees the user and request", function()
      begin(script(hook, ns,
        [[operations = { "CREATE", "UPDATE", "DELETE" }, validate = function(obj, req) ]] .. PROBE .. [[
          if req.operation == "DELETE" then return obj.data.keep ~= "yes", "it is kept" end
          if req.operation == "UPDATE" and req.old.data.fixed ~= obj.data.fixed then
            return nil, ("fixed was %s, and %s of %s may not change it"):format(req.old.data.fixed,
              req.resource, req.namespace)
          end
          if obj.data.code then return kube.deny("with a code", tonumber(obj.data.code)) end
          if obj.data.raised then error(kube.deny "raised") end
          if obj.data.quiet then return false end
          if obj.data.user then
            return kube.deny(req.user .. " " .. (#req.groups > 0 and "with groups" or "alone")
              .. " " .. req.kind .. " " .. req.name)
          end
          return true end]]))
      in_force(probed())
      local e = refused("a", { code = "422" })
      assert.equal(('admission webhook "%s.webhooks.kubelua" denied the request: with a code'):format(hook),
        e.message:match "admission.*$")
      assert.equal(422, e.code)
      e = refused("a", { raised = "1" })
      assert.equal(403, e.code)
      assert.truthy(e.message:find("denied the request: raised", 1, true))
      assert.truthy(refused("a", { quiet = "1" }).message:find('denied the request', 1, true))
      assert.truthy(refused("a", { user = "1" }).message:find " with groups v1/ConfigMap a$")
      local o = map("kept", { fixed = "1", keep = "yes" })
      local ok
      ok, e = kube.try(client.patch, client, o, { data = { fixed = "2" } })
      assert.falsy(ok)
      assert.truthy(e.message:find(("fixed was 1, and configmaps of %s may not change it"):format(ns), 1,
        true))
      ok, e = kube.try(client.delete, client, "v1/ConfigMap", ns, "kept")
      assert.falsy(ok)
      assert.truthy(e.message:find("it is kept", 1, true))
      client:patch(o, { data = { keep = "no" } })
      client:delete("v1/ConfigMap", ns, "kept")
      assert.is_nil(client:get("v1/ConfigMap", ns, "kept"))
    end)

    it("warns, and recognizes a dry run", function()
      begin(script(hook, ns, "validate = function(obj, req) " .. PROBE .. [[
        req:warn("this is %s \"%s\"", req.dry_run and "a dry run of" or "really", obj.metadata.name) end]]))
      in_force(probed())
      map("one", nil, { dry_run = true })
      map("two")
      wait.until_true(30, "both warnings", function()
        return warned 'this is a dry run of "one"' and warned 'this is really "two"'
      end)
      assert.is_nil(client:get("v1/ConfigMap", ns, "one"))
    end)

    it("reads caches and the server", function()
      client:create { kind = "v1/Secret", namespace = ns, name = "limits", stringData = { most = "2" } }
      begin(script(hook, ns, [[reads = { "v1/Secret" }, validate = function(obj, req) ]] .. PROBE .. [[
        if not req:get("v1/Secret", "limits") then return kube.deny "no limits" end
        local have = req.live:list("v1/ConfigMap", { namespace = req.namespace, labels = "counted=yes" })
        if #have >= 2 then return kube.deny("there are " .. #have .. " already") end end]]))
      in_force(probed())
      local function counted(key)
        return client:create { apiVersion = "v1", kind = "ConfigMap",
          metadata = { namespace = ns, name = key, labels = { counted = "yes" } } }
      end
      counted "a"
      counted "b"
      local o, e = kube.try(counted, "c")
      assert.falsy(o)
      assert.truthy(e.message:find("there are 2 already", 1, true))
    end)

    it("answers failures by its failure policy", function()
      local rest = "validate = function(obj) " .. PROBE .. 'error("the wheel came off") end'
      local run = begin(script(hook, ns, rest))
      in_force(probed())
      local e = refused("a")
      assert.equal(500, e.code)
      assert.truthy(e.message:find("the wheel came off", 1, true), e.message)
      assert.truthy(e.message:find(hook, 1, true))
      run:wait_for_log(30, "the wheel came off")
      assert.truthy(run:log():find("stack traceback", 1, true))
      process.write(run.script_path, script(hook, ns, 'failure_policy = "Ignore", ' .. rest))
      wait.until_true(60, "the new policy lets it pass", function()
        return (kube.try(map, "a", nil, { dry_run = true })) ~= nil
      end)
      map("a")
      wait.until_true(30, "the warning", function() return warned "the wheel came off" end)
    end)

    it("answers before the API server gives up", function()
      begin(script(hook, ns, [[timeout = "3s", cpu = "1m", validate = function(obj, req) ]] .. PROBE .. [[
        local until_then = os.time() + 5
        while os.time() < until_then do end end]]))
      in_force(probed())
      local e = refused("slow")
      assert.truthy(e.message:find(hook, 1, true), e.message)
      assert.truthy(e.message:find("did not decide within", 1, true)
        or e.message:find("failed calling webhook", 1, true), e.message)
    end)

    it("loses no request to a new generation", function()
      local function version(n)
        return script(hook, ns, "mutate = function(obj) " .. PROBE
          .. ('obj.data.version = "%d" end'):format(n))
      end
      local run = begin(version(1))
      in_force(probed())
      local i = 0
      for n = 2, 4 do
        process.write(run.script_path, version(n))
        wait.until_true(60, "generation " .. n, function()
          i = i + 1
          return map("g" .. i, { x = "1" }).data.version == tostring(n)
        end)
      end
    end)

    it("deletes the configuration of a removed webhook", function()
      local run = begin(script(hook, ns, "validate = function(obj) " .. PROBE .. "end"))
      in_force(probed())
      process.write(run.script_path, ([[
local kube = require "kubelua"
return kube.controller { name = %q, resource = "v1/ConfigMap", reconcile = function() end } ]]):format(hook
  .. "-c"))
      wait.until_true(60, "the configuration is gone", function()
        return client:get("admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", hook) == nil
      end)
      wait.until_true(60, "objects are let in", function()
        return (kube.try(map, "probe", nil, { dry_run = true })) ~= nil
      end)
    end)

    it("rotates its certificate under load without a failed request", function()
      local dir = process.tmpname ".certs"
      assert(select(2, process.run("mkdir -p " .. process.quote(dir))) == 0)
      write_pair(dir, false, "first")
      local run = begin(script(hook, ns, "mutate = function(obj) " .. PROBE .. 'obj.data.seen = "yes" end'),
        "--webhook-cert-dir", dir)
      in_force(probed())
      local i = 0
      for turn = 1, 3 do
        write_pair(dir, true, "turn" .. turn)
        wait.until_true(60, "certificate " .. turn, function()
          i = i + 1
          assert(map("c" .. i, { x = "1" }).data.seen == "yes")
          return count(run:log(), "webhooks use a new certificate") >= turn
        end)
      end
      for n = 1, 5 do assert.equal("yes", map("last" .. n, { x = "1" }).data.seen) end
    end)

    it("shares certificates of its own among replicas in a Secret", function()
      local text = script(hook, ns, "mutate = function(obj) " .. PROBE .. 'obj.data.seen = "yes" end')
      local secret = ns .. "/certs"
      local one, two = begin(text, "--webhook-secret", secret), begin(text, "--webhook-secret", secret)
      one:wait_for_log(60, "the webhook is registered with the API server")
      two:wait_for_log(60, "the webhook is registered with the API server")
      in_force(probed())
      assert.equal(1, count(one:log() .. two:log(), "created a new certificate"), one:log() .. two:log())
      local s = client:get("v1/Secret", ns, "certs")
      assert.equal("kubernetes.io/tls", s.type)
      for _, key in ipairs { "ca.crt", "ca.key", "tls.crt", "tls.key" } do assert.truthy(s.data[key], key) end
    end)
  end)
end)

describe("a webhook's trace", function()
  local run, address, log
  lazy_setup(function()
    local path = process.write(process.tmpname ".lua",
      script("traced", "default", 'validate = function(obj, req) req.log:info(obj.metadata.name) end'))
    run = process.spawn { os.getenv "KUBELUA" or "build/kubelua", "dev", path, "--log-format", "json",
      name = "kubelua dev" }
    run:wait_for_log(60, '"controller":"traced","state":"running"')
    address = assert(run:log():match '"msg":"serving webhooks","address":"([^"]+)"', run:log())
  end)
  lazy_teardown(function() if run then controller.finish(run) end end)

  -- The log lines about a review with this traceparent header (nil: without).
  local function line_of(name, header)
    local file = process.write(process.tmpname ".json",
      ('{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",\z
        "operation":"CREATE",'
      .. '"object":{"kind":"ConfigMap","metadata":{"name":"%s"}}}}'):format(name))
    local out,
      code = process.run(("curl -sSk --max-time 30 -H 'Content-Type: application/json' %s --data-binary @%s \z
      https://%s/traced"):format(
      header and "-H " .. process.quote("traceparent: " .. header) or "", file, address))
    assert.equal(0, code, out)
    log = wait.until_true(30, "the line", function()
      return run:log():match('[^\n]*"msg":"' .. name .. '"[^\n]*')
    end)
    return kube.json(log)
  end

  it("is the API server's, if it sends one", function()
    local line = line_of("sent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    assert.equal("0af7651916cd43dd8448eb211c80319c", line.traceID, log)
    assert.matches("^%x+$", line.spanID)
    assert.equal(16, #line.spanID)
    assert.not_equal("b7ad6b7169203331", line.spanID)
  end)

  it("is its own if there is none, or an invalid one", function()
    for name, header in pairs { none = false, short = "00-0af7651916cd43dd-b7ad6b7169203331-01",
      zero = "00-" .. ("0"):rep(32) .. "-b7ad6b7169203331-01" } do
      local line = line_of(name, header or nil)
      assert.equal((line.reconcileID:gsub("-", "")), line.traceID, log)
    end
  end)
end)

describe("the webhook server of `kubelua dev`", function()
  local run, address
  lazy_setup(function()
    local path = process.write(process.tmpname ".lua",
      script("alone", "default", "validate = function(obj) error 'no' end"))
    run = process.spawn { os.getenv "KUBELUA" or "build/kubelua", "dev", path, "--metrics-bind-address",
      "127.0.0.1:0", name = "kubelua dev" }
    run:wait_for_log(60, "alone: running")
    address = assert(run:log():match "serving webhooks address=(%S+)")
  end)
  lazy_teardown(function() if run then controller.finish(run) end end)

  local function post(path, body, type)
    local file = process.write(process.tmpname ".json", body)
    local out = process.run(("curl -sk --max-time 20 -w '%%{http_code}' -H 'Content-Type: %s' --data-binary \z
      @%s https://%s/%s"):format(
      type or "application/json", file, address, path))
    return tonumber(out:sub(-3)), out:sub(1, -4)
  end

  local REVIEW = '{"apiVersion":"admission.k8s.io/%s","kind":"AdmissionReview","request":%s}'

  it("says what is wrong with a request", function()
    local function says(part, code, path, body, type)
      local got, text = post(path, body, type)
      assert.truthy(text:find(part, 1, true), text)
      assert.equal(code, got)
    end
    says("there is no webhook /other; known are: /alone", 404, "other", "{}")
    says("expected application/json", 400, "alone", "{}", "text/plain")
    says("request body is empty", 400, "alone", "")
    says("the body is not JSON", 400, "alone", '{"kind":')
    says("expected an AdmissionReview of admission.k8s.io/v1", 400, "alone", "{}")
    says("set admissionReviewVersions to [\"v1\"]", 400, "alone", REVIEW:format("v1beta1", "{}"))
    says("has no uid", 400, "alone", REVIEW:format("v1", "{}"))
    says("operation must be", 400, "alone", REVIEW:format("v1", '{"uid":"u","operation":"PEEK"}'))
    says("has no request", 400, "alone", REVIEW:format("v1", "7"))
    says("larger than 7340032 bytes", 413, "alone", (" "):rep(7340033))
    local out = process.run(("curl -sk --max-time 20 https://%s/alone"):format(address))
    assert.truthy(out:find("must be sent by POST", 1, true), out)
  end)

  it("counts what it answers under controller-runtime's names", function()
    local code, text = post("alone", REVIEW:format("v1",
      '{"uid":"u","operation":"CREATE","object":{"kind":"ConfigMap"}}'))
    assert.equal(200, code)
    local review = kube.json(text)
    assert.equal("u", review.response.uid)
    assert.equal(false, review.response.allowed)
    assert.equal(500, review.response.status.code)
    local metrics = controller.metrics(run)
    local function value(series)
      return tonumber(("\n" .. metrics):match("\n" .. series:gsub("%p", "%%%0") .. " (%S+)"))
    end
    assert.truthy(value 'controller_runtime_webhook_requests_total{webhook="/alone",code="200"}' >= 1)
    assert.equal(0, value 'controller_runtime_webhook_requests_total{webhook="/alone",code="500"}')
    assert.equal(0, value 'controller_runtime_webhook_requests_in_flight{webhook="/alone"}')
    assert.truthy(value 'controller_runtime_webhook_latency_seconds_count{webhook="/alone"}' >= 1)
    assert.truthy(value 'controller_runtime_webhook_panics_total' >= 1)
    assert.truthy(value 'certwatcher_read_certificate_total' >= 1)
    assert.equal(0, value 'certwatcher_read_certificate_errors_total')
  end)
end)
