-- site.lua - the documentation as a site: pages of the repository, the generated reference, navigation,
-- llms.txt, and the settings of the generator (mkdocs with the theme Material), written into a directory.

local annotations = require "annotations"
local reference = require "reference"

local M = {}

M.VERSION = "9.8.2"       -- of mkdocs-material
local SENTENCE = "kubelua runs Kubernetes controllers written in Lua, and takes new logic while they run."

-- The navigation: { title, path in the repository }, or { title, list }. Every page of docs/ stands here.
local NAV = {
  { "Home", "README.md" },
  { "Tutorial", "docs/guide.md" },
  { "Guides", {
    { "Recipes by task", "docs/recipes.md" },
    { "Writing a controller", "docs/scripts.md" },
    { "Admission webhooks", "docs/webhooks.md" },
    { "Testing", "docs/testing.md" },
    { "Changing logic in production", "docs/changing-logic.md" },
    { "What if", "docs/whatif.md" },
    { "The command line", "docs/cli.md" },
    { "Clients", "docs/clients.md" },
    { "The embedded API server", "docs/apiserver.md" },
    { "Koordinator's policies", "docs/koordinator.md" },
  } },
  { "Examples", "examples" },
  { "Reference", "reference" },
  { "In production", {
    { "Installing", "deploy/README.md" },
    { "Operating", "docs/operations.md" },
    { "Security", "docs/security.md" },
    { "Reporting a weakness", "SECURITY.md" },
    { "Performance", "docs/performance.md" },
    { "Troubleshooting", "docs/troubleshooting.md" },
    { "Limits", "docs/limits.md" },
  } },
  { "Coming from", {
    { "kopf", "docs/from-kopf.md" },
    { "controller-runtime", "docs/from-controller-runtime.md" },
    { "client-go", "docs/from-client-go.md" },
    { "shell-operator, metacontroller", "docs/from-shell-operator.md" },
    { "Which of them?", "docs/alternatives.md" },
  } },
  { "Questions", "docs/faq.md" },
  { "Inside", {
    { "How it is built", "docs/architecture.md" },
    { "How the parts work", "docs/internals.md" },
    { "Contributing", "CONTRIBUTING.md" },
    { "Changes", "CHANGELOG.md" },
  } },
}

local function exists(path)
  local file = io.open(path)
  return file and file:close() and true or false
end

local function lines_of(command)
  local list, pipe = {}, assert(io.popen(command))
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  file:close()
end

-- ---------------------------------------------------------------- pages

-- Where a file of the repository stands on the site; nil where it does not.
local function place_of(path)
  if path == "SECURITY.md" then return "reporting.md" end
  if path == "README.md" then return "index.md" end
  if path == "deploy/README.md" then return "deploy.md" end
  if path == "examples/README.md" then return "examples/index.md" end
  local example = path:match "^examples/([%w-]+)/README%.md$"
  if example then return "examples/" .. example .. ".md" end
  local pictured = path:match "^examples/([%w-]+)/picture%.svg$"
  if pictured then return "examples/" .. pictured .. ".svg" end
  if path:find "^docs/[%w-]+%.md$" or path:find "^docs/[%w-]+%.svg$" then return path:sub(6) end
  if path:find "^%u+%.md$" then return path:lower() end
end

