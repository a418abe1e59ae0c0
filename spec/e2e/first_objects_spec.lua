-- first_objects_spec.lua - what both servers have when they start: every object of every resource. And what
-- they make beside Services and definitions.
-- not in asan, tsan: it reads

local both = require "support.both"
local identities = require "support.identities"
local json = require "dkjson"
local new_api = require "support.api"
local servers = require "support.servers"
local wait = require "support.wait"

-- Objects of kube-apiserver that ours does not have, and why: patterns of "plural.group namespace/name".
local NOT_OURS = { ["^componentstatuses%. "] = "there are no other processes to ask" }

-- The paths of the lists of all resources, by "plural.group".
local function lists(api)
  local found = {}
  local function add(path, group)
    for _, r in ipairs(api:get(path).body.resources) do
      local name = r.name .. "." .. group
      if not r.name:find "/" and table.concat(r.verbs, " "):find "list" then
        found[name] = found[name] or path .. "/" .. r.name
      end
    end
  end
  add("/api/v1", "")
  for _, group in ipairs(api:get("/apis").body.groups) do
    add("/apis/" .. group.preferredVersion.groupVersion, group.name)
  end
  return found
end

local function named(key)
  return (key:gsub("10%.96%.0%.1$", "10.0.0.1"):gsub("/apiserver%-" .. ("%w"):rep(26) .. "$", "/LEASE"))
end

-- All objects of a server, by "plural.group namespace/name".
local function objects(s)
  local api, found = new_api(s), {}
  for resource, path in pairs(lists(api)) do
    for _, o in ipairs(api:get(path).body.items) do
      local name, ns = o.metadata.name, o.metadata.namespace
      found[named(("%s %s"):format(resource, ns and ns .. "/" .. name or name))] = o
    end
  end
  return found
end

local function is_not_ours(key)
  for pattern in pairs(NOT_OURS) do
    if key:find(pattern) then return true end
  end
end

local CHANCE = { "uid", "resourceVersion", "creationTimestamp" }

-- managedFields by "manager operation subresource", without times.
local function owners(entries)
  local found = {}
  for _, entry in ipairs(entries or {}) do
    entry.time = nil
    found[("%s %s %s"):format(entry.manager, entry.operation, entry.subresource or "")] = entry
  end
  return found
end

-- Without what depends on the moment and on the address.
local function plain(key, o)
  for _, name in ipairs(CHANCE) do o.metadata[name] = nil end
  o.metadata.managedFields = owners(o.metadata.managedFields)
  for _, condition in ipairs(o.status and o.status.conditions or {}) do condition.lastTransitionTime = nil end
  if o.aggregationRule then o.rules = nil end -- ours gathers them; there a controller manager does
  local text = json.encode(o):gsub("10%.0%.0%.0/24", "RANGE"):gsub("10%.96%.0%.0/12", "RANGE")
    :gsub("10%.0%.0%.1", "FIRST"):gsub("10%.96%.0%.1", "FIRST")
  if key:find " default/kubernetes$" then
    text = text:gsub('([pP]ort)":%d+', '%1":0')
      :gsub('"%d+%.%d+%.%d+%.%d+"', '"HERE"')
  elseif key:find "^leases" then
    text = text:gsub("apiserver%-" .. ("%w"):rep(26), "LEASE"):gsub("LEASE_[%x-]+", "HOLDER")
      :gsub("%d+%-%d+%-%d+T%d+:%d+:%d+%.%d%d%d%d%d%dZ", "TIME")
  end
  return json.decode((text))
end

