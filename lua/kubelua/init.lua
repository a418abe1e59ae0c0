-- init.lua - require "kubelua": everything a script or a program calls, in one table.
--
-- Functions come from C (kubelua.core, annotated in types.lua) or from the files beside this one, which
-- load when first used. In a script's state there is neither the C nor the file of what only programs may
-- do (bindings/state/core.c, bindings/state/require.c).

local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

---@class kubelua
local kube = {}

-- ---------------------------------------------------------------- from C

local FROM_CORE = {
  "null", "array", "object", "uint64", "copy", "id", "encode", "decode", "yaml", "to_yaml", "is_error",
  "is_view", "dig", "pick", "milli_pick", "columns", "milli_columns", "milli_sums", "is_column", "places",
  "tally", "qty", "milli", "to_milli", "is_quantity", "duration", "format_duration", "time", "format_time",
  "selector",
}
for _, name in ipairs(FROM_CORE) do kube[name] = core[name] end

-- ---------------------------------------------------------------- errors

local function finish(ok, ...)
  if ok then return ... end
  if core.is_error(...) then return nil, ... end
  error((...), 0)
end

--- Calls fn(...). What the world did (a structured error) comes back as nil, err; a mistake in the code is
--- raised on.
---@generic T
---@param fn fun(...): T
---@return T?, kubelua.Error?
function kube.try(fn, ...) return finish(pcall(fn, ...)) end

-- ---------------------------------------------------------------- from files, on first use

local FROM_FILES = {
  kind_of = { "kubelua.object", "kind_of" }, from_template = { "kubelua.object", "from_template" },
  max = { "kubelua.quantity", "max" }, min = { "kubelua.quantity", "min" },
  requests = { "kubelua.quantity", "requests" }, limits = { "kubelua.quantity", "limits" },
  controller = { "kubelua.controller", "controller" },
  webhook = { "kubelua.webhook", "webhook" }, deny = { "kubelua.webhook", "deny" },
  extract = { "kubelua.extract", "extract" }, adopt_fields = { "kubelua.adopt", "adopt_fields" },
  equal = { "kubelua.tables", "equal" },
  merge = { "kubelua.tables", "merge" }, hash = { "kubelua.tables", "hash" },
  template = { "kubelua.tables", "template" }, cron = { "kubelua.tables", "cron" },
  merge_patch = { "kubelua.compute", "merge_patch" },
  strategic_patch = { "kubelua.compute", "strategic_patch" },
  name_problem = { "kubelua.compute", "name_problem" },
  generate_name = { "kubelua.compute", "generate_name" }, share = { "kubelua.compute", "share" },
  json = { "kubelua.core", "decode" }, to_json = { "kubelua.core", "encode" },
  base64_encode = { "kubelua.core", "base64_encode" }, base64_decode = { "kubelua.core", "base64_decode" },
  retry_on_conflict = { "kubelua.upsert", "retry_on_conflict" },
  set_controller = { "kubelua.owner", "set_controller" }, set_owner = { "kubelua.owner", "set_owner" },
  remove_owner = { "kubelua.owner", "remove_owner" }, controller_of = { "kubelua.owner", "controller_of" },
  is_owned_by = { "kubelua.owner", "is_owned_by" }, add_finalizer = { "kubelua.owner", "add_finalizer" },
  remove_finalizer = { "kubelua.owner", "remove_finalizer" },
  has_finalizer = { "kubelua.owner", "has_finalizer" },
  set_condition = { "kubelua.conditions", "set_condition" },
  find_condition = { "kubelua.conditions", "find_condition" },
  remove_condition = { "kubelua.conditions", "remove_condition" },
  shared = { "kubelua.shared", "shared" },
  counter = { "kubelua.metrics", "counter" }, gauge = { "kubelua.metrics", "gauge" },
  histogram = { "kubelua.metrics", "histogram" },
  crd = { "kubelua.crd", "crd" }, schema = { "kubelua.crd_schema", "schema" },
  retry = { "kubelua.result", "retry" }, fail = { "kubelua.result", "fail" },
}

-- What only programs have, and what a script does instead.
local FOR_PROGRAMS = {
  connect = { "kubelua.client", "connect", "a controller reaches the API through ctx, in its reconcile" },
  http = { "kubelua.web", "http", "a controller reaches other servers through ctx.http, in its reconcile" },
  recorder = { "kubelua.recorder", "recorder", "a controller has ctx:event and ctx:warn" },
  informers = { "kubelua.informers", "informers",
    "a controller script declares the kind in `watches` or `reads` and reads it with ctx:get and ctx:list" },
  manager = { "kubelua.manager", "manager",
    "a controller script runs in a manager: kubelua run, or a program" },
  certificate = { "kubelua.certificate", "certificate", "a controller has no access to keys and files" },
  certificate_request = { "kubelua.certificate", "certificate_request", "a controller has no keys" },
  ttl_store = { "kubelua.ttl", "ttl_store", "a controller stores state in ctx.memo and kube.shared" },
  testing = { "kubelua.testing", "testing", "a controller's tests are in a file beside it" },
}

if core.connect then
  for name, from in pairs(FOR_PROGRAMS) do FROM_FILES[name] = from end
end

local function names()
  local list = {}
  for name in next, kube do
    if not FROM_FILES[name] then list[#list + 1] = name end
  end
  for name in pairs(FROM_FILES) do list[#list + 1] = name end
  return list
end

setmetatable(kube, {
  -- Whoever looks at all of it sees what is loaded when it is asked for, too.
  __pairs = function()
    for name in pairs(FROM_FILES) do local _ = kube[name] end
    return next, kube, nil
  end,
  __index = function(_, name)
    local from = FROM_FILES[name]
    if from then
      local module = require(from[1])
      local value = module[from[2]]
      rawset(kube, name, value)
      return value
    end
    if FOR_PROGRAMS[name] then
      core.blame(("kube.%s is for standalone programs; %s"):format(name, FOR_PROGRAMS[name][3]))
    end
    core.blame(("kube.%s: unknown function%s"):format(tostring(name), suggest.hint(name, names())))
  end,
  __newindex = function(_, name)
    core.blame(("kube.%s: the kubelua table is shared by all code in this state and cannot be \z
      changed"):format(tostring(name)))
  end,
})

return kube
