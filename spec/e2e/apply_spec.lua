-- apply_spec.lua - server-side apply as managedFields shows it: which entries have a time, what cannot be
-- merged, many updaters, and kubectl's migration from client-side apply.
-- not in tsan: one request after the other, and what answers them is pure

local json = require "dkjson"
local new_api = require "support.api"
local servers = require "support.servers"

local count = 0

servers.each(function(name, start)
  describe(name .. " applies", function()
    local s, api, ns, path

    lazy_setup(function()
      s = start {}
      api = new_api(s)
    end)
    lazy_teardown(function() s:stop() end)
    before_each(function()
      count = count + 1
      ns = ("apply-%d-%d"):format(os.time() % 1000000, count)
      assert.equal(201, api:post("/api/v1/namespaces", { metadata = { name = ns } }).code)
      path = "/api/v1/namespaces/" .. ns .. "/configmaps/it"
    end)
    after_each(function() api:delete("/api/v1/namespaces/" .. ns) end)

    local function config(data)
      return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "it" }, data = data }
    end
    local function apply(manager, object)
      return api:patch("apply", path .. "?fieldManager=" .. manager, object)
    end

    -- "manager operation", with "timeless" behind it where the entry has no time.
    local function managers(r)
      assert.truthy(r.code < 300, r.text)
      local list = {}
      for i, e in ipairs(r.body.metadata.managedFields) do
        assert.same({ "v1", "FieldsV1" }, { e.apiVersion, e.fieldsType })
        list[i] = e.manager .. " " .. e.operation .. (e.time and "" or " timeless")
      end
      return list
    end

    it("with a new time for changed fields", function()
      assert.same({ "m1 Apply" }, managers(apply("m1", config { a = "1" })))
      assert.same({ "m2 Apply timeless", "m1 Apply" }, managers(apply("m2", config { a = "1" })))
      assert.equal(409, apply("m2", config { a = "2" }).code)
    end)

    it("rejects an unmergeable object, with the place", function()
      local function refused(object, why, kind)
        local url = kind and "/apis/apps/v1/namespaces/" .. ns .. "/deployments/it" or path
        local r = api:patch("apply", url .. "?fieldManager=m1", object)
        assert.equal(500, r.code, r.text)
        assert.equal(("failed to create typed patch object (/it; %s): %s"):format(
          kind or "/v1, Kind=ConfigMap", why), r.body.message)
        assert.is_nil(r.body.reason)
      end
      local apps = "apps/v1, Kind=Deployment"
      local function deployment(containers) return { apiVersion = "apps/v1", kind = "Deployment",
        metadata = { name = "it" }, spec = { template = { spec = { containers = containers } } } } end
      refused(config "str", ".data: expected map, got &{str}")
      refused(config { a = 1 }, ".data.a: expected string, got &value.valueUnstructured{Value:1}")
      refused({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "it" }, dataz = { a = "1" } },
        ".dataz: field not declared in schema")
      refused(config { a = { z = { 1, true }, b = "x", m = { y = 1, d = 2 } } },
        '.data.a: expected string, got &value.valueUnstructured{Value:map[string]interface \z
          {}{"b":"x", "m":map[string]interface {}{"d":2, "y":1}, "z":[]interface {}{1, true}}}')
      refused(config { 1, true, { z = "x", b = { d = 2, a = 1 } } },
        ".data: expected map, got &{[1 true map[b:map[a:1 d:2] z:x]]}")
      refused(deployment "x", ".spec.template.spec.containers: expected list, got &{x}", apps)
      refused(deployment { { name = "a" }, { name = "a" } },
        '.spec.template.spec.containers: duplicate entries for key [name="a"]', apps)
      refused(deployment { { name = "a", ports = { { containerPort = "x" } } } },
        '.spec.template.spec.containers[name="a"].ports[containerPort="x",protocol="TCP"].containerPort: '
        .. "expected numeric (int or float), got string", apps)
      refused(deployment { { name = "a", bogus = 1 } },
        '.spec.template.spec.containers[name="a"].bogus: field not declared in schema', apps)
      local r = apply("m1", { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "it",
        managedFields = { { manager = "x" } } } })
      assert.equal(400, r.code)
      assert.equal("metadata.managedFields must be nil", r.body.message)
    end)

    it("beside ten updaters at most", function()
      local r = api:post("/api/v1/namespaces/" .. ns .. "/configmaps?fieldManager=u0", config { k0 = "v" })
      assert.equal(201, r.code)
      for i = 1, 12 do
        r = api:patch("merge", path .. "?fieldManager=u" .. i, { data = { ["k" .. i] = "v" } })
      end
      local list = managers(r)
      assert.equal(10, #list, table.concat(list, ", "))
      table.sort(list)
      assert.equal("ancient-changes Update", list[1])
      assert.equal(200, apply("m1", config { k0 = "v" }).code)
    end)

    it("over client-side kubectl apply, and updates its annotation", function()
      local last = "kubectl.kubernetes.io/last-applied-configuration"
      local object = config { a = "1", b = "1" }
      object.metadata.annotations = { [last] = json.encode(config { a = "1" }) .. "\n" }
      assert.equal(201, api:post("/api/v1/namespaces/" .. ns
        .. "/configmaps?fieldManager=kubectl-client-side-apply", object).code)
      local r = apply("kubectl", config { b = "2" })
      assert.equal(409, r.code, "b was not in the annotation: " .. r.text)
      r = apply("kubectl", config { a = "2" })
      assert.equal(200, r.code, r.text)
      assert.equal("2", r.body.data.a)
      assert.equal('{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"it"}}\n',
        r.body.metadata.annotations[last])
    end)
  end)
end)
