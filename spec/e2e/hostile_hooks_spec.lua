--- hostile_hooks_spec.lua - webhooks that answer the embedded API server what none should: the write is
--- refused or made without harm, in bounded time, its answer can be read, and the server goes on.
local kube = require "kubelua"
local controller = require "support.controller"
local identities = require "support.identities"
local process = require "support.process"
local servers = require "support.servers"

-- what the webhook does, the status of the write, what its answer says
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

describe("a hostile webhook", function()
  local server, client, hook
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
end)
