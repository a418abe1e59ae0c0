-- crd_names_spec.lua - names of definitions: which definition owns a name, and the status of one whose name
-- another one has.

local controller = require "support.controller"
local new_api = require "support.api"
local servers = require "support.servers"
local wait = require "support.wait"

local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

servers.each(function(name, start)
  describe("the names of definitions, on " .. name, function()
    local server, client, api, group
    lazy_setup(function()
      server = start {}
      client, api = controller.client(server), new_api(server)
    end)
    lazy_teardown(function()
      if client then client:close() end
      if server then server:stop() end
    end)
    before_each(function() group = controller.namespace(client, "names") .. ".example.com" end)
    after_each(function()
      for _, plural in ipairs { "gadgets",
        "gizmos" } do api:delete(("%s/%s.%s"):format(CRDS, plural, group)) end
    end)

    local function define(plural, kind, short)
      local r = api:post(CRDS, { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
        metadata = { name = plural .. "." .. group },
        spec = { group = group, scope = "Cluster",
          names = { plural = plural, kind = kind, shortNames = short },
          versions = { { name = "v1", served = true, storage = true,
            schema = { openAPIV3Schema = { type = "object" } } } } } })
      assert.equal(201, r.code, r.text)
    end

    local function status(plural)
      local s = api:get(("%s/%s.%s"):format(CRDS, plural, group)).body.status
      local said = {}
      for _, c in ipairs(s.conditions or {}) do
        said[c.type] = ("%s %s: %s"):format(c.status, c.reason, c.message)
      end
      return said, s.acceptedNames
    end

    local function says(plural, names, established)
      local last
      local ok = pcall(wait.until_true, 30, "the conditions", function()
        last = status(plural)
        return last.NamesAccepted == names and last.Established == established
      end)
      if not ok then assert.same({ names, established }, { last.NamesAccepted, last.Established }) end
    end

    local GOOD, SERVED = "True NoConflicts: no conflicts found",
      "True InitialNamesAccepted: the initial names have been accepted"
    local LATER = "False NotAccepted: not all names are accepted"

    it("belong to the first definition, and to the next one when that is deleted", function()
      define("gadgets", "Gadget", { "gd" })
      says("gadgets", GOOD, SERVED)
      define("gizmos", "Gadget")
      says("gizmos", 'False ListKindConflict: "GadgetList" is already in use', LATER)
      local _, accepted = status "gizmos"
      assert.same({ plural = "gizmos", kind = "" }, accepted)
      assert.equal(404, api:get(("/apis/%s/v1/gizmos"):format(group)).code)
      api:delete(("%s/gadgets.%s"):format(CRDS, group))
      says("gizmos", GOOD, SERVED)
      _, accepted = status "gizmos"
      assert.same({ plural = "gizmos", singular = "gadget", kind = "Gadget", listKind = "GadgetList" },
        accepted)
      wait.until_true(30, "gizmos",
        function() return api:get(("/apis/%s/v1/gizmos"):format(group)).code == 200 end)
    end)

    it("stay unchanged while the requested ones are taken", function()
      define("gadgets", "Gadget", { "gd" })
      says("gadgets", GOOD, SERVED)
      define("gizmos", "Gizmo", { "gz" })
      says("gizmos", GOOD, SERVED)
      local path = ("%s/gizmos.%s"):format(CRDS, group)
      local r = api:patch("merge", path, { spec = { names = { shortNames = { "gd", "gz", "gadget" } } } })
      assert.equal(200, r.code, r.text)
      says("gizmos", 'False ShortNamesConflict: ["gd" is already in use, "gadget" is already in use]', SERVED)
      local _, accepted = status "gizmos"
      assert.same({ "gz" }, accepted.shortNames)
      wait.until_true(30, "gizmos",
        function() return api:get(("/apis/%s/v1/gizmos"):format(group)).code == 200 end)
      r = api:patch("merge", path, { spec = { names = { shortNames = { "gm" } } } })
      assert.equal(200, r.code, r.text)
      says("gizmos", GOOD, SERVED)
      _, accepted = status "gizmos"
      assert.same({ "gm" }, accepted.shortNames)
    end)
  end)
end)
