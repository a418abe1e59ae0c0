-- servers.lua - API servers for specs: the embedded one and a real kube-apiserver, with one interface.
--
--   servers.each(function(name, start)
--     describe("a client of " .. name, function()
--       local s
--       lazy_setup(function() s = start { crds = { "spec/fixtures/crds" } } end)
--       lazy_teardown(function() s:stop() end)
--       it("lists", function() local c = kube.connect { kubeconfig = s.kubeconfig } ... end)
--     end)
--   end)
--
-- A server has: name, url, kubeconfig (path), token, ca (path or nil), log(), kubectl(...), stop(), and
-- kill()/restart() where this process owns it. The real one takes seconds to start, so one is shared by all
-- specs of a run: use names and namespaces of your own there, or ask for `empty = true` where others'
-- objects would be in the way, or for `own = true` where the server itself is the subject: it is killed, or
-- has flags. All of them are child processes and end with us.

local api = require "support.api"
local busted = require "busted"
local json = require "dkjson"
local process = require "support.process"
local wait = require "support.wait"

local M = {}
local Server = {}
Server.__index = Server

--- What `each` calls the embedded server.
M.EMBEDDED = "the embedded API server"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local PROGRAMS = { "kube-apiserver", "etcd", "kubectl" }

-- ---------------------------------------------------------------- what there is

local function has_programs(dir)
  for _, name in ipairs(PROGRAMS) do
    local file = io.open(dir .. "/" .. name, "rb")
    if not file then return false end
    file:close()
  end
  return true
end

--- The directory with the real programs, or nil and the reason.
function M.assets()
  local named = os.getenv "KUBEBUILDER_ASSETS"
  if named and named ~= "" then
    if has_programs(named) then return named end
    return nil, "KUBEBUILDER_ASSETS=" .. named .. " lacks one of " .. table.concat(PROGRAMS, ", ")
  end
  if has_programs "build/assets" then return "build/assets" end
  return nil,
    "build/assets is empty; `make assets` builds it (Go 1.24 or python3-venv needed), or set \z
    KUBEBUILDER_ASSETS"
end

--- The program of the oldest or newest API server that README supports, or nil and the reason.
---@param which "oldest"|"newest"
function M.version(which)
  local path = ("build/assets/%s/kube-apiserver"):format(which)
  local file = io.open(path, "rb")
  if not file then return nil, path .. " is not there; `make versions` builds it" end
  file:close()
  return path
end

local function sh(what, command)
  local out, code = process.run(command)
  if code ~= 0 then error(("%s failed (%d): %s\n%s"):format(what, code, command, out), 2) end
  return out
end

-- Ports below the kernel's ephemeral range; the runner gives each file that runs some of its own, so that
-- two that run side by side never take the same one before somebody listens there.
local function port_range(words)
  local from, to = (words or "20000-31999"):match "^(%d+)-(%d+)$"
  return { from = tonumber(from), to = tonumber(to) }
end
local range = port_range(os.getenv "KL_PORTS")

-- A TCP port of ours that nobody listens on.
local given = {}
local function free_port()
  local used = {}
  for _, path in ipairs { "/proc/net/tcp", "/proc/net/tcp6" } do
    for hex in (process.read(path) or ""):gmatch "\n%s*%d+: %x+:(%x%x%x%x)" do
      used[tonumber(hex, 16)] = true
    end
  end
  local port
  repeat port = math.random(range.from, range.to) until not used[port] and not given[port]
  given[port] = true
  return port
end

M.free_port = free_port

-- ---------------------------------------------------------------- common to both

local function http_ok(self, path)
  local asked = api(self)
  asked.limit = 2 -- the runner asks between other work
  local answered, r = pcall(asked.get, asked, path)
  return answered and r.code == 200
end

--- Runs kubectl against this server; arguments are words. Returns its output and exit status.
function Server:kubectl(...)
  local dir, why = M.assets()
  if not dir then error("no kubectl: " .. why, 2) end
  local words = {}
  for i, word in ipairs { ... } do words[i] = process.quote(word) end
  return process.run(("HOME=%s %s/kubectl --kubeconfig %s %s"):format(process.quote(process.tmpdir()), dir,
    process.quote(self.kubeconfig), table.concat(words, " ")))
