-- kinds.lua - guesses the kind that a script means by a word that is not a kind. Scripts name kinds in full,
-- "v1/ConfigMap", so that a kind has one name in tables, caches and results; short names such as "cm" belong to
-- the command line. The kinds that every server has are listed here, so no server need be asked.

local core = require "kubelua.core"

local M = {}

-- Kinds by group and version, with their short names as servers tell them.
local KINDS = {
  ["v1"] = "ComponentStatus:cs ConfigMap:cm Endpoints:ep Event:ev LimitRange:limits Namespace:ns Node:no \z
    PersistentVolume:pv PersistentVolumeClaim:pvc Pod:po PodTemplate ReplicationController:rc \z
    ResourceQuota:quota Secret Service:svc ServiceAccount:sa",
  ["admissionregistration.k8s.io/v1"] = "MutatingWebhookConfiguration ValidatingAdmissionPolicy \z
    ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
  ["apiextensions.k8s.io/v1"] = "CustomResourceDefinition:crd,crds",
  ["apiregistration.k8s.io/v1"] = "APIService",
  ["apps/v1"] = "ControllerRevision DaemonSet:ds Deployment:deploy ReplicaSet:rs StatefulSet:sts",
  ["autoscaling/v2"] = "HorizontalPodAutoscaler:hpa",
  ["batch/v1"] = "CronJob:cj Job",
  ["certificates.k8s.io/v1"] = "CertificateSigningRequest:csr",
  ["coordination.k8s.io/v1"] = "Lease",
  ["discovery.k8s.io/v1"] = "EndpointSlice",
  ["flowcontrol.apiserver.k8s.io/v1"] = "FlowSchema PriorityLevelConfiguration",
  ["networking.k8s.io/v1"] = "IPAddress:ip Ingress:ing IngressClass NetworkPolicy:netpol ServiceCIDR",
  ["node.k8s.io/v1"] = "RuntimeClass",
  ["policy/v1"] = "PodDisruptionBudget:pdb",
  ["rbac.authorization.k8s.io/v1"] = "ClusterRole ClusterRoleBinding Role RoleBinding",
  ["resource.k8s.io/v1"] = "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
  ["scheduling.k8s.io/v1"] = "PriorityClass:pc",
  ["storage.k8s.io/v1"] = "CSIDriver CSINode CSIStorageCapacity StorageClass:sc VolumeAttachment \z
    VolumeAttributesClass:vac",
}

local function plural_of(kind)
  local word = kind:lower()
  if word:find "points$" then return word end
  if word:find "[sxz]$" then return word .. "es" end
  if word:find "[^aeiou]y$" then return word:sub(1, -2) .. "ies" end
  return word .. "s"
end

-- By short name, kind and plural in lower case; and the words that a typo is near to.
local function read()
  local by, words = {}, {}
  for group, text in pairs(KINDS) do
    for entry in text:gmatch "%S+" do
      local kind, short = entry:match "^(%a+):?(.*)$"
      local full = group .. "/" .. kind
      for word in (kind:lower() .. "," .. plural_of(kind) .. "," .. short):gmatch "[^,]+" do
        by[word], words[#words + 1] = full, word
      end
    end
  end
  table.sort(words)
  return by, words
end

--- The kind in full for a short name, a plural, or a kind without its group, with a wrong one or another case:
--- "cm", "pods", "deployments.apps", "Deployment"; nil when none is near.
---@param word string
---@return string?
function M.meant(word)
  local by, words = read()
  local last = word:lower():match "([^/]*)$":match "^[^.]*"
  if last == "" then return nil end
  return by[last] or by[core.nearest(last, words)]
end

--- The end of a message about such a word: "; write \"v1/ConfigMap\"", or how kinds are written.
---@param word string
---@return string
function M.hint(word)
  local meant = M.meant(word)
  return meant and ("; did you mean %q?"):format(meant)
    or "; write \"v1/Pod\" or \"group/version/Kind\" such as \"apps/v1/Deployment\""
end

return M
