-- certificate_spec.lua - certificates are requested, approved, signed, stored and rotated, on both API
-- servers. The spec approves, signs with openssl, and controls the clock.

local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local CSR = "certificates.k8s.io/v1/CertificateSigningRequest"
local SIGNER = "kubelua.test/signer"

local function sh(command)
  local out, code = process.run(command)
  assert.equal(0, code, command .. "\n" .. out)
  return out
end

describe("base64", function()
  it("round-trips, and names the place of an invalid character", function()
    local bytes = "\0\1\255any bytes\n"
    assert.equal(bytes, kube.base64_decode(kube.base64_encode(bytes)))
    local _, err = kube.try(kube.base64_decode, "Zm9*")
    assert.equal("syntax", err.kind)
    assert.matches("byte 4", err.message, 1, true)
  end)
end)

servers.each(function(name, start)
  describe("a certificate of " .. name, function()
    local s, c, ca, managers

    lazy_setup(function()
      s = start()
      c = kube.connect { kubeconfig = s.kubeconfig }
      ca = process.tmpname ".ca"
      sh(("mkdir -p %s && cd %s && openssl ecparam -name prime256v1 -genkey -noout -out ca.key && openssl \z
        req -x509 -new -key ca.key -subj /CN=spec-ca -days 30 -out ca.crt")
        :format(ca, ca))
    end)
    lazy_teardown(function()
      if c then c:close() end
      s:stop()
    end)
    before_each(function() managers = {} end)
    after_each(function()
      for _, m in ipairs(managers) do m:close() end
    end)

    -- A manager whose clock is the real one moved by `skew.by` seconds.
    local function manager(opts)
      local skew = { by = 0 }
      opts = opts or {}
      opts.name = opts.name or "spec"
      opts.dir = opts.dir or process.tmpname ".pairs"
      opts.signer = opts.signer or SIGNER
      opts.usages = opts.usages or { "client auth", "digital signature" }
      opts.clock = function() return os.time() + skew.by end
      local client = opts.client or c
      opts.client = nil
      local m = kube.certificate(client, opts)
      managers[#managers + 1] = m
      return m, skew, opts
    end

    local seen = {}
    -- The newest request that was not approved yet.
    local function requested(m)
      assert.equal("requested", m:poll())
      for _, csr in ipairs(c:list(CSR)) do
        if not seen[csr.metadata.name] then
          seen[csr.metadata.name] = true
          return csr
        end
      end
      error "nobody asked for a certificate"
    end

    -- Signs the request unchanged, for some days.
    local function sign(csr, days, with)
      local dir = with or ca
      local file = process.write(process.tmpname ".csr", kube.base64_decode(csr.spec.request))
      local out = process.tmpname ".crt"
      sh(("openssl x509 -req -in %s -CA %s/ca.crt -CAkey %s/ca.key -CAcreateserial -days %d \z
        -copy_extensions copyall -out %s"):format(file, dir, dir, days or 10, out))
      c:approve(csr, { reason = "Spec", message = "by the spec" })
      local fresh = c:get(CSR, csr.metadata.name)
      c:patch_status(fresh, { certificate = kube.base64_encode(process.read(out)) })
      return out
    end

    local function idle(m)
      return wait.until_true(20, "the certificate is there", function()
        return m:poll() == "idle" and m:certificate()
      end)
    end

    it("is requested with its own key, and stored when issued", function()
      local rotated = {}
      local m, _, opts = manager {
        cn = "system:node:spec", o = { "system:nodes", "team" }, dns = { "spec.example" },
        ips = { "10.1.2.3", "FD00:0:0::1" }, duration = "24h",
        on_rotate = function(certificate) rotated[#rotated + 1] = certificate end,
      }
      assert.is_nil(m:certificate())
      assert.is_true(m:deadline() <= os.time())
      local csr = requested(m)
      assert.equal(SIGNER, csr.spec.signerName)
      assert.same({ "client auth", "digital signature" }, kube.copy(csr.spec.usages))
      assert.equal(86400, csr.spec.expirationSeconds)
      assert.matches("^spec%-", csr.metadata.name)
      assert.is_true(m:server_healthy())
      local text = sh(("openssl req -noout -text -verify -in %s 2>&1"):format(
        process.write(process.tmpname ".csr", kube.base64_decode(csr.spec.request))))
      assert.matches("CN ?= ?system:node:spec", text)
      assert.matches("O ?= ?system:nodes, O ?= ?team", text)
      assert.matches("DNS:spec.example", text, 1, true)
      assert.matches("IP Address:10.1.2.3", text, 1, true)
      assert.matches("IP Address:FD00:0:0:0:0:0:0:1", text, 1, true)
      assert.matches("prime256v1", text, 1, true)
      assert.equal("requested", m:poll())
      assert.is_nil(m:certificate())

      sign(csr)
      local certificate = idle(m)
      assert.equal("system:node:spec", certificate.cn)
      assert.same({ "10.1.2.3", "fd00::1" }, certificate.ips)
      assert.equal(1, #rotated)
      assert.is_nil(m:error())
      local life = certificate.not_after - certificate.not_before
      local part = (m:deadline() - certificate.not_before) / life
      assert.is_true(part >= 0.7 and part <= 0.9, tostring(part))

      assert.equal(opts.dir .. "/spec-current.pem", m.path)
      assert.equal("600\n", sh("stat -L -c %a " .. m.path))
      sh(("openssl verify -CAfile %s/ca.crt %s"):format(ca, m.path))
      local pair = process.read(m.path)
      assert.equal(certificate.cert .. certificate.key, pair)

      -- Another process finds the certificate, and requests none.
      local again = manager { dir = opts.dir, cn = "system:node:spec", ips = { "FD00:0:0::1" } }
      assert.equal("idle", again:poll())
      assert.equal(certificate.cert, again:certificate().cert)
      -- A process that needs more names requests a certificate at once, and uses the old one meanwhile.
      for _, names in ipairs { { dns = { "spec.example", "new.example" } },
        { ips = { "10.1.2.3", "fd00::2" } } } do
        local more = manager { dir = opts.dir, cn = "system:node:spec", dns = names.dns, ips = names.ips }
        requested(more)
        assert.equal(certificate.cert, more:certificate().cert)
      end
    end)

    it("is rotated on time, and the link points to the new one", function()
      local m, skew, opts = manager { cn = "rotating" }
      sign(requested(m))
      local first = idle(m)
      skew.by = m:deadline() - os.time() - 5
      assert.equal("idle", m:poll())
      skew.by = m:deadline() - os.time() + 5
      local csr = requested(m)
      assert.equal(first.cert, m:certificate().cert)
      sign(csr, 20)
      local second = wait.until_true(20, "rotated", function()
        m:poll()
        return m:certificate().cert ~= first.cert and m:certificate()
      end)
      assert.not_equal(first.key, second.key)
      assert.equal(second.cert .. second.key, process.read(m.path))
      assert.equal("2\n", sh("ls -A " .. opts.dir .. " | wc -l"))
      -- After its end there is no certificate.
      skew.by = second.not_after - os.time() + 1
      assert.is_nil(m:certificate())
      requested(m)
      m:rotate()
      assert.equal("requested", m:poll())
    end)

    it("reports a denied request, and requests again later", function()
      local errors = {}
      local m, skew = manager { cn = "denied", on_error = function(err) errors[#errors + 1] = err end }
      local csr = requested(m)
      c:patch_status(csr, { conditions = { { type = "Seen", status = "True" } } })
      c:deny(csr, { reason = "SpecSaysNo", message = "not today" })
      assert.equal(2, #c:get(CSR, csr.metadata.name).status.conditions) -- others' stay
      wait.until_true(20, "the refusal is heard", function() return m:poll() == "resting" end)
      assert.equal("denied", m:error().kind)
      assert.equal("SpecSaysNo", m:error().reason)
      assert.matches("the request was denied: not today", m:error().message, 1, true)
      assert.equal(1, #errors)
      assert.is_true(m:server_healthy())
      assert.equal("resting", m:poll())
      local first = m:deadline() - os.time()
      assert.is_true(first > 0 and first <= 2.5, tostring(first))
      skew.by = 3
      csr = requested(m)
      sign(csr)
      idle(m)
      assert.is_nil(m:error())
    end)

    it("requests again after a deleted request, a timeout, or an unusable certificate",
      function()
      local m, skew = manager { cn = "bad luck" }
      local csr = requested(m)
      wait.until_true(20, "it is seen", function() m:poll() return m.seen end)
      c:delete(CSR, csr.metadata.name)
      wait.until_true(20, "it is missed", function() return m:poll() == "resting" end)
      assert.equal("not_found", m:error().kind)
      skew.by = skew.by + 3
      requested(m)
      skew.by = skew.by + 15 * 60
      wait.until_true(20, "nobody answers", function() return m:poll() == "resting" end)
      assert.equal("timeout", m:error().kind)
      assert.matches("within 15m0s", m:error().message, 1, true)
      skew.by = skew.by + 5
      csr = requested(m)
      local stranger = process.tmpname ".csr"
      sh(("openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /dev/null -subj \z
        /CN=x -out %s 2>/dev/null"):format(stranger))
      sign { metadata = csr.metadata, spec = { request = kube.base64_encode(process.read(stranger)) },
        kind = csr.kind, apiVersion = csr.apiVersion }
      wait.until_true(20, "it is not a pair", function() return m:poll() == "resting" end)
      assert.matches("unusable: the key does not belong to the certificate", m:error().message, 1, true)
      assert.is_nil(m:certificate())
    end)

    it("takes its client from a function, and distinguishes an unreachable server from a refusal", function()
      local asked = {}
      local far <close> = kube.connect { server = "http://127.0.0.1:1" }
      local m, skew = manager {
        cn = "far", client = function(current)
          asked[#asked + 1] = current or false
          return far
        end,
      }
      assert.equal("resting", m:poll())
      assert.equal("unreachable", m:error().kind)
      assert.is_false(m:server_healthy())
      assert.same({ false }, asked)
      local pauses = {}
      for i = 1, 6 do
        skew.by = skew.by + (m:deadline() - (os.time() + skew.by)) + 1
        assert.equal("resting", m:poll())
        pauses[i] = m:deadline() - (os.time() + skew.by)
      end
      assert.is_true(pauses[2] > pauses[1])
      assert.is_true(pauses[6] >= 31, tostring(pauses[6]))
      assert.is_true(pauses[6] <= 36, tostring(pauses[6]))
    end)

    it("can be waited for, run, and stopped", function()
      local m
      m = manager { cn = "run", on_rotate = function() m:stop() end }
      local none = m:wait(0)
      assert.is_nil(none)
      local csr = requested(m)
      sign(csr)
      m:run(20 * wait.factor)
      assert.equal("run", m:wait(0).cn)
      m:close()
      assert.error_matches(function() m:poll() end, "was closed", 1, true)
    end)

    it("rejects invalid options, and a file that is not a pair", function()
      local function refused(opts, what)
        assert.error_matches(function() manager(opts) end, what, 1, true)
      end
      refused({ ips = { "10.0.0.300" } }, '"10.0.0.300" is not an IP address')
      refused({ dns = { "a b" } }, '"a b" is not a DNS name')
      refused({ cn = ("x"):rep(70) }, "is not allowed in a certificate")
      refused({ name = "Up" }, "lower case letters")
      refused({ duration = "1m" }, "at least 10m")
      refused({ usage = {} }, "did you mean 'usages'?")
      refused({ signer = "" }, "option 'signer' is missing")
      assert.error_matches(function() kube.certificate({}, {}) end, "expected a client", 1, true)
      local dir = process.tmpname ".pairs"
      sh("mkdir -p " .. dir)
      process.write(dir .. "/spec-current.pem", "no pair\n")
      local _, err = kube.try(kube.certificate, c, { name = "spec", dir = dir, signer = SIGNER,
        usages = { "client auth" } })
      assert.equal("invalid", err.kind)
      assert.matches(dir .. "/spec-current.pem", tostring(err), 1, true)
    end)
  end)
end)

servers.only_real(function(name, start)
  describe("a client of " .. name, function()
    it("presents a manager's certificate, and the next one after rotation", function()
      local s = start()
      local c <close> = kube.connect { kubeconfig = s.kubeconfig }
      local dir, signed = process.tmpname ".pairs", {}

      local function certify(cn)
        local m <close> = kube.certificate(c, {
          name = "client", dir = dir, signer = "kubernetes.io/kube-apiserver-client",
          usages = { "client auth" }, cn = cn,
        })
        assert.equal("requested", m:poll())
        local csr
        for _, one in ipairs(c:list(CSR)) do
          if one.metadata.name:find "^client%-" and not signed[one.metadata.name] then csr = one end
        end
        signed[csr.metadata.name] = true
        local file, out = process.write(process.tmpname ".csr", kube.base64_decode(csr.spec.request)),
          process.tmpname ".crt"
        sh(("openssl x509 -req -in %s -CA %s/ca.crt -CAkey %s/ca.key -CAcreateserial -days 5 -out %s"):format(
          file, s.dir, s.dir, out))
        c:approve(csr)
        c:patch_status(c:get(CSR, csr.metadata.name), { certificate = kube.base64_encode(process.read(out)) })
        wait.until_true(20, "it is there", function() return m:poll() == "idle" end)
        assert.equal(cn, m:certificate().cn)
        return m.path
      end

      local path = certify "kubelua-certified"
      local kubeconfig = process.write(process.tmpname ".kubeconfig", ([[
apiVersion: v1
kind: Config
clusters: [{name: real, cluster: {server: "%s", certificate-authority: "%s"}}]
users: [{name: me, user: {client-certificate: "%s", client-key: "%s"}}]
contexts: [{name: real, context: {cluster: real, user: me}}]
current-context: real
]]):format(s.url, s.ca, path, path))
      local mine <close> = kube.connect { kubeconfig = kubeconfig }
      local function who()
        return mine:create({ apiVersion = "authentication.k8s.io/v1", kind = "SelfSubjectReview",
          metadata = kube.object {} }).status.userInfo.username
      end
      assert.equal("kubelua-certified", who())
      certify "kubelua-rotated"
      wait.until_true(20, "the next certificate is presented", function()
        return who() == "kubelua-rotated"
      end)
      s:stop()
    end)
  end)
end)
