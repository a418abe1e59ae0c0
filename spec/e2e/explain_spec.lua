-- explain_spec.lua - `kubelua explain`: the contents and cost of caches, and how to make them smaller.

local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local NS = "explain-spec"

local function write(body)
  local path = process.tmpname ".lua"
  return process.write(path, body)
end

local LABELS_ONLY = [[
-- It never looks at what this comment says: data.
return require "kubelua".controller { name = "labels", resource = "v1/ConfigMap",
  namespaces = { "explain-spec" }, reads = { "v1/Secret" },
  reconcile = function(o, ctx) return o.metadata.labels.x end }
]]

servers.each(function(name, start)
  describe("kubelua explain on " .. name, function()
    local s, c
    lazy_setup(function()
      s = start {}
      c = kube.connect { kubeconfig = s.kubeconfig, cache_dir = false, on_warning = "none" }
      c:apply { kind = "v1/Namespace", name = NS }
      for i = 1, 3 do
        c:apply({ kind = "v1/ConfigMap", name = "big-" .. i, namespace = NS, labels = { x = "1" },
          data = { text = ("x"):rep(2000) } })
      end
    end)
    lazy_teardown(function()
      for i = 1, 3 do c:delete("v1/ConfigMap", NS .. "/big-" .. i) end
      s:stop()
    end)

    local function explain(...)
      return process.run(("%s explain %s --kubeconfig %s"):format(KUBELUA, table.concat({ ... }, " "),
        process.quote(s.kubeconfig)))
    end

    it("measures objects, bytes and fields, and estimates savings", function()
      local out, code = explain(write(LABELS_ONLY), "--for 1s -o json")
      assert.equal(0, code, out)
      local report = kube.copy(kube.json(out))
      local maps, secrets = report.informers[1], report.informers[2]
      assert.equal("v1/ConfigMap", maps.kind)
      assert.equal("v1/Secret", secrets.kind)
      -- A real server may add its certificate authority to each namespace.
      assert.is_true(maps.objects >= 3)
      assert.is_true(maps.bytes > 6000, tostring(maps.bytes))
      assert.is_true(maps.parts.data > 0.7)
      assert.same({ { controller = "labels", roles = { "resource" } } }, maps.used_by)
      assert.equal('metadata = { "v1/ConfigMap" }', maps.saves[1].how)
      assert.equal("the script does not define data", maps.saves[1].why)
      assert.is_true(maps.saves[1].share < 0.3)
    end)

    it("knows the fields that the script keeps, and finds no savings there", function()
      local out, code = explain(write(LABELS_ONLY:gsub("reads =",
        'fields = { "metadata.annotations" }, reads =')), "--for 1s")
      assert.equal(0, code, out)
      assert.matches("v1/ConfigMap %(metadata.annotations; in explain%-spec%)", out)
      assert.is_nil(out:find "would keep")
    end)

    it("counts events", function()
      local path = write(LABELS_ONLY)
      local p = process.spawn { KUBELUA, "explain", path, "--for", "3s", "-o", "json", "--kubeconfig",
        s.kubeconfig }
      local n = 0
      while p:alive() do
        n = n + 1
        c:patch({ kind = "v1/ConfigMap", name = "big-1", namespace = NS }, { data = { n = tostring(n) } })
      end
      assert.equal(0, p:wait(30), p:log())
      assert.is_true(kube.json(p:log()).informers[1].events_per_second > 0, p:log())
    end)

    it("says what is missing, with status 1", function()
      local path = write 'return require "kubelua".controller { name = "x", resource = \z
        "explain.example.com/v1/Thing", reconcile = function() end }'
      local out, code = explain(path, "--for 1s --sync-timeout 3s")
      assert.equal(1, code, out)
      assert.matches("explain.example.com/v1/Thing is not there: ", out)
    end)
  end)
end)
