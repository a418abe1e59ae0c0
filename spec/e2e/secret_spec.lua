-- secret_spec.lua - ctx.secret: a script passes on a secret param and cannot read it.

local controller = require "support.controller"
local http = require "support.http"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local kube = require "kubelua"

local SOURCE = [[
  local kube = require "kubelua"
  return kube.controller {
    name = "hands-on", resource = "v1/ConfigMap", %s
    params = { token = { type = "secret" }, spare = { type = "secret", optional = true }, plain = "x" },
    reconcile = function(o, ctx)
      local secret = ctx.secret
      %s
    end,
  }
]]
local TOKEN = "s3cret-42"

describe("a secret param", function()
  local t
  after_each(function()
    if t then t:stop() end
    t = nil
  end)

  -- The log of a run with this body, or its error.
  local function said(body)
    t = kube.testing.start { source = SOURCE:format("", body), params = { token = TOKEN },
      objects = { { kind = "v1/ConfigMap", name = "a" } } }
    local run = t:runs("a")[1]
    local texts = {}
    for _, l in ipairs(t:logs()) do
      if l.message:find "^said: " then texts[#texts + 1] = l.message:sub(7) end
    end
    return run.message and run.message:gsub("^.-:%d+: ", "") or table.concat(texts, "; ")
  end

  it("shows nothing of itself, and is not among the params", function()
    assert.equal("*** *** userdata nil nil x", said [[
      local s = secret("token"):format("Bearer %s%s", 1)
      ctx.log:info("said: %s %s %s %s %s %s", s, kube.base64_encode(s), type(s),
        secret "spare", ctx.params.token, ctx.params.plain)
    ]])
    t:stop()
    assert.equal('{"plain":"x"}', said [[ctx.log:info("said: %s", kube.encode(ctx.params))]])
  end)

  it("is rejected wherever it could be read", function()
    local refused = "a secret may go into headers and tls of ctx.http"
    for _, body in ipairs {
      "kube.encode { x = secret 'token' }",
      "ctx.memo.x = secret 'token'",
      "kube.shared:set('x', secret 'token')",
      "ctx:patch(o, { data = { x = secret 'token' } })",
      "ctx:patch(o, function(d) d.data = { x = secret 'token' } end)",
      "return { status = { x = secret 'token' } }",
      "ctx:apply { kind = 'v1/Secret', name = 's', labels = { x = secret 'token' } }",
      "ctx:apply { kind = 'v1/ConfigMap', name = 's', data = { x = secret 'token' } }",
      "ctx.http:post('https://x.example.com', { json = { x = secret 'token' } })",
    } do
      local why = said(body)
      assert.truthy(why:find(refused, 1, true), body .. ": " .. why)
      t:stop()
    end
  end)

  it("is not a string, and the error says how to use it", function()
    for body, why in pairs {
      ["local _ = 'Bearer ' .. secret 'token'"] = "attempt to concatenate a kubelua.secret value",
      ["secret('token'):format('%s %s', {})"] = "secret:format: %s number 2 must be a string or a secret, \z
        got table",
      ["secret('token'):format('%s %s')"] = "secret:format: %s number 2 must be a string or a secret, got \z
        no value",
      ["secret('token'):format('x')"] = "secret:format: the text has no %s, where the secret goes",
      ["secret('token'):format('%s', 'x')"] = "secret:format: more arguments than %s",
      ["secret('token'):format('%d')"] = "secret:format: %s stands for the secret, and %% for a %",
      ["secret('token'):format('100%')"] = "secret:format: %s stands for the secret, and %% for a %",
      ["secret('token').format('x', 'y')"] = "kubelua.secret expected, got string",
      ["local _ = ('x'):rep(1, secret 'token')"] = "string expected, got kubelua.secret",
      ["local _ = #secret 'token'"] = "attempt to get length of a kubelua.secret value",
      ["secret('token').text = 1"] = "attempt to index a kubelua.secret value",
      ["ctx:secret 'token'"] = "ctx.secret is called with a dot and a name, ctx.secret \"token\", got \z
        userdata",
      ["secret 'tokn'"] = 'ctx.secret "tokn": unknown secret; did you mean \'token\'?',
      ["secret 'plain'"] = 'ctx.secret "plain": the param is not a secret; it is ctx.params.plain',
    } do
      local got = said(body)
      assert.truthy(got:find(why, 1, true), body .. ": " .. got)
      t:stop()
    end
  end)
end)

servers.each(function(name, start)
  describe("a secret param against " .. name, function()
    local server, client, ns, web
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "hush")
      web = http.web()
    end)
    lazy_teardown(function()
      if web then web:stop() end
      if server then server:stop() end
    end)

    for _, how in ipairs { "in its own process", "isolated" } do
      it("goes into headers and Secrets, and never into a log or recording: " .. how, function()
        local recording = process.tmpname ".rec"
        local key = how == "isolated" and "far" or "near"
        local script = SOURCE:format(
          ("namespaces = { %q }, http = { %q }, %s"):format(ns, web.url,
            how == "isolated" and "isolate = true," or ""), ([[
              if ctx.name ~= %q then return end
              local echoed = ctx.http:get(%q,
                { headers = { Authorization = secret("token"):format "Bearer %%s",
                  ["X-Basic"] = kube.base64_encode(secret("token"):format "u:%%s"):format "Basic %%s" } })
              local arrived = echoed.json.headers.authorization == "Bearer %s"
                and echoed.json.headers["x-basic"] == "Basic " .. kube.base64_encode "u:%s"
              ctx:apply { kind = "v1/Secret", name = ctx.name, stringData = { text = secret "token" },
                data = { data = secret "token" } }
              ctx:patch({ kind = "v1/Secret", name = ctx.name, namespace = ctx.namespace },
                { stringData = { patched = secret("token"):format "<%%s>" } })
              ctx.log:info("it arrived: %%s, %%s", arrived, secret "token")
            ]]):format(key, web.url .. "/echo", TOKEN, TOKEN))
        local run = controller.start(server, script, "--allow-http", "--param", "token=" .. TOKEN, "--record",
          recording)
        client:create { kind = "v1/ConfigMap", namespace = ns, name = key }
        run:wait_for_log(60, "it arrived: true, ***")
        wait.until_true(30, "the Secret is patched", function()
          local got = client:get("v1/Secret", ns, key)
          return got and got("data.patched") == kube.base64_encode("<" .. TOKEN .. ">") and got
        end)
        local got = client:get("v1/Secret", ns, key)
        assert.equal(kube.base64_encode(TOKEN), got("data.text"))
        assert.equal(kube.base64_encode(TOKEN), got("data.data"))
        controller.finish(run)
        assert.is_nil(run:log():find("s3cret", 1, true))
        local recorded = process.read(recording)
        assert.is_nil(recorded:gsub("[^\n]*\"script\"[^\n]*\n", ""):find("Bearer s3cret", 1, true))
        assert.is_nil(recorded:find(kube.base64_encode(TOKEN), 1, true))
      end)
    end
  end)
end)
