-- cert-approver.lua - approves certificate requests that keep the rules. It denies none: a person decides
-- about the others.

local kube = require "kubelua"

local function one_of(list, wanted)
  for _, x in ipairs(list or {}) do
    for _, w in ipairs(wanted) do
      if x == w then return true end
    end
  end
  return false
end

-- The rule that a request breaks; nil: none, it can be approved.
local function objection(csr, rules)
  if csr.spec.signerName ~= rules.signer then return "it has another signer" end
  if not one_of(csr("spec.groups"), rules.groups) then return "the requester is in none of the groups" end
  for _, usage in ipairs(csr.spec.usages) do
    if not one_of({ usage }, rules.usages) then return ("usage %q is not allowed"):format(usage) end
  end
  local seconds = csr("spec.expirationSeconds")
  if seconds and seconds > rules.longest then return "its validity would be too long" end
end

return kube.controller {
  name = "cert-approver",
  resource = "certificates.k8s.io/v1/CertificateSigningRequest",
  params = {
    signer = "kubernetes.io/kube-apiserver-client",
    groups = { "system:masters", "developers" },
    usages = { "digital signature", "key encipherment", "client auth" },
    longest = 86400,
  },

  reconcile = function(csr, ctx)
    if csr("status.conditions") and #csr.status.conditions > 0 then return end
    local why = objection(csr, ctx.params)
    if why then
      ctx.log:info("left to a person: %s", why)
      return
    end
    ctx:patch(csr, { status = { conditions = { { type = "Approved", status = "True", reason = "AutoApproved",
      message = "approved by cert-approver" } } } }, { subresource = "approval" })
  end,
}
