-- annotations.lua - part of `make lint`: checks generated Lua annotations with emmylua_check (from
-- crates.io), and two programs that use them: one without a mistake, and one in which every mistake must be
-- found.
--
-- The checker is built by cargo once per machine (minutes) and kept in a cache outside the checkout
-- (KUBELUA_CACHE, by default ~/.cache/kubelua). Where there is no cargo, or the registry cannot be reached,
-- it prints "not run" and why; in CI that is a failure.

package.path = "spec/?.lua;" .. package.path
local json = require "dkjson"
local process = require "support.process"

local VERSION = "0.25.1"
local quote = process.quote

local cache = os.getenv "KUBELUA_CACHE" or (os.getenv "XDG_CACHE_HOME"
  or (os.getenv "HOME" or "/tmp") .. "/.cache") .. "/kubelua"
local root = cache .. "/emmylua-" .. VERSION
local checker = root .. "/bin/emmylua_check"
local here = process.run("pwd"):gsub("%s+$", "")

local function not_run(why)
  print("annotations: not run: " .. why)
  local ci = os.getenv "CI"
  os.exit(not (ci and ci ~= "" and ci ~= "false"))
end

local function build()
  if process.read(checker) then return end
  if select(2, process.run "command -v cargo") ~= 0 then
    not_run "there is no cargo here to build emmylua_check with"
  end
  io.stderr:write("annotations: cargo builds emmylua_check " .. VERSION .. ", once on this machine\n")
  local said, code = process.run(("nice cargo install emmylua_check --version %s --locked --root %s"):format(
    VERSION, quote(root)))
  if code ~= 0 then
    not_run("cargo could not build emmylua_check: " .. (said:match "(error[^\n]*)" or said))
  end
end

-- Diagnostics of a directory: a list of { file, line, text, code }.
local function check(dir, disabled)
  process.run "mkdir -p build"
  local config = process.write("build/emmyrc.json", json.encode {
    runtime = { version = "Lua5.4" }, workspace = { library = dir ~= "lua" and { here .. "/lua" } or {} },
    diagnostics = { disable = disabled or {}, globals = { "dev" } },
  })
  local out = "build/annotations.json"
  os.remove(out)
  local said = process.run(("%s -c %s -f json --output %s %s"):format(quote(checker),
    quote(here .. "/" .. config), quote(out), quote(here .. "/" .. dir)))
  local text = process.read(out)
  if not text then error("emmylua_check wrote nothing about " .. dir .. ": " .. said, 0) end
  local found = {}
  for _, file in ipairs(assert(json.decode(text))) do
    local name = file.file:sub(1, #here + 1) == here .. "/" and file.file:sub(#here + 2) or file.file
    for _, d in ipairs(file.diagnostics) do
      found[#found + 1] = { file = name, line = d.range.start.line + 1, text = d.message, code = d.code }
    end
  end
  table.sort(found, function(a, b) return a.file < b.file or a.file == b.file and a.line < b.line end)
  return found
end

local failures = 0
local function complain(fmt, ...)
  print(fmt:format(...))
  failures = failures + 1
end

local function say(d) complain("%s:%d: %s [%s]", d.file, d.line, d.text, d.code) end

build()

-- A program without a mistake.
for _, d in ipairs(check "spec/fixtures/emmylua/good") do say(d) end

-- A program with mistakes: they are found on exactly the marked lines.
local BAD = "spec/fixtures/emmylua/bad"
local wrong, number = {}, 0
for line in (process.read(BAD .. "/main.lua")):gmatch "(.-)\n" do
  number = number + 1
  if line:find "%-%- wrong: " then wrong[number] = "missed" end
end
for _, d in ipairs(check(BAD)) do
  if wrong[d.line] then wrong[d.line] = "found" else say(d) end
end
for line = 1, number do
  if wrong[line] == "missed" then
    complain("%s/main.lua:%d: the checker did not find this mistake, so the annotations say too little", BAD,
      line)
  end
end

-- Generated annotations use only what the checker understands; every type that the library names exists.
local ABOUT_TYPES = { ["type-not-found"] = true, ["doc-syntax-error"] = true, ["syntax-error"] = true,
  ["annotation-usage-error"] = true, ["unknown-doc-tag"] = true }
for _, d in ipairs(check "lua") do
  if ABOUT_TYPES[d.code] or d.file:find "^lua/kubelua/koordinator/"
    or d.file:find "^lua/kubelua/kubernetes/" then
    say(d)
  end
end

-- Every function of require "kubelua" is known.
process.run "mkdir -p build/annotations"
local names = { 'local kube = require "kubelua"' }
local init = process.read "lua/kubelua/init.lua"
for _, list in ipairs { "FROM_FILES", "FOR_PROGRAMS" } do
  for name in init:match("\nlocal " .. list .. " = (%b{})"):gmatch "([%w_]+) = {" do
    names[#names + 1] = "print(kube." .. name .. ")"
  end
end
for name in init:match "\nlocal FROM_CORE = (%b{})":gmatch '"([%w_]+)"' do
  names[#names + 1] = "print(kube." .. name .. ")"
end
process.write("build/annotations/names.lua", table.concat(names, "\n") .. "\n")
for _, d in ipairs(check "build/annotations") do
  complain("lua/kubelua/types.lua: %s says nothing of it: %s", names[d.line], d.text)
end

-- Our own policies use the library. Findings about nil are ignored: views return nil where a type cannot
-- express it.
for _, d in ipairs(check("controllers", { "unnecessary-if", "unnecessary-assert", "need-check-nil",
  "inject-field", "assign-type-mismatch" })) do
  say(d)
end

if failures == 0 then print("annotations: clean") end
os.exit(failures == 0)
