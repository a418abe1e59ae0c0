-- docs_spec.lua - what docs say that nothing runs: the log lines of troubleshooting.md are the program's, and
-- links of all pages lead somewhere.
-- not in asan, tsan: the pages are the subject

local process = require "support.process"

local function read(path) return assert(process.read(path), path) end

-- Every text in quotes of the C sources, those that stand one after the other as one.
local function texts()
  local all = process.run "cat core/*/*.c bindings/*/*.c"
  return (all:gsub('"%s*\n%s*"', ""):gsub('\\"', '"'))
end

describe("docs/troubleshooting.md", function()
  it("quotes lines that the program writes", function()
    local source, n = texts(), 0
    for line in read "docs/troubleshooting.md":gmatch "[^\n]+" do
      local quoted = line:match "^| `([^`]+)`"
      if quoted and not quoted:find "^script%.lua" then
        n = n + 1
        assert.truthy(source:find(quoted, 1, true), quoted)
      end
    end
    assert.is_true(n > 20)
  end)
end)

describe("links between pages", function()
  local pages = {}
  for path in process.run "ls README.md CONTRIBUTING.md SECURITY.md docs/*.md examples/README.md examples/*/README.md \z
    deploy/README.md spec/README.md":gmatch "%S+%.md" do
    pages[#pages + 1] = path
  end

  -- As GitHub makes anchors of headings.
  local function anchors(text)
    local out = {}
    for heading in ("\n" .. text):gmatch "\n#+ ([^\n]+)" do
      out[heading:lower():gsub("[^%w%s%-_]", ""):gsub(" ", "-")] = true
    end
    return out
  end

  for _, page in ipairs(pages) do
    it("lead somewhere from " .. page, function()
      local dir = page:match "^(.*/)" or ""
      for target in read(page):gsub("```.-\n```", ""):gmatch "%]%(([^)%s]+)%)" do
        local file, anchor = target:match "^([^#]*)#?(.*)$"
        if not target:find "^%a+:" then
          local path = file == "" and page or dir .. file
          assert.equal(0, select(2, process.run("test -e " .. process.quote(path))), target)
          if anchor ~= "" then assert.is_true(anchors(read(path))[anchor], target) end
        end
      end
    end)
  end
end)
