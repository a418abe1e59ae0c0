-- colocationprofile.lua - Koordinator's ClusterColocationProfiles: a webhook that makes colocated pods of new
-- ones, one that refuses pods that cannot be, one that amplifies nodes, and a controller that tells what
-- profiles would change on pods that run. The policy is in colocationprofile/, as pure functions.
--
--   kubelua dev controllers/koordinator/colocationprofile.lua --crds controllers/koordinator/crds

local kube = require "kubelua"
local amplify = require "colocationprofile.amplify"
local audit = require "colocationprofile.audit"
local config = require "colocationprofile.config"
local fields = require "fields"
local mutate = require "colocationprofile.mutate"
local sloconfig = require "sloconfig"
local validate = require "colocationprofile.validate"

local PROFILE = "config.koordinator.sh/v1alpha1/ClusterColocationProfile"
local POD, NODE, NAMESPACE = "v1/Pod", "v1/Node", "v1/Namespace"
local PRIORITY_CLASS = "scheduling.k8s.io/v1/PriorityClass"

-- Koordinator's feature gates of the same meaning, both off there.
local SKIP_RESOURCES = false -- ColocationProfileSkipMutatingResources
local SKIP_PRIORITY = false  -- ColocationProfileSkipValidatingPriority

local SELF = { NAMESPACE, PROFILE, PRIORITY_CLASS }

-- Puts the pod that the profiles made into the draft.
local function put(draft, pod)
  draft.metadata.labels, draft.metadata.annotations = pod.metadata.labels, pod.metadata.annotations
  draft.spec = pod.spec
end

local mutating = kube.webhook {
  name = "koordinator-pod-mutating",
  resource = POD,
  operations = { "CREATE" },
  reads = SELF,

  mutate = function(draft, req)
    local ns, given = req.namespace, kube.copy(draft)
    local matched = mutate.matching(req:list(PROFILE), given, ns and req:get(NAMESPACE, ns))
    local pod, why = mutate.mutate(given, matched, {
      priority_class = function(name) return req:get(PRIORITY_CLASS, name) end,
      draw = function() return math.random(0, 99) end,
      skip_resources = SKIP_RESOURCES,
    })
    if not pod then error(why, 0) end
    mutate.device_spec(pod)
    mutate.extended_spec(pod)
    put(draft, pod)
  end,
}

local validating = kube.webhook {
  name = "koordinator-pod-validating",
  resource = POD,
  operations = { "CREATE", "UPDATE" },

  validate = function(pod, req)
    local broken = validate.pod(pod, req.operation == "UPDATE" and req.old or nil,
      { skip_priority = SKIP_PRIORITY })
    if #broken > 0 then return kube.deny(validate.text(broken), 403) end
  end,
}

local amplifying = kube.webhook {
  name = "koordinator-node-amplification",
  resource = NODE,
  operations = { "UPDATE" },
  subresources = { "status" },
  failure_policy = "Ignore",

  mutate = function(draft, req)
    local desired, why = amplify.desired(kube.copy(draft), req.old)
    if not desired then return kube.deny(why, 500) end
    if desired.raw ~= nil then draft.metadata.annotations[amplify.RAW] = desired.raw or nil end
    for name, text in pairs(desired.allocatable) do draft.status.allocatable[name] = text end
  end,
}

local configuring = kube.webhook {
  name = "koordinator-config-validating",
  resource = sloconfig.KIND,
  namespaces = { sloconfig.NAMESPACE },
  reads = { NODE },

  validate = function(map, req)
    if map.metadata.name ~= sloconfig.NAME then return end
    local nodes = {}
    for node in req:each(NODE) do nodes[#nodes + 1] = node("metadata.labels") or {} end
    local why = config.config_map(fields.copy(map), req.old, nodes)
    if why then return kube.deny(why, 403) end
  end,
}

local labelling = kube.webhook {
  name = "koordinator-node-validating",
  resource = NODE,
  operations = { "UPDATE" },
  failure_policy = "Ignore",
  reads = { sloconfig.KIND },

  validate = function(node, req)
    local labels = node("metadata.labels") or {}
    if fields.equal(fields.copy(labels), fields.copy(req.old("metadata.labels") or {})) then return end
    local why = config.node(labels, req:get(sloconfig.KIND, sloconfig.NAMESPACE, sloconfig.NAME))
    if why then return kube.deny(why, 403) end
  end,
}

local auditing = kube.controller {
  name = "colocationprofile-audit",
  resource = PROFILE,
  reads = { POD, NAMESPACE, PRIORITY_CLASS },
  workers = 1,
  every = "5m",
  cpu = "20s",

  reconcile = function(profile, ctx)
    local namespaces, running = {}, {}
    for ns in ctx:each(NAMESPACE) do namespaces[ns.metadata.name] = ns end
    for pod in ctx:each(POD) do
      if pod("status.phase") == "Running" then running[#running + 1] = pod end
    end
    local report = audit.report(profile, running, namespaces,
      function(name) return ctx:get(PRIORITY_CLASS, name) end)
    if report.failed then return ctx:warn("ProfileUnusable", "%s", audit.text(report)) end
    if #report.differ > 0 then ctx:event("PodsDiffer", "%s", audit.text(report)) end
  end,
}

return { mutating, validating, amplifying, configuring, labelling, auditing }
