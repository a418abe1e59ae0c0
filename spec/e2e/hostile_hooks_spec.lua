-- hostile_hooks_spec.lua - webhooks that give hostile answers to the embedded API server: each request is
-- rejected or served without harm, in bounded time and memory, its answer is readable, and the server
-- continues.
local kube = require "kubelua"
local controller = require "support.controller"
local converter = require "support.converter"
local identities = require "support.identities"
local new_api = require "support.api"
local process = require "support.process"
local servers = require "support.servers"

-- the behaviour of the webhook, the status of the write, the message of the answer
local CASES = {
  { "nothing", 201, "ConfigMap" },
  { "insertions", 500, "more than 10 million members together" },
  { "keys", 500, "more than 10 million members together" },
  { "copies", 500, "the copies of this patch hold more than 3 MiB together" },
  { "document", 422, "Required value" },
  { "metadata", 400, "managedFields" },
  { "kind", 400, "cannot be handled as a ConfigMap" },
  { "warnings", 201, "ConfigMap" },
  { "code", 400, "denied the request" },
  { "uid", 500, "expected response.uid" },
  { "deep", 500, "JSON is malformed" },
  { "large", 500, "the answer is larger than" },
  { "types", 500, "" },
  { "redirect", 500, "HTTP 307" },
}

-- for conversions: the behaviour of the webhook, the status of the list, the message of the answer
local CONVERSIONS = {
  { "nothing", 200, "GizmoList" },
  { "message", 500, "Kind=Gizmo failed: mmmm" },
  { "kind", 500, "invalid kind (expected Gizmo, received Gizmo" },
  { "version", 500, "invalid groupVersion (expected g.example.com/v2, received g.example.com/v2" },
  { "labels", 500, "name part must consist of alphanumeric characters" },
  { "deep", 500, "nested deeper than 512 levels" },
  { "large", 500, "the answer is larger than" },
  { "redirect", 500, "the status code 307" },
}

describe("a hostile webhook", function()
  local server, client, hook, api, gizmos
  lazy_setup(function()
    server = servers.embedded {}
    client = controller.client(server)
    local ca = identities.ca "spec-hook-ca"
    local cert = identities.certificate(ca, "/CN=hook", "IP:127.0.0.1")
    hook = process.spawn { "python3", "spec/support/hostile_hook.py", cert.crt, cert.key }
    hook:wait_for_log(20, "port ")
    client:create { kind = "MutatingWebhookConfiguration", apiVersion = "admissionregistration.k8s.io/v1",
      metadata = { name = "h" }, webhooks = { { name = "h.example.com", admissionReviewVersions = { "v1" },
        sideEffects = "None", timeoutSeconds = 30,
        rules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CREATE" },
          resources = { "configmaps" } } },
        clientConfig = { url = "https://127.0.0.1:" .. hook:log():match "port (%d+)",
          caBundle = kube.base64_encode(process.read(ca.crt)) } } } }
    api = new_api(server)
    gizmos = converter.gizmos(api, "g.example.com", { ca = kube.base64_encode(process.read(ca.crt)),
      url = "https://127.0.0.1:" .. hook:log():match "port (%d+)" })
  end)
  lazy_teardown(function()
    if hook then hook:stop() end
    if server then server:stop() end
  end)

  for _, case in ipairs(CASES) do
    it("does no harm: " .. case[1], function()
      local body = ([[{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"b"},"metadata":{"name":"c-%s",%s}}]])
        :format(case[1], ([["annotations":{"do":"%s"}]]):format(case[1]))
      local said = process.run(("curl -sS -i --max-time 240 -H 'Content-Type: application/json' -d '%s' \z
        '%s/api/v1/namespaces/default/configmaps'"):format(body, server.url))
      local head, text = said:match "^(.-)\r\n\r\n(.*)$"
      assert.truthy(head, said:sub(1, 300))
      assert.equal(case[2], tonumber(head:match "^HTTP/1.1 (%d%d%d) "), said:sub(1, 600))
      assert.truthy(text:find(case[3], 1, true), text:sub(1, 600))
      assert.is_nil(head:find "\nX%-Evil")
      assert.is_true(#head < 8000, "the head has " .. #head .. " bytes")
      assert.truthy(client:get("v1/Namespace", "default"))
    end)
  end

  for _, case in ipairs(CONVERSIONS) do
    it("of conversions does no harm: " .. case[1], function()
      for n = 1, case[1] == "message" and 200 or 2 do
        assert.equal(201, api:post(gizmos.paths.v1,
          gizmos.make("v1", "a" .. n, { size = "1x1" }, { ["do"] = case[1] })).code)
      end
      finally(function() assert.equal(200, api:delete(gizmos.paths.v1).code) end)
      local r = api:get(gizmos.paths.v2)
      assert.equal(case[2], r.code, r.text:sub(1, 600))
      assert.truthy(r.text:find(case[3], 1, true), r.text:sub(1, 600))
      assert.truthy(client:get("v1/Namespace", "default"))
      local peak = process.read(("/proc/%d/status"):format(server.api.pid)):match "VmHWM:%s*(%d+) kB"
      assert.is_true(tonumber(peak) < 1 << 20, "the server had " .. peak .. " kB")
    end)
  end
end)
