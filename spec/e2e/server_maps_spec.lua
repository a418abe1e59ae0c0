-- server_maps_spec.lua - the two ConfigMaps that kube-apiserver keeps in kube-system: deleted and edited ones
-- come back, and the authorities of clients are those of all servers that ran on the data.

local identities = require "support.identities"
local new_api = require "support.api"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local MAPS = "/api/v1/namespaces/kube-system/configmaps/"
local TRACKING = MAPS .. "kube-apiserver-legacy-service-account-token-tracking"
local AUTHORITIES = MAPS .. "extension-apiserver-authentication"

local function authority(name)
  local file = identities.ca(name).crt
  return file, process.read(file)
end

-- The text of an authority that ended a day ago.
local function ended(name)
  local ca = identities.ca(name)
  local pem, code = process.run(("openssl x509 -in %s -signkey %s -days -1"):format(ca.crt, ca.key))
  assert(code == 0, pem)
  return pem:match "%-%-%-%-%-BEGIN.*"
end

-- The embedded server asks for a token where it has authorities.
local function logged_in(s) return new_api(identities.logged_in(s)) end

local function embedded(file, ...)
  return servers.embedded { args = { "--authorization-mode", "RBAC", "--client-ca-file", file, ... } }
end

local function starts(define)
  define(servers.EMBEDDED, function()
    local file, pem = authority "mine"
    local s = embedded(file)
    return s, logged_in(s), pem
  end)
  servers.only_real(function(name, start)
    define(name, function()
      local s = start { own = true }
      return s, new_api(s), process.read(s.ca)
    end)
  end)
end

starts(function(name, start)
  describe("the ConfigMaps of " .. name, function()
    local s, api, pem
    lazy_setup(function() s, api, pem = start() end)
    lazy_teardown(function() s:stop() end)

    local function until_new(uid)
      return wait.until_true(30, "the ConfigMap comes back", function()
        local r = api:get(AUTHORITIES)
        return r.code == 200 and r.body.metadata.uid ~= uid and r.body
      end)
    end

    it("come back when they are deleted", function()
      local uid = api:get(AUTHORITIES).body.metadata.uid
      assert.equal(200, api:delete(AUTHORITIES).code)
      local o = until_new(uid)
      assert.equal(pem, o.data["client-ca-file"])
      assert.equal("kube-apiserver", o.metadata.managedFields[1].manager)
    end)

    it("gain the server's authority", function()
      local uid = api:get(AUTHORITIES).body.metadata.uid
      local _, other = authority "other"
      assert.equal(200, api:delete(AUTHORITIES).code)
      -- Whoever is first: the server adds what is missing.
      api:post(MAPS:sub(1, -2), { metadata = { name = "extension-apiserver-authentication" },
        data = { ["client-ca-file"] = other } })
      until_new(uid)
      wait.until_true(30, "the authority of the server", function()
        return api:get(AUTHORITIES).body.data["client-ca-file"]:find(pem, 1, true)
      end)
    end)

    it("have a date", function()
      local today = api:get(TRACKING).body.data.since
      assert.match("^%d%d%d%d%-%d%d%-%d%d$", today)
      assert.equal(200, api:patch("merge", TRACKING, { data = { since = "never", more = "x" } }).code)
      wait.until_true(30, "the date is repaired", function()
        local data = api:get(TRACKING).body.data
        return data.since == today and data.more == "x"
      end)
    end)
  end)
end)

describe("the authorities of an embedded server", function()
  it("are joined with those of its last start, without those that ended", function()
    local dir = process.tmpname ".data"
    local first, one = authority "one"
    local second, two = authority "two"
    local s = embedded(first, "--data", dir)
    local api = logged_in(s)
    assert.equal(one, api:get(AUTHORITIES).body.data["client-ca-file"])
    s:stop()
    s = embedded(second, "--data", dir)
    api = logged_in(s)
    local o = api:get(AUTHORITIES).body
    assert.equal(one .. two, o.data["client-ca-file"])
    s:stop()
    s = embedded(first, "--data", dir)
    api = logged_in(s)
    local now = api:get(AUTHORITIES).body
    assert.equal(o.metadata.resourceVersion, now.metadata.resourceVersion, "nothing was new")
    assert.equal(200, api:patch("merge", AUTHORITIES,
      { data = { ["client-ca-file"] = one .. ended "old" .. two } }).code)
    s:stop()
    s = embedded(first, "--data", dir)
    api = logged_in(s)
    assert.equal(one .. two, api:get(AUTHORITIES).body.data["client-ca-file"])
    s:stop()
  end)

  it("are made again every half hour at most, of the two", function()
    local s = servers.embedded { args = { "--clock", "virtual" } }
    local api = new_api(s)
    assert.equal(404, api:get(AUTHORITIES).code)
    assert.equal(200, api:delete(TRACKING).code)
    api:post("/kubelua/v1/clock", { advance = "10m" })
    assert.equal(404, api:get(TRACKING).code)
    api:post("/kubelua/v1/clock", { advance = "25m" })
    wait.until_true(30, "the ConfigMap comes back", function() return api:get(TRACKING).code == 200 end)
    s:stop()
  end)
end)
