-- uninstall_spec.lua - kubelua uninstall: removes what scripts with webhooks leave in a cluster.

local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local GROUP = "admissionregistration.k8s.io/v1/"
local MUTATING, VALIDATING = GROUP .. "MutatingWebhookConfiguration",
  GROUP .. "ValidatingWebhookConfiguration"

servers.each(function(server_name, start)
  describe("kubelua uninstall, against " .. server_name, function()
    local server, client
    local name = ("uninstall-%d"):format(os.time())
    lazy_setup(function()
      server = start {}
      client = require("kubelua").connect { kubeconfig = server.kubeconfig }
    end)
    lazy_teardown(function() if server then server:stop() end end)

    local path = process.write(process.tmpname ".lua", ([[
      local kube = require "kubelua"
      local function hook(name, what)
        return kube.webhook { name = name, resource = "v1/ConfigMap", namespaces = { "no-such-one" },
          [what] = function() end }
      end
      return { hook("%s-m", "mutate"), hook("%s-v", "validate"), hook("%s-theirs", "validate") }
    ]]):format(name, name, name))

    local function uninstall(...)
      local words = { KUBELUA, "uninstall", "--kubeconfig", process.quote(server.kubeconfig), ... }
      return process.run(table.concat(words, " ") .. " 2>&1")
    end

    -- Like those that `run` creates (core/webhook/webhook_config.c), for a webhook without matching requests.
    local function configuration(kind, called, maker)
      client:create { kind = kind, name = called, labels = { ["app.kubernetes.io/managed-by"] = maker },
        webhooks = { { name = called .. ".webhooks.kubelua", admissionReviewVersions = { "v1" },
          sideEffects = "None",
          clientConfig = { url = "https://127.0.0.1:1/x" },
          namespaceSelector = { matchLabels = { nobody = called } } } } }
    end

    it("deletes only objects that kubelua created", function()
      configuration(MUTATING, name .. "-m", "kubelua")
      configuration(VALIDATING, name .. "-v", "kubelua")
      configuration(VALIDATING, name .. "-theirs", "somebody")
      local out, code = uninstall(path)
      assert.equal(2, code, out)
      assert.match("check with %-%-dry%-run, then add %-%-yes", out)
      for _, how in ipairs { "--dry-run", "--dry-run=server" } do
        out = uninstall(path, how)
        assert.match("2 configurations would be deleted", out)
        assert.truthy(client:get(MUTATING, name .. "-m"))
      end
      out, code = uninstall(path, "--yes")
      assert.equal(1, code, out)
      assert.match("mutatingwebhookconfiguration[%w.]*/" .. name:gsub("%p", "%%%0") .. "%-m deleted", out)
      assert.match("%-theirs stays: kubelua did not make it", out)
      assert.match("2 configurations deleted", out)
      assert.is_nil(client:get(MUTATING, name .. "-m"))
      assert.is_nil(client:get(VALIDATING, name .. "-v"))
      assert.truthy(client:get(VALIDATING, name .. "-theirs"))
      client:delete(VALIDATING, name .. "-theirs")
      out, code = uninstall(path, "--yes")
      assert.equal(0, code, out)
      assert.match("%-m is not there", out)
      assert.match("0 configurations deleted", out)
    end)

    it("removes our webhook from definitions, and keeps others", function()
      local group = name .. ".example.com"
      local script = process.write(process.tmpname ".lua", ([[
        local kube = require "kubelua"
        for _, kind in ipairs { "Mine", "Other" } do
          kube.crd { group = "%s", kind = kind, versions = {
            v1 = { storage = true, schema = kube.schema { spec = { size = "string" } } },
            v2 = { schema = kube.schema { spec = { width = "integer" } } } },
            conversion = { v2 = { to = function() end, from = function() end } } }
        end
        return kube.controller { name = "%s-c", resource = "%s/v1/Mine", reconcile = function() end }
      ]]):format(group, name, group))
      local DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"
      local path_of = process.tmpname ".yaml"
      local out, code = process.run(("%s gen crds %s --out %s"):format(KUBELUA, script, path_of))
      assert.equal(0, code, out)
      client:ensure_crd(path_of)
      -- Like `run` (core/webhook/conversion.c), for a webhook without a server.
      local function point(plural, manager)
        client:apply({ apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
          metadata = { name = plural .. "." .. group },
            spec = { conversion = { strategy = "Webhook", webhook = {
            conversionReviewVersions = { "v1" }, clientConfig = { url = "https://127.0.0.1:1/x" } } } } },
          { manager = manager, force = true })
      end
      local function strategy(plural) return client:get(DEFINITION,
        plural .. "." .. group)("spec.conversion.strategy") end
      point("mines", "kubelua-webhooks")
      point("others", "somebody")
      client:create { kind = group .. "/v1/Mine", namespace = "default", name = "one", spec = { size = "3" } }
      wait.until_true(20, "a conversion that fails", function()
        local ok, err = pcall(client.get, client, group .. "/v2/Mine", "default", "one")
        return not ok and tostring(err):find("conversion webhook", 1, true)
      end)

      for _, how in ipairs { "--dry-run", "--dry-run=server" } do
        out = uninstall(script, how)
        assert.match("customresourcedefinition[%w.]*/mines[^\n]* no longer has a conversion webhook %(dry \z
          run%)", out)
        assert.equal("Webhook", strategy "mines")
      end
      out, code = uninstall(script, "--yes")
      assert.equal(1, code, out)
      assert.match("/mines[^\n]* no longer has a conversion webhook", out)
      assert.match("/others[^\n]* is unchanged: kubelua did not set its conversion webhook", out)
      assert.equal("None", strategy "mines")
      assert.equal("Webhook", strategy "others")
      wait.until_true(20, "an answer without the webhook", function()
        return (pcall(client.get, client, group .. "/v2/Mine", "default", "one"))
      end)
      out = uninstall(script, "--yes")
      assert.match("/mines[^\n]* has no conversion webhook", out)
      for _, plural in ipairs { "mines", "others" } do client:delete(DEFINITION, plural .. "." .. group) end
    end)
  end)
end)
