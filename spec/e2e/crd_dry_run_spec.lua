-- crd_dry_run_spec.lua - the answer to a definition in a dry run: the object before any controller acted on
-- it.

local both = require "support.both"

local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

both.describe("dry runs of definitions", function(ns)
  local group = ns .. ".example.com"
  local name, schema = "things." .. group, { openAPIV3Schema = { type = "object" } }
  local body = { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = name }, spec = { group = group, scope = "Namespaced", names = { plural = "things",
      kind = "Thing" }, versions = { { name = "v1", served = true, storage = true, schema = schema } } } }
  return {
    { "a creation", "POST", DEFINITIONS .. "?dryRun=All", body, 201 },
    { "an apply that creates", "APPLY", DEFINITIONS .. "/" .. name .. "?dryRun=All&fieldManager=m", body,
      201 },
    { "nothing of it is there", "GET", DEFINITIONS .. "/" .. name, nil, 404 },
  }
end)
