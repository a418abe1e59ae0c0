-- work.lua - a reconcile of some size without a call: it reads its object, decides with tables, texts, a
-- sort and a closure, and ends.

local kube = require "kubelua"

local function desired(m, s)
  local labels = { app = m.labels.app, node = s.nodeName, tier = s.priority > 0 and "high" or "low" }
  local names = {}
  for key in pairs(labels) do names[#names + 1] = key end
  table.sort(names, function(a, b) return a < b end)
  local parts = {}
  for i, key in ipairs(names) do parts[i] = ("%s=%s"):format(key, labels[key]) end
  local sum = 0
  for i = 1, 200 do sum = (sum * 31 + i) % 65521 end
  return { text = table.concat(parts, ","), sum = sum }
end

return kube.controller {
  name = "work", resource = "v1/Pod",
  reconcile = function(o)
    local want = desired(o.metadata, o.spec)
    local ok = pcall(function() return want.text:find(o.spec.nodeName, 1, true) end)
    return ok and want.sum < 0 and "1s" or nil
  end,
}
