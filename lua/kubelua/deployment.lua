-- deployment.lua - what a cluster needs to run scripts, as YAML: a namespace, rights, the scripts in a
-- ConfigMap, one for their params, a Service for webhooks, and the Deployment that runs them.

local checks = require "kubelua.checks"
local core = require "kubelua.core"
local rbac = require "kubelua.rbac"

local M = {}

local DEPLOYMENT = [[
apiVersion: apps/v1
kind: Deployment
metadata:
  name: @NAME@
  namespace: @NAMESPACE@
  labels: {app.kubernetes.io/name: @NAME@}
spec:
  replicas: 2
  selector:
    matchLabels: {app.kubernetes.io/name: @NAME@}
  template:
    metadata:
      labels: {app.kubernetes.io/name: @NAME@}
    spec:
      serviceAccountName: @NAME@
      terminationGracePeriodSeconds: 40
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: kubelua
        image: kubelua:latest
        args:
        - run
@SCRIPTS@        - --leader-elect
@LEASE@        - --metrics-bind-address=0.0.0.0:8080
        - --health-probe-bind-address=0.0.0.0:8081
@ARGS@        env: # Events are about this pod; the control socket (kubectl exec ... kubelua why) has a place
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
        - {name: XDG_RUNTIME_DIR, value: /run/kubelua}
        ports:
        - {name: metrics, containerPort: 8080}
        - {name: health, containerPort: 8081}
@PORTS@        livenessProbe:
          httpGet: {path: /healthz, port: health}
        readinessProbe:
          httpGet: {path: /readyz, port: health}
        resources:
          requests: {cpu: 50m, memory: 64Mi}
          limits: {memory: 512Mi}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
        volumeMounts:
        - {name: controllers, mountPath: /controllers, readOnly: true}
        - {name: run, mountPath: /run/kubelua}
      volumes:
      - name: controllers
        configMap:
          name: @MAP@
@ITEMS@      - name: run
        emptyDir: {medium: Memory, sizeLimit: 1Mi}
]]


local function filled(text, words)
  return (text:gsub("@(%u+)@", function(word) return words[word] or error("no word for " .. word) end))
end

local function yaml(o) return (core.to_yaml(core.value(o, o.kind)):gsub("\n+$", "")) end

local function config_map(name, namespace, data)
  return yaml { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = namespace },
    data = data }
end

-- ---------------------------------------------------------------- scripts

local function directory(path) return path:match "^(.*/)[^/]*$" or "" end