end

--- kubectl that must succeed; returns its output.
function Server:must_kubectl(...)
  local out, code = self:kubectl(...)
  if code ~= 0 then
    error(("kubectl %s (%s): exit %d\n%s"):format(table.concat({ ... }, " "), self.name, code, out), 2)
  end
  return out
end

--- Waits for definitions ("crd/NAME", or "crd", "--all"). kubectl gives up on one that has no conditions yet.
function Server:wait_established(...)
  local words = { ... }
  wait.until_true(60, "definitions to be established", function()
    return self:must_kubectl("wait", "--for=condition=Established", "--timeout=60s", table.unpack(words))
  end)
end

--- A kubeconfig of this server for another bearer token, e.g. s.tokens.nobody.
function Server:kubeconfig_for(token)
  local path = process.tmpname ".kubeconfig"
  return process.write(path, (process.read(self.kubeconfig):gsub("token: %S+", "token: " .. token)))
end

--- Ends the processes of this server; of a shared one those that a spec added to its children.
function Server:stop()
  for i = #self.children, 1, -1 do self.children[i]:stop() end
end

--- Kills the API server; its data stays.
function Server:kill()
  assert(not self.shared, "a shared server is not ours to kill: start it with own = true")
  self.api:kill()
end

--- Restarts the API server on the same address.
function Server:restart()
  assert(not self.shared, "a shared server is not ours to restart: start it with own = true")
  if self.api:alive() then self.api:stop() end
  self.boot()
end

function Server:log() return self.api and self.api:log() or "" end

-- ---------------------------------------------------------------- the embedded one

