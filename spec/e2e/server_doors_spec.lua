-- server_doors_spec.lua - other answers of a server: paths with gaps, missing subresources, health checks,
-- OpenID; the fields that an applied configuration needs; definitions at their creation; tokens for others
-- and of deleted objects.
-- not in tsan: one request after the other, and what answers them is pure

local json = require "dkjson"

local both = require "support.both"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

local function definition(group, name)
  return { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = name .. "s." .. group },
    spec = { group = group, scope = "Namespaced",
      names = { plural = name .. "s", kind = name:gsub("^%l", string.upper) },
      versions = { { name = "v1", served = true, storage = true,
        schema = { openAPIV3Schema = { type = "object",
          ["x-kubernetes-preserve-unknown-fields"] = true } } } } } }
end

local GROUP = "doors.test.dev"

both.describe("paths", function(ns)
  local one = ("/apis/%s/v1/namespaces/%s/widgets"):format(GROUP, ns)
  local rows = {}
  local function get(path, code, method, body)
    rows[#rows + 1] = { (method or "GET") .. " " .. path:gsub(ns, "NS"), method or "GET", path, body, code }
  end
  get(one, 201, "POST", { apiVersion = GROUP .. "/v1", kind = "Widget", metadata = { name = "w" } })
  for _, sub in ipairs { "status", "scale", "foo", "foo/bar" } do
    get(one .. "/w/" .. sub, 404)
    get(one .. "/none/" .. sub, 404)
  end
  get(one .. "/w/status", 404, "PUT", {})
  get(one .. "/w/foo", 404, "POST", {})
  get(one .. "/w/status", 404, "DELETE")
  get("/api/v1//namespaces", 404)
  get("/api/v1//namespaces", 404, "POST", {})
  get("/api//v1/namespaces/default", 404)
  get("//api/v1/namespaces", 404)
  get("/apis//apps/v1", 404)
  get("/apis/apps//v1/deployments", 404)
  get(("/apis/%s/v1//widgets"):format(GROUP), 404)
  get(("/api/v1/namespaces/%s/configmaps//"):format(ns), 200)
  get(("/api/v1/namespaces/%s/"):format(ns), 200)
  get("/readyz/", 404)
  get("/readyzz", 404)
  get("/healthz/nope", 404)
  get("/healthz/ping/x", 404)
  get("/openid/v1", 404)
  for _, path in ipairs { "", "/", "/heap", "/profile?seconds=1", "/cmdline" } do
    get("/debug/pprof" .. path, 404)
  end
  get("/debug/flags/v", 404)
  get("/debug", 404)
  get("/metrics/slis/", 404)
  return rows
end, function(s)
  both.ask(s, { { "", "POST", DEFINITIONS, definition(GROUP, "widget") } })
  wait.until_true(30, "widgets are served", function()
    return both.ask(s, { { "", "GET", ("/apis/%s/v1/widgets"):format(GROUP) } })[1].code == 200
  end)
end)

both.describe("applied configurations", function(ns)
  local rows = {}
  local maps = "/api/v1/namespaces/" .. ns .. "/configmaps"
  local function apply(what, body, code)
    rows[#rows + 1] = { what, "APPLY", maps .. "/a?fieldManager=m", body, code or 400 }
  end
  local function all(when)
    apply("without an apiVersion, " .. when, { kind = "ConfigMap" })
    apply("without a kind, " .. when, { apiVersion = "v1" })
    apply("without both, " .. when, { data = { a = "b" } })
    apply("of another version, " .. when, { apiVersion = "v2", kind = "ConfigMap" })
    apply("of another group, " .. when, { apiVersion = "apps/v1", kind = "ConfigMap" })
    apply("of another kind, " .. when, { apiVersion = "v1", kind = "Secret" })
  end
  all "new"
  apply("without a name, new", { apiVersion = "v1", kind = "ConfigMap", data = { a = "b" } })
  apply("whole", { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" }, data = { a = "b" } },
    201)
  apply("without a name, over one", { apiVersion = "v1", kind = "ConfigMap", data = { a = "c" } }, 200)
  all "over one"
  return rows
end)

both.describe("definitions", function(ns)
  return { { "are answered before their names are judged", "POST", DEFINITIONS,
    definition(ns .. ".dev", "gadget"), 201 } }
end)

both.describe("claims", function(ns)
  local rows = {}
  local claims = "/api/v1/namespaces/" .. ns .. "/persistentvolumeclaims"
  local classes = "/apis/storage.k8s.io/v1/storageclasses"
  local function row(...) rows[#rows + 1] = { ... } end
  local function class(name, grows)
    row("class " .. name, "POST", classes,
      { metadata = { name = ns .. name }, provisioner = "x", allowVolumeExpansion = grows }, 201)
  end
  class("grow", true)
  class("fixed", false)
  local function claim(name, class_name)
    local size = function(s) return { spec = { resources = { requests = { storage = s } } } } end
    row(name .. ": made", "POST", claims,
      { metadata = { name = name }, spec = { storageClassName = class_name,
      accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } } }, 201)
    row(name .. ": bound", "PATCH", claims .. "/" .. name .. "/status",
      { status = { phase = "Bound", capacity = { storage = "1Gi" } } }, 200)
    row(name .. ": of a volume", "PATCH", claims .. "/" .. name, { spec = { volumeName = "pv" } }, 200)
    row(name .. ": grows", "PATCH", claims .. "/" .. name, size "2Gi", name == "grow" and 200 or 403)
    row(name .. ": shrinks", "PATCH", claims .. "/" .. name, size "512Mi", 422)
    row(name .. ": stays", "PATCH", claims .. "/" .. name, { metadata = { labels = { a = "b" } } }, 200)
  end
  claim("grow", ns .. "grow")
  claim("fixed", ns .. "fixed")
  claim("none", "")
  claim("missing", "missing")
  for _, name in ipairs { "grow", "fixed" } do
    row("class " .. name .. " goes", "DELETE", classes .. "/" .. ns .. name, nil, 200)
  end
  return rows
end)

both.describe("zones of schedules", function(ns)
  local rows = {}
  for zone, code in pairs { ["Europe/Nope"] = 422, ["europe/berlin"] = 422,
    ["America/Argentina/Buenos_Aires"] = 201, CET = 201,
    ["Etc/GMT+5"] = 201, ["GMT+1"] = 422, ["US/Pacific"] = 201, ["Asia/Calcutta"] = 201, ["Europe/"] = 422,
      ["Etc//UTC"] = 422,
    Europe = 422, ["America/Argentina"] = 422, ["zone.tab"] = 422, Local = 422, ["local"] = 422 } do
    rows[#rows + 1] = { zone, "POST", "/apis/batch/v1/namespaces/" .. ns .. "/cronjobs?dryRun=All",
      { metadata = { name = "x" },
      spec = { schedule = "* * * * *", timeZone = zone, jobTemplate = { spec = { template = { spec = {
        restartPolicy = "Never", containers = { { name = "a", image = "a" } } } } } } } }, code }
  end
  return rows
end)

both.describe("scalers of v1", function(ns)
  local v1 = ("/apis/autoscaling/v1/namespaces/%s/horizontalpodautoscalers"):format(ns)
  local v2 = v1:gsub("/v1/", "/v2/", 1)
  local function body(percent, conditions)
    return { metadata = { name = "a",
      annotations = { a = "b", ["autoscaling.alpha.kubernetes.io/conditions"] = conditions } },
      spec = { maxReplicas = 7, targetCPUUtilizationPercentage = percent,
        scaleTargetRef = { apiVersion = "apps/v1", kind = "Deployment", name = "d" } } }
  end
  return {
    { "with a status of v2", "POST", v2, { metadata = { name = "a" }, spec = { maxReplicas = 5,
      scaleTargetRef = { apiVersion = "apps/v1", kind = "Deployment", name = "d" } } }, 201 },
    { "which is written", "PATCH", v2 .. "/a/status", { status = { currentReplicas = 1, desiredReplicas = 2,
      conditions = { { type = "AbleToScale", status = "True", reason = "x", message = "m",
        lastTransitionTime = "2026-01-01T00:00:00Z" } },
      currentMetrics = { { type = "Resource", resource = { name = "memory",
        current = { averageValue = "10Mi" } } } } } }, 200 },
    { "are replaced", "PUT", v1 .. "/a", body(44), 200 },
    { "keep it", "GET", v2 .. "/a", nil, 200 },
    { "are replaced with another", "PUT", v1 .. "/a", body(45, "[]"), 200 },
    { "keep it again", "GET", v2 .. "/a", nil, 200 },
  }
end)

servers.each(function(name, start)
  describe("an endpoint of " .. name, function()
    local s
    lazy_setup(function() s = start {} end)
    lazy_teardown(function() s:stop() end)

    local function get(path)
      local auth = s.token and ("-H 'Authorization: Bearer %s' --cacert '%s'"):format(s.token, s.ca) or ""
      local text = process.run(
        ("curl -sg --max-time 20 -w '\\n%%{http_code} %%{content_type}' %s '%s%s'"):format(auth, s.url, path))
      local body, code, kind = text:match "^(.*)\n(%d+) ([^\n]*)$"
      return body, tonumber(code), kind
    end

    it("reports its health", function()
      for _, path in ipairs { "/healthz", "/livez", "/readyz", "/healthz/ping", "/livez/etcd",
        "/readyz/informer-sync", "/readyz?exclude=nope",
        "/readyz/poststarthook/rbac/bootstrap-roles", "/livez/autoregister-completion",
          "/readyz/shutdown" } do
        local body, code = get(path)
        assert.same({ "ok", 200 }, { body, code }, path)
      end
      for _, door in ipairs { "healthz", "livez", "readyz" } do
        local body = get("/" .. door .. "?verbose&exclude=etcd&exclude=nope")
        assert.truthy(body:find("^%[%+%]ping ok\n%[%+%]log ok\n%[%+%]etcd excluded: ok\n"), body)
        assert.truthy(body:find("\nwarn: some health checks cannot be excluded: no matches for \"nope\"\n"
          .. door .. " check passed\n", 1, true), body)
        assert.equal(door == "readyz", body:find("\n[+]shutdown ok\n", 1, true) ~= nil)
      end
    end)

    it("has the checks of a server that has started", function()
      local body = get "/livez?verbose"
      local names = {}
      for one in body:gmatch "%[%+%]poststarthook/(%S+) ok\n" do names[#names + 1] = one end
      assert.equal(26, #names)
      assert.equal("start-apiserver-admission-initializer", names[1])
      assert.same({ 404, 404 }, { select(2, get "/livez/shutdown"), (select(2, get "/livez/poststarthook")) })
    end)

    it("accepts trailing slashes on most paths", function()
      for path, code in pairs { ["/api//"] = 200, ["/api/v1//"] = 200, ["/apis/"] = 200, ["/apis//"] = 404,
        ["/apis/apps//"] = 200, ["/apis/apps/v1//"] = 200, ["/version//"] = 200, ["/openid/v1/jwks//"] = 200,
          ["/openapi/v3/"] = 404,
        ["/openapi/v2/"] = 404, ["/healthz/"] = 404, ["/metrics/"] = 404, ["//"] = 404 } do
        assert.equal(code, (select(2, get(path))), path)
      end
    end)

    it("lists its paths, and each exists", function()
      local body, code, kind = get "/"
      assert.same({ 200, "application/json" }, { code, kind })
      assert.equal(body, (get "/index.html"))
      local rows, listed = {}, {}
      for _, path in ipairs(json.decode(body).paths) do
        listed[path] = true
        if path ~= "/openapi/v3/"
          and path:sub(1, 6) ~= "/apis/" then rows[#rows + 1] = { "", "GET", path } end
      end
      for _, path in ipairs { "/api/v1", "/apis/apps/v1", "/apis/batch", "/version",
        "/livez/poststarthook/crd-informer-synced", "/readyz/shutdown", "/openid/v1/jwks" } do
        assert.is_true(listed[path], path)
      end
      for i, answer in ipairs(both.ask(s, rows)) do assert.equal(200, answer.code, rows[i][3]) end
    end)

    it("counts its objects", function()
      local body, code, kind = get "/metrics"
      assert.equal(200, code)
      assert.truthy(kind:find("^text/plain; version=0.0.4"), kind)
      assert.truthy(body:find("\n# TYPE apiserver_resource_objects gauge\n", 1, true))
      -- the real one counts once a minute
      local count = tonumber(body:match '\napiserver_resource_objects{group="",resource="namespaces"} \z
        (%-?%d+)\n')
      assert.truthy(count and (s.name ~= "embedded" or count >= 4), count)
    end)

    it("reports its start time", function()
      for _, path in ipairs { "/metrics", "/metrics/slis" } do
        local started = ("\n" .. get(path)):match "\nprocess_start_time_seconds (%d%.%d+e%+09)\n"
        local age = os.time() - tonumber(started)
        assert.is_true(age > -2 and age < 24 * 3600, age)
      end
    end)

    it("counts the results of its health checks", function()
      local TOTAL = '\nkubernetes_healthchecks_total{name="%s",status="success",type="livez"} (%%d+)\n'
      local function count(check) return tonumber((get "/metrics/slis"):match(TOTAL:format(check))) end
      get "/livez"
      local ping, log = count "ping", count "log"
      get "/livez?exclude=log&verbose"
      get "/livez/ping"
      -- other specs may use the shared server, too
      assert.is_true(count "ping" > ping)
      if s.name == "embedded" then assert.same({ ping + 1, log }, { count "ping", count "log" }) end
      assert.is_nil(count "shutdown")
      get "/readyz"
      local body, code, kind = get "/metrics/slis"
      assert.equal(200, code)
      assert.truthy(kind:find("^text/plain; version=0.0.4"), kind)
      assert.truthy(body:find("\n# TYPE kubernetes_healthcheck gauge\n", 1, true), body)
      assert.truthy(body:find('\nkubernetes_healthcheck{name="etcd-readiness",type="readyz"} 1\n', 1, true),
        body)
      local names = {}
      for check in body:gmatch '\nkubernetes_healthcheck{name="([^"]+)",type="readyz"} 1' do
        names[#names + 1] = check
      end
      local sorted = table.move(names, 1, #names, 1, {})
      table.sort(sorted)
      assert.same(sorted, names)
      assert.equal(33, #names)
    end)

    it("reports its address", function()
      local list = json.decode((get "/api")).serverAddressByClientCIDRs
      assert.equal(1, #list)
      assert.equal("0.0.0.0/0", list[1].clientCIDR)
      assert.equal(s.url:match ":(%d+)$", list[1].serverAddress:match "^%d+%.%d+%.%d+%.%d+:(%d+)$")
      assert.is_nil(json.decode((get "/apis/apps")).serverAddressByClientCIDRs)
      for _, group in ipairs(json.decode((get "/apis")).groups) do
        assert.is_nil(group.serverAddressByClientCIDRs)
      end
    end)

    it("names the issuer of its tokens", function()
      local body, _, kind = get "/.well-known/openid-configuration"
      assert.equal("application/json", kind)
      assert.truthy(body:find(
        '"issuer":"https://kubernetes.default.svc","jwks_uri":"https?://[^"]+/openid/v1/jwks",'), body)
      body, _, kind = get "/openid/v1/jwks"
      assert.equal("application/jwk-set+json", kind)
      assert.truthy(body:find(
        '^{"keys":%[{"use":"sig","kty":"RSA","kid":"[%w_-]+","alg":"RS256","n":"[%w_-]+","e":"AQAB"}'), body)
    end)

    describe("for tokens", function()
      local ns = "doors-tokens"
      local core = "/api/v1/namespaces/" .. ns
      local function ask(method, path, body) return both.ask(s, { { "", method, path, body } })[1] end
      local function token(account, spec)
        local answer = ask("POST", core .. "/serviceaccounts/" .. account .. "/token", { spec = spec })
        assert.equal(201, answer.code)
        return answer.body.status.token
      end
      local function review(text, audiences)
        return ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
          { spec = { token = text, audiences = audiences } }).body.status
      end
      local function bound(kind,
        object) return { boundObjectRef = { kind = kind, apiVersion = "v1", name = object } } end
      lazy_setup(function()
        ask("POST", "/api/v1/namespaces", { metadata = { name = ns } })
        for _, account in ipairs { "a", "b" } do ask("POST", core .. "/serviceaccounts",
          { metadata = { name = account } }) end
      end)
      lazy_teardown(function() ask("DELETE", "/api/v1/namespaces/" .. ns) end)

      local API = "https://kubernetes.default.svc"
      local function others(own, asked)
        return ("[invalid bearer token, token audiences [%s] is invalid for the target audiences \z
          [%s]]"):format(own, asked)
      end
      it("honours their audiences", function()
        local default, vault, two = token("a", {}), token("a", { audiences = { "vault", "x" } }),
          token("a", { audiences = { API, "vault" } })
        assert.same({ API }, review(default).audiences)
        assert.equal("system:serviceaccount:" .. ns .. ":a", review(default).user.username)
        assert.equal(others('"vault" "x"', '"' .. API .. '"'), review(vault).error)
        assert.equal(others('"' .. API .. '"', '"vault"'), review(default, { "vault" }).error)
        assert.equal(others('"' .. API .. '" "vault"', '"y" "z"'), review(two, { "y", "z" }).error)
        assert.same({ "x", "vault" }, review(vault, { "x", "vault", "y" }).audiences)
        assert.same({ "vault" }, review(two, { "x", "vault", "y" }).audiences)
      end)

      local function part(text, n)
        local letters, i = text:gsub("[-_]", { ["-"] = "+", ["_"] = "/" }), 0
        for one in letters:gmatch "[^.]+" do
          i = i + 1
          if i == n then return process.run(("printf %%s '%s' | base64 -d"):format(one
            .. ("="):rep(-#one % 4))) end
        end
      end
      local function claims(text) return json.decode(part(text, 2)) end
      local UUID = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-4%x%x%x%-[89ab]%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"

      it("signs them with a key that it shows", function()
        local text, keys = token("a", {}), json.decode((get "/openid/v1/jwks")).keys
        local dir = process.run "mktemp -d":gsub("%s", "")
        local function put(file_name, data)
          local file = assert(io.open(dir .. "/" .. file_name, "wb"))
          file:write(data)
          file:close()
        end
        put("text", text:match "^(.*)%.[^.]*$")
        put("signature", part(text, 3))
        put("key", ("asn1=SEQUENCE:k\n[k]\na=SEQUENCE:a\nb=BITWRAP,\z
          SEQUENCE:b\n[a]\no=OID:rsaEncryption\np=NULL\n"
          .. "[b]\nn=INTEGER:0x%s\ne=INTEGER:0x010001\n"):format((part(keys[1].n, 1):gsub(".", function(c)
            return ("%02x"):format(c:byte())
          end))))
        local head = json.decode(part(text, 1))
        assert.same({ alg = "RS256", kid = keys[1].kid }, { alg = head.alg, kid = head.kid })
        local answer = process.run(("cd %s && openssl asn1parse -genconf key -noout -out der && openssl \z
          dgst -sha256 "
          .. "-verify der -keyform DER -signature signature text; rm -r %s"):format(dir, dir))
        assert.equal("Verified OK\n", answer)
      end)

      it("binds them to their object", function()
        ask("POST", "/api/v1/nodes", { metadata = { name = ns } })
        local pods = ask("POST", core .. "/pods",
          { metadata = { name = "p" }, spec = { serviceAccountName = "a",
          nodeName = ns, containers = { { name = "c", image = "c" } } } })
        assert.equal(201, pods.code)
        local plain, pod = claims(token("a", {})), token("a", bound("Pod", "p"))
        assert.truthy(plain.jti:find(UUID), plain.jti)
        assert.equal(3600, plain.exp - plain.iat)
        assert.equal(plain.iat, plain.nbf)
        local node = ask("GET", "/api/v1/nodes/" .. ns).body.metadata.uid
        local said = claims(pod)
        assert.same({ namespace = ns, node = { name = ns, uid = node },
          pod = { name = "p", uid = pods.body.metadata.uid },
          serviceaccount = { name = "a", uid = ask("GET", core .. "/serviceaccounts/a").body.metadata.uid } },
          said["kubernetes.io"])
        local function extra(key) return "authentication.kubernetes.io/" .. key end
        assert.same({ [extra "credential-id"] = { "JTI=" .. said.jti }, [extra "node-name"] = { ns },
          [extra "node-uid"] = { node }, [extra "pod-name"] = { "p" },
            [extra "pod-uid"] = { pods.body.metadata.uid } },
          review(pod).user.extra)
        local kubelets = bound("Pod", "p")
        kubelets.expirationSeconds = 3607
        said = claims(token("a", kubelets))
        assert.equal(365 * 24 * 3600, said.exp - said.iat)
        assert.equal(3607, said["kubernetes.io"].warnafter - said.iat)
        ask("DELETE", "/api/v1/nodes/" .. ns)
        assert.is_true(review(pod).authenticated)
        ask("DELETE", core .. "/pods/p?gracePeriodSeconds=0")
      end)

      it("rejects one whose object is gone", function()
        ask("POST", core .. "/secrets", { metadata = { name = "s" } })
        local text, again = token("a", bound("Secret", "s")), token("a", bound("Secret", "s"))
        assert.is_true(review(token("a", bound("Secret", "s"))).authenticated)
        ask("DELETE", core .. "/secrets/s")
        assert.equal("[invalid bearer token, service account token has been invalidated]", review(text).error)
        local other = ask("POST", core .. "/secrets", { metadata = { name = "s" } }).body.metadata.uid
        assert.truthy(review(again).error:find("[invalid bearer token, secret UID (" .. other
          .. ") does not match service account secret ref claim (", 1, true))
      end)

      it("refuses one whose account is gone", function()
        local text, again = token("b", {}), token("b", {})
        ask("DELETE", core .. "/serviceaccounts/b")
        assert.equal('[invalid bearer token, serviceaccounts "b" not found]', review(text).error)
        local other = ask("POST", core .. "/serviceaccounts", { metadata = { name = "b" } }).body.metadata.uid
        assert.truthy(review(again).error:find("[invalid bearer token, service account UID (" .. other
          .. ") does not match claim (", 1, true))
      end)
    end)
  end)
end)
