-- fields_spec.lua - `fields` and `managed_fields` of a controller, on both API servers.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

servers.each(function(server_name, start)
  describe("a controller that keeps only some fields, against " .. server_name, function()
    local client, ns, run
    local begin = controller.frame("fields", start, function(_, c, n) client, ns = c, n end)

    -- Runs a controller of ConfigMaps; returns the text of its report(ctx, text).
    local function asked(spec, body, ...)
      run = begin(([[
        local kube = require "kubelua"
        local function report(ctx, text)
          ctx:apply { kind = "v1/Secret", name = "report", stringData = { text = tostring(text) } }
        end
        return kube.controller {
          name = "fields-%s", resource = "v1/ConfigMap", %s,
          reconcile = function(obj, ctx)
            if obj.metadata.name ~= "it" then return end
            local ok, why = pcall(function() %s end)
            if not ok then report(ctx, why) end
          end,
        }]]):format(ns, spec, body), "--namespace", ns, "--metrics-bind-address", "127.0.0.1:0", ...)
    end

    local function reported()
      local seen = wait.until_true(20, "the report", function()
        local o = client:get("v1/Secret", ns, "report")
        return o and o("data.text")
      end)
      -- Secrets come in base 64.
      local out = process.run(("printf %%s %s | base64 -d"):format(process.quote(seen)))
      return out
    end

    local function make(data, annotations)
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "it", data = data,
        annotations = annotations, labels = { l = "x" } }
    end

    local function kinds()
      local found = {}
      for kind in controller.metrics(run):gmatch '\nkubelua_informer_synced{kind="([^"]+)"}' do
        found[#found + 1] = kind
      end
      return found
    end

    it("has those, the standard metadata, and the fields that the cache uses", function()
      make({ a = "1", b = "2", c = "3" }, { note = "n" })
      asked([[fields = { "data.a" }, indexes = { c = "data.c" }, when = { "annotations" }]],
        [[report(ctx, table.concat({ obj.data.a, obj.data.c, obj.metadata.annotations.note,
          obj.metadata.labels.l,
          tostring(obj("data.b")), obj.metadata.uid and "uid",
          #ctx:list("v1/ConfigMap", { index = "c", value = "3" }) }, " "))]])
      assert.equal("1 3 n x nil uid 1", reported())
      assert.same({ "v1/ConfigMap (data.a, data.c, metadata.annotations)" }, kinds())
    end)

    it("gets an error when it reads a dropped field", function()
      make { a = "1", b = "2" }
      asked([[fields = { "data.a" }]], [[report(ctx, obj.data.b)]])
      local why = reported()
      assert.truthy(why:find("data.b of ConfigMap " .. ns .. "/it was not kept in the cache", 1, true), why)
      assert.truthy(why:find("keep only these of v1/ConfigMap: data.a; add what you need", 1, true), why)
    end)

    it("reads absent fields of kept parts as nil", function()
      make { a = "1" }
      asked([[fields = { "data.a" }]], [[
        local whole = ctx.live:get("v1/ConfigMap", "it")
        report(ctx, tostring(whole.data.b) .. tostring(whole.metadata.annotations)
          .. tostring(whole.metadata.managedFields ~= nil))]])
      assert.equal("nilniltrue", reported())
    end)

    it("can patch, but not update", function()
      make { a = "1", b = "2" }
      asked([[fields = { "data.a" }]], [[
        ctx:patch(obj, function(o) o.data.a = "3" end)
        ctx:update(obj)]])
      local why = reported()
      assert.truthy(why:find("ctx:update: of v1/ConfigMap this controller keeps only some fields (data.a)", 1,
        true), why)
      assert.truthy(why:find("use ctx:patch", 1, true), why)
      local o = client:get("v1/ConfigMap", ns, "it")
      assert.same({ "3", "2" }, { o.data.a, o.data.b })
    end)

    it("cannot patch a list of partially kept items, unless it has read the whole", function()
      client:create { kind = "v1/Service", namespace = ns, name = "svc",
        spec = { ports = { { name = "http", port = 80 }, { name = "more", port = 81 } } } }
      make { a = "1" }
      asked([[reads = { "v1/Service" }, fields = { "data", ["v1/Service"] = { "spec.ports.port" } }]], [[
        local function change(o) o.spec.ports[1].port = 8080 end
        local ok, why = pcall(ctx.patch, ctx, ctx:get("v1/Service", "svc"), change)
        ctx:patch(ctx.live:get("v1/Service", "svc"), change)
        report(ctx, why)]])
      local why = reported()
      assert.truthy(why:find("ctx:patch: the function changed the list spec.ports, whose items are cached \z
        with only some fields", 1, true), why)
      local svc = client:get("v1/Service", ns, "svc")
      assert.same({ "http", 8080, "more", 81 }, { svc.spec.ports[1].name, svc.spec.ports[1].port,
        svc.spec.ports[2].name, svc.spec.ports[2].port })
    end)

    it("takes other fields with the next generation of its script", function()
      make { a = "1", b = "2" }
      local function script(fields, text)
        return ([[
          local kube = require "kubelua"
          return kube.controller { name = "fields-%s", resource = "v1/ConfigMap", fields = { %s },
            reconcile = function(obj, ctx)
              if obj.metadata.name == "it" then
                ctx:apply { kind = "v1/Secret", name = "report", stringData = { text = %s } }
              end
            end }]]):format(ns, fields, text)
      end
      run = begin(script('"data.a"', "obj.data.a"), "--namespace", ns, "--metrics-bind-address",
        "127.0.0.1:0")
      assert.equal("1", reported())
      process.write(run.script_path, script('"data.a", "data.b"', "obj.data.a .. obj.data.b"))
      wait.until_true(30, "the new generation's report", function() return reported() == "12" end)
      wait.until_true(20, "the old cache to go", function() return #kinds() == 1 end)
      assert.same({ "v1/ConfigMap (data.a, data.b)" }, kinds())
    end)

    it("shares a larger cache, or has its own", function()
      make { a = "1" }
      run = begin(([[
        local kube = require "kubelua"
        local function one(name, spec)
          spec.name, spec.resource, spec.reconcile = name .. "-%s", "v1/ConfigMap", function() end
          return kube.controller(spec)
        end
        return { one("all", {}), one("some", { fields = { "data.a" } }),
          one("managed", { managed_fields = true }) }
      ]]):format(ns), "--namespace", ns, "--metrics-bind-address", "127.0.0.1:0")
      wait.until_true(20, "both caches", function() return #kinds() == 2 end)
      assert.same({ "v1/ConfigMap", "v1/ConfigMap (with managedFields)" }, kinds())
    end)
  end)
end)
