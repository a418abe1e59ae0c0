-- docs_spec.lua - statements of the docs that no other spec runs: the log lines in troubleshooting.md exist
-- in the program, and the links of all pages have targets.
-- not in asan, tsan: the pages are the subject

local process = require "support.process"

local function read(path) return assert(process.read(path), path) end

-- Every string of the C sources; adjacent strings are joined.
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

-- The commands on pages exist and have the shown options. `help CMD` lists them.
describe("commands on pages", function()
  local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
  local known = {}

  -- Options of a command, true for each; false when there is no such command.
  local function options(command)
    if known[command] == nil then
      local text, code = process.run(("%s help %s 2>&1"):format(KUBELUA, process.quote(command)))
      known[command] = false
      if code == 0 then
        known[command] = {}
        for word in text:gmatch "%-%-?[%w][%w-]*" do known[command][word] = true end
      end
    end
    return known[command]
  end

  -- The words of a shell line up to the end of the command; nil for a comment or a quoted text.
  local function commands(line)
    local out = {}
    line = line:gsub("%s#.*$", ""):gsub("%b''", "X"):gsub('%b""', "X")
    for piece in (line .. "|"):gmatch "([^|;&]*)[|;&]+" do
      local rest = piece:match "^[%s$]*kubelua%s+(.*)$" or piece:match "^[%s$]*build/kubelua%s+(.*)$"
      if rest then out[#out + 1] = rest end
    end
    return out
  end

  for path in process.run "ls README.md CONTRIBUTING.md docs/*.md deploy/README.md examples/README.md \z
    examples/*/README.md":gmatch "%S+" do
    local function check(rest, line)
      local command = rest:match "^(%l[%l-]*)"
      if not command then return end
      local has = options(command)
      assert.is_truthy(has, line)
      for option in (" " .. rest):gsub(" %-%- .*$", ""):gmatch "%s(%-%-[%w-]+)" do
        assert.is_truthy(has[option], option .. " in: " .. line)
      end
    end

    it("are the program's: " .. path, function()
      local fence
      for line in (read(path):gsub("\\\n%s*", " ") .. "\n"):gmatch "(.-)\n" do
        if line:find "^%s*```" then
          fence = not fence and line:match "```(.*)$"
        elseif fence == "sh" or fence == "" or fence == "console" then
          for _, rest in ipairs(commands(line)) do check(rest, line) end
        end
      end
      -- and those in a sentence: `kubelua CMD ...`
      local prose = read(path):gsub("\n%s*```.-\n%s*```", "\n"):gsub("\n", " ")
      for span in prose:gmatch "`(kubelua [^`]+)`" do
        for _, rest in ipairs(commands(span)) do check(rest, span) end
      end
    end)
  end
end)

describe("links between pages", function()
  local pages = {}
  for path in process.run "ls README.md CONTRIBUTING.md SECURITY.md docs/*.md examples/README.md \z
    examples/*/README.md \z
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
    it("are valid in " .. page, function()
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