servers.only_real(function(_, real)
  describe("the first objects", function()
    local ours, theirs = {}, {}

    lazy_setup(function()
      local s = real { own = true, args = { "--enable-priority-and-fairness=true" } }
      -- Controllers of its own make them, and it is ready before they have.
      wait.until_true(60, "kube-apiserver has its first objects", function()
        theirs = objects(s)
        local maps = "configmaps. kube-system/"
        local dangling = theirs["flowschemas.flowcontrol.apiserver.k8s.io catch-all"]
        return theirs[maps .. "kube-apiserver-legacy-service-account-token-tracking"]
          and theirs[maps .. "extension-apiserver-authentication"]
          and theirs["leases.coordination.k8s.io kube-system/LEASE"]
          and theirs["endpointslices.discovery.k8s.io default/kubernetes"]
          and theirs["servicecidrs.networking.k8s.io kubernetes"] and dangling and dangling.status.conditions
      end)
      s:stop()
      s = servers.embedded { args = { "--authorization-mode", "RBAC", "--client-ca-file", s.ca } }
      ours = objects(identities.logged_in(s))
      s:stop()
    end)

    it("are those of kube-apiserver, except some named here", function()
      local missing, more, excused = {}, {}, {}
      for key in pairs(theirs) do
        if is_not_ours(key) then
          excused[#excused + 1] = key
        elseif not ours[key] then
          missing[#missing + 1] = key
        end
      end
      for key in pairs(ours) do
        if not theirs[key] then more[#more + 1] = key end
      end
      table.sort(missing)
      table.sort(more)
      assert.same({}, missing)
      assert.same({}, more)
      assert.equal(3, #excused)
    end)

    it("are equal", function()
      local found, n = {}, 0
      for key, o in pairs(theirs) do
        if ours[key] then
          n = n + 1
          both.differences(key, plain(key, o), plain(key, ours[key]), found)
        end
      end
      table.sort(found)
      assert.equal("", table.concat(found, "\n"))
      assert.is_true(n > 150, n)
    end)
  end)
end)

servers.each(function(name, start)
  describe("beside other objects " .. name, function()
    local s, api
    lazy_setup(function()
      s = start { empty = true }
      api = new_api(s)
    end)
    lazy_teardown(function() s:stop() end)

    local function address_of(service)
      return api:get("/apis/networking.k8s.io/v1/ipaddresses/" .. service.spec.clusterIP)
    end

    it("has an IPAddress for each address of a Service while that has it", function()
      local path = "/api/v1/namespaces/default/services"
      local PORTS = { { port = 1 } }
      local service = api:post(path, { metadata = { name = "first-objects" }, spec = { ports = PORTS } })
      local ip = address_of(service.body)
      assert.equal(200, ip.code, ip.text)
      assert.same({ namespace = "default", resource = "services", name = "first-objects" },
        ip.body.spec.parentRef)
      assert.same({ ["ipaddress.kubernetes.io/ip-family"] = "IPv4",
        ["ipaddress.kubernetes.io/managed-by"] = "ipallocator.k8s.io" }, ip.body.metadata.labels)
      local out = api:patch("merge", path .. "/first-objects",
        { spec = { type = "ExternalName", externalName = "x.example.com", clusterIP = json.null,
          clusterIPs = json.null } })
      assert.equal(200, out.code, out.text)
      wait.until_true(30, "the address is free", function() return address_of(service.body).code == 404 end)
      api:delete(path .. "/first-objects")
      service = api:post(path, { metadata = { name = "first-gone" }, spec = { ports = PORTS } })
      assert.equal(200, address_of(service.body).code)
      api:delete(path .. "/first-gone")
      wait.until_true(30, "the address is free", function() return address_of(service.body).code == 404 end)
      local headless = api:post(path, { metadata = { name = "first-none" },
        spec = { clusterIP = "None", ports = PORTS } })
      assert.equal(201, headless.code, headless.text)
      api:delete(path .. "/first-none")
    end)

    it("has an APIService for each version that a definition serves", function()
      local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
      local group = "first-objects.example.com"
      local function version(called, served, storage)
        return { name = called, served = served, storage = storage,
          schema = { openAPIV3Schema = { type = "object" } } }
      end
      local function service(called)
        return api:get(("/apis/apiregistration.k8s.io/v1/apiservices/%s.%s"):format(called, group))
      end
      local function is(called, there)
        wait.until_true(30, called .. (there and " is there" or " is gone"), function()
          return service(called).code == (there and 200 or 404)
        end)
      end
      local made = api:post(DEFINITIONS, { metadata = { name = "things." .. group }, spec = { group = group,
        scope = "Namespaced", names = { kind = "Thing", plural = "things" },
        versions = { version("v1", true, true), version("v2", true, false), version("v3", false, false) } } })
      assert.equal(201, made.code, made.text)
      is("v1", true)
      is("v2", true)
      is("v3", false)
      local o = service("v1").body
      assert.same({ group = group, version = "v1", groupPriorityMinimum = 1000, versionPriority = 100 },
        o.spec)
      assert.same({ ["kube-aggregator.kubernetes.io/automanaged"] = "true" }, o.metadata.labels)
      local changed = api:patch("json", DEFINITIONS .. "/things." .. group,
        { { op = "replace", path = "/spec/versions/1/served", value = false } })
      assert.equal(200, changed.code, changed.text)
      is("v2", false)
      is("v1", true)
      api:delete(DEFINITIONS .. "/things." .. group)
      is("v1", false)
    end)
  end)
end)
