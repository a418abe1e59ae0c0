-- dns-record_test.lua - the API is a table here, which the functions of the script call as they would call
-- ctx.http.

local kube = require "kubelua"

describe("dns-record", function()
  local spec = kube.testing.pure "dns-record.lua".controllers["dns-record"]
  local records, calls, ctx
  local record = { metadata = { name = "www", namespace = "default" },
    spec = { host = "www.shop", ip = "10.0.0.1" } }

  local function call(method)
    return function(_, url, o)
      local host = url:match "/records/(.+)$"
      calls[#calls + 1] = method .. " " .. host
      assert.equal("Bearer abc", o.headers.Authorization)
      if method == "put" then records[host] = o.json end
      if method == "delete" then records[host] = nil end
      return records[host] and { status = 200, json = records[host] } or { status = 404 }
    end
  end

  before_each(function()
    records, calls = {}, {}
    ctx = {
      params = { ttl = 300 },
      secret = function() return "Bearer abc" end, -- a text, whose format leaves it as it is
      http = { get = call "get", put = call "put", delete = call "delete" },
      event = function() end,
    }
  end)

  local view = kube.decode(kube.encode(record))

  it("publishes once", function()
    assert.same({ status = { published = "10.0.0.1" } }, spec.reconcile(view, ctx))
    assert.equal("10.0.0.1", records["www.shop"].ip)
    spec.reconcile(view, ctx)
    assert.same({ "get www.shop", "put www.shop", "get www.shop" }, calls)
  end)

  it("puts right what is something else there", function()
    records["www.shop"] = { ip = "10.9.9.9" }
    spec.reconcile(view, ctx)
    assert.equal("10.0.0.1", records["www.shop"].ip)
  end)

  it("takes the record away before the object goes", function()
    records["www.shop"] = { ip = "10.0.0.1" }
    spec.finalize(view, ctx)
    assert.is_nil(records["www.shop"])
  end)
end)
