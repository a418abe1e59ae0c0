-- promtext.lua - a strict parser of Prometheus' text format (0.0.4), which also finds what `promtool check
-- metrics` finds.
--
--   local families = promtext.parse(text)                       -- raises with the line that is wrong
--   families["x_total"].type, families["x_total"].samples[1].labels.name, .value

local M = {}

local NAME, LABEL = "^[a-zA-Z_:][a-zA-Z0-9_:]*", "^[a-zA-Z_][a-zA-Z0-9_]*"
local TYPES = { counter = true, gauge = true, histogram = true, summary = true, untyped = true }
local ESCAPES = { ["\\"] = "\\", ["n"] = "\n", ['"'] = '"' }

local function value_of(text, fail)
  local special = ({ ["+Inf"] = math.huge, ["-Inf"] = -math.huge, NaN = 0 / 0 })[text]
  if special then return special end
  if not text:find "^[-+]?%d+%.?%d*[eE]?[-+]?%d*$" and not text:find "^[-+]?%.%d+" then
    fail("no number: " .. text)
  end
  return tonumber(text) or fail("no number: " .. text)
end

local function read_labels(line, at, fail)
  local labels = {}
  while line:sub(at, at) ~= "}" do
    local name = line:match(LABEL, at) or fail("a label's name is expected at " .. at)
    at = at + #name
    if line:sub(at, at + 1) ~= '="' then fail('="is expected behind ' .. name) end
    at = at + 2
    local value = {}
    while true do
      local c = line:sub(at, at)
      if c == "" then fail("the value of " .. name .. " does not end") end
      if c == '"' then break end
      if c == "\\" then
        at = at + 1
        c = ESCAPES[line:sub(at, at)] or fail("unknown escape in the value of " .. name)
      end
      value[#value + 1] = c
      at = at + 1
    end
    at = at + 1
    if labels[name] then fail("label " .. name .. " comes twice") end
    labels[name] = table.concat(value)
    if not utf8.len(labels[name]) then fail("label " .. name .. " is not UTF-8") end
    local c = line:sub(at, at)
    if c == "," then at = at + 1 elseif c ~= "}" then fail("a comma or } is expected at " .. at) end
  end
  return labels, at + 1
end

-- The family of a sample; a histogram has three series.
local function family_of(families, name)
  if families[name] then return families[name], "" end
  for _, suffix in ipairs { "_bucket", "_sum", "_count" } do
    local base = name:sub(-#suffix) == suffix and name:sub(1, -#suffix - 1)
    local family = base and families[base]
    if family and (family.type == "histogram" or (family.type == "summary" and suffix ~= "_bucket")) then
      return family, suffix
    end
  end
end

local function identity(name, labels, but)
  local parts = {}
  for k, v in pairs(labels) do
    if k ~= but then parts[#parts + 1] = ("%s=%q"):format(k, v) end
  end
  table.sort(parts)
  return name .. "{" .. table.concat(parts, ",") .. "}"
end

local function check_histogram(family)
  local all = {}
  for _, s in ipairs(family.samples) do
    local id = identity("", s.labels, "le")
    all[id] = all[id] or { buckets = {} }
    local h = all[id]
    if s.suffix == "_bucket" then
      local le = value_of(s.labels.le or error(family.name .. ": a bucket without le", 0), error)
      local last = h.buckets[#h.buckets]
      if last and le <= last.le then
        error(("%s%s: le %s does not grow"):format(family.name, id, s.labels.le), 0)
      end
      if last and s.value < last.value then
        error(("%s%s: le %s holds less than the one before"):format(family.name, id, s.labels.le), 0)
      end
      h.buckets[#h.buckets + 1] = { le = le, value = s.value }
    elseif s.suffix == "_sum" or s.suffix == "_count" then
      h[s.suffix] = s.value
    else
      error(family.name .. ": a histogram has no samples of its own name", 0)
    end
  end
  for id, h in pairs(all) do
    local last = h.buckets[#h.buckets]
    if not last or last.le ~= math.huge then error(family.name .. id .. ": no bucket +Inf", 0) end
    if h._count ~= last.value then error(family.name .. id .. ": _count is not what +Inf holds", 0) end
    if not h._sum then error(family.name .. id .. ": no _sum", 0) end
  end
end

-- promtool's lint, as far as it speaks about such metrics.
local function lint(family)
  local counter = family.type == "counter"
  if counter and not family.name:find "_total$" then error(family.name .. ": a counter ends in _total", 0) end
  if not counter and family.name:find "_total$" then
    error(family.name .. ": only a counter ends in _total", 0)
  end
  if family.type ~= "histogram" and family.name:find "_bucket$" then
    error(family.name .. ": only histograms have _bucket", 0)
  end
  if family.name:find "_milliseconds" or family.name:find "_kilobytes" then
    error(family.name .. ": not a base unit", 0)
  end
  if not family.help or family.help == "" then error(family.name .. ": no help", 0) end
end

--- Families by name; raises for the first mistake.
function M.parse(text)
  if text:sub(-1) ~= "\n" then error("the text does not end with a line break", 0) end
  if not utf8.len(text) then error("the text is not UTF-8", 0) end
  local families, present, number, seen = {}, nil, 0, {}
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    local function fail(why) error(("line %d: %s: %s"):format(number, why, line), 0) end
    local what, name, rest = line:match "^# (%u+) (%S+) ?(.*)$"
    if what == "HELP" or what == "TYPE" then
      local family = families[name]
      if not family then
        family = { name = name, samples = {} }
        families[name] = family
      end
      local key = what:lower()
      if family[key] then fail(what .. " comes twice") end
      if #family.samples > 0 then fail(what .. " comes after samples") end
      if what == "TYPE" and not TYPES[rest] then fail "unknown type" end
      family[key] = rest
      present = family
    elseif line ~= "" and line:sub(1, 1) ~= "#" then
      name = line:match(NAME) or fail "no name"
      local at, labels = #name + 1, {}
      if line:sub(at, at) == "{" then labels, at = read_labels(line, at + 1, fail) end
      local value = line:match("^ (%S+)$", at) or fail "one blank and one value are expected"
      local family, suffix = family_of(families, name)
      if not family then fail "a sample without TYPE before it" end
      if family ~= present then fail "the samples of a family are not together" end
      local id = identity(name, labels)
      if seen[id] then fail "the series comes twice" end
      seen[id] = true
      family.samples[#family.samples + 1] = { name = name, suffix = suffix, labels = labels,
        value = value_of(value, fail) }
    end
  end
  for _, family in pairs(families) do
    lint(family)
    if family.type == "histogram" then check_histogram(family) end
  end
  return families
end

--- The value of the first sample of a family with these labels; nil: there is none.
function M.value(families, name, labels)
  local family = family_of(families, name)
  for _, s in ipairs(family and family.samples or {}) do
    local same = s.name == name
    for k, v in pairs(labels or {}) do same = same and s.labels[k] == v end
    if same then return s.value end
  end
end

return M
