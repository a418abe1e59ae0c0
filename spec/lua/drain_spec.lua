-- drain_spec.lua - which pods a drain evicts, skips and refuses: kubectl's filters as a function.

local kube = require "kubelua"
local drain = require "kubelua.drain"

local NOW = 1767225600      -- 2026-01-01T00:00:00Z

describe("the fate of a pod of a node that is drained", function()
  local function pod(more)
    local o = { apiVersion = "v1", kind = "Pod", metadata = { name = "p", namespace = "a" }, spec = {},
      status = { phase = "Running" } }
    for path, value in pairs(more or {}) do
      if path == "owner" then
        o.metadata.ownerReferences = { { apiVersion = "apps/v1", kind = value, name = "o", uid = "u",
          controller = true } }
      elseif path == "mirror" then
        o.metadata.annotations = { ["kubernetes.io/config.mirror"] = value }
      elseif path == "phase" then
        o.status.phase = value
      elseif path == "data" then
        o.spec.volumes = { { name = "v", emptyDir = kube.object {} } }
      elseif path == "deleted" then
        o.metadata.deletionTimestamp = kube.format_time(NOW - value)
      end
    end
    return kube.decode(kube.encode(o))
  end

  local DAEMONSETS = { there = function() return true end, gone = function() return false end }
  local ALL = { force = true, ignore_daemonsets = true, delete_emptydir_data = true }

  local cases = {
    { "one of a replica set", { owner = "ReplicaSet" }, {}, "evict" },
    { "one without controller", {}, {}, "refuse", "no controller that would recreate it" },
    { "one without controller, by force", {}, { force = true }, "evict", "nothing recreates it" },
    { "one without controller that has ended", { phase = "Succeeded" }, {}, "evict" },
    { "one with emptyDir data", { owner = "ReplicaSet", data = true }, {}, "refuse", "emptyDir" },
    { "one with emptyDir data that may be lost", { owner = "ReplicaSet", data = true },
      { delete_emptydir_data = true }, "evict", "emptyDir" },
    { "one with emptyDir data that has failed", { owner = "ReplicaSet", data = true, phase = "Failed" }, {},
      "evict" },
    { "a daemon set's", { owner = "DaemonSet" }, {}, "refuse", "ignore_daemonsets = true" },
    { "a daemon set's, by force", { owner = "DaemonSet" }, { force = true }, "refuse",
      "ignore_daemonsets = true" },
    { "a daemon set's with leave to ignore it", { owner = "DaemonSet" }, { ignore_daemonsets = true }, "skip",
      "recreate it" },
    { "a daemon set's that has ended", { owner = "DaemonSet", phase = "Succeeded" }, {}, "evict" },
    { "one whose daemon set is gone", { owner = "DaemonSet" }, { ignore_daemonsets = true }, "refuse",
      "does not exist", "gone" },
    { "one whose daemon set is gone, by force", { owner = "DaemonSet" }, { force = true }, "evict",
      "does not exist", "gone" },
    { "a mirror of a static pod", { mirror = "x" }, {}, "skip", "mirror" },
    { "a mirror of a static pod with data, by force", { mirror = "x", data = true }, ALL, "skip", "mirror" },
    { "one that is long being deleted", { deleted = 100 }, { skip_wait_for_delete = 60 }, "skip",
      "for a long time" },
    { "one whose deletion has just begun", { deleted = 10, owner = "ReplicaSet" },
      { skip_wait_for_delete = 60 }, "evict" },
    { "one that is being deleted, which nobody asked about", { deleted = 100, owner = "ReplicaSet" }, {},
      "evict" },
  }
  for _, case in ipairs(cases) do
    local name, o, opts, fate, why, daemonsets = table.unpack(case, 1, 6)
    it(("%s: %s"):format(name, fate), function()
      local got, reason = drain.judge(pod(o), opts, DAEMONSETS[daemonsets or "there"], NOW)
      assert.equal(fate, got)
      if why then assert.matches(why, reason, 1, true) else assert.is_nil(reason) end
    end)
  end
end)
