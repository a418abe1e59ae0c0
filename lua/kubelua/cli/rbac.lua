-- rbac.lua - kubelua rbac: the smallest role that is sufficient for scripts.

local budget = require "kubelua.reader.budget"
local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local deployment = require "kubelua.deployment"
local rbac = require "kubelua.rbac"
local recorded = require "kubelua.rbac_recorded"
local source = require "kubelua.rbac_source"

local M = {}

M.no_cluster = true
M.options = {
  { "--name", "NAME", "name of the roles, bindings and service account (the first controller's)" },
  { "--namespace", "NAME", "namespace of the service account and leases (default)", brief = "-n" },
  { "--watch-namespace", "NAME", "for kubelua run --namespace NAME: a Role there instead of a ClusterRole" },
  { "--bind", nil, "also print a ServiceAccount, bindings, and the rules of the process itself: Events, \z
    watches for new kinds", type = "flag" },
  { "--leader-elect", nil, "for kubelua run --leader-elect", type = "flag" },
  { "--install-crds", nil, "for kubelua run --install-crds", type = "flag" },
  { "--shards", nil, "for kubelua run --shards", type = "flag" },
  { "--webhook-service", "NS/NAME",
    "as given to kubelua run, if scripts have webhooks: their certificates are in a Secret beside it" },
  { "--webhook-secret", "NS/NAME", "as given to kubelua run: another name for that Secret" },
  { "--record", nil, "run the tests beside the scripts, and include their requests", type = "flag" },
  { "--recorded", "FILE", "include the requests in a recording of kubelua run or dev --record FILE (may \z
    be repeated)", type = "list" },
  { "--crds", "FILE|DIR", "definitions of the kinds, for their plurals and for --record (may be repeated)",
    type = "list" },
  { "--output", "FORMAT", "yaml, json, values: the chart's `rules`, or manifests: all that a cluster needs \z
    to run the scripts, with --bind and --leader-elect (yaml)", brief = "-o",
    values = "yaml json values manifests" },
}

-- ---------------------------------------------------------------- needs

-- Where a script's requests for a kind go, which any of its controllers and webhooks may make: namespaces,
-- or false for all.
local function namespaces_of(kind, list, hooks, watched)
  local all = {}
  for _, h in ipairs(hooks) do
    local here = h.asked_in or watched
    if not here then return false end
    for _, ns in ipairs(here) do all[ns] = true end
  end
  for _, c in ipairs(list) do
    local here = rbac.namespaces_of(c, kind, watched)
    if not here then return false end
    for _, ns in ipairs(here) do all[ns] = true end
  end
  local out = {}
  for ns in pairs(all) do out[#out + 1] = ns end
  table.sort(out)
  return out
end

-- Whether what is not known may be something that the script makes.
local function of_source(program, watched, add, notes)
  local list = program.controllers
  local resources, makes = {}, false
  for _, c in ipairs(list) do resources[#resources + 1] = c.resource end
  local whole = source.read_all(program.sources, resources, function(need, path)
    need.namespaces = namespaces_of(need.kind, list, program.webhooks, watched)
    need.why = ("%s:%d"):format(path, need.line)
    add(need)
  end, function(path, line, what)
    makes = makes or what:find "^ctx:apply" or what:find "^ctx:create" or what:find "^`apply`"
    notes[#notes + 1] = ("%s:%d: %s: the kind is not a literal there"):format(path, line, what)
  end)
  if whole then return makes end
  notes[#notes + 1] = ("%s: its text is too large to be read to the end: that takes more than %d s"):format(
    program.path, budget.SECONDS)
  return true
end

-- Runs the tests beside the scripts. Their requests by controller.
local function record(scripts, report)
  local test, testing = require "kubelua.cli.test", require "kubelua.testing"
  local calls = {}
  testing.record(function(call, client)
    if call.verb == "http" then return end
    local ok, r = pcall(client.resource, client, call.kind)
    if ok then call.kind = common.kind_text(r) end
    calls[#calls + 1] = call
  end)
  local n = test.run_files(test.files(scripts), {}, report)
  testing.record(nil)
  return calls, n
end

local Quiet = {}
Quiet.__index = Quiet
function Quiet.file() end
function Quiet:tell(node, status, problem)
  if status == "failed" then
    common.complain(self.env, "a test failed, so its requests are incomplete: %s: %s",
      node.name or "(the file)", problem.message)
  end
end
function Quiet.finish() end

local function of_records(env, by_name, add)
  local calls, n = record(env.words, setmetatable({ env = env }, Quiet))
  for _, call in ipairs(calls) do
    local at = by_name[call.controller]
    if at and call.kind then
      rbac.of_call(call, at(call.kind), "seen in a test of " .. call.controller, add)
    end
  end
  return n
end

-- Requests of recorded runs. Their discovery adds kinds.
local function of_recordings(env, by_name, kinds, add)
  for _, path in ipairs(env.options.recorded or {}) do
    local calls, known = recorded.calls(path)
    local others = {}
    for kind, r in pairs(known) do kinds[kind] = r end
    for _, call in ipairs(calls) do
      local at = by_name[call.controller]
      if at then
        rbac.of_call(call, at(call.kind), "seen in a run of " .. call.controller, add)
      else
        others[call.controller] = true
      end
    end
    for name in pairs(others) do
      common.complain(env, "%s: controller %s is in none of these scripts, so its requests are left \z
        out", path,
        name)
    end
  end
end

-- The Secret of the webhooks' certificates, as `kubelua run` finds it. Without a word of it there may be
-- none.
local function certificates_of(o, add, notes)
  local word = o.webhook_secret and "--webhook-secret" or "--webhook-service"
  local text = o.webhook_secret or o.webhook_service
  if not text then
    notes.secret = "the Secret with the webhooks' certificates is unknown: --webhook-service or \z
      --webhook-secret, as given to kubelua run, adds its rules"
    return
  end
  local namespace, name = text:match "^([^/:]+)/([^/:]+)$"
  if not o.webhook_secret then
    namespace, name = text:match "^([^/:]+)/([^/:]+):?%d*$"
    name = name and name .. "-webhook-tls"
  end
  if not name then common.usage("%s: %q must be NAMESPACE/NAME", word, text) end
  rbac.of_certificates(namespace, name, add)
end

-- Needs of scripts: from their tables and sources. Returns the first name, for each controller the
-- namespaces of its requests for a kind, and what is not known.
local function needs_of(programs, o, add)
  local watched = o.watch_namespace and { o.watch_namespace }
  local notes, by_name, first, own_leases, hooks = { reached = {} }, {}, nil, {}, false
  for _, program in ipairs(programs) do
    local list = program.controllers
    for _, c in ipairs(list) do
      first = first or c.manager or c.name
      rbac.of_spec(c, add, watched)
      if o.shards then rbac.of_shared_spec(c, add, watched) end
      by_name[c.name] = function(kind) return rbac.namespaces_of(c, kind, watched) end
      for _, rule in ipairs(c.http or {}) do
        table.insert(notes.reached, ("%s reaches %s, with --allow-http: roles do not cover \z
          that"):format(c.name,
          rule:match "%S+"))
      end
      if c.leader == "own" then own_leases[#own_leases + 1] = first .. "-" .. c.name end
    end
    for _, h in ipairs(program.webhooks) do
      first, hooks = first or h.name, true
      rbac.of_webhook(h, add, watched)
      by_name[h.name] = by_name[h.name] or function() return h.asked_in or watched or false end
    end
    if of_source(program, watched, add, notes) then
      for _, c in ipairs(list) do rbac.of_owned(c, add, watched) end
    end
  end
  if not first then error("no controller or webhook is in these scripts", 0) end
  if o.bind then rbac.of_process(add) end
  if o.leader_elect then
    for _, name in ipairs { first, table.unpack(own_leases) } do
      rbac.of_election(name, o.namespace or "default", add)
    end
  end
  if o.install_crds then
    local names = {}
    for _, program in ipairs(programs) do
      for _, definition in ipairs(program.crds or {}) do names[#names + 1] = definition.metadata.name end
    end
    if #names > 0 then rbac.of_definitions(names, add) end
  end
  if hooks then certificates_of(o, add, notes) end
  if o.shards then rbac.of_shards(o.namespace or "default", add) end
  return first, by_name, notes
end

--- The objects for scripts, without what tests do: for `kubelua init`.
function M.objects_of(env, scripts, o, client)
  local needs = {}
  local first = needs_of(common.programs(env, scripts), o, function(need) needs[#needs + 1] = need end)
  return rbac.objects(rbac.rules(needs, rbac.resolver(client)),
    { name = o.name or first, namespace = o.namespace or "default", bind = o.bind })
end

-- ---------------------------------------------------------------- the command

local function print_json(objects)
  local items = {}
  for i, entry in ipairs(objects) do items[i] = entry.object end
  print(core.encode(core.value({ apiVersion = "v1", kind = "List", items = core.array(items) }, "the list"),
    true))
end

local WRITERS = { yaml = rbac.yaml, values = rbac.values }

local function print_yaml(env, objects, notes, tests, write)
  local runs = env.options.recorded and " and recorded runs" or ""
  local head = { ("kubelua rbac %s: from the tables and the source%s"):format(table.concat(env.words, " "),
    tests and (", and from %d tests%s"):format(tests.passed + tests.failed, runs) or runs ~= "" and runs
    or " (--record adds the requests of its tests)") }
  for _, note in ipairs(notes) do head[#head + 1] = note end
  if #notes > 0 and not tests and runs == "" then
    head[#head + 1] = "so a rule may be missing: --record finds the requests of tests, or add it yourself"
  end
  for _, note in ipairs(notes.reached) do head[#head + 1] = note end
  head[#head + 1] = notes.secret
  io.write(write(objects, head))
end

-- What `-o manifests` adds to rights: the scripts, their params, a Service. The options say so before the
-- rights are made.
local function deployed(programs, o)
  local name, hooks, scripts = o.name, false, {}
  for i, program in ipairs(programs) do
    local first = program.controllers[1]
    name = name or first and (first.manager or first.name) or program.webhooks[1] and program.webhooks[1].name
    hooks = hooks or #program.webhooks > 0
    scripts[i] = program.path:match "[^/]*$"
  end
  if not name then error("no controller or webhook is in these scripts", 0) end
  o.bind, o.leader_elect = true, true
  o.name, o.namespace = name, o.namespace or "default"
  if hooks then o.webhook_secret = deployment.secret_of(name, o.namespace) end
  return { name = name, namespace = o.namespace, scripts = scripts, sources = deployment.sources(programs),
    params = deployment.params(programs), webhooks = hooks }
end

function M.run(env)
  local o = env.options
  local format = o.output or "yaml"
  if #env.words == 0 then common.usage "name at least one script: kubelua rbac SCRIPT.lua" end
  env.words = common.scripts(env.words)
  local needs = {}
  local function add(need) needs[#needs + 1] = need end
  local programs = common.programs(env, env.words)
  local d = format == "manifests" and deployed(programs, o)
  local first, by_name, notes = needs_of(programs, o, add)
  if d and d.params then rbac.of_params(d.namespace, d.name .. "-params", add) end
  local kinds = {}
  local tests = o.record and of_records(env, by_name, add)
  of_recordings(env, by_name, kinds, add)
  -- An API server of our own knows the plurals of built-in kinds, and of definitions.
  local stage = core.stage(0)
  for _, path in ipairs(o.crds or {}) do stage:load_path(path) end
  for _, program in ipairs(programs) do
    for _, definition in ipairs(program.crds or {}) do stage:load(definition) end
  end
  local client = require "kubelua.client".connect { server = stage:url(), cache_dir = false,
    on_warning = "none" }
  local objects = rbac.objects(rbac.rules(needs, rbac.resolver(client, kinds)),
    { name = o.name or first, namespace = o.namespace or "default", bind = o.bind })
  if format == "json" then
    print_json(objects)
  else
    print_yaml(env, objects, notes, tests, WRITERS[format] or function(list, head)
      d.objects, d.lease = list, first
      return deployment.yaml(d, head)
    end)
  end
  return tests and tests.failed > 0 and 1 or 0
end

return M