--- The files of programs below the directory of the scripts: lists of { key, path, text }. A key of a
--- ConfigMap has no "/": a file of a subdirectory is called as `require` does.
---@param programs table[]
---@return table[]
function M.sources(programs)
  local root, texts = directory(programs[1].path), {}
  for _, program in ipairs(programs) do
    for _, source in ipairs(program.sources) do
      if source.path:sub(1, #root) ~= root then
        error(("%s is not below %s, where %s is: a ConfigMap is one directory"):format(source.path,
          root == "" and "." or root, programs[1].path), 0)
      end
      texts[source.path:sub(#root + 1)] = source.text
    end
  end
  local out = {}
  for _, path in ipairs(checks.sorted(texts)) do
    out[#out + 1] = { key = path:gsub("/", "."), path = path, text = texts[path] }
  end
  return out
end

local function scripts_of(name, namespace, sources)
  local data = {}
  for _, s in ipairs(sources) do data[s.key] = s.text end
  return config_map(name .. "-scripts", namespace, data)
end

-- Where the volume has the files; without a subdirectory as they are called.
local function items_of(sources)
  local out, nested = { "          items:\n" }, false
  for _, s in ipairs(sources) do
    nested = nested or s.key ~= s.path
    out[#out + 1] = ("          - {key: %s, path: %s}\n"):format(rbac.scalar(s.key), rbac.scalar(s.path))
  end
  return nested and table.concat(out) or ""
end

-- ---------------------------------------------------------------- params

local function text_of(value) return type(value) == "string" and value or core.encode(value) end

local function is_empty(value)
  local text = type(value) ~= "string" and core.encode(value)
  return text == "{}" or text == "[]"
end

-- The default of each param that is not a secret, by the param's name and the controller: a text, EMPTY, or
-- NEEDED if it has none.
local EMPTY, NEEDED = {}, {}

local function declared(programs)
  local by_name = {}
  local function add(c, name, said)
    by_name[name] = by_name[name] or {}
    by_name[name][c.name] = said
  end
  for _, program in ipairs(programs) do
    for _, c in ipairs(program.tables) do
      for name, rule in pairs(c.param_rules or {}) do
        if rule.type ~= "secret" then add(c, name, rule.required and NEEDED or EMPTY) end
      end
      for name, value in pairs(c.params or {}) do
        add(c, name, is_empty(value) and EMPTY or text_of(value))
      end
    end
  end
  return by_name
end

--- The params that are not secrets, or nil if there are none: by name where each controller with a param of
--- that name has the same default, otherwise by CONTROLLER.NAME. `defaults` are as a ConfigMap would set
--- them; `empty` have no default and need none, or an empty list or object; `needed` have no default.
---@param programs table[]
---@return { defaults: table<string, string>, empty: string[], needed: string[] }?
function M.params(programs)
  local by_name = declared(programs)
  local out = { defaults = {}, empty = {}, needed = {} }
  local function add(name, said)
    if said == NEEDED or said == EMPTY then
      table.insert(said == NEEDED and out.needed or out.empty, name)
    else
      out.defaults[name] = said
    end
  end
  for _, name in ipairs(checks.sorted(by_name)) do
    local _, first = next(by_name[name])
    local same = true
    for _, said in pairs(by_name[name]) do same = same and said == first end
    if same then
      add(name, first)
    else
      for _, controller in ipairs(checks.sorted(by_name[name])) do
        add(controller .. "." .. name, by_name[name][controller])
      end
    end
  end
  return next(by_name) and out or nil
end

-- Without data: whoever applies the manifests again leaves alone what somebody has set there, and a default
-- stays the script's.
local function params_of(name, namespace, params)
  local head = { "Values in `data` override the script's defaults, and stay when the manifests are",
    "applied again:", ("  kubectl -n %s edit configmap %s-params"):format(namespace, name) }
  if #params.needed > 0 then head[#head + 1] = "Needed: " .. table.concat(params.needed, ", ") end
  if next(params.defaults) then
    head[#head + 1] = "The defaults:"
    for line in yaml { data = params.defaults }:gmatch "[^\n]+" do head[#head + 1] = "  " .. line end
  end
  if #params.empty > 0 then head[#head + 1] = "Empty unless set: " .. table.concat(params.empty, ", ") end
  for i, line in ipairs(head) do head[i] = rbac.comment(line) end
  return ("%s\n%s"):format(table.concat(head, "\n"), config_map(name .. "-params", namespace))
end

-- ---------------------------------------------------------------- all of it

local function service_of(name, namespace)
  return yaml { apiVersion = "v1", kind = "Service",
    metadata = { name = name .. "-webhook", namespace = namespace },
    spec = { selector = { ["app.kubernetes.io/name"] = name },
      ports = core.array { { name = "webhook", port = 443, targetPort = "webhook" } } } }
end

--- Where replicas share the certificate of their webhooks.
function M.secret_of(name, namespace) return ("%s/%s-webhook-tls"):format(namespace, name) end

local function lines(prefix, list)
  local out = {}
  for i, x in ipairs(list) do out[i] = ("        - %s\n"):format(rbac.scalar(prefix .. x)) end
  return table.concat(out)
end

---@class kubelua.DeploymentOptions
---@field name string
---@field namespace string
---@field lease string         the name of the leader's Lease
---@field scripts string[]     the files that return controllers, below /controllers
---@field objects table[]      rights, as rbac.objects has them
---@field sources? table[]     M.sources; without them the ConfigMap of the scripts comes from elsewhere
---@field params? table    M.params
---@field webhooks? boolean

--- The YAML. Webhook configurations are not in it: the process applies its own, with its certificate in them.
---@param d kubelua.DeploymentOptions
---@param head? string[]  comments in front
---@return string
function M.yaml(d, head)
  local objects, args, ports = { table.unpack(d.objects) }, {}, ""
  if d.namespace ~= "default" then
    table.insert(objects, 1, { object = { apiVersion = "v1", kind = "Namespace",
      metadata = { name = d.namespace } } })
  end
  local docs = { (rbac.yaml(objects, head or {}):gsub("\n+$", "")) }
  if d.sources then docs[#docs + 1] = scripts_of(d.name, d.namespace, d.sources) end
  if d.params then
    docs[#docs + 1] = params_of(d.name, d.namespace, d.params)
    args[1] = ("params=configmap/%s/%s-params"):format(d.namespace, d.name)
  end
  if d.webhooks then
    docs[#docs + 1] = service_of(d.name, d.namespace)
    args[#args + 1] = "webhook-listen=0.0.0.0:9443"
    args[#args + 1] = ("webhook-service=%s/%s-webhook"):format(d.namespace, d.name)
    args[#args + 1] = "webhook-secret=" .. M.secret_of(d.name, d.namespace)
    ports = "        - {name: webhook, containerPort: 9443}\n"
  end
  docs[#docs + 1] = filled(DEPLOYMENT, { NAME = rbac.scalar(d.name), NAMESPACE = rbac.scalar(d.namespace),
    MAP = rbac.scalar(d.name .. "-scripts"), LEASE = lines("--leader-elect-resource-",
      { "name=" .. d.lease, "namespace=" .. d.namespace }),
    SCRIPTS = lines("/controllers/", d.scripts), ARGS = lines("--", args), PORTS = ports,
    ITEMS = d.sources and items_of(d.sources) or "" })
  return table.concat(docs, "\n---\n")
end

return M
