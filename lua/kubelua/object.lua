-- object.lua - objects as scripts write them, in a manifest's form or in short.
--
--   { apiVersion = "v1", kind = "Secret", metadata = { name = "a" }, data = ... }   is sent unchanged
--   { kind = "v1/Secret", name = "a", data = ... }                                  its short form
--
-- In the short form `kind` holds "group/version/Kind", and name, generateName, namespace, labels, annotations
-- and finalizers move into metadata.

local core = require "kubelua.core"

local M = {}

local INTO_METADATA = { "name", "generateName", "namespace", "labels", "annotations", "finalizers" }

--- "apps/v1/Deployment" -> "apps/v1", "Deployment"; "v1/Pod" -> "v1", "Pod"; nil when it is a bare kind.
---@param text string
---@return string? apiVersion, string? kind
function M.split_kind(text)
  return text:match "^(.+)/([^/]+)$"
end

--- The text form of an object's kind: "apps/v1/Deployment", "v1/Pod".
---@param o table|kubelua.view
---@return string?
function M.kind_of(o)
  local kind, api = o.kind, o.apiVersion
  if type(kind) ~= "string" then return nil end
  if type(api) == "string" and api ~= "" then return api .. "/" .. kind end
  return kind
end

local function shallow(t)
  local copy = {}
  for key, value in pairs(t) do copy[key] = value end
  return copy
end

-- A Secret's data with ctx.secret texts unsealed; a copy if there are any.
local function unsealed(o, field, encode)
  local values, copy = rawget(o, field), nil
  if type(values) ~= "table" then return o end
  for key, value in pairs(values) do
    local text = core.unsealed(value)
    if text then
      copy = copy or shallow(values)
      copy[key] = encode and encode(text) or text
    end
  end
  if not copy then return o end
  o = shallow(o)
  o[field] = copy
  return o
end

--- What becomes of a Secret that a script writes: secrets in its data and stringData are their texts.
---@param o table   or a part of one, as a patch has it
function M.with_secrets(o)
  return unsealed(unsealed(o, "data", core.base64_encode), "stringData")
end

local function is_manifest(o) return o.apiVersion ~= nil or o.metadata ~= nil end

--- A manifest of `o`, which stays as it is. Views, drafts and manifests pass through; `what` stands in
--- messages.
---@param o table|kubelua.view
---@param what string?
---@return table|kubelua.view
function M.normalize(o, what)
  what = what or "object"
  if type(o) == "userdata" then
    if core.is_view(o) or core.is_draft(o) then return o end
    core.blame(("%s: expected an object, got %s"):format(what, tostring(o)))
  elseif type(o) ~= "table" then
    core.blame(("%s: expected an object (a table or a view), got %s"):format(what, type(o)))
  end
  if type(o.kind) ~= "string" then
    core.blame(("%s: the object has no kind; write kind = \"v1/Secret\", or apiVersion and kind"):format(
      what))
  end
  if is_manifest(o) then
    if o.apiVersion == nil then
      core.blame(("%s: the object has metadata but no apiVersion; a manifest needs both, the short form \z
        neither"):format(what))
    end
    return o.kind == "Secret" and o.apiVersion == "v1" and M.with_secrets(o) or o
  end
  local api, kind = M.split_kind(o.kind)
  if not api then
    core.blame(("%s: kind = \"%s\" lacks its version; the short form needs \"v1/%s\" or \z
      \"group/version/%s\""):format(what, o.kind, o.kind, o.kind))
  end
  local out, metadata = shallow(o), {}
  for _, field in ipairs(INTO_METADATA) do out[field], metadata[field] = nil, o[field] end
  out.apiVersion, out.kind, out.metadata = api, kind, metadata
  return kind == "Secret" and api == "v1" and M.with_secrets(out) or out
end

-- An object takes these metadata of its template; a name is its own.
local FROM_TEMPLATE = { "labels", "annotations", "finalizers" }

--- An object out of a template, as controllers make Jobs of a CronJob and Pods of a ReplicaSet: everything
--- but metadata, and of that labels, annotations and finalizers. What `o` says is laid over it (kube.merge).
---@param template table|kubelua.view   spec.template, spec.jobTemplate, an item of volumeClaimTemplates
---@param o kubelua.Object              its kind and name, and what is other than in the template
---@return table  a manifest
function M.from_template(template, o)
  local what = "kube.from_template"
  if not core.has_parts(template) then
    core.blame(("%s: the template must be a table or a view, got %s; is it the field with metadata and \z
      spec?"):format(what, type(template)))
  end
  local own = M.normalize(o, what)
  local out, metadata = core.copy(template), {}
  for _, field in ipairs(FROM_TEMPLATE) do metadata[field] = out.metadata and out.metadata[field] end
  out.apiVersion, out.kind, out.status, out.metadata = nil, nil, nil, metadata
  return require("kubelua.tables").merge(out, own)
end

return M
