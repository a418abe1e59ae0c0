-- credentials_spec.lua - ways to a server: SOCKS5 and HTTP proxies, credential plugins, token files and
-- certificates, and their renewal.
-- real in asan, tsan: only the real server checks credentials
local identities = require "support.identities"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- The user that the server sees.
local function whoami(c)
  local review = c:create { apiVersion = "authentication.k8s.io/v1", kind = "SelfSubjectReview",
    metadata = {} }
  return review.status.userInfo
end

local function connect(path, more)
  local opts = { kubeconfig = path, cache_dir = false }
  for key, value in pairs(more or {}) do opts[key] = value end
  return kube.connect(opts)
end

-- "ways-in-cert-b" is one of the story "ways-in-cert".
local function story_of(name) return name:match "(.*)%-" end

local function configmap(name)
  return { kind = "v1/ConfigMap", namespace = "default", name = name, labels = { story = story_of(name) },
    data = {} }
end

-- The names in the next events of a watch, up to `name`.
local function up_to(next_event, name)
  local seen = {}
  repeat
    local event, o = next_event()
    assert.truthy(event)
    seen[#seen + 1] = event .. " " .. o.metadata.name
  until o.metadata.name == name
  return seen
end

-- A running watch, which has received the first object of a story.
local function standing_watch(c, name)
  c:apply(configmap(name))
  local next_event, _, _, closing = c:watch("v1/ConfigMap",
    { namespace = "default", labels = "story=" .. story_of(name) })
  up_to(next_event, name)
  return next_event, closing
end

local function microsocks(words)
  local port = servers.free_port()
  local spec = { "microsocks", "-i", "127.0.0.1", "-p", port }
  for _, word in ipairs(words or {}) do spec[#spec + 1] = word end
  local p = process.spawn(spec)
  wait.until_true(10, "microsocks listens", function()
    return (process.read "/proc/net/tcp"):find((":%04X 00000000:0000 0A"):format(port), 1, true)
  end)
  return p, port
end

local function tinyproxy(more)
  local port = servers.free_port()
  local conf = process.write(process.tmpname ".conf",
    ("Port %d\nListen 127.0.0.1\nAllow 127.0.0.1\nLogLevel Connect\nTimeout 600\n%s"):format(port,
    more or ""))
  local p = process.spawn { "tinyproxy", "-d", "-c", conf }
  wait.until_true(10, "tinyproxy listens", function()
    return (process.read "/proc/net/tcp"):find((":%04X 00000000:0000 0A"):format(port), 1, true)
  end)
  return p, port
end

local function port_of(url) return tonumber(url:match ":(%d+)$") end

-- The number of our new connections to the server.
local function new_connections(before, server)
  local n = 0
  for port in pairs(identities.connections(port_of(server.url))) do
    if not before[port] then n = n + 1 end
  end
  return n
end

servers.each(function(name, start)
  describe("proxies before " .. name, function()
    local s, proxy, c
    lazy_setup(function() s = start {} end)
    lazy_teardown(function() s:stop() end)
    after_each(function()
      if c then c:close() end
      if proxy and proxy:alive() then proxy:stop() end
    end)

    local function user() return s.token and "token: " .. s.token or "{}" end
    local function by_name() return (s.url:gsub("127%.0%.0%.1", "localhost")) end

    it("SOCKS5: names are resolved there, and calls go through", function()
      local port
      proxy, port = microsocks()
      c = connect(identities.kubeconfig(s, user(), ("server: %s\nproxy-url: socks5://127.0.0.1:%d\n"):format(
        by_name(), port)))
      assert.equal("default", c:get("v1/Namespace", "default").metadata.name)
      assert.truthy(proxy:log():find("connected to localhost:" .. port_of(s.url), 1, true), proxy:log())
      proxy:stop()
      local other = connect(nil, { server = by_name(), token = s.token, ca_file = s.ca,
        proxy = "socks5://127.0.0.1:" .. port })
      local _, err = kube.try(other.get, other, "v1/Namespace", "default")
      assert.truthy(tostring(err):find(
        ("through the proxy socks5h://127.0.0.1:%d: it refuses connections"):format(port), 1, true),
        tostring(err))
      other:close()
    end)

    it("SOCKS5: user and password are used, and stay out of messages", function()
      local port
      proxy, port = microsocks { "-u", "me", "-P", "s3cret" }
      c = connect(identities.kubeconfig(s, user(), ("proxy-url: socks5://me:s3cret@127.0.0.1:%d\n"):format(
        port)))
      assert.equal("default", c:get("v1/Namespace", "default").metadata.name)
      local other = connect(identities.kubeconfig(s, user(),
        ("proxy-url: socks5://me:s3cretive@127.0.0.1:%d\n"):format(port)))
      local _, err = kube.try(other.get, other, "v1/Namespace", "default")
      assert.truthy(tostring(err):find("through the proxy socks5h://127.0.0.1:" .. port, 1, true),
        tostring(err))
      assert.falsy(tostring(err):find("s3cret", 1, true), tostring(err))
      other:close()
    end)

    it("HTTP: calls go through, with user and password if required", function()
      local port
      proxy, port = tinyproxy "BasicAuth me s3cret\n"
      c = connect(identities.kubeconfig(s, user(), ("proxy-url: http://me:s3cret@127.0.0.1:%d\n"):format(
        port)))
      assert.equal("default", c:get("v1/Namespace", "default").metadata.name)
      local other = connect(identities.kubeconfig(s, user(),
        ("proxy-url: http://me:s3cretive@127.0.0.1:%d\n"):format(port)))
      local _, err = kube.try(other.get, other, "v1/Namespace", "default")
      if s.ca then        -- a tunnel that was refused; without TLS it is an answer as any other
        assert.truthy(tostring(err):find(
          ("through the proxy http://127.0.0.1:%d: it requires other credentials (401)"):format(port), 1,
          true), tostring(err))
      end
      assert.truthy(err)
      assert.falsy(tostring(err):find("s3cret", 1, true), tostring(err))
      other:close()
    end)

    it("the environment's, except for hosts of NO_PROXY", function()
      local dead = servers.free_port()
      local variable = s.ca and "HTTPS_PROXY" or "HTTP_PROXY"
      local scheme = s.ca and "https" or "http"
      local function says(no_proxy)
        local p = process.spawn { KUBELUA, "get", "namespaces", "--server",
          scheme .. "://api.cluster.invalid", "--request-timeout", "20s",
          env = { [variable] = "http://127.0.0.1:" .. dead, NO_PROXY = no_proxy, KUBECONFIG = "" } }
        assert.truthy(p:wait(30), p:log())
        return p:log()
      end
      local out = says "other.invalid, 10.0.0.0/8"
      assert.truthy(out:find("through the proxy http://127.0.0.1:" .. dead, 1, true), out)
      out = says "10.0.0.0/8,.cluster.invalid"
      assert.truthy(out:find("the name of api.cluster.invalid", 1, true), out)
    end)
  end)
end)

servers.only_real(function(name, start)
  describe("credentials for " .. name, function()
    local s, ca, c
    lazy_setup(function()
      s = start {}
      ca = { crt = s.dir .. "/ca.crt", key = s.dir .. "/ca.key" }
    end)
    lazy_teardown(function() s:stop() end)
    after_each(function()
      if c then c:close() end
      c = nil
    end)

    it("a credential plugin's token, requested once", function()
      local user, runs = identities.plugin(("printf '\"token\":\"%s\"'"):format(s.token))
      c = connect(identities.kubeconfig(s, user))
      for _ = 1, 3 do assert.equal("admin", whoami(c).username) end
      assert.equal(1, runs())
    end)

    it("a credential plugin runs again after a 401, and the call continues", function()
      local user,
        runs = identities.plugin((
        "[ $N = 1 ] && printf '\"token\":\"stale\"' || printf '\"token\":\"%s\"'"):format(s.token))
      c = connect(identities.kubeconfig(s, user))
      assert.equal("admin", whoami(c).username)
      assert.equal(2, runs())
    end)

    it("a watch gets its credentials from a plugin, too", function()
      local user,
        runs = identities.plugin((
        "[ $N = 1 ] && printf '\"token\":\"stale\"' || printf '\"token\":\"%s\"'"):format(s.token))
      c = connect(identities.kubeconfig(s, user))
      local next_event, closing = standing_watch(c, "ways-in-plugin-a")
      closing:close()
      assert.truthy(next_event)
      assert.equal(2, runs())
    end)

    it("a credential plugin's certificate, and the next one when it has expired", function()
      local first = identities.status_of(identities.certificate(ca, "/CN=plugin-first"),
        "2001-01-01T00:00:00Z")
      local second = identities.status_of(identities.certificate(ca, "/CN=plugin-second"))
      local user, runs = identities.plugin(("[ $N = 1 ] && cat %s || cat %s"):format(first, second))
      c = connect(identities.kubeconfig(s, user))
      c:resource "authentication.k8s.io/v1/SelfSubjectReview"
      assert.equal("plugin-second", whoami(c).username)       -- discovery used the first one
      assert.equal("plugin-second", whoami(c).username)
      assert.equal(2, runs())
    end)

    it("a plugin gets cluster information if configured", function()
      local user = identities.plugin(([[
case "$KUBERNETES_EXEC_INFO" in
*'"server":"%s"'*'"certificate-authority-data":"'*'"audience":"x"'*'"interactive":false'*) ;;
*) echo "$KUBERNETES_EXEC_INFO" >&2; exit 9;;
esac
[ "$FROM_CONFIG" = yes ] || exit 8
printf '"token":"%s"']]):format(s.url, s.token),
        "  provideClusterInfo: true\n  env: [{name: FROM_CONFIG, value: 'yes'}]\n")
      c = connect(identities.kubeconfig(s, user,
        "extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: x}}]\n"))
      assert.equal("admin", whoami(c).username)
    end)

    it("a plugin may prompt at the terminal, if there is one", function()
      local user = identities.plugin(([[
case "$KUBERNETES_EXEC_INFO" in *'"interactive":true'*) ;; *) echo "not interactive" >&2; exit 9;; esac
[ -t 0 ] || exit 8
echo 'the word?' >&2
read -r word; [ "$word" = sesame ] || exit 7
printf '"token":"%s"']]):format(s.token)):gsub("interactiveMode: Never", "interactiveMode: IfAvailable")
      local path = identities.kubeconfig(s, user)
      local words = { KUBELUA, "get", "namespace", "default", "--kubeconfig", path }
      for i, word in ipairs(words) do words[i] = process.quote(word) end
      -- `script` provides a terminal; its input is typed there.
      local out = process.run(("echo sesame | timeout 60 script -qec %s /dev/null"):format(
        process.quote(table.concat(words, " "))))
      assert.truthy(out:find("the word?", 1, true), out)
      assert.truthy(out:find("Active", 1, true), out)
      out = process.run(table.concat(words, " ") .. " </dev/null")
      assert.truthy(out:find("failed with exit code 9: not interactive", 1, true), out)
    end)

    it("a plugin that fails, or is missing, appears in the call's error", function()
      c = connect(identities.kubeconfig(s, (identities.plugin "echo 'log in first' >&2; exit 4")))
      local _, err = kube.try(whoami, c)
      assert.equal("unauthorized", err.kind)
      assert.truthy(tostring(err):find("failed with exit code 4: log in first", 1, true), tostring(err))
      local other = connect(identities.kubeconfig(s,
        "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./not-there, installHint: get it \z
          from us}"))
      _, err = kube.try(whoami, other)
      assert.truthy(tostring(err):find("/not-there\" is not installed", 1, true), tostring(err))
      assert.truthy(tostring(err):find("get it from us", 1, true), tostring(err))
      other:close()
    end)

    it("a token file is read again when it changes, under a running watch", function()
      local file = process.write(process.tmpname ".token", s.token .. "\n")
      c = connect(identities.kubeconfig(s, "tokenFile: " .. file))
      assert.equal("admin", whoami(c).username)
      local next_event, closing = standing_watch(c, "ways-in-token-a")
      local nobody = process.write(process.tmpname ".token", s.tokens.nobody)
      identities.rotate(file, nobody)
      -- far less than the 50 s of age
      wait.until_true(20, "calls are nobody's", function() return whoami(c).username == "nobody" end)
      identities.rotate(file, process.write(process.tmpname ".token", s.token))
      wait.until_true(20, "calls are admin's again", function() return whoami(c).username == "admin" end)
      c:apply(configmap "ways-in-token-b")
      assert.same({ "ADDED ways-in-token-b" }, up_to(next_event, "ways-in-token-b"))
      closing:close()
    end)

    it("client certificates that rotate move calls and watches to new connections, without a list", function()
      local alice, bob = identities.certificate(ca, "/O=system:masters/CN=alice"),
        identities.certificate(ca, "/O=system:masters/CN=bob")
      local crt, key = process.tmpname ".crt", process.tmpname ".key"
      identities.rotate(crt, alice.crt)
      identities.rotate(key, alice.key)
      c = connect(identities.kubeconfig(s, ("client-certificate: %s\nclient-key: %s\n"):format(crt, key)))
      assert.equal("alice", whoami(c).username)
      local next_event, closing = standing_watch(c, "ways-in-cert-a")
      local before = identities.connections(port_of(s.url))
      identities.rotate(crt, bob.crt)                         -- half of it: no pair, and nothing changes
      identities.rotate(key, bob.key)
      wait.until_true(20, "calls are bob's", function() return whoami(c).username == "bob" end)
      c:apply(configmap "ways-in-cert-b")
      assert.same({ "ADDED ways-in-cert-b" }, up_to(next_event, "ways-in-cert-b"))
      assert.equal(2, new_connections(before, s))             -- one for calls, one for watches
      identities.rotate(crt, process.write(process.tmpname ".bad", "garbage"))
      assert.equal("bob", whoami(c).username)
      closing:close()
    end)

    it("impersonation: user, uid, groups and extra", function()
      c = connect(s.kubeconfig, { as = "jane", as_uid = "u-1", as_groups = { "dev", "ops" },
        as_extra = { ["example.com/Team"] = { "a", "b" } } })
      local me = whoami(c)
      assert.equal("jane", me.username)
      assert.equal("u-1", me.uid)
      assert.same({ "dev", "ops", "system:authenticated" }, kube.copy(me.groups))
      assert.same({ "a", "b" }, kube.copy(me.extra["example.com/team"]))
      local from_file = connect(identities.kubeconfig(s,
        ("token: %s\nas: joe\nas-groups: [x]\nas-user-extra: {k: [v]}\n"):format(s.token)))
      me = whoami(from_file)
      assert.equal("joe", me.username)
      assert.same({ "v" }, kube.copy(me.extra.k))
      from_file:close()
      local p = process.spawn { KUBELUA, "get", "secrets", "--kubeconfig", s.kubeconfig, "--as", "jim",
        "--as-group", "g1", "--as-group", "g2" }
      assert.equal(1, p:wait(30), p:log())
      assert.truthy(p:log():find("jim", 1, true), p:log())
    end)

    it("several at once in one process", function()
      local nobody = connect(s:kubeconfig_for(s.tokens.nobody))
      c = connect(s.kubeconfig)
      local cert = identities.certificate(ca, "/CN=carol")
      local carol = connect(nil, { server = s.url, ca_file = s.ca, cert_file = cert.crt,
        key_file = cert.key })
      assert.equal("nobody", whoami(nobody).username)
      assert.equal("admin", whoami(c).username)
      assert.equal("carol", whoami(carol).username)
      assert.equal("nobody", whoami(nobody).username)
      nobody:close()
      carol:close()
    end)

    it("options alone, with strings or files; without a CA the server is not trusted, except with \z
      insecure", function()
      local cert = identities.certificate(ca, "/CN=dave")
      c = connect(nil, { server = s.url, ca_data = process.read(s.ca), cert_data = process.read(cert.crt),
        key_data = process.read(cert.key) })
      assert.equal("dave", whoami(c).username)
      local doubting = connect(nil, { server = s.url, token = s.token })
      local _, err = kube.try(whoami, doubting)
      assert.equal("unreachable", err.kind)
      assert.truthy(tostring(err):find("unknown authority", 1, true), tostring(err))
      local trusting = connect(nil, { server = s.url,
        token_file = process.write(process.tmpname ".token", s.token), insecure = true })
      assert.equal("admin", whoami(trusting).username)
      local named = connect(nil, { server = s.url, token = s.token, ca_file = s.ca,
        tls_server_name = "kubernetes.default.svc" })
      assert.equal("admin", whoami(named).username)
      local misnamed = connect(nil, { server = s.url, token = s.token, ca_file = s.ca,
        tls_server_name = "example.com" })
      _, err = kube.try(whoami, misnamed)
      assert.truthy(tostring(err):find('is not for "example.com"', 1, true), tostring(err))
      for _, x in ipairs { doubting, trusting, named, misnamed } do x:close() end
    end)

    it("no secret is in a debug log", function()
      local user = identities.plugin(("echo 'token eyJs3cret.s3cret' >&2; printf '\"token\":\"%s\"'"):format(
        s.token))
      local script = process.write(process.tmpname ".lua",
        'local kube = require "kubelua"\nreturn kube.controller { name = "ways-in", resource = \z
          "v1/ConfigMap", reconcile = function(o, ctx) ctx.log:info("saw one") end }\n')
      local p = process.spawn { KUBELUA, "run", script, "--kubeconfig", identities.kubeconfig(s, user),
        "--log-level", "debug", "--namespace", "default" }
      s:must_kubectl("create", "configmap", "ways-in-log")
      p:wait_for_log(30, "saw one")
      p:stop()
      assert.truthy(p:log():find("a credential plugin has run", 1, true), p:log())      -- it is the debug log
      assert.falsy(p:log():find(s.token, 1, true), p:log())
      assert.falsy(p:log():find("s3cret", 1, true), p:log())
    end)
  end)

  describe("a CA that rotates, with the serving certificate of " .. name .. ",", function()
    local s
    lazy_setup(function() s = start { own = true } end)
    lazy_teardown(function() s:stop() end)

    local function served_by(issuer)
      local out = process.run(("openssl s_client -connect 127.0.0.1:%d -showcerts </dev/null 2>/dev/null | \z
        openssl x509 -noout -issuer"):format(port_of(s.url)))
      return out:find(issuer, 1, true)
    end

    it("interrupts neither calls nor a watch", function()
      local mine, old = process.tmpname ".ca", process.read(s.ca)
      local old_ca, other = process.write(process.tmpname ".ca", old), identities.ca "kubelua-spec-other-ca"
      identities.rotate(mine, s.ca)
      local c = connect(identities.kubeconfig(s, "token: " .. s.token, "certificate-authority: " .. mine))
      local next_event, closing = standing_watch(c, "ca-a")
      local before = identities.connections(port_of(s.url))
      local fresh = identities.certificate(other, "/CN=kube-apiserver",
        "DNS:kubernetes.default,DNS:localhost,IP:127.0.0.1")
      identities.rotate(mine, old_ca, other.crt)
      process.run(("cat %s > %s/server.key && cat %s > %s/server.crt"):format(fresh.key, s.dir, fresh.crt,
        s.dir))
      wait.until_true(90, "the server shows its new certificate", function()
        return served_by "kubelua-spec-other-ca"
      end)
      identities.rotate(mine, other.crt)
      wait.until_true(20, "calls go over a new connection", function()
        return whoami(c).username == "admin" and new_connections(before, s) > 0
      end)
      c:apply(configmap "ca-b")
      assert.same({ "ADDED ca-b" }, up_to(next_event, "ca-b"))
      assert.truthy(new_connections(before, s) >= 2)          -- the watch has moved, too
      local doubting = connect(nil, { server = s.url, token = s.token, ca_file = old_ca })
      local _, err = kube.try(whoami, doubting)
      assert.truthy(tostring(err):find("unknown authority", 1, true), tostring(err))
      doubting:close()
      closing:close()
      c:close()
    end)
  end)
end)
