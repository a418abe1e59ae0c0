-- check.lua - kubelua check: describes scripts, and reports their mistakes, without running them.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local lint = require "kubelua.reader.lint"

local M = {}

M.no_cluster = true

M.options = {
  { "--output", "FORMAT", "plain, json or sarif (plain)", brief = "-o", values = "plain json sarif" },
  { "--param", "NAME=VALUE", "check this value of a param, or CONTROLLER.NAME=VALUE (may be \z
    repeated)", type = "list" },
  { "--params", "FILE", "params from a YAML file (may be repeated)", type = "list" },
  { "--param-env", "NAME=VARIABLE", "a param from an environment variable (may be repeated)", type = "list" },
}

-- "a.lua:12: message" as a finding.
local function of_error(path, text)
  local file, line, message = text:match "^([^\n:]+):(%d+): (.*)$"
  return { file = file or path, line = tonumber(line) or 1, severity = "error", rule = "load",
    message = message or (text:gsub("^" .. path:gsub("%p", "%%%0") .. ": ", "")), text = text }
end

local function gather(programs)
  local all, seen = {}, {}
  for _, program in ipairs(programs) do
    local found = program.error and { of_error(program.path, program.error) } or lint.program(program)
    for _, finding in ipairs(found) do
      -- a module may belong to several scripts
      local key = ("%s\0%d\0%s"):format(finding.file, finding.line, finding.message)
      if not seen[key] then all[#all + 1] = finding end
      seen[key] = true
    end
  end
  return all
end

-- ---------------------------------------------------------------- what is printed

local Print = {}

local function given(spec)
  local names = {}
  for name in pairs(spec.given or {}) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    print(("%s: %s = %s"):format(spec.name, name, core.encode(spec.given[name])))
  end
end

function Print.plain(_, programs, findings)
  for _, program in ipairs(programs) do
    if program.description then
      io.write(program.description)
      for _, spec in ipairs(program.specs) do given(spec) end
    end
  end
  for _, f in ipairs(findings) do
    if f.rule ~= "load" then
      print(common.safe(("%s:%d: %s: %s (%s)"):format(f.file, f.line, f.severity, f.message, f.rule)))
    end
  end
end

local function listed(findings, make)
  local out = {}
  for i, f in ipairs(findings) do out[i] = make(f) end
  return core.array(out)
end

function Print.json(_, programs, findings)
  local scripts = {}
  for i, program in ipairs(programs) do
    local names = {}
    for k, spec in ipairs(program.specs or {}) do names[k] = spec.name end
    scripts[i] = { path = program.path, loads = not program.error, controllers = core.array(names) }
  end
  common.print_json { scripts = core.array(scripts), findings = listed(findings, function(f)
    return { file = f.file, line = f.line, severity = f.severity, rule = f.rule, message = f.message }
  end) }
end

function Print.sarif(env, _, findings)
  local names = {}
  for name in pairs(lint.RULES) do names[#names + 1] = name end
  table.sort(names)
  local rules = {}
  for i, name in ipairs(names) do
    rules[i] = { id = name, shortDescription = { text = lint.RULES[name] } }
  end
  common.print_json { ["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json", version = "2.1.0",
    runs = core.array { {
      tool = { driver = { name = "kubelua", version = env.version, rules = core.array(rules) } },
      results = listed(findings, function(f)
        return { ruleId = f.rule, level = f.severity, message = { text = f.message },
          locations = core.array { { physicalLocation = { artifactLocation = { uri = f.file },
            region = { startLine = f.line } } } } }
      end),
    } } }
end

-- ---------------------------------------------------------------- the command

function M.run(env)
  local o = env.options
  local format = o.output or "plain"
  if #env.words == 0 then
    common.usage "name at least one script: kubelua check SCRIPT.lua..."
  end
  local paths = {}
  for _, path in ipairs(env.words) do
    -- a shell pattern also matches tests
    if not path:find "_test%.lua$" then paths[#paths + 1] = path end
  end
  if #paths == 0 then
    common.complain(env, "%s: files named *_test.lua are tests of scripts: kubelua test %s", env.words[1],
      env.words[1])
    return 1
  end
  local programs, problem = env.programs(paths, { param = o.param, params = o.params,
    param_env = o.param_env })
  local findings = gather(programs)
  Print[format](env, programs, findings)
  local failed = problem ~= nil
  for _, f in ipairs(findings) do
    if f.rule == "load" and format == "plain" then common.complain(env, "%s", f.text) end
    failed = failed or f.severity == "error"
  end
  if problem then common.complain(env, "%s", problem) end
  return failed and 1 or 0
end

return M
