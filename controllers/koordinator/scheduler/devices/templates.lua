-- templates.lua - the parts of Huawei's NPUs: a part must be exactly what a template for the node's model
-- says.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"

local M = {}

local VENDOR, MODEL = "node.koordinator.sh/gpu-vendor", "node.koordinator.sh/gpu-model"

M.NONE = "no matched GPU shared resource template"

-- The vendor and the model of a node's GPUs, "" for one that is not said.
function M.model_of(node) return fields.label(node, VENDOR) or "", fields.label(node, MODEL) or "" end

-- The templates in data.yaml, { [model] = { [name] = list of amounts } }, with models as "VENDOR-MODEL"; nil
-- and the reason when it is invalid.
function M.read(text)
  local ok, docs = pcall(kube.yaml, text or "")
  if not ok then return nil, tostring(docs) end
  local out = {}
  local good, why = pcall(function()
    for model, by_name in pairs(fields.copy(docs[1]) or {}) do
      out[model] = {}
      for name, quantities in pairs(by_name) do out[model][name] = lists.of(quantities) end
    end
  end)
  if not good then return nil, tostring(why) end
  return out
end

-- The names of the templates with exactly these amounts, by model.
function M.matching(each, templates)
  local out = {}
  for model, by_name in pairs(templates or {}) do
    for name, amounts in pairs(by_name) do
      if lists.same(amounts, each) then
        out[model] = out[model] or {}
        table.insert(out[model], name)
      end
    end
  end
  return out
end

-- The name of the template for a part of an NPU on the node; nil: the request needs none, or several match;
-- false: none matches.
function M.on(node, request)
  if not request.by_template then return nil end
  local names = request.templates[("%s-%s"):format(M.model_of(node))]
  if not names then return false end
  return #names == 1 and names[1] or nil
end

return M
