-- cert-approver_test.lua - which requests are approved, and which rule the others break.

local kube = require "kubelua"

local CSR = "certificates.k8s.io/v1/CertificateSigningRequest"

describe("cert-approver", function()
  local objection = kube.testing.pure "cert-approver.lua".functions.objection
  local rules = { signer = "s", groups = { "developers" }, usages = { "client auth" }, longest = 3600 }

  local function request(o)
    return kube.merge({ spec = { signerName = "s", groups = { "developers" }, usages = { "client auth" } } },
      { spec = o })
  end

  -- The function reads a view, so the table becomes one.
  local function says(o)
    local t = kube.decode(kube.encode(request(o)))
    return objection(t, rules)
  end

  it("approves requests that keep the rules", function() assert.is_nil(says {}) end)

  it("leaves other requests to a person, with a reason", function()
    assert.matches("signer", says { signerName = "other" })
    assert.matches("groups", says { groups = { "strangers" } })
    assert.matches("usage \"server auth\"", says { usages = { "server auth" } })
    assert.matches("too long", says { expirationSeconds = 7200 })
  end)

  it("writes the approval once", function()
    local t = kube.testing.start { script = "cert-approver.lua", files = "sample.yaml" }
    assert.equal("Approved", t:get(CSR, "jane").status.conditions[1].type)
    local before = #t:writes()
    t:advance "1h"
    assert.equal(before, #t:writes())
  end)
end)
