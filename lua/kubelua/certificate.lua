-- certificate.lua - a certificate from the cluster's signers, renewed before it expires: key, request,
-- approval, file, rotation, as client-go's certificate manager.
--
--   idle --it is due, or there is none--> requested --issued--> idle
--                                             `--denied, failed, deleted, too long--> resting --> requested
--
-- Back in idle, the pair is on disk; the next one is due after 70 to 90 % of the certificate's life.
-- It has no thread: m:poll() takes the next step, m:run() takes steps as they become due. Others approve and
-- sign requests; the manager only watches its own request.

local clock = require "kubelua.clock"
local core = require "kubelua.core"
local options = require "kubelua.options"

local M = {}

local CSR = "certificates.k8s.io/v1/CertificateSigningRequest"

-- client-go's numbers.
local ISSUED_WITHIN = 15 * 60                        -- seconds
local REST_FIRST, REST_FACTOR, REST_STEPS, REST_AFTER = 2, 2, 5, 32
local ROTATE_FROM, ROTATE_SPREAD = 0.7, 0.2          -- of the lifetime
local DURATION_LEAST = 600                           -- seconds; what the API takes

---@class kubelua.CertificateOptions
---@field name string             of the files, and the beginning of the requests' names
---@field dir string              where the pair is kept: NAME-current.pem links to it
---@field signer string           "kubernetes.io/kube-apiserver-client", ...
---@field usages string[]         "client auth", "digital signature", ...
---@field cn string?
---@field o string|string[]|nil   organizations: the user's groups
---@field dns string[]?
---@field ips string[]?
---@field duration kubelua.Duration?                           asked for; the signer decides
---@field on_rotate (fun(certificate: kubelua.Certificate))?   a new one is there
---@field on_error (fun(err: kubelua.Error))?                  it is tried again later
---@field clock (fun(): number)?                               seconds since 1970; a program's tests own it

---@class kubelua.Certificate
---@field cert string          PEM, the chain
---@field key string           PEM
---@field cn string
---@field orgs string[]
---@field dns string[]
---@field ips string[]
---@field not_before integer   seconds since 1970
---@field not_after integer

local OPTIONS = {
  name = "string", dir = "string", signer = "string", usages = "table", cn = "string", o = "value",
  dns = "table", ips = "table",
  duration = "duration", on_rotate = "function", on_error = "function", clock = "function",
}

---@class kubelua.CertificateManager
---@field path string       the link that always leads to the newest pair, for kubeconfigs and servers
---@field private state "idle"|"requested"|"resting"
local Manager = {}
Manager.__index = Manager

-- ---------------------------------------------------------------- the pair

local function parse(text)
  local certs, key = {}, nil
  for block,
    label in text:gmatch "(%-%-%-%-%-BEGIN ([%u%d ]-)%-%-%-%-%-.-%-%-%-%-%-END [%u%d ]-%-%-%-%-%-\n?)" do
    if label == "CERTIFICATE" then
      certs[#certs + 1] = block
    elseif label:find "PRIVATE KEY$" then
      key = key or block
    end
  end
  return table.concat(certs), key
end

-- The facts of the pair, or nil and why it is invalid.
local function pair(cert, key)
  if cert == "" or not key then return nil, "it does not contain both a certificate and its key" end
  local ok, why = core.x509_pair(cert, key)
  if not ok then return nil, why end
  local facts
  facts, why = core.x509_facts(cert)
  if not facts then return nil, why end
  facts.cert, facts.key = cert, key
  return facts
end

local function load(self)
  local text = core.pair_read(self.opts.dir, self.opts.name)
  if not text then return end
  local found, why = pair(parse(text))
  if not found then
    error(core.error { kind = "invalid", verb = "read", resource = self.path,
      message = why .. "; move the file away for a new certificate" }, 0)
  end
  if found.not_after > self.clock() then self.current = found end
end

local function has_all(have, want)
  local set = {}
  for _, one in ipairs(have) do set[one] = true end
  for _, one in ipairs(want or {}) do
    if not set[one] then return false end
  end
  return true
end

-- An address has many spellings; a certificate has one of them.
local function spelled(ips)
  local out = {}
  for i, ip in ipairs(ips or {}) do out[i] = core.ip(ip) end
  return out
end

local function satisfies(self, certificate)
  local want = self.wish
  return certificate.cn == (want.cn or "") and has_all(certificate.orgs, want.orgs)
    and has_all(certificate.dns, want.dns)
    and has_all(certificate.ips, spelled(want.ips))
end

-- ---------------------------------------------------------------- when

-- When the present one is replaced: after 70 to 90 % of its life, so that many nodes of one age do not renew
-- at once.
local function schedule(self)
  local certificate = self.current
  if not certificate or not satisfies(self, certificate) then
    self.due = self.clock()
    return
  end
  local life = certificate.not_after - certificate.not_before
  self.due = certificate.not_before + life * (ROTATE_FROM + ROTATE_SPREAD * math.random())
end

local function rest(self)
  self.failures = self.failures + 1
  local pause = self.failures <= REST_STEPS and REST_FIRST * REST_FACTOR ^ (self.failures - 1) or REST_AFTER
  self.state, self.due = "resting", self.clock() + pause * (1 + 0.1 * math.random())
end

local function failed(self, err)
  self.last_error = err
  self:forget()
  rest(self)
  if self.opts.on_error then self.opts.on_error(err) end
end

-- Records whether the server works, from its answer: a refusal is an answer.
local function judge(self, err)
  self.healthy = err.code == 401 or err.code == 403 or err.code == 404
end

-- ---------------------------------------------------------------- requests

function Manager:forget()
  if self.informers then self.informers:shutdown() end
  self.informers, self.informer, self.store, self.request, self.key, self.started = nil, nil, nil, nil, nil,
    nil
end

local function client_of(self)
  if type(self.client) == "function" then return self.client(self:certificate()) end
  return self.client
end

local function ask(self)
  local opts = self.opts
  local key, text = core.x509_request(self.wish)
  if not key then core.blame("kube.certificate: " .. text) end
  local ok, client = pcall(client_of, self)
  if not ok then
    if not core.is_error(client) then error(client, 0) end
    return failed(self, client)
  end
  local csr
  ok, csr = pcall(client.create, client, {
    apiVersion = "certificates.k8s.io/v1", kind = "CertificateSigningRequest",
    metadata = { generateName = opts.name .. "-" },
    spec = {
      request = core.base64_encode(text), signerName = opts.signer, usages = core.array(opts.usages),
      expirationSeconds = opts.duration and math.tointeger(math.ceil(core.duration(opts.duration))) or nil,
    },
  })
  if not ok then
    if not core.is_error(csr) then error(csr, 0) end
    judge(self, csr)
    return failed(self, csr)
  end
  self.healthy = true
  self.state, self.key, self.request, self.started = "requested", key, csr, self.clock()
  self.informers = require("kubelua.informers").informers(client,
    { fields = "metadata.name=" .. csr.metadata.name })
  self.informer = self.informers:informer(CSR)
  self.store = self.informer:store()
  self.informers:start()
end

local function refusal(csr)
  local approved = false
  for _, condition in ipairs(csr("status.conditions") or {}) do
    if condition.type == "Denied" or condition.type == "Failed" then
      local denied = condition.type == "Denied"
      return core.error {
        kind = denied and "denied" or "failed", verb = "certify", resource = CSR, key = csr.metadata.name,
        reason = condition("reason"),
        message = ("the request was %s: %s"):format(denied and "denied" or "not signed",
          condition("message") or condition("reason") or "no reason was given"),
      }
    end
    approved = approved or condition.type == "Approved"
  end
  return nil, approved
end

local function problem(self, kind, fmt, ...)
  return core.error { kind = kind, verb = "certify", resource = CSR, key = self.request.metadata.name,
    message = fmt:format(...) }
end

local function keep(self, pem)
  local certificate, why = pair(pem, self.key)
  if not certificate then
    return failed(self, problem(self, "server", "the issued certificate is unusable: %s", why))
  end
  local ok, err = pcall(core.pair_write, self.opts.dir, self.opts.name, pem:gsub("\n*$", "\n") .. self.key,
    self.clock())
  if not ok then
    if not core.is_error(err) then error(err, 0) end
    return failed(self, err)
  end
  self:forget()
  self.current, self.state, self.failures, self.last_error = certificate, "idle", 0, nil
  schedule(self)
  -- If a signer grants a shorter life than requested, the next request still follows the certificate's own
  -- life.
  if self.due <= self.clock() then
    self.due = certificate.not_before + (certificate.not_after - certificate.not_before) * (
      ROTATE_FROM + ROTATE_SPREAD * math.random())
  end
  if self.opts.on_rotate then self.opts.on_rotate(certificate) end
end

local function look(self)
  local csr = self.store:get(self.request.metadata.name)
  if csr and csr.metadata.uid == self.request.metadata.uid then
    self.seen = self.request
    local refused, approved = refusal(csr)
    if refused then return failed(self, refused) end
    local pem = approved and csr("status.certificate")
    if pem and pem ~= "" then return keep(self, core.base64_decode(pem)) end
  elseif csr or self.seen == self.request then
    return failed(self, problem(self, "not_found",
      "the request was deleted before it was approved or denied"))
  end
  if self.clock() - self.started >= ISSUED_WITHIN then
    local trouble = self.informer:stats().message
    failed(self, problem(self, "timeout", "the request was not approved and signed within %s%s",
      core.format_duration(ISSUED_WITHIN),
      trouble and "; watching it failed: " .. trouble or ""))
  end
end

-- ---------------------------------------------------------------- for programs

--- The valid certificate, or nil: there is none yet, or it has expired.
---@return kubelua.Certificate?
function Manager:certificate()
  if self.current and self.current.not_after <= self.clock() then self.current = nil end
  return self.current
end

--- The time of the next step (the rotation, or another try), in seconds since 1970.
---@return number
function Manager:deadline() return self.due end

--- Why there is no new certificate, after a failed try; nil otherwise.
---@return kubelua.Error?
function Manager:error() return self.last_error end

--- Whether the server answered the last request; a refusal is an answer.
---@return boolean
function Manager:server_healthy() return self.healthy end

--- Requests a new certificate at the next poll, even if the present one is valid.
function Manager:rotate()
  if self.state ~= "requested" then self.state, self.due = "idle", self.clock() end
end

--- Takes the next step, if one is due: "idle" (the certificate is valid, or nothing is due), "requested",
--- "resting" after a failure.
---@return "idle"|"requested"|"resting"
function Manager:poll()
  if self.closed then core.blame "m:poll: this certificate manager was closed" end
  if self.state == "requested" then
    look(self)
  elseif self.clock() >= self.due then
    ask(self)
  end
  return self.state
end

--- Takes each step when it is due, until the time is over or m:stop() was called.
---@param timeout kubelua.Duration?  forever when absent
function Manager:run(timeout)
  local deadline = timeout and core.monotonic() + core.duration(timeout) or math.huge
  self.stopping = false
  while not self.stopping and core.monotonic() < deadline do
    self:poll()
    if not self.stopping then
      clock.sleep(math.max(0, math.min(self.state == "requested" and 0.05 or 1, deadline - core.monotonic())))
    end
  end
end

--- Waits for a certificate and returns it; nil and the last error when the time is over.
---@param timeout kubelua.Duration?
---@return kubelua.Certificate?, kubelua.Error?
function Manager:wait(timeout)
  local deadline = timeout and core.monotonic() + core.duration(timeout) or math.huge
  while self:poll() ~= "idle" or not self:certificate() do
    if core.monotonic() >= deadline then return nil, self.last_error end
    clock.sleep(0.05)
  end
  return self:certificate()
end

function Manager:stop() self.stopping = true end

--- Ends the watch of the pending request; the files stay.
function Manager:close()
  self.stopping, self.closed = true, true
  self:forget()
end

Manager.__close = Manager.close

local function must(opts, name, why)
  if not opts[name] or opts[name] == "" then
    core.blame(("kube.certificate: option '%s' is missing: %s"):format(name, why))
  end
end

---@class kubelua.CertificateRequestOptions
---@field cn string?            the common name: the user, for client certificates
---@field o string|string[]?    organizations: the user's groups
---@field dns string[]?         names of a server
---@field ips string[]?         its addresses

local NAMES = { cn = "string", o = "value", dns = "table", ips = "table" }

--- A new EC P-256 key and a PKCS#10 request for a certificate of it, as PEM: spec.request of a
--- CertificateSigningRequest is kube.base64_encode(request). For programs and tests of approvers.
---@param names kubelua.CertificateRequestOptions
---@return string request
---@return string key
function M.certificate_request(names)
  names = options.check("kube.certificate_request", names, NAMES)
  local orgs = type(names.o) == "string" and { names.o } or names.o
  local key, request = core.x509_request { cn = names.cn, orgs = orgs, dns = names.dns, ips = names.ips }
  if not key then core.blame("kube.certificate_request: " .. request) end
  return request, key
end

--- Manages a certificate: reads the present pair, and requests one when there is none, when it differs from
--- the options, and before it expires. `client` may be a function of the current certificate (or nil) that
--- returns a client.
---@param client kubelua.Client|fun(current: kubelua.Certificate?): kubelua.Client
---@param opts kubelua.CertificateOptions
---@return kubelua.CertificateManager
function M.certificate(client, opts)
  if type(client) ~= "function" and (type(client) ~= "table" or not client.core) then
    core.blame "kube.certificate: expected a client, as kube.connect gives, or a function that gives one"
  end
  opts = options.check("kube.certificate", opts, OPTIONS)
  must(opts, "name", "files and requests are named after it")
  must(opts, "dir", "where the pair is stored")
  must(opts, "signer", "such as \"kubernetes.io/kube-apiserver-client\"")
  must(opts, "usages", "such as { \"client auth\", \"digital signature\" }")
  if not opts.name:find "^%l[%l%d.-]*$" then
    core.blame(("kube.certificate: the name must be of lower case letters, digits, '-' and \z
      '.', got %q"):format(opts.name))
  end
  if opts.duration and core.duration(opts.duration) < DURATION_LEAST then
    core.blame(("kube.certificate: the duration must be at least 10m, got %s"):format(
      tostring(opts.duration)))
  end
  local orgs = type(opts.o) == "string" and { opts.o } or opts.o
  local self = setmetatable({
    client = client, opts = opts, clock = opts.clock or core.wall, path = core.pair_path(opts.dir, opts.name),
    state = "idle", failures = 0,
    wish = { cn = opts.cn, orgs = orgs, dns = opts.dns, ips = opts.ips }, healthy = false,
  }, Manager)
  local key, why = core.x509_request(self.wish)
  if not key then core.blame("kube.certificate: " .. why) end
  load(self)
  schedule(self)
  return self
end

return M
