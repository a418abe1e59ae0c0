-- crd_conversion_spec.lua - conversion functions of kube.crd between the versions of a kind, on both API
-- servers.

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- Three versions: v2 is stored, v1 the hub unless `more` says otherwise.
local SCRIPT = [[
local kube = require "kubelua"
local Site = kube.crd { group = %q, kind = "Site",
  versions = {
    v1 = { schema = kube.schema { spec = { host = "string!", port = "integer" } } },
    v1beta1 = { schema = kube.schema { spec = { address = "string!" } } },
    v2 = { storage = true, schema = kube.schema { spec = { url = "string!" } } },
  },
  conversion = { hub = "v1",
    v1beta1 = {
      to = function(o)
        local host, port = o.spec.address:match "^([^:]+):?(%%d*)$"
        if host == "bad" then error("no such address", 0) end
        o.spec = { host = host, port = tonumber(port) }
      end,
      from = function(o) o.spec = { address = ("%%s:%%d"):format(o.spec.host, o.spec.port or 80) } end,
    },
    v2 = {
      to = function(o)
        local host, port = o.spec.url:match "^http://([^:]+):?(%%d*)$"
        o.metadata.labels.came = "v2"
        o.spec = { host = host, port = tonumber(port) }
      end,
      from = function(o)
        local t = { kind = o.kind, metadata = o.metadata,
          spec = { url = "http://" .. o.spec.host .. (o.spec.port and ":%%d" or ""):format(o.spec.port) } }
        return t
      end,
    },
  },
}
return kube.controller { name = "sites", resource = Site,
  reconcile = function(site, ctx) ctx.log:info("site", { url = site.spec.url }) end }
]]

