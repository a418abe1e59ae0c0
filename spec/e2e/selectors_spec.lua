-- selectors_spec.lua - selectors of lists that cannot be parsed or have invalid keys or values: both servers
-- return the same message.

local both = require "support.both"

local LABELS = { "a=b=", "=a", "a,,b", ",", "a,", "a in", "a in (", "a in (b", "a in (b,", "a in b",
  "a notin (b", "!",
  "!!a", "a b", "a!b", "a>b", "a>", "a>1.5", "a>-b", "a<99999999999999999999", "(a)", "a in (b) c", "a=b c",
    "-a=b",
  "-a b", "a/b/c=d", "/a", "X/a=b", "x/=a", "a=-b", "a in (-c,b,-b)", "!a=b", "a===b", "a=>b", "!=", ")",
    "é=b",
  'a"b=c', "a=" .. ("b"):rep(70), "!a,!", "b=c,a exists", ("x"):rep(64) .. "=y" }

local FIELDS = { "a", "a=b", "metadata.name", "metadata.name=a=b", "metadata.name=a\\", "metadata.name=a\\x",
  "metadata.name=a\\é", "metadata.name!=a,b", "metadata.name>a", "x,metadata.name=a=", "metadata.name==a=",
  "metadata.name!==b", "=b" }

local function percent(text)
  return (text:gsub("[^%w]", function(c) return ("%%%02X"):format(c:byte()) end))
end

both.describe("selectors that cannot be", function(ns)
  local rows, pods = {}, "/api/v1/namespaces/" .. ns .. "/pods"
  for _, text in ipairs(LABELS) do
    rows[#rows + 1] = { "labels " .. text, "GET", pods .. "?labelSelector=" .. percent(text), nil, 400 }
  end
  for _, text in ipairs(FIELDS) do
    rows[#rows + 1] = { "fields " .. text, "GET", pods .. "?fieldSelector=" .. percent(text), nil, 400 }
  end
  rows[#rows + 1] = { "of a watch", "GET", pods .. "?watch=1&labelSelector=a%3Db%3D", nil, 400 }
  rows[#rows + 1] = { "of a deletion", "DELETE", pods .. "?labelSelector=-a&fieldSelector=x", nil, 400 }
  return rows
end)
