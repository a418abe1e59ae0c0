-- site_spec.lua - the documentation site is complete, its links have targets, and its generator has no
-- warnings.
-- not in check, asan, tsan: the pages are the subject, and the generator takes its time

package.path = "docs/site/?.lua;" .. package.path

local lfs = require "lfs"
local process = require "support.process"
local site = require "site"

-- The anchors that the generator makes from headings (pymdownx.slugs, lower case).
local function anchors(text)
  local out, fenced = {}, false
  for line in (text .. "\n"):gmatch "(.-)\n" do
    if line:find "^```" then fenced = not fenced end
    local heading = not fenced and line:match "^#+ (.+)$"
    if heading then
      heading = heading:gsub("[`*]", ""):gsub("%[(.-)%]%b()", "%1")
      out[heading:lower():gsub("[^%w%s%-_]", ""):gsub("^%s+", ""):gsub("%s+$", ""):gsub(" ", "-")] = true
    end
  end
  return out
end

local function resolved(from, target)
  local parts = {}
  for part in (from:gsub("[^/]+$", "") .. target):gmatch "[^/]+" do
    if part == ".." then table.remove(parts) else parts[#parts + 1] = part end
  end
  return table.concat(parts, "/")
end

describe("the site", function()
  local dir, pages
  setup(function()
    dir = process.tmpname ".site"
    pages = site.write(dir)
  end)

  it("has every page in its navigation, once, and nothing else", function()
    local seen = {}
    site.each_page(site.navigation(), function(_, path)
      assert.is_nil(seen[path], path)
      seen[path] = true
      assert.is_truthy(pages[path], path .. " is in the navigation and not there")
    end)
    for path in pairs(pages) do assert.is_true(seen[path], path .. " is not in the navigation") end
  end)

  it("has valid links", function()
    local n, named = 0, {}
    local function has(page, anchor)
      named[page] = named[page] or anchors(pages[page])
      return named[page][anchor]
    end
    for path, text in pairs(pages) do
      for target in text:gsub("```.-\n```", ""):gmatch "%]%(([^)%s]+)%)" do
        if not target:find "^%a+:" then
          local file, anchor = target:match "^([^#]*)#?(.*)$"
          local to = file == "" and path or resolved(path, file)
          n = n + 1
          assert.is_truthy(lfs.attributes(dir .. "/docs/" .. to), path .. ": " .. target)
          if anchor ~= "" then assert.is_true(has(to, anchor), path .. ": " .. target) end
        end
      end
    end
    assert.is_true(n > 100)
  end)

  it("summarizes each page in llms.txt", function()
    local text = process.read(dir .. "/docs/llms.txt")
    assert.matches("^# kubelua\n\n> ", text)
    for path in pairs(pages) do
      local page = path:gsub("%.md$", ".html"):gsub("%p", "%%%0")
      local about = text:match("%]%(" .. page .. "%): ([^\n]*)")
      assert.is_true(about ~= nil and about ~= "", path)
    end
  end)

  it("builds without warnings, and is searchable without a network", function()
    local mkdocs, why = site.generator(site.cache())
    if not mkdocs then
      local ci = os.getenv "CI"
      assert(not (ci and ci ~= "" and ci ~= "false"), why)
      pending("not run: " .. why)
      return
    end
    local ok, said = site.make(mkdocs, dir, dir .. "/site")
    assert.is_true(ok, said)
    assert.matches("quantity", process.read(dir .. "/site/search/search_index.json"))
    for link in process.read(dir .. "/site/llms.txt"):gmatch "%]%(([^)]+)%)" do
      assert.equal(0, select(2, process.run("test -e " .. process.quote(dir .. "/site/" .. link))), link)
    end
    -- what a page loads comes from the site itself; links may lead elsewhere
    local found = process.run(
      ("cd %s/site && grep -rlE '<(script|img|iframe)[^>]* src=\"?(https?:)?//|<link[^>]* \z
      href=\"?(https?:)?//' --include='*.html' . || true"):format(dir))
    assert.equal("", found, "loads something from elsewhere")
  end)
end)

describe("the moving picture", function()
  it("is drawn from its recording, always the same", function()
    local path = process.tmpname ".svg"
    local said, code = process.run("lua5.4 docs/picture/draw.lua docs/picture/session.cast " .. path)
    assert.equal(0, code, said)
    assert.is_true(process.read(path) == process.read "docs/picture.svg", "make picture, or draw it again")
  end)

  it("shows a whole session, and no path of the recording machine", function()
    local cast = process.read "docs/picture/session.cast"
    local shown = {}
    for text in cast:gmatch '"o","(.-)"%]' do shown[#shown + 1] = text end
    shown = table.concat(shown)
    for _, word in ipairs { "kubelua dev", "refused", "kubelua why", "in the shadow of", "kubelua replay",
      "Good morning, world!" } do
      assert.is_truthy(shown:find(word, 1, true), word)
    end
    assert.is_nil(shown:find "/tmp/" or shown:find "/root" or shown:find "/home")
  end)
end)

describe("the picture of an example", function()
  it("is static, shows the listed session, and names no path of the machine", function()
    local sessions = dofile "docs/picture/sessions.lua"
    local n = 0
    for path in process.run "ls examples/*/README.md":gmatch "%S+" do
      local name = path:match "examples/([%w-]+)/"
      local text = assert(process.read(("examples/%s/picture.svg"):format(name)), name)
      assert.is_truthy(process.read(path):find("](picture.svg)", 1, true), path)
      assert.is_nil(text:find "@keyframes" or text:find "<script" or text:find "not in time")
      assert.is_nil(text:find "/tmp/" or text:find "/root" or text:find "/home")
      for _, line in ipairs(assert(sessions[name], name)) do
        local command = line:gsub("%s+#.*$", ""):gsub("[&<>]",
          { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" })
        assert.is_truthy(text:find(command, 1, true), name .. " does not show: " .. command)
      end
      n = n + 1
    end
    assert.is_true(n >= 15)
  end)
end)

describe("the picture of the dashboard", function()
  it("is an SVG that loads nothing, runs nothing and names no path of the machine", function()
    local text = process.read "docs/dashboard.svg"
    local said, code = process.run "python3 -c 'import xml.dom.minidom as m; \z
      m.parse(\"docs/dashboard.svg\")' 2>&1"
    assert.equal(0, code, said)
    assert.is_nil(text:find "<script" or text:find "<img" or text:find "url%(" or text:find "@import")
    assert.is_nil(text:find " on%l+=" or text:find "href=\"http" or text:find "/tmp/" or text:find "/home")
    for _, word in ipairs { "hello", "running", "there is nobody to greet", "Informers" } do
      assert.is_truthy(text:find(word, 1, true), word)
    end
  end)
end)
