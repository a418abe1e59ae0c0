-- dns-record.lua - keeps records in a DNS service with a REST API. The record is deleted before its object
-- is.
--
--   kubelua run dns-record.lua --allow-http --params secret/default/dns-api

local kube = require "kubelua"

local API = "https://dns.example.com"

local function headers(ctx) return { Authorization = ctx.secret("token"):format "Bearer %s" } end

local function url(record) return ("%s/v1/records/%s"):format(API, record.spec.host) end

return kube.controller {
  name = "dns-record",
  resource = "examples.kubelua.dev/v1/DnsRecord",
  http = { API },
  params = {
    token = { type = "secret", doc = "of the DNS service" },
    ttl = { type = "integer", default = 300, min = 60, doc = "seconds, for a record without its own value" },
  },
  resync = "1h", -- somebody may have changed it there

  reconcile = function(record, ctx)
    local auth = headers(ctx)
    local there = ctx.http:get(url(record), { headers = auth, expect = 404 })
    if there.status == 404 or there.json.ip ~= record.spec.ip then
      ctx.http:put(url(record), { headers = auth, json = { ip = record.spec.ip,
        ttl = record("spec.ttl") or ctx.params.ttl } })
      ctx:event("Published", "%s is %s", record.spec.host, record.spec.ip)
    end
    return { status = { published = record.spec.ip } }
  end,

  finalize = function(record, ctx)
    ctx.http:delete(url(record), { headers = headers(ctx), expect = 404 })
  end,
}
