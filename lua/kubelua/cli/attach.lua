-- attach.lua - kubelua attach: the prompt of `kubelua shell` in a running process, by its control socket.

local common = require "kubelua.cli.common"
local control = require "kubelua.cli.control"
local core = require "kubelua.core"
local kube = require "kubelua"
local printer = require "kubelua.cli.printer"
local shell = require "kubelua.cli.shell"
local suggest = require "kubelua.suggest"
local why = require "kubelua.cli.why"

local M = {}

M.no_cluster = true
M.options = {
  { "--execute", "CODE", "run this and end (may be repeated)", type = "list", brief = "-e" },
  { "--no-history", nil, "keep no history of the input", type = "flag" },
  control.options[1], control.options[2],
}

local HELP = [[
  get(kind, name)  get(kind, ns, name)       an object of its caches
  list(kind, { namespace=, labels=, fields=, index=, value=, limit=, controller= })    several
  each(kind, { ... })                        the same, in a loop
  why(kind, key)                             why the key ran, or does not
  controllers()  informers()                 how they are
  reconcile(kind, key)                       the key runs now
  run(kind, key, { dry = true })             the same, but nothing is written, and what it would write is told
  pause(controller)  resume(controller)      no keys are taken; runs that are under way go on
  params(controller)  set_params(controller, { ... })    of the running generation, until the next one
  yaml(x)  json(x)  kube  _                  the text of anything, the library, the last result

  A line that begins with = or is an expression is printed. ^C ends what runs,
  ^D the prompt. What you do is in the log of the process.]]

local Attached = {}
Attached.__index = Attached

function Attached:prompt() return ("%d> "):format(self.about.pid) end

function Attached:greeting()
  local scripts = {}
  for i, script in ipairs(self.about("scripts") or {}) do scripts[i] = script end
  return ("kubelua %s, process %d: %s %s; help() lists the functions"):format(self.about.version,
    self.about.pid, self.about("command") or "", table.concat(scripts, " "))
end

local function is_word(x) return type(x) == "string" and x ~= "" end

local function key_of(a, b) return b ~= nil and a .. "/" .. b or a end

local LIST = { "namespace", "labels", "fields", "index", "value", "limit", "controller" }

local function query(kind, opts)
  if not is_word(kind) then error('list: name the kind: list("v1/ConfigMap")', 0) end
  local q = { kind = kind }
  for name, value in pairs(opts or {}) do
    local known = false
    for _, n in ipairs(LIST) do known = known or n == name end
    if not known then
      error(("list: there is no %s%s"):format(tostring(name), suggest.hint(tostring(name), LIST)), 0)
    end
    q[name] = value
  end
  if (q.index == nil) ~= (q.value == nil) then
    error("list: index and value go together: { index = \"node\", value = \"n1\" }", 0)
  end
  return q
end

local function items(view)
  local out = {}
  for i, o in ipairs(view.items) do out[i] = o end
  return out
end

local function text(x) return x == nil and "" or tostring(x) end

local function print_controllers(answer)
  local rows = {}
  for i, c in ipairs(answer.controllers) do
    local q = c.queue
    rows[i] = { c.name, text(c("resource")), c.state, text(c.generation), text(q.ready), text(q.delayed),
      text(q.running), text(q.failing), text(c("message")) }
  end
  printer.print({ { name = "NAME" }, { name = "RESOURCE" }, { name = "STATE" }, { name = "GENERATION" },
    { name = "READY" }, { name = "DELAYED" }, { name = "RUNNING" },
    { name = "FAILING" }, { name = "WHY" } }, rows, { headers = true })
end

local function print_informers(answer)
  local rows = {}
  for i, x in ipairs(answer.informers) do
    rows[i] = { x.kind, x.state, text(x.objects), text(x.bytes), text(x("lagSeconds")), text(x.relists),
      text(x("message")) }
  end
  printer.print({ { name = "KIND" }, { name = "STATE" }, { name = "OBJECTS" }, { name = "BYTES" },
    { name = "LAG" }, { name = "RELISTS" }, { name = "WHY" } }, rows,
    { headers = true })
end

