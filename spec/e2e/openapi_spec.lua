-- openapi_spec.lua - objects that a script writes by hand are checked with the server's schemas before they
-- are sent: corrected where Lua cannot express the value, rejected with the script's line where they are
-- wrong.

local kube = require "kubelua"
local servers = require "support.servers"
local wait = require "support.wait"

local NS, GROUP = "openapi-spec", "openapi-spec.example.com"

local function crd(plural, kind, spec)
  return {
    kind = "apiextensions.k8s.io/v1/CustomResourceDefinition", name = plural .. "." .. GROUP,
    spec = {
      group = GROUP, scope = "Namespaced", names = { plural = plural, singular = kind:lower(), kind = kind },
      versions = { {
        name = "v1", served = true, storage = true, subresources = { status = {} },
        schema = { openAPIV3Schema = { type = "object",
          properties = { spec = spec, status = { type = "object",
          properties = { seen = { type = "integer" } } } } } },
      } },
    },
  }
end

local SPEC = {
  type = "object",
  properties = {
    size = { type = "integer" }, rate = { type = "number" },
    names = { type = "array", items = { type = "string" } },
    port = { ["x-kubernetes-int-or-string"] = true },
    free = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true },
    map = { type = "object", additionalProperties = { type = "array", items = { type = "integer" } } },
    template = { type = "object", ["x-kubernetes-embedded-resource"] = true,
      ["x-kubernetes-preserve-unknown-fields"] = true },
  },
}

