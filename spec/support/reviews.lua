-- reviews.lua - AdmissionReviews that a spec sends to webhooks itself, and what these answer.
--
--   local answers = reviews.ask { { url = "https://127.0.0.1:9443/hook", request = { operation = "CREATE",
--     kind = "v1/Pod", object = pod } }, ... }                   -- `old` beside `object` for an UPDATE
--   local changed = reviews.patched(pod, answers[1])             -- the object with the answer's JSON patch
--   assert.same(reviews.plain(a), reviews.plain(b))              -- objects that mean the same

local core = require "kubelua.core"
local kube = require "kubelua"
local process = require "support.process"

local M = {}

local LIMIT = 30 -- seconds for each review

local count = 0

local function group_version_kind(kind)
  local group, version, name = kind:match "^(.-)/?([^/]+)/([^/]+)$"
  return { group = group, version = version, kind = name }
end

local function review_of(request)
  count = count + 1
  local gvk, object = group_version_kind(request.kind), request.object or request.old
  local resource = { group = gvk.group, version = gvk.version, resource = gvk.kind:lower() .. "s" }
  return kube.encode { apiVersion = "admission.k8s.io/v1", kind = "AdmissionReview", request = {
    uid = "review-" .. count, kind = gvk, requestKind = gvk, resource = resource, requestResource = resource,
    subResource = request.subresource, operation = request.operation, name = object.metadata.name,
    namespace = object.metadata.namespace, userInfo = { username = "spec" }, dryRun = false,
    object = request.object, oldObject = request.old } }
end

--- Sends reviews one after the other, over one connection for each host. Returns the responses, in order.
function M.ask(questions)
  local lines, outputs = {}, {}
  for i, one in ipairs(questions) do
    outputs[i] = process.tmpname ".json"
    lines[i] = ('url = "%s"\ninsecure\nsilent\nshow-error\nmax-time = %d\nheader = "Content-Type: \z
      application/json"\ndata-binary = "@%s"\noutput = "%s"\n'):format(one.url, LIMIT,
      process.write(process.tmpname ".json", review_of(one.request)), outputs[i])
  end
  local config = process.write(process.tmpname ".curl", table.concat(lines, "next\n"))
  local said, code = process.run("curl -K " .. process.quote(config))
  assert(code == 0, said)
  local answers = {}
  for i, path in ipairs(outputs) do
    local review = kube.copy(kube.decode(process.read(path) or ""))
    answers[i] = assert(review and review.response, process.read(path))
  end
  return answers
end

--- The text of a refusal, or nil for an object that is allowed.
function M.refusal(answer)
  if answer.allowed then return nil end
  return answer.status and answer.status.message or "no reason"
end

-- ---------------------------------------------------------------- patches

-- The table that holds the last part of a JSON pointer, and that part: a name, or an index.
local function place(object, pointer)
  local parts = {}
  for part in pointer:gmatch "/([^/]*)" do parts[#parts + 1] = part:gsub("~1", "/"):gsub("~0", "~") end
  local at = object
  for i, part in ipairs(parts) do
    local list = part == "-" or #at > 0 or next(at) == nil and part == "0"
    local key = not list and part or part == "-" and #at + 1 or math.tointeger(tonumber(part)) + 1
    if i == #parts then return at, key end
    at = assert(at[key], pointer)
  end
end

--- A copy of the object with the JSON patch of the answer.
function M.patched(object, answer)
  local out = kube.copy(object)
  for _, op in ipairs(kube.copy(kube.decode(answer.patch and core.base64_decode(answer.patch) or "[]"))) do
    local at, key = place(out, op.path)
    if op.op == "remove" then
      if math.type(key) then table.remove(at, key) else at[key] = nil end
    elseif op.op == "add" and math.type(key) then
      table.insert(at, key, op.value)
    else
      assert(op.op == "add" or op.op == "replace", op.op)
      at[key] = op.value
    end
  end
  return out
end

-- ---------------------------------------------------------------- objects that mean the same

local AMOUNTS = { requests = true, limits = true, overhead = true, allocatable = true, capacity = true,
  min = true, max = true }
-- Annotations whose text is a list of amounts, or JSON with such lists.
local TEXTS = { ["node.koordinator.sh/extended-resource-spec"] = "json",
  ["node.koordinator.sh/raw-allocatable"] = "requests",
  ["quota.scheduling.koordinator.sh/shared-weight"] = "requests" }

--- Without empty tables and nulls, with amounts in thousandths and known annotations decoded.
function M.plain(v, key)
  if TEXTS[key] and type(v) == "string" then
    local ok, read = pcall(function() return kube.copy(kube.decode(v)) end)
    if ok then return M.plain(read, TEXTS[key]) end
  end
  if type(v) ~= "table" then return v ~= kube.null and v or nil end
  local out = {}
  for name, one in pairs(v) do
    if AMOUNTS[key] and one ~= kube.null then
      out[name] = kube.qty(one):milli()
    else
      out[name] = M.plain(one, name)
    end
  end
  return next(out) ~= nil and out or nil
end

return M
