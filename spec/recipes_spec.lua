-- recipes_spec.lua - every recipe of docs/recipes.md passes `kubelua check`, and its test passes.
-- not in asan, tsan: the page is the subject

local process = require "support.process"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

describe("docs/recipes.md", function()
  local dir, scripts, recipes = process.tmpname ".recipes", {}, 0
  setup(function()
    process.run("mkdir -p " .. dir)
    local page = process.read "docs/recipes.md"
    for name, text in page:gmatch "\n`([%w_-]+%.lua)`\n\n```lua\n(.-)```\n" do
      process.write(dir .. "/" .. name, text)
      if not name:find "_test%.lua$" then scripts[#scripts + 1] = name end
    end
    for _ in page:gmatch "\n## " do recipes = recipes + 1 end
  end)

  it("has a script and a test in each recipe", function()
    assert.is_true(recipes >= 12)
    assert.equal(recipes, #scripts)
    for _, name in ipairs(scripts) do
      assert.is_truthy(process.read(dir .. "/" .. name:gsub("%.lua$", "_test.lua")), name)
    end
  end)

  it("has scripts that check", function()
    for _, name in ipairs(scripts) do
      local said, code = process.run(("%s check %s/%s 2>&1"):format(KUBELUA, dir, name))
      assert.equal(0, code, said)
    end
  end)

  it("has tests that pass", function()
    local said, code = process.run(("%s test %s 2>&1"):format(KUBELUA, dir))
    assert.equal(0, code, said)
    assert.is_true(tonumber(said:match "(%d+) passed") >= recipes)
  end)
end)
