-- release_finalizers_spec.lua - kubelua release-finalizers: removes the finalizers of a controller that no
-- longer runs.

local kube = require "kubelua"
local process = require "support.process"
local widgets = require "support.widgets"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

widgets.each("release-spec", function(t)
  local function finalizers(name)
    return table.concat(kube.copy(t.get(name)("metadata.finalizers") or {}), " ")
  end

  local function release(...)
    local words = { KUBELUA, "release-finalizers", "--kubeconfig", process.quote(t.server.kubeconfig) }
    for _, word in ipairs { ... } do words[#words + 1] = process.quote(word) end
    return process.run(table.concat(words, " "))
  end

  local function carrier(name, list, labels)
    return t.client:create {
      apiVersion = t.KIND:match "^(.*)/", kind = "Widget", spec = {},
      metadata = { namespace = t.ns, name = name, finalizers = list, labels = labels },
    }
  end

  local function script(lines) return process.write(process.tmpname ".lua", t.script(lines)) end

  -- The output has no namespaces of other tests, since -n names one.
  local function says(out, ...)
    for _, part in ipairs { ... } do
      if not out:find(part, 1, true) then error(("%q is not in\n%s"):format(part, out), 2) end
    end
  end

  it("removes the finalizer of a script's controllers, and releases waiting objects", function()
    local ours = "kubelua.dev/" .. t.name
    carrier("waits", { ours })
    t.client:delete(t.KIND, t.ns, "waits")
    carrier("lives", { "example.com/other", ours })
    carrier("free", { "example.com/other" })
    local path = script "reconcile = function() end"
    local out, code = release(path, "-n", t.ns, "--dry-run")
    assert.equal(0, code, out)
    says(out, "waits released from " .. ours .. " in " .. t.ns .. ", deleted (dry run)",
      "lives released from", "2 objects would be released")
    assert.equal("example.com/other " .. ours, finalizers "lives")
    out, code = release(path, "-n", t.ns, "--dry-run=server")
    assert.equal(0, code, out)
    says(out, "2 objects would be released")
    assert.equal("example.com/other " .. ours, finalizers "lives")
    out, code = release(path, "-n", t.ns, "--yes")
    assert.equal(0, code, out)
    says(out, "2 objects released")
    t.gone "waits"
    assert.equal("example.com/other", finalizers "lives")
    assert.equal("example.com/other", finalizers "free")
    out, code = release(path, "-n", t.ns, "--yes")
    assert.equal(0, code, out)
    says(out, "0 objects released")
    for _, name in ipairs { "lives", "free" } do
      t.client:patch(t.get(name), { metadata = { finalizers = kube.null } })
    end
  end)

  it("uses the script's finalizer, or a given one, for the named kinds", function()
    carrier("a", { "example.com/mine", "example.com/old" }, { app = "x" })
    carrier("b", { "example.com/old" }, { app = "y" })
    local out,
      code = release(script [[finalizer = "example.com/mine", finalize = function() end,
        reconcile = function() end]], "-n", t.ns, "--yes")
    assert.equal(0, code, out)
    assert.equal("example.com/old", finalizers "a")
    local resource = "widgets." .. t.KIND:match "^(.-)/"
    out, code = release("--finalizer", "example.com/old", resource, "-n", t.ns, "-l", "app=x", "--yes")
    assert.equal(0, code, out)
    says(out, "1 object released")
    assert.equal("example.com/old", finalizers "b")
    out, code = release("--finalizer", "example.com/old", t.KIND, "-n", t.ns, "-y")
    assert.equal(0, code, out)
    assert.equal("", finalizers "b")
  end)

  it("looks through every kind when none is named", function()
    local name = "example.com/" .. t.name
    carrier("w", { name })
    t.client:create { apiVersion = "v1", kind = "ConfigMap",
      metadata = { namespace = t.ns, name = "m", finalizers = { name } } }
    local out, code = release("--finalizer", name, "--yes")
    -- Other specs break API groups of the shared server on purpose, and the command reports that.
    assert.is_true(code == 0 or t.server.shared and code == 1, out)
    says(out, "configmap/m released from " .. name .. " in " .. t.ns, "w released from " .. name,
      "2 objects released")
    assert.is_nil(t.client:get("v1/ConfigMap", t.ns, "m")("metadata.finalizers"))
  end)

  it("goes through all pages, even while objects are deleted", function()
    local ours = "kubelua.dev/" .. t.name
    for i = 1, 520 do carrier("w" .. i, { ours }) end
    t.client:delete_collection(t.KIND, { namespace = t.ns })
    local out, code = release(script "reconcile = function() end", "-n", t.ns, "--yes")
    assert.equal(0, code, out)
    says(out, "520 objects released")
    assert.equal(0, #t.client:list(t.KIND, { namespace = t.ns }))
  end)

  it("rejects invalid arguments", function()
    for part, words in pairs {
      ["check with --dry-run, then add --yes"] = { "x.lua" },
      ["name a script, or a finalizer with --finalizer NAME"] = { "--yes" },
      ["the script names the kinds: leave out pods"] = { "x.lua", "pods", "--yes" },
      ["--finalizer must be \"domain/name\", got \"x\""] = { "--finalizer", "x", "--yes" },
      ["web: expected kinds, not names"] = { "--finalizer", "a/b", "pods", "web", "--yes" },
      ["--dry-run must be client, server or none"] = { "--finalizer", "a/b", "--dry-run=maybe" },
    } do
      local out, code = release(table.unpack(words))
      assert.equal(2, code, out)
      says(out, part)
    end
    local out, code = release("/nonexistent.lua", "--yes")
    assert.equal(1, code, out)
    says(out, "/nonexistent.lua")
    out, code = release("--finalizer", "a/b", "widgetz", "--yes")
    assert.equal(1, code, out)
    says(out, "widgetz")
  end)
end)
