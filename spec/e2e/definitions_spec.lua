-- definitions_spec.lua - the definitions of popular projects, from their Go modules: both servers accept or
-- reject the same ones, with the same warnings and defaults.
-- not in tsan: one request after the other
-- not in asan: megabytes of definitions, which other specs have in small

local both = require "support.both"
local busted = require "busted"
local kube = require "kubelua"
local process = require "support.process"
local sizes = require "support.sizes"

local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
local DIR = "build/assets/definitions"
-- spec/realserver/definitions/modules lists them; `make versions` fetches them. Those that take the real
-- server seconds run only in the long form (make soak).
local SETS = { "koordinator", "karpenter", "cert-manager" }
if sizes.of { short = 0, long = 1 } == 1 then
  SETS = { "gateway-api", "cert-manager", "argo-workflows", "prometheus-operator", "cluster-api",
    "koordinator", "kueue", "karpenter", "keda", "tekton" }
end

local function definitions(set)
  local found = {}
  local files = process.run(("ls %s/%s/*.yaml 2>/dev/null"):format(DIR, set))
  for file in files:gmatch "%S+" do
    for _, doc in ipairs(kube.yaml(assert(process.read(file)))) do
      if doc.kind == "CustomResourceDefinition" then
        local crd = kube.copy(doc)
        if set == "cert-manager" then crd.metadata.labels = nil end -- templates for Helm
        found[#found + 1] = crd
      end
    end
  end
  return found
end

for _, set in ipairs(SETS) do
  local found = definitions(set)
  if #found > 0 then
    both.describe("the definitions of " .. set, function()
      local rows = {}
      for i, crd in ipairs(found) do
        rows[i] = { crd.metadata.name, "POST", DEFINITIONS, kube.encode(crd), 201 }
      end
      return rows
    end)
  else
    busted.describe("the definitions of " .. set, function()
      busted.it("are there", function()
        local ci = os.getenv "CI"
        assert(not ci or ci == "" or ci == "false", "not there in CI: " .. DIR .. "/" .. set)
        busted.pending "make versions fetches them"
      end)
    end)
  end
end
