-- hook_clients_spec.lua - the clientConfig of webhook configurations and of conversion in definitions: both
-- servers report mistakes in it alike.
-- not in tsan: one request after the other

local both = require "support.both"

local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
local HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All"

local function service(more) return { service = both.merge({ name = "s", namespace = "n" }, more) } end

local CLIENTS = {
  { "nothing", {} },
  { "a URL and a service", { url = "https://x/", service = { name = "s", namespace = "n" } } },
  { "an empty URL", { url = "" } }, { "http", { url = "http://x/" } }, { "no scheme", { url = "x/y" } },
  { "a colon first", { url = ":x" } }, { "a bad scheme", { url = "a_b://x" } },
  { "no host", { url = "https:///p" } },
  { "a user", { url = "https://u@x/" } }, { "a user and a password", { url = "https://u:p@x/" } },
  { "a fragment", { url = "https://x/#f" } }, { "a query", { url = "https://x/?a=b" } },
  { "everything", { url = "ftp://u@/?q#f" } }, { "a port that is none", { url = "https://x:port/" } },
  { "a space", { url = "https://x y/" } }, { "a control character", { url = "https://x/\1" } },
  { "a bad escape", { url = "https://x/%zz" } }, { "a bracket", { url = "https://[::1/" } },
  { "an address", { url = "https://[::1]:443/p" }, 201 }, { "a good URL", { url = "https://x/p" }, 201 },
  { "a good service", service(), 201 }, { "no name", { service = { namespace = "n" } } },
  { "no namespace", { service = { name = "s" } } }, { "neither", { service = {} } },
  { "port 0", service { port = 0 } }, { "port 70000", service { port = 70000 } },
  { "port -1", service { port = -1 } },
  { "no path", service { path = "" }, 201 }, { "a slash", service { path = "/" }, 201 },
  { "two slashes", service { path = "//" } }, { "a path without a slash", service { path = "a/b" } },
  { "an empty segment", service { path = "/a//b" } }, { "a segment of signs", service { path = "/a/B_c/" } },
  { "a bundle that is none", { url = "https://x/", caBundle = "YmFk" }, 201 },
  { "a bundle that is no base64", { url = "https://x/", caBundle = "%" }, 400 },
}

both.describe("conversion webhooks of definitions", function(ns)
  local rows, group = {}, ns .. ".example.com"
  local function add(what, conversion, code)
    rows[#rows + 1] = { what, "POST", DEFINITIONS, { metadata = { name = "things." .. group },
      spec = { group = group, scope = "Namespaced",
        names = { kind = "Thing", plural = "things", singular = "thing", listKind = "ThingList" },
        versions = { { name = "v1", served = true, storage = true,
          schema = { openAPIV3Schema = { type = "object" } } } },
        conversion = conversion } }, code or 422 }
  end
  for _, client in ipairs(CLIENTS) do
    add(client[1], { strategy = "Webhook", webhook = { conversionReviewVersions = { "v1" },
      clientConfig = client[2] } }, client[3])
  end
  local client = { url = "https://x/" }
  for _, versions in ipairs { { "v2", "v1" }, { "v2" }, { "V1", "v1" }, { "v1", "v1" }, { "", "v1" },
    both.NONE } do
    add("versions " .. table.concat(versions, ","),
      { strategy = "Webhook", webhook = { conversionReviewVersions = versions, clientConfig = client } },
      versions[2] and versions[1] == "v2" and 201 or nil)
  end
  add("a strategy that is none", { strategy = "webhook", webhook = { clientConfig = client } })
  add("no strategy", { webhook = { conversionReviewVersions = { "v1" }, clientConfig = client } })
  add("None and a client", { strategy = "None", webhook = { clientConfig = client } })
  add("None and all", { strategy = "None", webhook = { conversionReviewVersions = { "v1" },
    clientConfig = client } })
  add("no client", { strategy = "Webhook", webhook = { conversionReviewVersions = { "v1" } } })
  add("no webhook", { strategy = "Webhook" })
  return rows
end)

both.describe("webhooks of configurations", function(ns)
  local rows = {}
  for i, client in ipairs(CLIENTS) do
    rows[i] = { client[1], "POST", HOOKS, { metadata = { name = ns }, webhooks = { { name = "a.example.com",
      sideEffects = "None", admissionReviewVersions = { "v1" }, clientConfig = client[2] } } },
      client[3] or 422 }
  end
  return rows
end)
