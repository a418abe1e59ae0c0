-- connect_spec.lua - the credentials that kube.connect accepts, and its errors for others.
local kube = require "kubelua"
local process = require "support.process"

local URL = "https://127.0.0.1:1"

local function refusal(opts)
  opts.server, opts.cache_dir = opts.server or URL, false
  local ok, err = pcall(kube.connect, opts)
  assert.falsy(ok)
  return tostring(err)
end

local function says(part, opts)
  local message = refusal(opts)
  assert.truthy(message:find(part, 1, true), message)
  return message
end

describe("kube.connect with credentials among its options", function()
  it("rejects contradictory options, and says which to keep", function()
    says("has both a token and a user name or password: keep one", { token = "s3cret", username = "me" })
    says("has both client-certificate and client-certificate-data: keep one",
      { cert_file = "/dev/null", cert_data = "x", key_data = "y" })
    says("has a client certificate but no client-key", { cert_data = "x" })
    says("insecure-skip-tls-verify together with a certificate-authority: keep one",
      { ca_data = "x", insecure = true })
    says("impersonates a uid, groups or extra fields but no user", { as_groups = { "dev" } })
    says("impersonates a uid, groups or extra fields but no user", { as_extra = { k = "v" } })
  end)

  it("rejects missing files and invalid proxies", function()
    says("the options: client-certificate /nowhere/crt cannot be read: No such file or directory",
      { cert_file = "/nowhere/crt", key_data = "y" })
    says("/nowhere/token", { token_file = "/nowhere/token" })
    says("the options: certificate-authority /nowhere/ca cannot be read", { ca_file = "/nowhere/ca" })
    says('proxy-url "ftp://x" of cluster "" must begin with http://, https:// or socks5://',
      { proxy = "ftp://x" })
  end)

  it("rejects wrong types, line breaks in headers and misspelt names", function()
    says("kube.connect: as_groups must hold strings, got number", { as = "x", as_groups = { "a", 1 } })
    says("kube.connect: as_extra must hold strings, got boolean", { as = "x", as_extra = { k = { true } } })
    says("as_extra's keys", { as = "x", as_extra = { "v" } })
    says("option 'as_groups' must be a table, got string", { as = "x", as_groups = "dev" })
    says("impersonation: as has control characters in it", { as = "x\r\nAuthorization: y" })
    says("as-groups has control characters in it", { as = "x", as_groups = { "a\nb" } })
    says("the token has blanks or line breaks in it", { token = "a\nb" })
    says("did you mean 'token_file'", { tokenfile = "x" })
    says("did you mean 'as_groups'", { as_group = {} })
  end)

  it("reports unusable certificates at the first call, without showing them", function()
    local c <close> = kube.connect { server = URL, ca_data = "s3cret", cache_dir = false }
    local _, err = kube.try(c.raw, c, "GET", "/version")
    assert.equal("unauthorized", err.kind)
    assert.truthy(tostring(err):find(
      "the CA (certificate-authority-data): it does not contain a readable certificate", 1, true), tostring(
        err))
    local d <close> = kube.connect { server = URL, cert_data = "s3cret",
      key_file = process.write(process.tmpname ".key", "s3cret"), cache_dir = false }
    _, err = kube.try(d.raw, d, "GET", "/version")
    assert.truthy(tostring(err):find("the client certificate (client-certificate-data) and its key (", 1,
      true), tostring(err))
    assert.falsy(tostring(err):find("s3cret", 1, true), tostring(err))
  end)

  it("shows no secret in any error", function()
    for _, opts in ipairs {
      { token = "s3cret\n", username = "me", password = "s3cret" }, { token = "s3cret s3cret" },
      { proxy = "ftp://me:s3cret@x" }, { proxy = "http://me:s3cret@127.0.0.1:1", username = "me",
        token = "s3cret" },
    } do
      local message = refusal(opts)
      assert.falsy(message:find("s3cret", 1, true), message)
    end
  end)
end)
