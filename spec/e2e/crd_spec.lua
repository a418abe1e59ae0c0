-- crd_spec.lua - kinds that a script defines (kube.crd): written, installed, applied, tested.

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- A controller of a kind of the group, whose status repeats the host.
local function script(group, more)
  return ([[
local kube = require "kubelua"
local Site = kube.crd { group = %q, kind = "Site", short = "st", columns = { "spec.host" },
  schema = kube.schema {
    spec = { host = { "string!", min_length = 3 }, ttl = { "integer", default = 300 } %s },
    status = { host = "string", ttl = "integer" },
  } }
return kube.controller { name = "sites", resource = Site, reconcile = function(site)
  return { status = { host = site.spec.host, ttl = site.spec.ttl } }
end }
]]):format(group, more or "")
end

servers.each(function(name, start)
  describe("a kind that a script defines, against " .. name, function()
    local client, ns
    local begin = controller.frame("crd", start, function(_, of_server, namespace)
      client, ns = of_server, namespace
    end)

    it("is applied by run --install-crds, and again with the next generation", function()
      local group = ns .. ".example.com"
      local run = begin(script(group), "--install-crds", "--namespace", ns)
      run:wait_for_log(60, "applied the definition")
      local kind = group .. "/v1/Site"
      wait.until_true(60, "the kind", function()
        return pcall(client.create, client,
          { kind = kind, namespace = ns, name = "a", spec = { host = "www" } })
      end)
      wait.until_true(60, "its status", function()
        local o = client:get(kind, ns, "a")
        return o and o("status.host") == "www" and o("status.ttl") == 300
      end)
      local ok, e = pcall(client.create, client,
        { kind = kind, namespace = ns, name = "b", spec = { host = "w" } })
      assert.is_false(ok)
      assert.match("host", tostring(e))

      process.write(run.script_path, script(group, ", zone = { 'string', default = 'eu' }"))
      run:wait_for_log(60, "loaded the next generation")
      local n = 0
      wait.until_true(60, "the default of the next generation", function()
        n = n + 1
        return client:create { kind = kind, namespace = ns, name = "c" .. n,
          spec = { host = "www" } } "spec.zone" == "eu"
      end)
      client:delete("apiextensions.k8s.io/v1/CustomResourceDefinition", "sites." .. group)
    end)
  end)
end)

describe("a kind that a script defines", function()
  it("is written by gen crds in a form that the API server accepts", function()
    local path = process.write(process.tmpname ".lua", script "gen.example.com")
    local text, code = process.run(("%s gen crds %s"):format(KUBELUA, path))
    assert.equal(0, code, text)
    local d = kube.yaml(text)[1]
    assert.equal("sites.gen.example.com", d.metadata.name)
    assert.equal(3, d.spec.versions[1].schema.openAPIV3Schema.properties.spec.properties.host.minLength)
    assert.match("definition sites.gen.example.com\n +versions +v1 %(stored%)",
      (process.run(("%s check %s"):format(KUBELUA, path))))
    assert.match("resourceNames: %[\"sites.gen.example.com\"%]",
      (process.run(("%s rbac --install-crds %s"):format(KUBELUA, path))))
    local out = process.tmpname ".yaml"
    assert.equal("", (process.run(("%s gen crds %s --out %s"):format(KUBELUA, path, out))))
    assert.equal(text, (process.run("cat " .. out)))
    local none = process.write(process.tmpname ".lua", [[local kube = require "kubelua"
return kube.controller { name = "a", resource = "v1/Pod", reconcile = function() end }]])
    text, code = process.run(("%s gen crds %s 2>&1"):format(KUBELUA, none))
    assert.equal(1, code)
    assert.match("found no definition", text)
  end)

  it("exists in dev and in tests automatically", function()
    local t <close> = kube.testing.start { source = script "test.example.com", objects = {
      { kind = "test.example.com/v1/Site", name = "a", spec = { host = "www" } } } }
    assert.equal("www", t:get("test.example.com/v1/Site", "a").status.host)
    local kubeconfig = process.tmpname ".kubeconfig"
    local path = process.write(process.tmpname ".lua", script "dev.example.com")
    local loaded = process.write(process.tmpname ".yaml",
      "apiVersion: dev.example.com/v1\nkind: Site\nmetadata: {name: loaded}\nspec: {host: www}\n")
    local dev = process.spawn { KUBELUA, "dev", path, "--load", loaded, "--write-kubeconfig", kubeconfig,
      name = "kubelua dev" }
    dev:wait_for_log(60, "applied the definition name=sites.dev.example.com")
    local client = kube.connect { kubeconfig = kubeconfig, cache_dir = false }
    wait.until_true(60, "the kind", function()
      return pcall(client.create, client,
        { kind = "dev.example.com/v1/Site", namespace = "default", name = "a",
        spec = { host = "www" } })
    end)
    wait.until_true(60, "its status", function()
      return client:get("dev.example.com/v1/Site", "default", "a")("status.host") == "www"
        and client:get("dev.example.com/v1/Site", "default", "loaded")("status.host") == "www"
    end)
    client:close()
    assert.equal(0, dev:stop(45))
  end)

  it("exists in a test whose server another one used", function()
    local objects = { { kind = "v1/ConfigMap", name = "a" } }
    local first = kube.testing.start { objects = objects, source = [[
return require "kubelua".controller { name = "x", resource = "v1/ConfigMap", reconcile = function() end }]] }
    first:get("v1/ConfigMap", "a")
    first:stop()
    local t <close> = kube.testing.start { source = script "again.example.com" }
    t:create { kind = "again.example.com/v1/Site", name = "a", spec = { host = "www" } }
    assert.equal("www", t:get("again.example.com/v1/Site", "a").status.host)
  end)

  it("is a top-level statement", function()
    local t <close> = kube.testing.start { objects = { { kind = "v1/ConfigMap", name = "a" } }, source = [[
local kube = require "kubelua"
return kube.controller { name = "x", resource = "v1/ConfigMap", reconcile = function()
  kube.crd { group = "a.example.com", kind = "Late" }
end }]] }
    assert.match("call it at the top level", t:runs("a")[1].message)
  end)
end)