local function print_run(report)
  local run = report("runs") and report.runs[1]
  if run then why.show_run(run) else print "  it did not end in time, or its object is gone" end
  for _, w in ipairs(report.writes) do
    local changes = w("changes") ~= "" and w("changes") or "nothing would change"
    print(("  would %s %s %s%s: %s"):format(w.verb, w.kind, w.key,
      w("subresource") and " (" .. w.subresource .. ")" or "", w("error") or changes))
  end
  if #report.writes == 0 then print "  it would write nothing" end
end

-- The argument that names a controller.
local function named(call, controller)
  if not is_word(controller) then
    error(('%s: name the controller: %s("NAME"); controllers() lists them'):format(call, call), 0)
  end
  return controller
end

-- The object that a call asks about, from (kind, "namespace/name") or (kind, namespace, name).
local function of(call, more, kind, a, b)
  if not (is_word(kind) and is_word(a)) then
    error(('%s: name the object: %s("v1/ConfigMap", "namespace/name"%s)'):format(call, call, more), 0)
  end
  return { kind = kind, key = key_of(a, b) }
end

local function globals(self)
  local p = self.process
  local g = setmetatable({}, { __index = _G })
  g._G, g.kube = g, kube
  function g.help() print(HELP) end
  function g.get(kind, a, b)
    if a == nil then return g.list(kind) end
    return p:get("/v1/object", of("get", "", kind, a, b))
  end
  function g.list(kind, opts) return items(p:get("/v1/list", query(kind, opts))) end
  function g.each(kind, opts)
    local all, i = g.list(kind, opts), 0
    return function()
      i = i + 1
      return all[i]
    end
  end
  function g.why(kind, a, b) why.show(p:get("/v1/why", of("why", "", kind, a, b)), 1) end
  function g.controllers() print_controllers(p:get "/v1/controllers") end
  function g.informers() print_informers(p:get "/v1/informers") end
  function g.reconcile(kind, a, b)
    p:post("/v1/reconcile", of("reconcile", "", kind, a, b))
  end
  function g.run(kind, a, b, c)
    local opts = type(b) == "table" and b or c
    if type(opts) ~= "table" or opts.dry ~= true then
      error("run(kind, key, { dry = true }) runs a key without writing; reconcile(kind, key) runs it \z
        for good", 0)
    end
    local what = of("run", ", { dry = true }", kind, a, type(b) == "string" and b or nil)
    what.dry = true
    print_run(p:post("/v1/run", what, { seconds = 0 }))
  end
  function g.pause(controller) p:post("/v1/pause", { controller = named("pause", controller) }) end
  function g.resume(controller) p:post("/v1/resume", { controller = named("resume", controller) }) end
  function g.params(controller) return p:get("/v1/params", { controller = named("params", controller) }) end
  function g.set_params(controller, params)
    named("set_params", controller)
    if type(params) ~= "table" and not core.is_view(params) then
      error("set_params: expected a table of params, { name = value }", 0)
    end
    return p:post("/v1/params", { controller = controller, params = params })
  end
  function g.yaml(x) return type(x) == "string" and core.yaml(x, "the text") or core.to_yaml(x) end
  function g.json(x) return core.encode(x, true) end
  for _, name in ipairs { "qty", "duration", "time", "try", "copy" } do g[name] = kube[name] end
  return g
end

-- Words of the prompt that begin with what was typed.
local function complete(self, head)
  local from, word = head:match "()([%a_][%w_]*)$"
  if not from or head:sub(1, from - 1):find "[%.:\"']$" then return {}, #head + 1 end
  local found = {}
  for name in pairs(self.globals) do
    if type(name) == "string" and name:sub(1, #word) == word and #name > 1 then found[#found + 1] = name end
  end
  table.sort(found)
  return found, from
end

function M.run(env)
  if #env.words > 0 then common.usage("takes no arguments, got %s (give code with -e)", env.words[1]) end
  local self = setmetatable({ env = env, process = control.connect(env) }, Attached)
  self.about = self.process:get "/v1/"
  self.globals = globals(self)
  self.terminal = shell.terminal(env, "attach-history", function(head) return complete(self, head) end)
  return shell.converse(self)
end

return M
