-- refused_writes_spec.lua - writes of built-in kinds that an API server rejects: invalid keys, selectors that
-- do not match, changes of immutable fields.

local new_api = require "support.api"
local servers = require "support.servers"

local IMMUTABLE = "Forbidden: field is immutable when `immutable` is set"
local KEY = [[Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' ]]
  .. [[or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', ]]
  .. [[regex used for validation is '[-._a-zA-Z0-9]+')]]
local STATEFUL_SET = "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "
  .. "'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
  .. "'minReadySeconds' are forbidden"

local function mismatch(labels)
  return ("spec.template.metadata.labels: Invalid value: %s: `selector` does not match template \z
    `labels`"):format(
    labels)
end

local function workload(name, selector, labels, service)
  return { metadata = { name = name }, spec = { selector = selector, serviceName = service,
    template = { metadata = labels and { labels = labels }, spec = { containers = { { name = "c",
      image = "i" } } } } } }
end

local WORKLOADS = { deployments = "deployment", replicasets = "deployment", daemonsets = "daemonset",
  statefulsets = "statefulset" }
local count = 0

servers.each(function(name, start)
  describe(name .. " refuses", function()
    local s, api, ns, core, apps

    lazy_setup(function()
      s = start {}
      api = new_api(s)
    end)
    lazy_teardown(function() s:stop() end)
    before_each(function()
      count = count + 1
      ns = ("refused-%d-%d"):format(os.time() % 1000000, count)
      core, apps = "/api/v1/namespaces/" .. ns, "/apis/apps/v1/namespaces/" .. ns
      assert.equal(201, api:post("/api/v1/namespaces", { metadata = { name = ns } }).code)
    end)
    after_each(function() api:delete("/api/v1/namespaces/" .. ns) end)

    -- The causes of a 422, "field: message" each.
    local function refused(r, ...)
      assert.equal(422, r.code, r.text)
      local said = {}
      for i, cause in ipairs(r.body.details.causes) do said[i] = cause.field .. ": " .. cause.message end
      assert.same({ ... }, said)
    end

    it("changes of immutable ConfigMaps and Secrets, but not of their labels", function()
      for _, kind in ipairs { "configmaps", "secrets" } do
        local path = core .. "/" .. kind
        assert.equal(201, api:post(path, { metadata = { name = "it" }, data = { a = "AAAA" },
          immutable = true }).code)
        path = path .. "/it"
        refused(api:patch("merge", path, { data = { a = "AAAB" } }), "data: " .. IMMUTABLE)
        refused(api:patch("merge", path, { immutable = false }), "immutable: " .. IMMUTABLE)
        refused(api:patch("merge", path, { immutable = false, data = { b = "AAAA" } }),
          "immutable: " .. IMMUTABLE, "data: " .. IMMUTABLE)
        assert.equal(200, api:patch("merge", path, { metadata = { labels = { a = "b" } } }).code)
      end
      refused(api:patch("merge", core .. "/configmaps/it", { binaryData = { z = "AAAA" } }),
        "binaryData: " .. IMMUTABLE)
      refused(api:patch("merge", core .. "/secrets/it", { type = "other" }),
        'type: Invalid value: "other": field is immutable')
    end)

    it("invalid keys of data", function()
      refused(api:post(core .. "/configmaps", { metadata = { name = "it" }, data = { ["a/b"] = "1" } }),
        "data[a/b]: " .. KEY)
      refused(api:post(core .. "/secrets", { metadata = { name = "it" }, stringData = { ["a/b"] = "1" } }),
        "data[a/b]: " .. KEY)
      refused(api:post(core .. "/configmaps", { metadata = { name = "it" }, data = { ["..a"] = "1" } }),
        [[data[..a]: Invalid value: "..a": must not start with '..']])
      refused(api:post(core .. "/configmaps", { metadata = { name = "it" }, data = { a = "1" },
        binaryData = { a = "AAAA" } }),
          [[data[a]: Invalid value: "a": duplicate of key present in binaryData]])
    end)

    it("workloads whose selector does not select their pods", function()
      for kind, word in pairs(WORKLOADS) do
        local path, service = apps .. "/" .. kind, kind == "statefulsets" and "s" or nil
        local function make(...) return api:post(path, workload("it", ...)) end
        local selector = { matchLabels = { app = "w" } }
        refused(make(selector, { app = "v" }, service), mismatch '{"app":"v"}')
        refused(make({ matchExpressions = {} }, { app = "v" }, service),
          "spec.selector: Invalid value: {}: empty selector is invalid for " .. word)
        if word == "daemonset" then
          refused(make(nil, { app = "v" }), mismatch '{"app":"v"}')
        else
          refused(make(nil, { app = "v" }, service), "spec.selector: Required value", mismatch '{"app":"v"}')
        end
        assert.equal(201, make({ matchExpressions = { { key = "app", operator = "In", values = { "w" } } } },
          { app = "w" }, service).code)
        refused(api:patch("merge", path .. "/it", { spec = { template = { metadata = { labels = {
          app = "q" } } } } }), mismatch '{"app":"q"}')
        assert.equal(200, api:patch("merge", path .. "/it", { spec = { template = { metadata = { labels = {
          more = "q" } } } } }).code)
      end
    end)

    it("immutable fields of a StatefulSet", function()
      local path = apps .. "/statefulsets"
      assert.equal(201, api:post(path,
        workload("it", { matchLabels = { app = "w" } }, { app = "w" }, "s")).code)
      path = path .. "/it"
      refused(api:patch("merge", path, { spec = { serviceName = "q" } }), "spec: " .. STATEFUL_SET)
      refused(api:patch("merge", path, { spec = { selector = { matchLabels = { app = "q" } },
        template = { metadata = { labels = { app = "q" } } } } }), "spec: " .. STATEFUL_SET)
      assert.equal(200, api:patch("merge", path, { spec = { replicas = 3, minReadySeconds = 5 } }).code)
    end)

    it("another role for a binding", function()
      local path = "/apis/rbac.authorization.k8s.io/v1/namespaces/" .. ns .. "/rolebindings"
      local group = "rbac.authorization.k8s.io"
      assert.equal(201, api:post(path, { metadata = { name = "it" },
        roleRef = { apiGroup = group, kind = "Role", name = "r" } }).code)
      refused(api:patch("merge", path .. "/it", { roleRef = { name = "q" } }),
        ('roleRef: Invalid value: {"APIGroup":"%s","Kind":"Role","Name":"q"}: cannot change roleRef'):format(
          group))
      assert.equal(200, api:patch("merge", path .. "/it", { subjects = { { kind = "User", name = "u",
        apiGroup = group } } }).code)
    end)
  end)
end)
