-- volumes_test.lua - the stand-in for the volume controllers: claims, volumes, reclaiming.
local kube = require "kubelua"

describe("volumes", function()
  local t ---@type kubelua.Testing
  local function start(...)
    t = kube.testing.start { script = "volumes.lua", objects = ... and { ... } or nil }
  end
  local function claim(name, spec)
    t:create { kind = "v1/PersistentVolumeClaim", name = name, spec = kube.merge({
      accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } }, spec) }
    return t:get("v1/PersistentVolumeClaim", name)
  end
  local function volume(name, size)
    return { kind = "v1/PersistentVolume", name = name, spec = { capacity = { storage = size },
      accessModes = { "ReadWriteOnce" }, storageClassName = "manual", hostPath = { path = "/x" },
      persistentVolumeReclaimPolicy = "Retain" } }
  end

  it("are made by a default class, and go with their claims", function()
    start()
    local made = claim "a"
    assert.equal("Bound", made.status.phase)
    assert.equal("standard", made.spec.storageClassName)
    local v = t:get("v1/PersistentVolume", made.spec.volumeName)
    assert.equal("Bound", v.status.phase)
    t:delete("v1/PersistentVolumeClaim", "a")
    t:until_idle()
    assert.is_nil(t:get("v1/PersistentVolume", v.metadata.name))
  end)

  it("are created and bound silently if one came or went before the cache shows it", function()
    start()
    t:fail_next { verb = "create", kind = "v1/PersistentVolume", error = "already_exists" }
    t:fail_next { verb = "patch", kind = "v1/PersistentVolume", error = "not_found" }
    claim "a"
    t:advance "5s"
    assert.equal(0, t:faults_left())
    assert.equal("Bound", t:get("v1/PersistentVolumeClaim", "a").status.phase)
    assert.same({}, t:logs "error")
  end)

  it("are the smallest that fit, used once, and Released under reclaim policy Retain", function()
    start(volume("big", "10Gi"), volume("mid", "2Gi"), volume("small", "500Mi"))
    assert.equal("Available", t:get("v1/PersistentVolume", "mid").status.phase)
    assert.equal("mid", claim("a", { storageClassName = "manual" }).spec.volumeName)
    assert.equal("big", claim("b", { storageClassName = "manual" }).spec.volumeName)
    assert.equal("Pending", claim("c", { storageClassName = "manual" }).status.phase)
    t:delete("v1/PersistentVolumeClaim", "a")
    t:until_idle()
    assert.equal("Released", t:get("v1/PersistentVolume", "mid").status.phase)
  end)

  local function class(name, is_default)
    return { kind = "storage.k8s.io/v1/StorageClass", name = name, provisioner = "x/y",
      annotations = { ["storageclass.kubernetes.io/is-default-class"] = is_default and "true" or nil } }
  end

  -- The API server gives new claims their class, so these are older than the classes.
  it("use the first default class by name among those of one age", function()
    local function older(name)
      return { kind = "v1/PersistentVolumeClaim", name = name, spec = { accessModes = { "ReadWriteOnce" },
        resources = { requests = { storage = "1Gi" } } } }
    end
    start(older "x", class("b", true), class("a", true))
    t:until_idle()
    assert.equal("a", t:get("v1/PersistentVolumeClaim", "x").spec.storageClassName)
  end)

  it("are created for a claim older than the default class", function()
    start(class("other"))
    assert.is_nil(claim("a").spec.storageClassName)
    assert.equal("Pending", claim("none", { storageClassName = "" }).status.phase)
    t:create(class("main", true))
    t:until_idle()
    local late = t:get("v1/PersistentVolumeClaim", "a")
    assert.same({ "main", "Bound" }, { late.spec.storageClassName, late.status.phase })
    assert.equal("Pending", t:get("v1/PersistentVolumeClaim", "none").status.phase)
  end)

  it("wait for a pod if their class says so", function()
    start { kind = "storage.k8s.io/v1/StorageClass", name = "late", provisioner = "x/y",
      volumeBindingMode = "WaitForFirstConsumer" }
    assert.equal("Pending", claim("a", { storageClassName = "late" }).status.phase)
    t:create { kind = "v1/Pod", name = "p", spec = { containers = { { name = "c", image = "i" } },
      volumes = { { name = "v", persistentVolumeClaim = { claimName = "a" } } } } }
    assert.equal("Bound", t:get("v1/PersistentVolumeClaim", "a").status.phase)
  end)
end)