servers.each(function(name, start)
  describe("functions between the versions of a kind, against " .. name, function()
    local client, ns
    local begin = controller.frame("conversion", start, function(_, of_server, namespace)
      client, ns = of_server, namespace
    end)

    it("convert reads and writes", function()
      local group = ns .. ".example.com"
      local run = begin(SCRIPT:format(group), "--install-crds", "--namespace", ns, "--webhook-listen",
        "127.0.0.1:0",
        "--webhook-url", "auto")
      run:wait_for_log(60, "the webhook is registered with the API server")
      local function kind(version) return ("%s/%s/Site"):format(group, version) end
      local function make(version, called, spec)
        return client:create { kind = kind(version), namespace = ns, name = called, spec = spec }
      end
      local n = 0
      -- a server needs a moment to notice the changed definition
      wait.until_true(60, "the kind", function()
        n = n + 1
        local ok, o = pcall(make, "v1beta1", "probe" .. n, { address = "web:8080" })
        return ok and o.spec.address == "web:8080"
      end)
      make("v1beta1", "a", { address = "web:8080" })
      assert.equal("http://web:8080", client:get(kind "v2", ns, "a").spec.url)
      local a = client:get(kind "v1", ns, "a")
      assert.same({ "web", 8080, "v2" }, { a.spec.host, a.spec.port, a("metadata.labels.came") })
      make("v2", "b", { url = "http://db" })
      assert.equal("db:80", client:get(kind "v1beta1", ns, "b").spec.address)
      assert.equal("b", client:list(kind "v1beta1", { namespace = ns })[2].metadata.name)

      local ok, e = pcall(make, "v1beta1", "c", { address = "bad:1" })
      assert.is_false(ok)
      assert.match(("conversion webhook for %s/v1beta1, Kind=Site failed: c from v1beta1 to v2: no such \z
        address"):format(group),
        tostring(e), 1, true)
      run:wait_for_log(60, "no such address")

      process.write(run.script_path, (SCRIPT:format(group):gsub("came = \"v2\"", "came = \"again\"")))
      run:wait_for_log(60, "loaded the next generation")
      wait.until_true(60, "the next generation to convert", function()
        return client:get(kind "v1", ns, "a")("metadata.labels.came") == "again"
      end)

      local definition = "apiextensions.k8s.io/v1/CustomResourceDefinition"
      assert.equal("Webhook", client:get(definition, "sites." .. group).spec.conversion.strategy)
      process.write(run.script_path, (SCRIPT:format(group):gsub("conversion = ", "conversion = nil and ")))
      wait.until_true(60, "a script without functions to leave a definition without a webhook", function()
        return client:get(definition, "sites." .. group).spec.conversion.strategy == "None"
      end)
      client:delete(definition, "sites." .. group)
    end)
  end)
end)

describe("functions between the versions of a kind", function()
  local function refused(conversion, versions)
    local path = process.write(process.tmpname ".lua", ([[
local kube = require "kubelua"
kube.crd { group = "example.com", kind = "Site", versions = %s, conversion = %s }
return kube.controller { name = "a", resource = "v1/Pod", reconcile = function() end }]]):format(versions
      or "{ v1 = { storage = true }, v2 = {} }", conversion))
    local text, code = process.run(("%s check %s 2>&1"):format(KUBELUA, path))
    return code ~= 0 and text or "taken: " .. text
  end

  it("are checked when the script is loaded", function()
    local both = "to = print, from = print"
    assert.match("taken: .*conversion sites.example.com\n +hub +v1\n +converts +v2",
      refused("{ v2 = { to = type, from = type } }"))
    assert.match("there is no version v3", refused("{ v3 = { " .. both .. " } }"), 1, true)
    assert.match("conversion.v2 is missing: { to =", refused "{}", 1, true)
    assert.match("conversion.v2.from must be a function, got nil", refused "{ v2 = { to = print } }", 1, true)
    assert.match("unknown key 'form'; did you mean 'from'?", refused "{ v2 = { to = type, form = type } }", 1,
      true)
    assert.match("conversion.v1 is the hub version",
      refused("{ v1 = { to = type, from = type }, v2 = { to = type, from = type } }"), 1, true)
    assert.match("conversion.hub is one of its versions (v1, v2), got v9", refused "{ hub = 'v9' }", 1, true)
    assert.match("conversion is between versions", refused("{}", "{ v1 = { storage = true } }"), 1, true)
  end)

  it("are tested without a server, in both directions", function()
    local pure = kube.testing.pure(process.write(process.tmpname ".lua", (SCRIPT:format "pure.example.com"
      :gsub("o.metadata.labels.came[^\n]+", ""))))
    local function site(version, spec)
      return { apiVersion = "pure.example.com/" .. version, kind = "Site", metadata = { name = "a" },
        spec = spec }
    end
    assert.equal("web:80", pure.convert(site("v2", { url = "http://web" }), "v1beta1").spec.address)
    assert.equal("pure.example.com/v1", pure.convert(site("v2", { url = "http://web" }), "v1").apiVersion)
    pure.round_trip(site("v1beta1", { address = "web:80" }))
    local ok, e = pcall(pure.round_trip, site("v1beta1", { address = "web" }))
    assert.is_false(ok)
    assert.match("from v1 to v1beta1 changes on the way to v1 and back:", tostring(e), 1, true)
    assert.match("web:80", tostring(e), 1, true)
    ok, e = pcall(pure.convert, { apiVersion = "a.b/v1", kind = "Other" }, "v2")
    assert.is_false(ok)
    assert.match("the script has no conversion of Other", tostring(e), 1, true)
  end)

  it("answer in a test", function()
    local kind = "there.example.com/%s/Site"
    local t <close> = kube.testing.start { source = SCRIPT:format "there.example.com" }
    t:create { kind = kind:format "v1beta1", name = "a", spec = { address = "web:1" } }
    assert.equal("http://web:1", t:get(kind:format "v2", "a").spec.url)
  end)

  it("need rights for their definition", function()
    local path = process.write(process.tmpname ".lua", SCRIPT:format "rights.example.com")
    local text = process.run(("%s rbac %s 2>&1"):format(KUBELUA, path))
    assert.match("customresourcedefinitions", text)
    assert.match('sites.rights.example.com', text, 1, true)
  end)
end)
