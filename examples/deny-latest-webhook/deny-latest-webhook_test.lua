-- deny-latest-webhook_test.lua - which images are accepted, and the message for the others.

local kube = require "kubelua"

describe("deny-latest-webhook", function()
  local t ---@type kubelua.Testing
  before_each(function() t = kube.testing.start { script = "deny-latest-webhook.lua" } end)

  local function create(image)
    return kube.try(t.create, t, { kind = "v1/Pod", name = "p",
      spec = { containers = { { name = "a", image = image } } } })
  end

  for _, image in ipairs { "app:1.2", "registry:5000/app:v3", "app@sha256:" .. ("a"):rep(64) } do
    it("lets in " .. image, function() assert.is_truthy(create(image)) end)
  end

  for _, image in ipairs { "app", "app:latest", "registry:5000/app" } do
    it("denies " .. image, function()
      local made, err = create(image)
      assert.is_nil(made)
      assert.equal(422, err.code)
      assert.matches("spec.containers%[0%].image: " .. image .. " has no version", err.message)
    end)
  end

  it("looks at templates, too", function()
    local labels = { app = "a" }
    local made, err = kube.try(t.create, t, { kind = "apps/v1/Deployment", name = "d", spec = {
      selector = { matchLabels = labels }, template = { metadata = { labels = labels },
        spec = { containers = { { name = "a", image = "app" } } } } } })
    assert.is_nil(made)
    assert.matches("spec.template.spec.containers%[0%]", err.message)
  end)
end)