servers.each(function(name, start)
  describe("what is written to " .. name, function()
    local s, c

    local function gadget(key, spec)
      return { kind = GROUP .. "/v1/Gadget", namespace = NS, name = key, spec = spec }
    end

    lazy_setup(function()
      s = start()
      c = kube.connect { kubeconfig = s.kubeconfig }
      c:apply { kind = "v1/Namespace", name = NS }
      c:apply(crd("gadgets", "Gadget", SPEC))
      wait.until_true(20, "gadgets are served and described", function()
        return kube.try(c.list, c, "gadgets." .. GROUP)
          and kube.try(c.raw, c, "GET", "/openapi/v3/apis/" .. GROUP .. "/v1")
      end)
    end)
    lazy_teardown(function()
      if c then
        kube.try(c.delete, c, "apiextensions.k8s.io/v1/CustomResourceDefinition", "gadgets." .. GROUP)
        c:close()
      end
      s:stop()
    end)

    -- The error of a call that is the script's mistake: text with the place in front.
    local function mistake(fn, ...)
      local ok, err = pcall(fn, ...)
      assert.is_false(ok)
      assert.is_string(err)
      return err
    end

    it("has lists for {}, and integers for 3.0", function()
      local o = c:create {
        apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "empties", namespace = NS,
          finalizers = {} },
        spec = {
          replicas = 0.0, selector = { matchLabels = { a = "b" } },
          template = {
            metadata = { labels = { a = "b" }, annotations = {} },
            spec = { volumes = {}, containers = { { name = "a", image = "i", args = {}, env = {},
              resources = { limits = {} }, ports = { { containerPort = 80.0 } } } } },
          },
        },
      }
      assert.equal(0, math.tointeger(o.spec.replicas))
      assert.equal(80, o.spec.template.spec.containers[1].ports[1].containerPort)
      local g = c:create(gadget("empties", { size = 3.0, rate = 3, names = {}, map = { a = {}, b = { 1 } },
        port = 80 }))
      assert.equal("[]", tostring(g.spec.names))
      assert.equal('{"a":[],"b":[1]}', tostring(g.spec.map))
      g = c:patch(g, { spec = { names = {}, map = { a = kube.null, c = {} } } })
      assert.equal('{"b":[1],"c":[]}', tostring(g.spec.map))
    end)

    it("accepts what the server accepts: quantities, ports by name or number, preserved unknown \z
      fields", function()
      c:create { kind = "v1/Pod", namespace = NS, name = "takes", spec = { containers = { {
        name = "a", image = "i", resources = { limits = { cpu = 1, memory = "64Mi" },
          requests = { cpu = 0.5 } },
        livenessProbe = { httpGet = { port = 80 } }, readinessProbe = { httpGet = { port = "web" } },
      } } } }
      local g = c:create(gadget("takes", {
        port = "web", free = { whatever = { 1, 2 } }, template = { apiVersion = "v1", kind = "ConfigMap",
          metadata = { name = "x" }, data = { a = "b" } },
      }))
      assert.equal(2, g.spec.free.whatever[2])
      assert.equal("b", g.spec.template.data.a)
      local p = c:get("po", NS, "takes")
      c:update(p)                                         -- a view came from the server
      c:patch(p, function(o) o.metadata.annotations.x = "y" end)
      c:patch_status(c:get("gadgets." .. GROUP, NS, "takes"), { seen = 1.0 })
      assert.equal(1, c:get("gadgets." .. GROUP, NS, "takes").status.seen)
      assert.is_true(#c:get("gadgets." .. GROUP, NS, "takes").metadata.managedFields > 0)
    end)

    it("is not sent with a misspelt field", function()
      local err = mistake(function()
        local o = c:create { kind = "apps/v1/Deployment", namespace = NS, name = "wrong", spec = {
          selector = { matchLabels = { a = "b" } },
          template = { metadata = { labels = { a = "b" } }, spec = { contaners = { { name = "a" } } } },
        } }
        return o
      end)
      assert.matches('^spec/e2e/openapi_spec.lua:%d+: create apps/v1/Deployment wrong: there is no field \z
        "spec.template.spec.contaners"; did you mean "containers"%?$', err)
      assert.is_nil(c:get("deploy", NS, "wrong"))
      err = mistake(c.apply, c, gadget("wrong", { nmes = {} }))
      assert.matches('apply ' .. GROUP
        .. '/v1/Gadget wrong: there is no field "spec.nmes"; did you mean "names"?', err, 1, true)
      err = mistake(c.apply, c, { kind = "v1/ConfigMap", namespace = NS, name = "wrong",
        labls = { a = "b" } })
      assert.matches('there is no field "labls"', err, 1, true)
      c:create(gadget("patched", {}))
      err = mistake(c.patch, c, gadget("patched"), { spec = { sise = 1 } })
      assert.matches('patch ' .. GROUP
        .. '/v1/Gadget patched: there is no field "spec.sise"; did you mean "size"?', err, 1, true)
      err = mistake(c.patch, c, c:get("gadgets." .. GROUP, NS, "patched"), function(o) o.spec.sise = 1 end)
      assert.matches('there is no field "spec.sise"', err, 1, true)
    end)

    it("is not sent with a value of a wrong type, which is not shown", function()
      local err = mistake(c.create, c, { kind = "v1/Secret", namespace = NS, name = "wrong",
        stringData = { pin = 123456 } })
      assert.matches('create v1/Secret wrong: "stringData.pin" must be a string, not an integer', err, 1,
        true)
      assert.is_nil(err:find("123456", 1, true))
      err = mistake(c.create, c, gadget("wrong", { size = "3", names = { "a", 2 }, map = { x = { 1.5 } } }))
      assert.matches('"spec.size" must be an integer, not a string', err, 1, true)
      assert.matches('"spec.names[2]" must be a string, not an integer', err, 1, true)
      assert.matches('"spec.map.x[1]" must be an integer, not a number with a fraction', err, 1, true)
    end)

    it("is validated by the server with validation, and sent unchanged without check", function()
      local o = c:create(gadget("warned", { sise = 1, names = {} }), { validation = "Ignore" })
      assert.is_nil(o("spec.sise"))
      assert.equal("[]", tostring(o.spec.names))
      local unchecked <close> = kube.connect { kubeconfig = s.kubeconfig, check = false }
      o = unchecked:create(gadget("unchecked", { sise = 1 }), { validation = "Ignore" })
      assert.is_nil(o("spec.sise"))
      local _, err = kube.try(unchecked.create, unchecked, gadget("refused", { size = "3" }))
      assert.equal(422, err.code)
    end)

    it("may go to subresources of other kinds", function()
      c:create { kind = "apps/v1/Deployment", namespace = NS, name = "scaled", spec = {
        replicas = 0, selector = { matchLabels = { a = "c" } },
        template = { metadata = { labels = { a = "c" } },
          spec = { containers = { { name = "a", image = "i" } } } },
      } }
      c:patch({ kind = "apps/v1/Deployment", namespace = NS, name = "scaled" }, { spec = { replicas = 2 } },
        { subresource = "scale" })
      assert.equal(2, c:get("deploy", NS, "scaled").spec.replicas)
    end)

    it("is checked against the current CRD", function()
      local err = mistake(c.apply, c, gadget("grown", { colour = "red" }))
      assert.matches('there is no field "spec.colour"', err, 1, true)
      c:patch(c:get("crd", "gadgets." .. GROUP), function(o)
        o.spec.versions[1].schema.openAPIV3Schema.properties.spec.properties.colour = { type = "string" }
      end)
      local o
      wait.until_true(20, "the server describes the new field", function()
        local ok, result = pcall(c.apply, c, gadget("grown", { colour = "red" }))
        o = ok and result
        return ok and o("spec.colour") == "red"
      end)
    end)
  end)
end)
