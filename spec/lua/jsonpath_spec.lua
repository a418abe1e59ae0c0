-- jsonpath_spec.lua - the templates of `kubelua get -o jsonpath=`. spec/e2e/cli_spec.lua compares them with
-- kubectl.

local jsonpath = require "kubelua.cli.jsonpath"
local kube = require "kubelua"

local list = kube.decode [[{ "items": [
  { "metadata": { "name": "a", "labels": { "app": "web", "a.b/c": "d" } }, "n": 1,
    "tags": ["x", "y", "z"], "ready": true },
  { "metadata": { "name": "b" }, "n": 2.5, "inner": { "metadata": { "name": "c" } } } ] }]]

local function render(template) return jsonpath.render(jsonpath.template(template), list) end

describe("a JSONPath template", function()
  for template, expected in pairs {
    ["{.items[0].metadata.name}"] = "a",
    ["{.items[-1].metadata.name}"] = "b",
    ["{.items[*].metadata.name}"] = "a b",
    ["{ .items[*].n }!"] = "1 2.5!",
    ["{$.items[0].ready}"] = "true",
    ["{.items[0].tags}"] = '["x","y","z"]',
    ["{.items[0].tags[1:]}"] = "y z",
    ["{.items[0].tags[:-1]}"] = "x y",
    ["{.items[0].tags[0:2]}"] = "x y",
    ["{.items[0].metadata.labels['a.b/c']}"] = "d",
    ["{.items[0].metadata.labels.a\\.b/c}"] = "d",
    ["{.items[0].metadata.labels.*}"] = "web d",
    ["{..name}"] = "a b c",
    ["{.items[?(@.metadata.name==\"b\")].n}"] = "2.5",
    ["{.items[?(@.n>1)].metadata.name}"] = "b",
    ["{.items[?(@.n <= 1)].metadata.name}"] = "a",
    ["{.items[?(@.n >= 2.5)].metadata.name}"] = "b",
    ["{.items[?(@.ready==true)].metadata.name}"] = "a",
    ["{.items[?(@.inner)].metadata.name}"] = "b",
    ["{.items[?(@.metadata.name!='b')].metadata.name}"] = "a",
    ["{range .items[*]}{.metadata.name}{\"\\t\"}{.n}{'\\n'}{end}"] = "a\t1\nb\t2.5\n",
    ["{.nothing.at.all}{.items[9]}{.items.x}"] = "",
    ["plain.path"] = "",
    ["items[0].metadata.name"] = "a",
    ["[{.items[0].n}]"] = "[1]",
  } do
    it(template .. " says " .. kube.encode(expected), function() assert.equal(expected, render(template)) end)
  end

  for template, why in pairs {
    ["{.a[}"] = "[ is not closed, at character 3", ["{.a"] = "{ is not closed",
    ["{range .items[*]}x"] = "{range} without {end}", ["x{end}"] = "{end} without {range}",
    ["{.a[b]}"] = "unknown form [b]", ["{}"] = "{} is empty",
    ["{.a[?(x)]}"] = "unknown condition x",
    ["{.a[?(@.b==c)]}"] = "c is not a string, a number or a boolean",
    ["{#}"] = "expected a dot or a bracket", ["{.a..}"] = "a name is missing",
  } do
    it(("%s is refused: %s"):format(template, why), function()
      local ok, err = pcall(jsonpath.template, template)
      assert.is_false(ok)
      assert.truthy(tostring(err):find(why, 1, true), tostring(err))
    end)
  end
end)
