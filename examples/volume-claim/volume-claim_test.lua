-- volume-claim_test.lua - a claim is made, grows, and is never made smaller.

local kube = require "kubelua"

local EVC, CLAIM = "examples.kubelua.dev/v1/EphemeralVolumeClaim", "v1/PersistentVolumeClaim"

describe("volume-claim", function()
  local t ---@type kubelua.Testing
  before_each(function()
    -- a claim grows where its class allows it
    local class = { kind = "storage.k8s.io/v1/StorageClass", name = "local", provisioner = "disks.dev",
      allowVolumeExpansion = true,
      annotations = { ["storageclass.kubernetes.io/is-default-class"] = "true" } }
    t = kube.testing.start { script = "volume-claim.lua", crds = "crd.yaml", files = "sample.yaml",
      objects = { class } }
  end)

  it("creates a claim with the same labels, and reports it", function()
    assert.equal("1Gi", t:get(CLAIM, "scratch").spec.resources.requests.storage)
    assert.equal("batch", t:get(CLAIM, "scratch").metadata.labels.app)
    assert.equal("1Gi", t:get(EVC, "scratch").status.size)
    assert.equal("Created", t:events("scratch")[1].reason)
  end)

  local function resize(size) t:patch(t:get(EVC, "scratch"), { spec = { size = size } }) end
  local function claimed() return t:get(CLAIM, "scratch").spec.resources.requests.storage end

  it("grows, once the claim has a volume", function()
    resize "2Gi"
    assert.equal("1Gi", claimed())
    t:patch_status(t:get(CLAIM, "scratch"), { phase = "Bound", capacity = { storage = "1Gi" } })
    assert.equal("2Gi", claimed())
    assert.equal("2Gi", t:get(EVC, "scratch").status.size)
  end)

  it("refuses to shrink", function()
    resize "500Mi"
    assert.equal("1Gi", claimed())
    local runs = t:runs "scratch"
    assert.equal("fail", runs[#runs].result)
    assert.matches("cannot shrink from 1Gi to 500Mi", runs[#runs].message)
  end)

  it("leaves a claim alone that is large enough", function()
    local before = #t:writes()
    t:patch(t:get(EVC, "scratch"), { metadata = { annotations = { looked = "at" } } })
    assert.equal(before, #t:writes())
  end)
end)
