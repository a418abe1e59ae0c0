-- reconcile.lua - measures what ctx offers, inside a reconcile; the table goes into a ConfigMap, from where
-- show.lua prints it.

local kube = require "kubelua"
local measure = require "measure"

local POD = "v1/Pod"

local function touch() end

local function rows(o, ctx)
  local m = o.metadata
  local key = m.namespace .. "/" .. m.name
  local all, few = #ctx:list(POD), #ctx:list(POD, { index = "node", value = o.spec.nodeName })
  return measure.rows {
    { "ctx.key", function(n) for _ = 1, n do local _ = ctx.key end end },
    { "ctx.params", function(n) for _ = 1, n do local _ = ctx.params end end },
    { "ctx:get(kind, key)", function(n) for _ = 1, n do ctx:get(POD, key) end end },
    { "ctx:get(kind, namespace, name)", function(n)
      for _ = 1, n do ctx:get(POD, m.namespace, m.name) end
    end },
    { "ctx:get(kind, key), absent", function(n) for _ = 1, n do ctx:get(POD, "none") end end },
    { "ctx:get(kind, key) and ten fields of it", function(n)
      for _ = 1, n do
        local p = ctx:get(POD, key)
        local pm, s, st = p.metadata, p.spec, p.status
        touch(pm.name, pm.namespace, pm.labels.app, s.nodeName, s.priority, s.serviceAccountName,
          s.containers[1].image, st.phase, st.podIP,
          st.qosClass)
      end
    end },
    { ("#ctx:list(kind, {index}), %d objects"):format(few), function(n)
      for _ = 1, n do local _ = #ctx:list(POD, { index = "node", value = o.spec.nodeName }) end
    end },
    { ("ctx:each(kind, {index}), reading a field, per object (%d)"):format(few), function(n)
      for _ = 1, n do
        for p in ctx:each(POD, { index = "node", value = o.spec.nodeName }) do local _ = p.spec.nodeName end
      end
    end, few },
    { ("#ctx:list(kind), per object (%d)"):format(all), function(n)
      for _ = 1, n do local _ = #ctx:list(POD) end
    end, all },
    { ("ctx:each(kind), per object (%d)"):format(all), function(n)
      for _ = 1, n do for p in ctx:each(POD) do local _ = p end end
    end, all },
    { ("ctx:each(kind), reading a field, per object (%d)"):format(all), function(n)
      for _ = 1, n do for p in ctx:each(POD) do local _ = p.spec.nodeName end end
    end, all },
    { ("ctx:list(kind, {labels}), per object looked at (%d)"):format(all), function(n)
      for _ = 1, n do ctx:list(POD, { labels = { app = "none" } }) end
    end, all },
    { "ctx:now()", function(n) for _ = 1, n do ctx:now() end end },
    { "ctx:age(timestamp)", function(n) for _ = 1, n do ctx:age(m.creationTimestamp) end end },
    { "ctx.log:debug, not shown", function(n) for _ = 1, n do ctx.log:debug("pod %s", m.name) end end },
  }
end

local done

return kube.controller {
  name = "calls", resource = POD, workers = 1, timeout = "5m",
  indexes = { node = "spec.nodeName" },
  reconcile = function(o, ctx)
    if done then return end
    done = true
    ctx:apply { kind = "v1/ConfigMap", namespace = "default", name = "calls", data = { rows = rows(o, ctx) } }
  end,
}
