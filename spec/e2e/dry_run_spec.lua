-- dry_run_spec.lua - a dry run writes nothing, logs what it would write, and continues as if it had.

local controller = require "support.controller"
local process = require "support.process"
local widgets = require "support.widgets"

widgets.each("dry-run-spec", function(t)
  local function count(text)
    local _, n = t.process:log():gsub(text:gsub("%p", "%%%0"), "")
    return n
  end

  -- Every object of the namespace that the script might change, with its version.
  local function versions()
    local out = {}
    for _, kind in ipairs { t.KIND, "v1/ConfigMap", "v1/Secret", "events.k8s.io/v1/Event", "v1/Event",
      "coordination.k8s.io/v1/Lease" } do
      for o in t.client:each(kind, { namespace = t.ns }) do
        if o.metadata.name ~= "kube-root-ca.crt" then
          out[#out + 1] = ("%s %s %s"):format(kind, o.metadata.name, o.metadata.resourceVersion)
        end
      end
    end
    table.sort(out)
    return table.concat(out, "\n")
  end

  local ALL = [[
    owns = { "v1/ConfigMap" }, finalizer = "spec.kubelua.dev/f",
    finalize = function() end,
    reconcile = function(obj, ctx)
      local made = ctx:apply { kind = "v1/ConfigMap", name = "child", data = { n = tostring(obj.spec.n) } }
      local read = ctx:get("v1/ConfigMap", "child")
      local live = ctx.live:get("v1/ConfigMap", "child")
      local listed = ctx:list("v1/ConfigMap", { labels = { app = "x" } })
      ctx:patch(read, { metadata = { labels = { app = "x" } } })
      ctx:patch(ctx:get("v1/ConfigMap", "child"), function(d) d.data.more = "yes" end)
      local also = ctx:list("v1/ConfigMap", { labels = { app = "x" } })
      ctx:create { kind = "v1/Secret", name = "s", stringData = { password = "hunter2" } }
      local ok, err = pcall(ctx.create, ctx, { kind = "v1/Secret", name = "s" })
      ctx:delete("v1/ConfigMap", "old")
      local old = ctx.live:get("v1/ConfigMap", "old")
      ctx:event("Told", "something happened")
      ctx.log:info("saw %s %s %s %d %d %s %s %s", made.data.n, read.data.n, live.data.n, #listed, #also,
        also[1].data.more, tostring(ok or err.kind), tostring(old))
      return { status = { n = obj.spec.n } }
    end]]

  it("sends nothing, and reads its own writes", function()
    t.client:create { kind = "v1/ConfigMap", namespace = t.ns, name = "old", data = { a = "b" } }
    t.widget("w", { n = 1 })
    local before = versions()
    t.run(ALL, "--dry-run", "--leader-elect", "--metrics-bind-address", "127.0.0.1:0")
    t.says "a dry run: nothing is written by=client"
    t.says "saw 1 1 1 0 1 yes already_exists nil"
    t.says('verb=patch kind=dry-run-spec.kubelua.dev/v1/Widget object=' .. t.ns
      .. '/w subresource=status changes="status: none -> {\\"n\\":1}"')
    t.says(("controller=%s key=%s/w verb=apply kind=v1/ConfigMap object=%s"):format(t.name, t.ns, t.ns)
      .. '/child changes="data: none -> {\\"n\\":\\"1\\"}, metadata.ownerReferences')
    t.says('verb=patch kind=v1/ConfigMap object=' .. t.ns .. '/child changes="data.more: none -> \\"yes\\""')
    t.says('verb=delete kind=v1/ConfigMap object=' .. t.ns .. "/old changes=gone")
    t.says('metadata.finalizers: none -> [\\"spec.kubelua.dev/f\\"]')
    t.says "an Event was not sent"
    t.silent "hunter2"
    assert.equal(before, versions())
    local text = controller.metrics(t.process)
    assert.equal("0", text:match "\nkubelua_writes_total (%d+)")
    assert.is_true(tonumber(text:match "\nkubelua_writes_not_sent_total (%d+)") >= 6)
  end)

  it("logs a diff once while the object is unchanged, and again after a change", function()
    t.widget("x", { n = 5 })
    t.run([[reconcile = function(obj, ctx)
      runs[ctx.name] = (runs[ctx.name] or 0) + 1
      ctx.log:info("run %d of %s", runs[ctx.name], ctx.name)
      return { status = { n = obj.spec.n }, requeue_after = "20ms" }
    end]], "--dry-run")
    t.says "run 5 of x"
    assert.equal(1, count "/x subresource=status changes")
    t.client:patch(t.get "x", { spec = { n = 6 } })
    -- a run that was under way may have met the new object with what it made of the old one
    t.says [[n\":6}]]
    t.says "run 60 of x"
    assert.equal(1, count [[n\":6}]])
  end)

  it("with --dry-run=server includes the server's defaults and rejections", function()
    t.widget("w", { n = 1 })
    local before = versions()
    t.run([[owns = { "v1/Service" }, reconcile = function(obj, ctx)
      local made = ctx:create { kind = "v1/Secret", name = "s", stringData = { a = "b" } }
      ctx.log:info("the server says %s", made.data.a)
      ctx:patch(made, { metadata = { labels = { l = "1" } } })
      local ok, err = pcall(ctx.create, ctx, { kind = "v1/ConfigMap", name = "No_Name" })
      ctx.log:info("it refused: %s %s", tostring(ok), tostring(err.kind))
    end]], "--dry-run=server")
    t.says "the server says Yg=="
    t.says('kind=v1/Secret object=' .. t.ns .. '/s changes="data: (added), type: none -> \\"Opaque\\""')
    t.says('changes="metadata.labels: none -> {\\"l\\":\\"1\\"}"')
    t.says "it refused: false rejected"
    t.says "this write would fail"
    assert.equal(before, versions())
  end)

  it("rejects an unknown mode", function()
    local text, code = process.run(("%s run x.lua --dry-run=all --kubeconfig %s"):format(os.getenv "KUBELUA"
      or "build/kubelua", t.server.kubeconfig))
    assert.equal(2, code)
    assert.has_match("%-%-dry%-run must be client or server, not \"all\"", text)
  end)
end)
