-- both.lua - sends the same requests to the embedded server and to the real one, and compares the answers.
--
--   local both = require "support.both"
--   both.describe("pods", function(ns) return {
--     { "no containers", "POST", "/api/v1/namespaces/" .. ns .. "/pods", { metadata = ... }, 422 },
--   } end)
--
-- A row is { name, method, path, body, code }; the method may be PATCH (a merge patch), "STRATEGIC",
-- "JSON" or "APPLY", or "TABLE" for a GET of a table. Rows are sent in their order, all of them on one
-- connection, and each is one `it`: both servers answer with `code` (nil: whatever the real one says), and
-- alike in everything that is not chance (uids, times, versions, addresses, the order of managedFields within
-- a second). In rows with `loose = true` the causes of a refusal are a set of fields and reasons.

local json = require "dkjson"
local busted = require "busted"
local luassert = require "luassert"
local process = require "support.process"
local servers = require "support.servers"

local M = {}

local TYPES = { PATCH = "application/merge-patch+json", STRATEGIC = "application/strategic-merge-patch+json",
  JSON = "application/json-patch+json", APPLY = "application/apply-patch+yaml" }
local TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

--- The value that a merge patch uses to remove a field.
M.NULL = json.null

--- An empty list; an empty table is an object.
M.NONE = setmetatable({}, { __jsontype = "array" })

local function objects(value)
  if type(value) ~= "table" then return value end
  if next(value) == nil then return getmetatable(value) and value
    or setmetatable({}, { __jsontype = "object" }) end
  local copy = {}
  for key, x in pairs(value) do copy[key] = objects(x) end
  return copy
end

local function copied(value)
  if type(value) ~= "table" or getmetatable(value) then return value end
  local copy = {}
  for key, x in pairs(value) do copy[key] = copied(x) end
  return copy
end

--- `more` over `base`, which is changed: tables with keys are merged, lists and all else replaced by copies.
function M.merge(base, more)
  for key, value in pairs(more or {}) do
    local deep = type(value) == "table" and type(base[key]) == "table" and #value == 0
      and not getmetatable(value)
    base[key] = deep and M.merge(base[key], value) or copied(value)
  end
  return base
end

