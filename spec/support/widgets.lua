-- widgets.lua - a custom kind for specs whose scripts reconcile something: objects with free spec and status
-- in a namespace of the test, and reports of the script in ConfigMaps.
--
--   widgets.each("results-spec", function(t)              -- on both servers; t.ns is new for every test
--     it("...", function()
--       t.widget("w", { n = 1 })
--       t.run([[reconcile = function(obj, ctx) report(ctx, obj.spec.n) end]])
--       t.reported("w", "1")
--     end)
--   end)

local busted = require "busted"
local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local M = {}

local SECONDS = 30

local CRD = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%s.kubelua.dev}
spec:
  group: %s.kubelua.dev
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [type, status, reason, message, lastTransitionTime]
                  properties:
                    type: {type: string}
                    status: {type: string, enum: ["True", "False", Unknown]}
                    reason: {type: string, minLength: 1}
                    message: {type: string}
                    lastTransitionTime: {type: string, format: date-time}
%s
]]
local OBSERVED = "                    observedGeneration: {type: integer, format: int64}"

-- A script reports to its spec with report(ctx, text, name).
local SCRIPT = [[
local kube = require "kubelua"
local runs = {}
local function report(ctx, text, name)
  ctx:create_or_patch({ kind = "v1/ConfigMap", name = "report-" .. (name or ctx.name) },
    function(m) m.data.text = tostring(text) end)
end
do local _, _ = runs, report end
return kube.controller { name = "%s", resource = "%s", %s }
]]

--- Defines specs for both servers. opts: group (a word for the kind's API group), plain = true: conditions
--- without observedGeneration.
---@param group string
---@param define fun(t: table)
function M.each(group, define, opts)
  opts = opts or {}
  servers.each(function(server_name, start)
    busted.describe(group .. " against " .. server_name, function()
      local t = { KIND = group .. ".kubelua.dev/v1/Widget" }
      local run

      busted.lazy_setup(function()
        local crd = CRD:format(group, group, opts.plain and "" or OBSERVED)
        t.server = start { crds = { process.write(process.tmpname ".yaml", crd) } }
        t.client = controller.client(t.server)
      end)
      busted.lazy_teardown(function() if t.server then t.server:stop() end end)
      busted.before_each(function()
        t.ns = controller.namespace(t.client, group)
        t.name = group .. "-" .. t.ns:gsub("%D", "")
      end)
      busted.after_each(function()
        local it_ran = run
        run = nil
        if it_ran then controller.finish(it_ran) end
      end)

      --- The text of a script with these lines in its table.
      function t.script(lines, kind) return SCRIPT:format(t.name, kind or t.KIND, lines) end

      --- Runs the script; further arguments go to the command line.
      function t.run(lines, ...)
        run = controller.start(t.server, t.script(lines), "--namespace", t.ns, ...)
        t.process = run
        return run
      end

      --- Ends the run, so that the next one may start.
      function t.finish()
        controller.finish(run)
        run = nil
      end

      function t.widget(name, spec, more)
        local o = { kind = t.KIND, namespace = t.ns, name = name, spec = spec or {} }
        for key, value in pairs(more or {}) do o[key] = value end
        return t.client:create(o)
      end

      function t.get(name) return t.client:get(t.KIND, t.ns, name) end

      --- Waits until look(the widget, or nil) is true; returns the widget.
      function t.await(name, what, look)
        local seen
        local ok = pcall(wait.until_true, SECONDS, what, function()
          seen = t.get(name)
          return look(seen)
        end)
        if not ok then
          error(("%s: %s is %s; the log:\n%s"):format(what, name, tostring(seen), run and run:log() or ""), 2)
        end
        return seen
      end

      function t.gone(name) t.await(name, name .. " is gone", function(o) return o == nil end) end

      --- Waits for the script's report, and returns it.
      function t.report(name)
        local o = t.client:get("v1/ConfigMap", t.ns, "report-" .. name)
        return o and o("data.text")
      end

      function t.reported(name, want)
        local seen
        local ok = pcall(wait.until_true, SECONDS, "a report", function()
          seen = t.report(name)
          return seen and (want == nil or seen == want)
        end)
        if not ok then
          error(("the script reported %s%s; the log:\n%s"):format(tostring(seen),
            want and ", wanted " .. want or "", run and run:log() or ""), 2)
        end
        return seen
      end

      function t.says(text) run:wait_for_log(SECONDS, text) end

      function t.silent(text)
        local log = run:log()
        if log:find(text, 1, true) then error(("the log says %q:\n%s"):format(text, log), 2) end
      end

      define(t)
    end)
  end)
end

return M
