-- dns-record.lua - records in a DNS service behind a REST API; a record goes before its object does.
--
--   kubelua run dns-record.lua --allow-http

local kube = require "kubelua"

local API = "https://dns.example.com"

-- The token of the service, from a Secret beside the record.
local function headers(record, ctx)
  local secret = ctx.live:get("v1/Secret", record.metadata.namespace, "dns-api")
  if not secret then error(kube.retry("30s", "there is no Secret dns-api with the token")) end
  return { Authorization = "Bearer " .. kube.base64_decode(secret.data.token) }
end

local function url(record) return ("%s/v1/records/%s"):format(API, record.spec.host) end

return kube.controller {
  name = "dns-record",
  resource = "examples.kubelua.dev/v1/DnsRecord",
  http = { API },
  resync = "1h", -- somebody may have changed it there

  reconcile = function(record, ctx)
    local auth = headers(record, ctx)
    local there = ctx.http:get(url(record), { headers = auth, expect = 404 })
    if there.status == 404 or there.json.ip ~= record.spec.ip then
      ctx.http:put(url(record), { headers = auth, json = { ip = record.spec.ip,
        ttl = record("spec.ttl") or 300 } })
      ctx:event("Published", "%s is %s", record.spec.host, record.spec.ip)
    end
    return { status = { published = record.spec.ip } }
  end,

  finalize = function(record, ctx)
    ctx.http:delete(url(record), { headers = headers(record, ctx), expect = 404 })
  end,
}