--- Adds rows of one kind: add(what, more, code) creates `base` with `more` over it, as a dry run. Without a
--- code it is rejected with 422.
function M.adder(rows, kind, path, base)
  return function(what, more, code)
    local o = M.merge({ metadata = { name = ("x%d"):format(#rows) } }, base)
    rows[#rows + 1] = { kind .. ": " .. what, "POST", path .. "?dryRun=All", M.merge(o, more), code or 422 }
  end
end

local function quote(text) return '"' .. text:gsub('[\\"]', "\\%0") .. '"' end

--- Sends the rows in one run of curl. Returns for each { code =, warnings =, body = }.
function M.ask(s, rows)
  local config, out = {}, {}
  local function add(...) config[#config + 1] = string.format(...) end
  for i, row in ipairs(rows) do
    local method, body = row[2], row[4]
    out[i] = process.tmpname ".answer"
    if i > 1 then add "next" end
    add("url = %s", quote(s.url .. row[3]))
    add("request = %s", TYPES[method] and "PATCH" or method == "TABLE" and "GET" or method)
    if method == "TABLE" then add("header = %s", quote("Accept: " .. TABLE)) end
    add("output = %s", quote(out[i]))
    add "include"
    add "silent"
    add "globoff"
    add "http1.1"
    add "max-time = 60"
    if s.token then
      add("header = %s", quote("Authorization: Bearer " .. s.token))
      add("cacert = %s", quote(s.ca))
    end
    if body then
      local file = process.write(process.tmpname ".json",
        type(body) == "table" and json.encode(objects(body)) or body)
      add("header = %s", quote("Content-Type: " .. (TYPES[method] or "application/json")))
      add("data-binary = %s", quote("@" .. file))
    end
  end
  local file = process.write(process.tmpname ".curl", table.concat(config, "\n") .. "\n")
  local said, code = process.run("curl -K " .. process.quote(file))
  assert(code == 0, ("curl ended with %d: %s"):format(code, said))
  for i, path in ipairs(out) do
    local text = process.read(path) or ""
    local head, body = text:match "^(.-)\r\n\r\n(.*)$"
    local answer = { code = tonumber(text:match "^HTTP/%S+ (%d+)"), warnings = {},
      body = json.decode(body, 1, json.null) }
    for line in (head or ""):gmatch "[^\r\n]+" do
      local warning = line:match "^[Ww]arning: (.*)"
      if warning then answer.warnings[#answer.warnings + 1] = warning end
    end
    out[i] = answer
  end
  return out
end

local CHANCE = { "uid", "creationTimestamp", "deletionTimestamp", "resourceVersion", "continue" }
local UID = ("%x"):rep(8) .. "%-" .. (("%x"):rep(4) .. "%-"):rep(3) .. ("%x"):rep(12)

-- The entries of managedFields without their times, which also order them; some have none.
local function timeless(entries)
  local places = {}
  for _, entry in ipairs(entries) do
    entry.time = entry.time and "TIME"
    places[entry] = table.concat({ entry.operation or "", entry.manager or "", entry.apiVersion or "",
      entry.subresource or "", entry.time or "" }, "\0")
  end
  table.sort(entries, function(a, b) return places[a] < places[b] end)
  return entries
end

-- Replaces values that differ between servers by their names; the rest stays.
local function scrub(value)
  if type(value) == "string" then
    -- The rest is kube-apiserver's print of its own structs.
    if value:find "^Pod \"" or value:find "^PersistentVolume%a* \"" or value:find "^Forbidden: " then
      value = value:gsub("\n.*", "")
    end
    if value:find("resourceVersion", 1, true) then
      value = value:gsub('Invalid value: "{.*}": ', "PATCHED ")
    end
    value = value:gsub("(spec%.template: Invalid value: ){.*}", "%1TEMPLATE")
    if value:find "^Invalid value: {.*restartPolicy" or value:find "^Invalid value: {.*RestartPolicy" then
      value = value:gsub("{.*}", "TEMPLATE")
    end
    return (value:gsub("in record %(%d+%)", "in record (VERSION)"):gsub(UID, "UID")
      :gsub("10%.96%.0%.0/12", "RANGE"):gsub("10%.0%.0%.0/24", "RANGE")
      :gsub("10%.0%.0%.%d+", "ADDRESS"):gsub("10%.96%.%d+%.%d+", "ADDRESS"))
  end
  if type(value) ~= "table" or value == json.null then return value end
  local copy = {}
  for key, x in pairs(value) do copy[key] = scrub(x) end
  if type(copy.metadata) == "table" then
    for _, key in ipairs(CHANCE) do copy.metadata[key] = nil end
    timeless(copy.metadata.managedFields or {})
    -- Ours omits a finalizer that only a controller manager would remove.
    local finalizer = copy.metadata.finalizers and copy.metadata.finalizers[1]
    if tostring(finalizer):find "^kubernetes%.io/%a+%-protection$" then
      copy.metadata.finalizers = nil
    end
  end
  if copy.reason == "Local" then copy.lastTransitionTime = "TIME" end
  if copy.lastPhaseTransitionTime then copy.lastPhaseTransitionTime = "TIME" end
  if copy.columnDefinitions then
    for _, row in ipairs(copy.rows or {}) do
      for i, cell in ipairs(row.cells) do
        row.cells[i] = tostring(cell):gsub("^%d+s$", "AGE"):gsub("^%d+%-%d+%-%d+T%d+:%d+:%d+Z$", "TIME")
      end
    end
  end
  if math.type(copy.nodePort) and copy.nodePort >= 30000 then copy.nodePort = "NODEPORT" end
  if math.type(copy.healthCheckNodePort) then copy.healthCheckNodePort = "NODEPORT" end
  return copy
end

-- A line for each difference between `ours` and `theirs`.
local function differences(path, theirs, ours, found)
  if type(theirs) ~= "table" or type(ours) ~= "table" or theirs == json.null or ours == json.null then
    if theirs ~= ours then
      found[#found + 1] = ("%s: the real one says %s, ours %s"):format(path, json.encode(theirs),
        json.encode(ours))
    end
    return
  end
  local keys = {}
  for key in pairs(theirs) do keys[#keys + 1] = key end
  for key in pairs(ours) do
    if theirs[key] == nil then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do differences(path .. "." .. key, theirs[key], ours[key], found) end
end

-- The causes of a refusal as a set of fields and reasons, without a message; those of a conflict, which
-- kube-apiserver gives in any order, as a set.
local function loosened(body)
  local causes = type(body) == "table" and body.details and body.details.causes
  if not causes then return body end
  local set, conflict = {}, body.code == 409
  for _, cause in ipairs(causes) do
    set[(cause.field or "") .. " " .. (conflict and cause.message or cause.reason or "")] = true
  end
  body.details.causes = set
  if not conflict then body.message = nil end
  return body
end

--- Asserts that the answers are alike; the error has a line for each difference.
function M.same(theirs, ours)
  local found = {}
  differences("", theirs, ours, found)
  luassert.equal("", table.concat(found, "\n"))
end

M.differences = differences
M.scrub = scrub

local count = 0
-- Objects of kinds without a namespace have plain names in rows: a file begins with an empty server.
local emptied = false

local function start_real(start)
  local s = start { empty = not emptied }
  emptied = true
  return s
end

--- `rows(ns)` gives the rows; `ns` is a namespace of their own. `before(s, ns)` makes what the rows need of
--- each server first, and waits for it. Without a real server they are pending.
function M.describe(what, rows, before)
  servers.only_real(function(_, real)
    busted.describe(what .. " are answered alike: ", function()
      count = count + 1
      local ns = ("both-%d-%d"):format(os.time() % 1000000, count)
      local list, answers = rows(ns), {}
      busted.lazy_setup(function()
        for i, s in ipairs { servers.embedded {}, start_real(real) } do
          if before then before(s, ns) end
          local all = { { "", "POST", "/api/v1/namespaces", { metadata = { name = ns } } } }
          table.move(list, 1, #list, 2, all)
          all[#all + 1] = { "", "DELETE", "/api/v1/namespaces/" .. ns }
          answers[i] = M.ask(s, all)
          s:stop()
        end
      end)
      for i, row in ipairs(list) do
        busted.it(row[1], function()
          local ours, theirs = answers[1][i + 1], answers[2][i + 1]
          luassert.equal(row[5] or theirs.code, theirs.code, json.encode(theirs.body))
          local function answer(a)
            local body = scrub(a.body)
            return { code = a.code, warnings = a.warnings, body = row.loose and loosened(body) or body }
          end
          M.same(answer(theirs), answer(ours))
        end)
      end
    end)
  end)
end

return M
