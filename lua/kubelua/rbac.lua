-- rbac.lua - what controllers must be allowed to do, as rules of roles.
--
--   needs, each { kind, verbs, subresource, namespaces, why }
--     --resolved and merged--> rules, sorted --written--> YAML with the reasons
--
-- A need comes from a controller's table, from its source (rbac_source.lua), or from requests that were
-- seen. Namespaces false: all.

local core = require "kubelua.core"

local M = {}

-- The order in which people read verbs: reading before changing.
local ORDER = { get = 1, list = 2, watch = 3, create = 4, update = 5, patch = 6, delete = 7,
  deletecollection = 8 }

-- ---------------------------------------------------------------- from the table of a controller

-- The namespaces in which a controller looks for a kind, if its `selector` names them.
local function selected(c, kind)
  for _, s in ipairs(c.selects or {}) do
    if s.kind == kind then return s.namespaces end
  end
end

--- Where a controller's requests for a kind go: namespaces, or false for all.
---@param c kubelua.Controller
---@param kind string
---@param watch_namespaces string[]?  of --namespace
---@return string[]|false
function M.namespaces_of(c, kind, watch_namespaces)
  return selected(c, kind) or c.namespaces or watch_namespaces or false
end

--- What follows from a controller's table alone.
---@param c kubelua.Controller  or what kube.testing.pure has under its name
---@param add fun(need: table)
---@param watch_namespaces string[]?  of --namespace
function M.of_spec(c, add, watch_namespaces)
  local namespaces = c.namespaces or watch_namespaces or false
  local function read(kind, why)
    add { kind = kind, verbs = { "list", "watch" }, namespaces = M.namespaces_of(c, kind, watch_namespaces),
      why = ("%s of %s"):format(why, c.name) }
  end
  read(c.resource, "resource")
  for _, w in ipairs(c.watches or {}) do read(w.kind, "watches") end
  for _, o in ipairs(c.owns or {}) do read(type(o) == "table" and o.kind or o, "owns") end
  for _, kind in ipairs(c.reads or {}) do read(kind, "reads") end
  for _, i in ipairs(c.indexes or {}) do
    if i.kind ~= c.resource then read(i.kind, "indexes") end
  end
  if c.finalize then
    add { kind = c.resource, verbs = { "get", "patch" }, namespaces = namespaces,
      why = ("finalizer of %s"):format(c.name) }
  end
  if #(c.owns or {}) > 0 then
    add { kind = c.resource, subresource = "finalizers", verbs = { "update" }, namespaces = namespaces,
      why = ("owner references of %s, where the admission plugin OwnerReferencesPermissionEnforcement is on \z
        (OpenShift)"):format(c.name) }
  end
  return namespaces
end

--- The rights to create what a controller owns, where the source does not say which kinds it creates.
---@param c kubelua.Controller
---@param add fun(need: table)
---@param watch_namespaces string[]?
function M.of_owned(c, add, watch_namespaces)
  for _, o in ipairs(c.owns or {}) do
    local kind = type(o) == "table" and o.kind or o
    add { kind = kind, verbs = { "create", "patch" },
      namespaces = M.namespaces_of(c, kind, watch_namespaces),
      why = ("objects that %s makes and owns"):format(c.name) }
  end
end

--- The further rights for --shards: replicas with namespaces of their own look up which namespaces exist.
---@param c kubelua.Controller
---@param add fun(need: table)
---@param watch_namespaces string[]?
function M.of_shared_spec(c, add, watch_namespaces)
  local own = c.shard_own or type(c.shard) == "table" and c.shard.caches == "own"
  if own and not (c.namespaces or watch_namespaces) then
    add { kind = "v1/Namespace", verbs = { "list", "watch" }, namespaces = false,
      why = ("namespaces of %s, divided among replicas"):format(c.name) }
  end
end

--- What a process takes for itself: Events (ctx:event, news of generations and of leadership), and news of
--- kinds that are not there yet.
function M.of_process(add)
  add { kind = "events.k8s.io/v1/Event", verbs = { "create", "patch" }, namespaces = false,
    why = "Events, of scripts and about the process" }
  for _, kind in ipairs { "apiextensions.k8s.io/v1/CustomResourceDefinition",
    "apiregistration.k8s.io/v1/APIService" } do
    add { kind = kind, verbs = { "list", "watch" }, namespaces = false,
      why = "whether missing kinds have appeared" }
  end
end

--- The rights for definitions that scripts define, with --install-crds.
function M.of_definitions(names, add)
  add { kind = "apiextensions.k8s.io/v1/CustomResourceDefinition", verbs = { "create" }, namespaces = false,
    why = "definitions of scripts" }
  add { kind = "apiextensions.k8s.io/v1/CustomResourceDefinition", verbs = { "patch" }, names = names,
    namespaces = false, why = "definitions of scripts" }
end

--- The rights for the Lease of an election, in its namespace.
function M.of_election(name, namespace, add)
  add { kind = "coordination.k8s.io/v1/Lease", verbs = { "create" }, namespaces = { namespace },
    why = "leader election" }
  add { kind = "coordination.k8s.io/v1/Lease", verbs = { "get", "list", "watch", "update" }, names = { name },
    namespaces = { namespace }, why = "leader election" }
end

--- What replicas need that share keys: their Leases have the names of replicas, and who is silent is
--- deleted by the others.
function M.of_shards(namespace, add)
  add { kind = "coordination.k8s.io/v1/Lease", verbs = { "get", "list", "watch", "create", "update",
    "delete" }, namespaces = { namespace }, why = "shards" }
end

--- What a webhook's configuration takes, which its process keeps by apply and deletes when the script has
--- no such webhook any more.
---@param h kubelua.Webhook
---@param add fun(need: table)
---@param watch_namespaces string[]?  of --namespace
function M.of_webhook(h, add, watch_namespaces)
  for _, kind in ipairs(h.reads or {}) do
    add { kind = kind, verbs = { "list", "watch" }, namespaces = watch_namespaces or false,
      why = ("reads of %s"):format(h.name) }
  end
  if h.converts then
    add { kind = "apiextensions.k8s.io/v1/CustomResourceDefinition", verbs = { "get", "patch" },
      names = { h.name }, namespaces = false, why = ("conversion of %s"):format(h.name) }
    return
  end
  add { kind = ("admissionregistration.k8s.io/v1/%sWebhookConfiguration"):format(h.mutating and "Mutating"
    or "Validating"),
    verbs = { "create", "patch", "delete" }, names = { h.name }, namespaces = false,
    why = ("configuration of %s"):format(h.name) }
end

--- The rights for the Secret in which replicas share the certificates of webhooks.
function M.of_certificates(namespace, name, add)
  add { kind = "v1/Secret", verbs = { "create" }, namespaces = { namespace },
    why = "certificates of webhooks" }
  add { kind = "v1/Secret", verbs = { "get", "update" }, names = { name }, namespaces = { namespace },
    why = "certificates of webhooks" }
end

--- The rights for the ConfigMap of params, which `kubelua run --params configmap/NS/NAME` watches.
function M.of_params(namespace, name, add)
  add { kind = "v1/ConfigMap", verbs = { "get", "list", "watch" }, names = { name },
    namespaces = { namespace }, why = "params" }
end

-- Our verb -> the authorizer's verbs. An apply creates an absent object.
local RBAC = {
  apply = { "create", "patch" }, create = { "create" }, update = { "update" }, patch = { "patch" },
  delete = { "delete" }, deletecollection = { "deletecollection" },
  get = { "get" }, list = { "list" }, watch = { "watch" },
}

--- A request that was seen (kube.testing's t:calls()) as needs. After a conflict a patched object is read
--- again.
function M.of_call(call, namespaces, why, add)
  if call.verb == "http" then return end          -- to a server that asks no authorizer of ours
  add { kind = call.kind, verbs = RBAC[call.verb], subresource = call.subresource, namespaces = namespaces,
    why = why }
  local event = call.kind:find "/Event$"
  if call.verb == "patch" and not event then
    add { kind = call.kind, verbs = { "get" }, namespaces = namespaces, why = why }
  end
  -- its series
  if call.verb == "create" and event then
    add { kind = call.kind, verbs = { "patch" }, namespaces = namespaces, why = why }
  end
end

-- ---------------------------------------------------------------- resolving

-- Where no server knows the kind: as controller-gen spells plurals.
local function guessed(kind)
  local api, word = kind:match "^(.+)/([^/]+)$"
  word = (word or kind):lower()
  local plural = word:find "[sxz]$" and word .. "es" or word:find "[^aeiou]y$" and word:sub(1, -2) .. "ies"
    or word .. "s"
  return { group = api and api:match "^(.+)/" or "", plural = plural, namespaced = true, guessed = true }
end

--- A resolver for kinds over a client: a kind's group, plural and scope, or a guess that says so.
---@param client kubelua.Client
---@param known table<string, table>?     of some it is known already
function M.resolver(client, known)
  known = known or {}
  return function(kind)
    if known[kind] == nil then
      local ok, r = pcall(client.resource, client, kind)
      known[kind] = ok and r or guessed(kind)
    end
    return known[kind]
  end
end

-- ---------------------------------------------------------------- rules

local function sorted(set, order)
  local list = {}
  for x in pairs(set) do list[#list + 1] = x end
  table.sort(list, function(a, b)
    local x, y = order and order[a] or 0, order and order[b] or 0
    if x ~= y then return x < y end
    return a < b
  end)
  return list
end

local function scope_of(need, r)
  if not r.namespaced or not need.namespaces then return { "" } end
  return need.namespaces
end

local APPROVAL = "certificatesigningrequests/approval"

local function writes(verbs)
  for _, v in ipairs(verbs) do
    if v ~= "get" then return true end
  end
  return false
end

-- One entry for each scope, group, resource and names.
local function gather(needs, resolve)
  local entries = {}
  local function put(need, r, resource, scope, name_list, verbs)
    local names = name_list and table.concat(name_list, ",") or ""
    local key = table.concat({ scope, r.group, resource, names }, "\0")
    local e = entries[key] or { scope = scope, group = r.group, resource = resource, names = name_list,
      verbs = {}, why = {} }
    entries[key] = e
    for _, v in ipairs(verbs) do e.verbs[v] = true end
    e.why[need.why] = true
    if r.guessed then e.guessed = need.kind end
  end
  for _, need in ipairs(needs) do
    local r = resolve(need.kind)
    local resource = r.plural .. (need.subresource and "/" .. need.subresource or "")
    for _, scope in ipairs(scope_of(need, r)) do put(need, r, resource, scope, need.names, need.verbs) end
    -- The API server asks for this, too; resourceNames may say which signers.
    if resource == APPROVAL and writes(need.verbs) then put(need, r, "signers", "", nil, { "approve" }) end
  end
  return entries
end

-- A rule for the whole cluster need not be repeated for a namespace.
local function without_covered(entries)
  for key, e in pairs(entries) do
    local whole = e.scope ~= "" and entries[table.concat({ "", e.group, e.resource, "" }, "\0")]
    if whole then
      for v in pairs(whole.verbs) do e.verbs[v] = nil end
      if next(e.verbs) == nil then entries[key] = nil end
    end
  end
  return entries
end

--- Rules by scope ("" is the cluster, else a namespace): lists of { apiGroups, resources, verbs,
--- resourceNames, why = { text } }, merged and sorted, equal for equal needs.
---@return table<string, table[]>
function M.rules(needs, resolve)
  local merged, by_scope = {}, {}
  local entries = without_covered(gather(needs, resolve))
  for _, key in ipairs(sorted(entries)) do
    local e = entries[key]
    local verbs = sorted(e.verbs, ORDER)
    local same = table.concat({ e.scope, e.group, table.concat(verbs, ","),
      table.concat(e.names or {}, ",") }, "\0")
    local rule = merged[same]
    if not rule then
      rule = { apiGroups = { e.group }, resources = {}, verbs = verbs, resourceNames = e.names, why = {} }
      merged[same] = rule
      by_scope[e.scope] = by_scope[e.scope] or {}
      table.insert(by_scope[e.scope], rule)
    end
    rule.resources[#rule.resources + 1] = e.resource
    rule.why[#rule.why + 1] = ("%s: %s"):format(e.resource, table.concat(sorted(e.why), "; "))
    if e.guessed then
      rule.why[#rule.why + 1] = ("the plural of %s is a guess: give its definition with --crds"):format(
        e.guessed)
    end
  end
  for _, rules in pairs(by_scope) do
    table.sort(rules, function(a, b)
      if a.apiGroups[1] ~= b.apiGroups[1] then return a.apiGroups[1] < b.apiGroups[1] end
      if a.resources[1] ~= b.resources[1] then return a.resources[1] < b.resources[1] end
      return table.concat(a.verbs) < table.concat(b.verbs)
    end)
  end
  return by_scope
end

-- ---------------------------------------------------------------- objects

local function plain(rules)
  local out = {}
  for i, r in ipairs(rules) do
    out[i] = { apiGroups = core.array(r.apiGroups), resources = core.array(r.resources),
      verbs = core.array(r.verbs),
      resourceNames = r.resourceNames and core.array(r.resourceNames) }
  end
  return core.array(out)
end

local GROUP = "rbac.authorization.k8s.io"

local function role(o, scope, rules)
  return { object = { apiVersion = GROUP .. "/v1", kind = scope == "" and "ClusterRole" or "Role",
    metadata = { name = o.name, namespace = scope ~= "" and scope or nil }, rules = plain(rules) },
    rules = rules }
end

local function binding(o, scope)
  return { object = { apiVersion = GROUP .. "/v1", kind = scope == "" and "ClusterRoleBinding"
    or "RoleBinding",
    metadata = { name = o.name, namespace = scope ~= "" and scope or nil },
    roleRef = { apiGroup = GROUP, kind = scope == "" and "ClusterRole" or "Role", name = o.name },
    subjects = core.array { { kind = "ServiceAccount", name = o.name, namespace = o.namespace } } } }
end

--- The objects: a ClusterRole and Roles, and with o.bind the ServiceAccount and bindings. Each { object,
--- rules }.
---@param by_scope table<string, table[]>
---@param o {name: string, namespace: string, bind: boolean?}
function M.objects(by_scope, o)
  local out = {}
  if o.bind then
    out[1] = { object = { apiVersion = "v1", kind = "ServiceAccount",
      metadata = { name = o.name, namespace = o.namespace } } }
  end
  for _, scope in ipairs(sorted(by_scope)) do
    out[#out + 1] = role(o, scope, by_scope[scope])
    if o.bind then out[#out + 1] = binding(o, scope) end
  end
  return out
end

-- ---------------------------------------------------------------- text

--- A comment of a manifest, which the name of a file or of a param cannot end: it stays one line.
---@param text string
---@return string
function M.comment(text) return "# " .. core.visible(text, true) end
local comment = M.comment

--- A text as a value in a template of YAML, for any place in it: "1e3" must not be a number there, nor "a, b"
--- two names. JSON is YAML; names that are plain stay as they are.
---@param text string
---@return string
function M.scalar(text)
  local yaml = core.to_yaml(core.value(text, "a name")):gsub("\n%.%.%.\n*$", ""):gsub("\n+$", "")
  return yaml == text and not text:find "[^%w._/=:-]" and text or core.encode(text)
end
local scalar = M.scalar

local function quoted(list)
  local out = {}
  for i, x in ipairs(list) do out[i] = core.encode(x) end
  return "[" .. table.concat(out, ", ") .. "]"
end

local function write_rule(out, r)
  for _, why in ipairs(r.why) do out[#out + 1] = comment(why) end
  out[#out + 1] = "- apiGroups: " .. quoted(r.apiGroups)
  out[#out + 1] = "  resources: " .. quoted(r.resources)
  if r.resourceNames then out[#out + 1] = "  resourceNames: " .. quoted(r.resourceNames) end
  out[#out + 1] = "  verbs: " .. quoted(r.verbs)
end

--- YAML of the values of the chart: `rules` of the objects, wherever they are.
---@param objects table[]
---@param head string[]
---@return string
function M.values(objects, head)
  local out = {}
  for _, line in ipairs(head) do out[#out + 1] = comment(line) end
  local rules = #out + 1
  out[rules] = "rules:"
  for _, entry in ipairs(objects) do
    for _, r in ipairs(entry.rules or {}) do write_rule(out, r) end
  end
  if #out == rules then out[rules] = "rules: []" end
  return table.concat(out, "\n") .. "\n"
end

--- YAML of the objects, with the reasons of rules as comments and `head` in front.
---@param objects table[]
---@param head string[]
---@return string
function M.yaml(objects, head)
  local out = {}
  for _, line in ipairs(head) do out[#out + 1] = comment(line) end
  for i, entry in ipairs(objects) do
    if i > 1 then out[#out + 1] = "---" end
    if not entry.rules then
      out[#out + 1] = (core.to_yaml(core.value(entry.object, "the object")):gsub("\n+$", ""))
    else
      local o = entry.object
      out[#out + 1] = ("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s"):format(o.apiVersion, o.kind,
        scalar(o.metadata.name))
      if o.metadata.namespace then out[#out + 1] = "  namespace: " .. scalar(o.metadata.namespace) end
      out[#out + 1] = #entry.rules > 0 and "rules:" or "rules: []"
      for _, r in ipairs(entry.rules) do write_rule(out, r) end
    end
  end
  return table.concat(out, "\n") .. "\n"
end

return M