--- `kubelua apiserver` on a free port. opts: crds, load (lists of paths), args (more words),
--- collects (with its garbage collector).
function M.embedded(opts)
  opts = opts or {}
  local self = setmetatable({ name = "embedded", children = {}, tokens = {} }, Server)
  self.kubeconfig = process.tmpname ".kubeconfig"
  local listen = "127.0.0.1:" .. free_port()
  function self.boot()
    local words = { KUBELUA, "apiserver", "--listen", listen, "--write-kubeconfig", self.kubeconfig,
      name = "kubelua apiserver" }
    for _, dir in ipairs(opts.crds or {}) do words[#words + 1] = "--crds=" .. dir end
    for _, path in ipairs(opts.load or {}) do words[#words + 1] = "--load=" .. path end
    -- The real server runs without a controller manager.
    if not opts.collects then words[#words + 1] = "--no-garbage-collection" end
    for _, word in ipairs(opts.args or {}) do words[#words + 1] = word end
    self.api = process.spawn(words)
    self.children = { self.api }
    local ok, why = pcall(wait.until_true, 20, "the embedded API server is ready", function()
      if not self.api:alive() then return true end
      -- It answers before it has written the kubeconfig, and says that it serves when it has.
      self.url = ("\n" .. self.api:log()):match "\nserving (%S+)\n"
      return self.url and http_ok(self, "/readyz")
    end)
    if not ok or not self.api:alive() then
      error(("kubelua apiserver did not start: %s\n%s"):format(ok and "it ended" or why, self.api:log()), 0)
    end
  end
  self.boot()
  return self
end

-- ---------------------------------------------------------------- the real one

local function make_certificates(dir)
  local cnf = process.write(dir .. "/server.cnf",
    "subjectAltName=DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1\n")
  local key = "openssl ecparam -name prime256v1 -genkey -noout -out "
  sh("openssl", table.concat({
    "cd " .. process.quote(dir),
    key .. "ca.key", "openssl req -x509 -new -key ca.key -subj /CN=kubelua-spec-ca -days 30 -out ca.crt",
    key .. "server.key", "openssl req -new -key server.key -subj /CN=kube-apiserver -out server.csr",
    "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile "
    .. cnf:match "[^/]+$" .. " -out server.crt",
    key .. "admin.key",
    "openssl req -new -key admin.key -subj /O=system:masters/CN=cert-admin -out admin.csr",
    "openssl x509 -req -in admin.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out admin.crt",
    "openssl genrsa -out sa.key 2048",
  }, " && "))
end

-- All servers of a run share these files: those of the lent server, or of the first that this process starts.
-- Creating them takes half a second of the processor.
local made_in = os.getenv "KL_REAL_DIR"

local function write_certificates(dir)
  if not made_in or made_in == "" then
    make_certificates(dir)
    made_in = dir
  else
    sh("cp", ("cp %s/*.crt %s/*.key %s"):format(process.quote(made_in), process.quote(made_in),
      process.quote(dir)))
  end
end

local KUBECONFIG = [[
apiVersion: v1
kind: Config
clusters: [{name: real, cluster: {server: "%s", certificate-authority: "%s"}}]
users:
- name: admin
  user:
    token: %s
contexts: [{name: real, context: {cluster: real, user: admin}}]
current-context: real
]]

-- Fixed words: these servers listen on the loopback of a test machine and live for minutes.
local TOKENS = { admin = "admin-token", nobody = "nobody-token" }

local function attach(self, dir)
  self.dir, self.kubeconfig, self.ca = dir, dir .. "/kubeconfig", dir .. "/ca.crt"
  self.token, self.tokens = TOKENS.admin, TOKENS
  self.client_cert, self.client_key = dir .. "/admin.crt", dir .. "/admin.key"
  self.url = process.read(dir .. "/url")
  return self
end

-- etcd's own gateway: keys and values are base64, and are compared as such.
local EVERYTHING = { key = "L3JlZ2lzdHJ5Lw==", range_end = "L3JlZ2lzdHJ5MA==" }  -- "/registry/", "/registry0"
-- What the API server renews by itself: "/registry/lease...", "/registry/maste..." (masterleases).
local RENEWED = { L3JlZ2lzdHJ5L2xlYXNl = true, L3JlZ2lzdHJ5L21hc3Rl = true }

local function etcd_stored(self, keys_only)
  local body = json.encode { key = EVERYTHING.key, range_end = EVERYTHING.range_end, keys_only = keys_only }
  local text = sh("etcd", ("curl -fsS --max-time 30 -d %s %s/v3/kv/range"):format(process.quote(body),
    process.read(self.dir .. "/etcd-url")))
  local stored = {}
  for _, kv in ipairs(assert(json.decode(text)).kvs or {}) do
    if not RENEWED[kv.key:sub(1, 20)] then
      stored[kv.key] = { revision = kv.mod_revision, value = kv.value }
    end
  end
  return stored
end

local function groups(self)
  local text = sh("curl", ("curl -fsS --max-time 10 --cacert %s -H %s %s/apis"):format(process.quote(self.ca),
    process.quote("Authorization: Bearer " .. self.token), self.url))
  local names = {}
  for _, group in ipairs(json.decode(text).groups) do names[#names + 1] = group.name end
  table.sort(names)
  return table.concat(names, " ")
end

-- Records the contents of a server that has just started.
local function remember(self)
  process.write(self.dir .. "/new.json", json.encode { stored = etcd_stored(self), groups = groups(self) })
end

--- Deletes the objects that were created since the start, and restores changed ones: in etcd, from which the
--- API server learns as of any other write. It takes a tenth of a second of the processor, a start four
--- seconds.
local function empty(self)
  local new, now, words = json.decode(process.read(self.dir .. "/new.json")), etcd_stored(self, true), {}
  local function ask(path, body)
    if #words > 0 then words[#words + 1] = "next" end
    words[#words + 1] = ("url = %q\ndata = %q\n"):format(process.read(self.dir .. "/etcd-url") .. path,
      json.encode(body)) .. "fail\nsilent\nshow-error\noutput = /dev/null\nmax-time = 30"
  end
  for key in pairs(now) do
    if not new.stored[key] then ask("/v3/kv/deleterange", { key = key }) end
  end
  for key, was in pairs(new.stored) do
    if not now[key] or now[key].revision ~= was.revision then
      ask("/v3/kv/put", { key = key, value = was.value })
    end
  end
  if #words == 0 then return end
  sh("etcd", "curl -K " .. process.quote(process.write(process.tmpname ".curl", table.concat(words, "\n"))))
  wait.until_true(60, "the API server has no definitions of others", function()
    return groups(self) == new.groups
  end)
end

-- Programs in Go live for minutes here: with more memory they collect less, which saves a tenth of their time
-- and more.
M.GO = { GOGC = "400" }

-- Starts its processes; boot() waits until it answers. `which`: nil, "oldest" or "newest".
local function begin_real(which, args)
  local assets = assert(M.assets())
  local apiserver = which and assert(M.version(which)) or assets .. "/kube-apiserver"
  local dir = process.tmpname ".real"
  sh("mkdir", "mkdir -p " .. process.quote(dir))
  dir = sh("pwd", "cd " .. process.quote(dir) .. " && pwd"):gsub("%s+$", "")
  write_certificates(dir)
  process.write(dir .. "/tokens.csv", ('%s,admin,admin,"system:masters"\n%s,nobody,nobody\n'):format(
    TOKENS.admin, TOKENS.nobody))
  local client, peer, port = free_port(), free_port(), free_port()
  local etcd_url = "http://127.0.0.1:" .. client
  process.write(dir .. "/url", "https://127.0.0.1:" .. port)
  process.write(dir .. "/etcd-url", etcd_url)
  local self = attach(setmetatable({ name = which and ("the %s kube-apiserver"):format(which)
    or "kube-apiserver 1.34.3" }, Server), dir)
  process.write(self.kubeconfig, KUBECONFIG:format(self.url, self.ca, self.token))
  local etcd = process.spawn { assets .. "/etcd", "--data-dir", dir .. "/etcd", "--listen-client-urls",
    etcd_url,
    "--advertise-client-urls", etcd_url, "--listen-peer-urls", "http://127.0.0.1:" .. peer,
    "--unsafe-no-fsync", "--log-level", "error", env = M.GO }
  self.children = { etcd }
  function self.launch()
    local words = { apiserver, "--etcd-servers", etcd_url, "--bind-address", "127.0.0.1",
      "--secure-port", port, "--tls-cert-file", dir .. "/server.crt", "--tls-private-key-file",
      dir .. "/server.key",
      "--client-ca-file", dir .. "/ca.crt", "--token-auth-file", dir .. "/tokens.csv", "--authorization-mode",
      "RBAC",
      "--service-account-key-file", dir .. "/sa.key", "--service-account-signing-key-file", dir .. "/sa.key",
      "--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range",
      "10.0.0.0/24",
      -- No controller manager here makes service accounts, the priority machinery would count against busy
      -- specs, and ours has no profiles.
      "--disable-admission-plugins", "ServiceAccount", "--enable-priority-and-fairness=false",
      "--profiling=false", "--cert-dir", dir }
    table.move(args or {}, 1, #(args or {}), #words + 1, words)
    words.env = M.GO
    self.api = process.spawn(words)
    self.children[2] = self.api
  end
  function self.ready()
    assert(self.api:alive(), "it ended")
    return http_ok(self, "/readyz") and http_ok(self, "/api/v1/namespaces/default")
  end
  function self.remember() remember(self) end
  function self.story()
    return ("etcd:\n%s\nkube-apiserver:\n%s"):format(etcd:log(), self.api:log():sub(-4000))
  end
  function self.boot()
    self.launch()
    local ok, why = pcall(wait.until_true, 60, "kube-apiserver is ready", self.ready)
    if not ok then error(("kube-apiserver did not start: %s\n%s"):format(why, self.story()), 0) end
  end
  return self
end

local function start_real(which, args)
  local self = begin_real(which, args)
  self.boot()
  return self
end

-- The server that the runner lends. A spec that asks for an empty server may leave objects that disturb
-- others, so the next one is emptied, too.
local function lent(dir, opts)
  local self = attach(setmetatable({ name = "kube-apiserver 1.34.3", shared = true, children = {} }, Server),
    dir)
  local mark = dir .. "/asked-for-empty"
  if opts.empty or process.read(mark) then empty(self) end
  os.remove(mark)
  if opts.empty then process.write(mark, "") end
  return self
end

local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

local function files_of(path)
  return sh("find", ("find %s -name '*.yaml' -o -name '*.yml' -o -name '*.json'"):format(process.quote(path)))
end

local function is_established(definition)
  for _, condition in ipairs(definition.status and definition.status.conditions or {}) do
    if condition.type == "Established" then return condition.status == "True" end
  end
end

-- What `kubectl apply --server-side --force-conflicts -f PATH` and `kubectl wait` do with definitions, which
-- take a tenth of a second of the processor each.
local function define_kinds(self, paths)
  local kube = require "kubelua"                        -- not the runner's, which starts servers, too
  local raw, names = api(self), {}
  for _, path in ipairs(paths) do
    for file in files_of(path):gmatch "[^\n]+" do
      for _, definition in ipairs(kube.yaml(process.read(file), file)) do
        local name = definition.metadata.name
        local r = raw:apply(DEFINITIONS .. name, "kubectl", kube.to_json(definition), true)
        assert(r.code == 200 or r.code == 201, ("%s: %s: %s"):format(file, r.code, r.text))
        names[#names + 1] = name
      end
    end
  end
  for _, name in ipairs(names) do
    wait.until_true(60, name .. " is established", function()
      local r = raw:get(DEFINITIONS .. name)
      return r.code == 200 and is_established(r.body)
    end)
  end
end

local shared
--- A real kube-apiserver with etcd. opts: crds, load (lists of paths), empty (true: without what others
--- made), own (true: not the shared one; then args, more words), version ("oldest", "newest": one of its own
--- of that version).
function M.real(opts)
  opts = opts or {}
  local self
  if opts.version then
    self = start_real(opts.version)
  elseif opts.own then
    self = start_real(nil, opts.args)
  else
    local dir = os.getenv "KL_REAL_DIR"
    if dir and dir ~= "" then
      self = lent(dir, opts)
    elseif opts.empty and shared then
      self = start_real()
    else
      shared = shared or start_real()
      self = setmetatable({ shared = true, children = {} }, { __index = shared })
    end
  end
  define_kinds(self, opts.crds or {})
  for _, path in ipairs(opts.load or {}) do
    self:must_kubectl("apply", "--server-side", "--force-conflicts", "-f", path)
    -- What the files say about status goes in separately; kinds without a status refuse that, which changes
    -- nothing.
    self:kubectl("apply", "--server-side", "--force-conflicts", "--subresource", "status", "-f", path)
  end
  return self
end

--- What the runner lends to its spec processes: a real server that begins to start. dir is its directory;
--- ready() says whether it answers, and raises when it ended; story() is its logs; processor_seconds() are
--- those that it used so far; discard() ends it, and returns them. `ports` ("FROM-TO"): where it listens.
function M.begin_shared(ports)
  range = port_range(ports)
  local self = begin_real()
  self.launch()
  function self.processor_seconds()
    local seconds = 0
    for _, child in ipairs(self.children) do seconds = seconds + child:processor_seconds() end
    return seconds
  end
  function self.discard()
    local seconds = self.processor_seconds()
    for i = #self.children, 1, -1 do self.children[i]:kill() end
    return seconds
  end
  return self
end

-- ---------------------------------------------------------------- a node behind it

local Kubelet = {}
Kubelet.__index = Kubelet

--- A pod of this node, with one or more containers whose logs (text of "TIME line" lines) are given: { main
--- = "..." }.
function Kubelet:pod(namespace, name, logs)
  local containers = {}
  for container, text in pairs(logs) do
    containers[#containers + 1] = ('{"name": "%s", "image": "none"}'):format(container)
    process.write(self:path(namespace, name, container, ".log"), text)
  end
  table.sort(containers)
  local file = process.write(process.tmpname ".json",
    ([[{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s", "namespace": "%s"},
      "spec": {"nodeName": "%s", "terminationGracePeriodSeconds": 0, "containers": [%s]}}]]):format(name,
        namespace, self.node, table.concat(containers, ", ")))
  self.server:must_kubectl("apply", "-f", file)
end

--- The file behind a container: ending ".log", ".previous.log" or ".done".
function Kubelet:path(namespace, pod, container, ending)
  return ("%s/%s_%s_%s%s"):format(self.logs, namespace, pod, container, ending)
end

--- More of a container's log.
function Kubelet:append(namespace, pod, container, text)
  local file = assert(io.open(self:path(namespace, pod, container, ".log"), "ab"))
  file:write(text)
  file:close()
end

function Kubelet:stop()
  self.server:kubectl("delete", "node", self.node)
  self.process:stop()
end

--- A node of this real server whose kubelet is our stand-in (spec/realserver/kubelet): its pods have logs,
--- exec, attach and port-forward. nil and the reason if the program is missing. Several may run at once.
function Server:kubelet()
  local program, file
  for _, dir in ipairs { assert(M.assets()), "build/assets" } do      -- KUBEBUILDER_ASSETS of others lacks it
    program = dir .. "/kubelet-standin"
    file = io.open(program, "rb")
    if file then break end
  end
  if not file then
    return nil, program .. " is missing; `make assets` without KUBEBUILDER_ASSETS builds it"
  end
  file:close()
  local port, logs = free_port(), process.tmpname ".logs"
  sh("mkdir", "mkdir -p " .. process.quote(logs))
  local kubelet = setmetatable({ server = self, node = "stand-in-" .. port, logs = logs, port = port },
    Kubelet)
  local dir = self.dir
  kubelet.process = process.spawn { program, "--listen", "127.0.0.1:" .. port, "--cert", dir .. "/server.crt",
    "--key", dir .. "/server.key", "--logs", logs }
  wait.until_true(20, "the kubelet stand-in is ready", function()
    assert(kubelet.process:alive(), "it ended")
    local _, code = process.run(("curl -fsSk -o /dev/null --max-time 2 https://127.0.0.1:%d/healthz"):format(
      port))
    return code == 0
  end)
  local node = process.write(process.tmpname ".json",
    ('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "%s"}}'):format(kubelet.node))
  self:must_kubectl("apply", "-f", node)
  self:must_kubectl("patch", "node", kubelet.node, "--subresource", "status", "--type", "merge", "-p",
    ('{"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": \z
      {"kubeletEndpoint": {"Port": %d}}}}'):format(port))
  return kubelet
end

-- ---------------------------------------------------------------- the same spec against both

local IN_CI = not ({ [""] = true, ["false"] = true })[os.getenv "CI" or ""]

--- Calls `define(name, start)` for the embedded server and for the real one. Where no real one can be had
--- the specs are marked pending, and in CI that is a failure. `make check` leaves the real one out, and so
--- does ThreadSanitizer mostly (run.lua).
function M.each(define)
  define(M.EMBEDDED, M.embedded)
  if os.getenv "KL_EMBEDDED_ALONE" ~= "1" then M.only_real(define) end
end

--- Calls `define(name, start)` for the embedded server, and in `make soak` for the real one, too: for what a
--- process does whichever server it talks to.
function M.each_long(define)
  if os.getenv "KL_LONG" == "1" then M.each(define) else define(M.EMBEDDED, M.embedded) end
end

--- Calls `define(name, start)` for the first `n` of the oldest and the newest API server. Sanitized runs omit
--- them: the server differs, not our code.
function M.versions(n, define)
  if os.getenv "KL_FAST" == "1" or (os.getenv "KL_VARIANT" or "release") ~= "release" then return end
  for _, which in ipairs { "oldest", n > 1 and "newest" or nil } do
    local program, why = M.version(which)
    if program and M.assets() then
      define("the " .. which .. " kube-apiserver", function(opts)
        local own = { version = which }
        for key, value in pairs(opts or {}) do own[key] = value end
        return M.real(own)
      end)
    elseif IN_CI then
      busted.it("runs against the " .. which .. " kube-apiserver", function()
        error("not there in CI: " .. tostring(why), 0)
      end)
    else
      busted.pending("runs against the " .. which .. " kube-apiserver: " .. tostring(why))
    end
  end
end

--- The same for specs that only a real API server can answer.
function M.only_real(define)
  if os.getenv "KL_FAST" == "1" then return end
  local dir, why = M.assets()
  if dir then
    define("kube-apiserver 1.34.3", M.real)
  elseif IN_CI then
    busted.it("runs against a real kube-apiserver", function()
      error("no real API server in CI: " .. why, 0)
    end)
  else
    busted.pending("runs against a real kube-apiserver: " .. why)
  end
end

return M
