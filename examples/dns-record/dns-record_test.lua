-- dns-record_test.lua - the DNS service is a table; kube.testing.http answers requests from it.

local kube = require "kubelua"

local RECORD = "https://dns.example.com/v1/records/{host}"

describe("dns-record", function()
  local records, web

  before_each(function()
    records = {}
    web = kube.testing.http {
      ["GET " .. RECORD] = function(request)
        local there = records[request.vars.host]
        return there and { json = there } or 404
      end,
      ["PUT " .. RECORD] = function(request)
        records[request.vars.host] = request.json
        return { json = request.json }
      end,
      ["DELETE " .. RECORD] = function(request)
        records[request.vars.host] = nil
        return 204
      end,
    }
  end)

  local function start()
    return kube.testing.start { script = "dns-record.lua", crds = "crd.yaml", http = web,
      params = { token = "abc" }, objects = {
        { kind = "examples.kubelua.dev/v1/DnsRecord", name = "www",
          spec = { host = "www.shop", ip = "10.0.0.1" } },
      } }
  end

  it("publishes once, with the token", function()
    local t = start()
    assert.equal("10.0.0.1", records["www.shop"].ip)
    assert.equal("10.0.0.1", t:get("examples.kubelua.dev/v1/DnsRecord", "www").status.published)
    t:advance("1h")
    assert.equal(1, #web:requests "PUT")
    for _, request in ipairs(web:requests()) do
      assert.equal("Bearer abc", request.headers.authorization)
    end
  end)

  it("corrects a wrong record", function()
    records["www.shop"] = { ip = "10.9.9.9" }
    start()
    assert.equal("10.0.0.1", records["www.shop"].ip)
  end)

  it("continues when the service is back", function()
    web:on("*", RECORD, { error = "timeout" })
    local t = start()
    assert.equal("error", t:runs("www")[1].result)
    assert.is_nil(records["www.shop"])
    web:on("GET", RECORD, 404):on("PUT", RECORD, function(request)
      records[request.vars.host] = request.json
      return 201
    end)
    t:until_idle()
    assert.equal("10.0.0.1", records["www.shop"].ip)
  end)

  it("deletes the record before the object goes", function()
    local t = start()
    t:delete("examples.kubelua.dev/v1/DnsRecord", "www")
    assert.is_nil(records["www.shop"])
    assert.is_nil(t:get("examples.kubelua.dev/v1/DnsRecord", "www"))
  end)
end)