local function normal(path)
  local parts = {}
  for part in path:gmatch "[^/]+" do
    if part == ".." then table.remove(parts) elseif part ~= "." then parts[#parts + 1] = part end
  end
  return table.concat(parts, "/")
end

local function relative(from, to)
  local up = from:gsub("[^/]+$", ""):gsub("[^/]+/", "../")
  return up .. to
end

--- The text of a page with its links changed to those of the site. What the site does not have is no link.
local function relinked(text, path)
  local dir, from = path:match "^(.*/)" or "", place_of(path)
  local function link(words, target)
    local file, anchor = target:match "^([^#]*)(.*)$"
    if file == "" or target:find "^%a+:" then return end
    local full = normal(dir .. file)
    local place = place_of(full) or place_of(full .. "/README.md")
    if not place then return words:sub(2, -2) end
    return words .. "(" .. relative(from, place) .. anchor .. ")"
  end
  local out, fenced = {}, false
  for line in (text .. "\n"):gmatch "(.-)\n" do
    if line:find "^```" then fenced = not fenced end
    out[#out + 1] = fenced and line or line:gsub("(%b[])%(([^)%s]+)%)", link)
  end
  return table.concat(out, "\n")
end

-- A page of an example has its files, too.
local function example_page(name)
  local dir = "examples/" .. name .. "/"
  local text = relinked(annotations.read(dir .. "README.md"), dir .. "README.md")
  for _, file in ipairs { name .. ".lua", "crd.yaml", "sample.yaml", name .. "_test.lua" } do
    if exists(dir .. file) then
      text = text .. ("\n## %s\n\n```%s\n%s```\n"):format(file, file:match "%.(%w+)$",
        annotations.read(dir .. file))
    end
  end
  return text
end

--- All pages: path on the site -> text.
function M.pages()
  local pages = {}
  for _, path in ipairs(lines_of "ls *.md docs/*.md deploy/README.md examples/README.md") do
    pages[place_of(path)] = relinked(annotations.read(path), path)
  end
  for _, dir in ipairs(lines_of "ls -d examples/*/") do
    local name = dir:match "^examples/(.-)/$"
    pages["examples/" .. name .. ".md"] = example_page(name)
  end
  for file, text in pairs(reference.pages()) do pages["reference/" .. file] = text end
  return pages
end

--- The navigation with places on the site.
function M.navigation()
  local function resolve(list)
    local out = {}
    for _, entry in ipairs(list) do
      local title, what = entry[1], entry[2]
      if what == "examples" then
        local inner = { { "All", "examples/index.md" } }
        for _, dir in ipairs(lines_of "ls -d examples/*/") do
          local name = dir:match "^examples/(.-)/$"
          inner[#inner + 1] = { name, "examples/" .. name .. ".md" }
        end
        what = inner
      elseif what == "reference" then
        local inner = {}
        for _, page in ipairs(reference.contents()) do
          inner[#inner + 1] = { page[1], "reference/" .. page[2] }
        end
        what = inner
      elseif type(what) == "table" then
        what = resolve(what)
      else
        what = assert(place_of(what), what)
      end
      out[#out + 1] = { title, what }
    end
    return out
  end
  return resolve(NAV)
end

-- ---------------------------------------------------------------- what else there is

local function flat(list, fn, section)
  for _, entry in ipairs(list) do
    if type(entry[2]) == "table" then flat(entry[2], fn, entry[1]) else fn(entry[1], entry[2], section) end
  end
end
M.each_page = flat

-- The first sentence of a page's text.
local function summary(text)
  local plain = text:gsub("```.-\n```", ""):gsub("%b[]%b()", function(l) return l:match "^%[(.-)%]" end)
  for part in (plain .. "\n\n"):gmatch "(.-)\n\n+" do
    if part:find "^%a" then
      local line = part:gsub("\n", " ")
      return line:match "^(.-[%.:])%s" or line
    end
  end
  return ""
end

--- https://llmstxt.org: one page that says what there is.
function M.llms(pages)
  local out = { "# kubelua", "", "> " .. SENTENCE, "" }
  local last
  flat(M.navigation(), function(title, path, section)
    section = section or "Start"
    if section ~= last then
      out[#out + 1] = ("%s## %s\n"):format(last and "\n" or "", section)
      last = section
    end
    out[#out + 1] = ("- [%s](%s): %s"):format(title, (path:gsub("%.md$", ".html")), summary(pages[path]))
  end)
  return table.concat(out, "\n") .. "\n"
end

local function yaml_nav(list, indent, out)
  for _, entry in ipairs(list) do
    if type(entry[2]) == "table" then
      out[#out + 1] = ("%s- %q:"):format(indent, entry[1])
      yaml_nav(entry[2], indent .. "  ", out)
    else
      out[#out + 1] = ("%s- %q: %s"):format(indent, entry[1], entry[2])
    end
  end
  return out
end

local SETTINGS = [[
site_name: kubelua
site_description: %s
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.indexes, navigation.top, content.code.copy, toc.follow]
  palette:
  - media: "(prefers-color-scheme: light)"
    scheme: default
    toggle: {icon: material/weather-night, name: Dark}
  - media: "(prefers-color-scheme: dark)"
    scheme: slate
    toggle: {icon: material/weather-sunny, name: Light}
plugins: [search]
markdown_extensions:
- tables
- attr_list
- toc:
    permalink: true
    slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}
- pymdownx.highlight
- pymdownx.superfences
validation:
  links: {anchors: warn, not_found: warn, unrecognized_links: warn}
  nav: {omitted_files: warn, not_found: warn}
nav:
]]

--- Writes everything that the generator needs into `dir`; returns the pages.
function M.write(dir)
  local pages, made = M.pages(), {}
  for path, text in pairs(pages) do
    local sub = dir .. "/docs/" .. (path:match "^(.*/)" or "")
    if not made[sub] then
      assert(os.execute("mkdir -p '" .. sub .. "'"))
      made[sub] = true
    end
    write(dir .. "/docs/" .. path, text)
  end
  for _, picture in ipairs(lines_of "ls docs/*.svg examples/*/*.svg 2>/dev/null") do
    write(dir .. "/docs/" .. place_of(picture), annotations.read(picture))
  end
  write(dir .. "/docs/llms.txt", M.llms(pages))
  write(dir .. "/mkdocs.yml", SETTINGS:format(SENTENCE)
    .. table.concat(yaml_nav(M.navigation(), "", {}), "\n") .. "\n")
  return pages
end

-- ---------------------------------------------------------------- the generator

local function quiet(command) return os.execute(command .. " >/dev/null 2>&1") end

--- The generator, installed once per machine below `cache` with pip; nil and why where that cannot be done.
function M.generator(cache)
  local venv = ("%s/site-%s"):format(cache, M.VERSION)
  local mkdocs = venv .. "/bin/mkdocs"
  if quiet("'" .. mkdocs .. "' --version") then return mkdocs end
  if not quiet "python3 -m venv --help" then
    return nil, "python3 cannot make a venv (Debian: python3-venv)"
  end
  io.stderr:write(("site: pip installs mkdocs-material %s, once on this machine\n"):format(M.VERSION))
  local install = "python3 -m venv '%s' && '%s/bin/pip' install -q mkdocs-material==%s"
  if not quiet(install:format(venv, venv, M.VERSION)) then
    return nil, "pip could not install mkdocs-material " .. M.VERSION
  end
  return mkdocs
end

--- Makes the site in `out` of what M.write wrote into `src`. A complaint of the generator is a failure.
--- Returns whether it went well, and what was said.
function M.make(mkdocs, src, out)
  local command = "NO_MKDOCS_2_WARNING=1 '%s' build -q --strict -f '%s/mkdocs.yml' \z
    -d \"$(realpath -m '%s')\" 2>&1"
  local pipe = assert(io.popen(command:format(mkdocs, src, out)))
  local said = pipe:read "a"
  local ok = pipe:close()
  if not ok then io.stderr:write(said) end
  return ok == true, said
end

--- ~/.cache/kubelua, or what KUBELUA_CACHE says.
function M.cache()
  local caches = os.getenv "XDG_CACHE_HOME" or (os.getenv "HOME" or "/tmp") .. "/.cache"
  return os.getenv "KUBELUA_CACHE" or caches .. "/kubelua"
end

return M
