-- params_spec.lua - declarations of params in scripts, and what `kubelua check` shows of them.

local process = require "support.process"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local function check(params)
  local path = process.write(process.tmpname ".lua", ([[
local kube = require "kubelua"
return kube.controller { name = "dns", resource = "v1/ConfigMap", reconcile = function() end,
  params = %s }
]]):format(params))
  return process.run(KUBELUA .. " check " .. process.quote(path))
end

describe("params of a script", function()
  it("are shown with their rules", function()
    local out, code = check [[{
      region = { type = "string", default = "eu", enum = { "eu", "us" }, doc = "where the zone is" },
      replicas = { type = "integer", default = 2, min = 1, max = 9 },
      most = { type = "number", default = 1.5, max = 3 },
      zones = { type = "list", default = {} },
      token = { type = "secret", doc = "of the DNS server" },
      proxy = { type = "string", optional = true },
      plain = 3, storage = { type = "ssd", size = 5 },
    }]]
    assert.equal(0, code, out)
    for _, line in ipairs {
      [[params      {"plain":3,"storage":{"size":5,"type":"ssd"}}]],
      [[param       most = 1.5 (number, 3 at most)]],
      [[param       proxy (string)]],
      [[param       region = "eu" (string, one of ["eu","us"]): where the zone is]],
      [[param       replicas = 2 (integer, 1 to 9)]],
      [[param       token (secret, needed): of the DNS server]],
      [[param       zones = [] (list)]],
    } do
      assert.truthy(out:find(line, 1, true), line .. "\nis not in\n" .. out)
    end
  end)

  for rule, said in pairs {
    [ [[{ a = { type = "intger", default = 1 } }]] ] =
      "params.a: unknown type \"intger\"; did you mean 'integer'?",
    [ [[{ a = { type = "integer", default = 0, min = 1 } }]] ] = "param a of dns must be at least 1, got 0",
    [ [[{ a = { type = "integer", default = "1" } }]] ] = "param a of dns must be a whole number, got \"1\"",
    [ [[{ a = { type = "string", default = "x", enum = { "y" } } }]] ] =
      "param a of dns must be \"y\", got \"x\"",
    [ [[{ a = { type = "string", defualt = "x" } }]] ] =
      "params.a: unknown field 'defualt' of a rule; did you mean 'default'?",
    [ [[{ a = { type = "string", min = 1 } }]] ] = "params.a.min: only numbers have a min, got string",
    [ [[{ a = { type = "number", min = "1" } }]] ] = "params.a.min must be a number, got string",
    [ [[{ a = { type = "number", min = 2, max = 1 } }]] ] = "params.a: min is 2, and max 1",
    [ [[{ a = { type = "string", enum = {} } }]] ] =
      "params.a.enum must be a list of the values that it may have",
    [ [[{ a = { type = "string", doc = 1 } }]] ] = "params.a.doc must be a string, got number",
    [ [[{ a = { type = "string", optional = 1 } }]] ] = "params.a.optional must be true or false, got number",
    [ [[{ a = { type = "string", optional = true, default = "x" } }]] ] =
      "params.a: a param with a default is already optional",
    [ [[{ a = { type = "secret", default = "x" } }]] ] = "params.a: a secret cannot have default",
    ["{ ['a.b'] = 1 }"] = "params.a.b: the name of a param must be a string without spaces, dots, = and /",
    [ [[{ 1 }]] ] = "params must be a table of names, got a list",
    [ [["x"]] ] = "params must be a table, got string",
  } do
    it("are refused when they are " .. rule, function()
      local out, code = check(rule)
      assert.equal(1, code, out)
      assert.truthy(out:find(said, 1, true), out)
      assert.truthy(out:find("controller \"dns\"", 1, true), out)
    end)
  end
end)
