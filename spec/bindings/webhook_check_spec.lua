-- webhook_check_spec.lua - `kubelua check` shows the settings of a webhook, and reports each mistake with its
-- place and remedy.

local process = require "support.process"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local function checked(body)
  local path = process.write(process.tmpname ".lua", 'local kube = require "kubelua"\n' .. body)
  return process.run(("%s check %s"):format(process.quote(KUBELUA), process.quote(path)))
end

local function hook(lines)
  return ('return kube.webhook { name = "caps", resource = "v1/Pod", %s }'):format(lines)
end

local function refuses(body, part)
  local out, code = checked(body)
  assert.equal(1, code, out)
  if not out:find(part, 1, true) then error(("%q is not in what it said:\n%s"):format(part, out), 2) end
  assert.truthy(out:find("%.lua:2: ") or out:find("%.lua: "), out)
end

describe("kubelua check", function()
  it("describes a webhook beside a controller", function()
    local out, code = checked [[
return {
  kube.webhook { name = "pods.example.com", resource = { "v1/Pod", "v1/Pod/eviction" },
    subresources = { "status" }, operations = { "CREATE", "DELETE" },
    scope = "Namespaced", namespaces = { "a" }, object_selector = { matchLabels = { x = "y" } },
    failure_policy = "Ignore", timeout = "5s",
    reads = { "v1/Secret" }, workers = 2, validate = function() end },
  kube.controller { name = "b", resource = "v1/Pod", reconcile = function() end },
}]]
    assert.equal(0, code, out)
    for _, part in ipairs {
      "controller b", "webhook pods.example.com", "validates   v1/Pod, v1/Pod/status, v1/Pod/eviction",
      "operations  CREATE, DELETE", "scope       Namespaced",
      "kubernetes.io/metadata.name", '"matchLabels":{"x":"y"}', "reads       v1/Secret",
      "on failure  allowed (Ignore)", "timeout     5s", "workers     2",
    } do
      if not out:find(part, 1, true) then error(("%q is not in what it said:\n%s"):format(part, out)) end
    end
    assert.truthy(out:find "controller b" < out:find "webhook pods")
  end)

  it("shows what a selector in one text means", function()
    local out, code = checked(
      hook [[validate = print, object_selector = "app=web,tier in (a, b),!old,new,zone!=x"]])
    assert.equal(0, code, out)
    for _, part in ipairs {
      '{"key":"app","operator":"In","values":["web"]}', '{"key":"tier","operator":"In","values":["a","b"]}',
      '{"key":"old","operator":"DoesNotExist"}', '{"key":"new","operator":"Exists"}',
      '{"key":"zone","operator":"NotIn","values":["x"]}', "objects     {",
    } do
      assert.truthy(out:find(part, 1, true), part .. " is not in:\n" .. out)
    end
  end)

  for _, case in ipairs {
    { "with a selector that compares numbers", hook 'validate = print, object_selector = "size>3"',
      "numeric comparison is not supported here" },
    { "with a selector text that is none", hook 'validate = print, object_selector = "a in (b"',
      "object_selector: " },
    { "with an empty selector text", hook 'validate = print, namespace_selector = ""',
      "leave it out for all" },
    { "without a function", hook "",
      "it needs either mutate = function(obj, req) or validate = function(obj, req)" },
    { "with both functions", hook "mutate = print, validate = print", "it needs either mutate" },
    { "with a text for a function", hook 'mutate = "x"', "mutate must be a function(obj, req), got string" },
    { "with a misspelt key", hook "mutat = print", "unknown key 'mutat'; did you mean 'mutate'?" },
    { "with a misspelt operation", hook 'validate = print, operations = { "CREAT" }',
      "did you mean 'CREATE'?" },
    { "with no operation", hook "validate = print, operations = {}", "operations is empty" },
    { "that mutates what is gone", hook 'mutate = print, operations = { "DELETE" }', "use validate for it" },
    { "with a long timeout", hook 'validate = print, timeout = "1m"',
      "timeout must be whole seconds from 1s to 30s" },
    { "with half a second", hook 'validate = print, timeout = "1500ms"', "timeout must be whole seconds" },
    { "with a misspelt policy", hook 'validate = print, failure_policy = "Ignor"', "did you mean 'Ignore'?" },
    { "with namespaces twice", hook 'validate = print, namespaces = { "a" }, namespace_selector = {}',
      "leave one out" },
    { "with a selector that is none", hook 'validate = print, object_selector = { labels = {} }',
      "object_selector: unknown key 'labels'" },
    { "with reinvocation of a validate", hook 'validate = print, reinvocation = "IfNeeded"',
      "reinvocation is only for mutate" },
    { "with fields of a kind that it does not read",
      hook 'validate = print, fields = { ["v1/Pod"] = { "spec" } }', "does not handle that kind" },
    { "with a condition without a name",
      hook 'validate = print, match_conditions = { { expression = "true" } }',
    "match_conditions[1] needs name and expression" },
    { "without a resource", 'return kube.webhook { name = "a", validate = print }', "resource is missing" },
    { "with a resource that is nearly one",
      'return kube.webhook { name = "a", resource = "podds", validate = print }',
      'resource: no built-in kind has the name "podds"; did you mean "v1/Pod"?' },
    { "with a name that cannot be",
      'return kube.webhook { name = "A_b", resource = "v1/Pod", validate = print }',
    "it becomes a path, and the name of a configuration" },
    { "of one name with another",
      'return { kube.webhook { name = "a", resource = "v1/Pod", validate = print }, kube.webhook { name = \z
      "a", resource = "v1/Pod", validate = print } }', 'two webhooks are named "a"' },
  } do
    it("refuses a webhook " .. case[1], function() refuses(case[2], case[3]) end)
  end
end)
