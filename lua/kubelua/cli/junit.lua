-- junit.lua - results as JUnit's XML, which CI systems read.

local core = require "kubelua.core"

local M = {}

local ESCAPED = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

-- XML has no way to write control characters, bytes that are not UTF-8, U+FFFE or U+FFFF.
local function escape(text)
  return (core.visible(text):gsub('[&<>"]', ESCAPED):gsub("\xef\xbf[\xbe\xbf]", "?"))
end

local function case(c, out)
  local head = ('    <testcase classname="%s" name="%s" time="%.3f"'):format(escape(c.class), escape(c.name),
    c.seconds or 0)
  if c.failure then
    local first = c.failure:match "^[^\n]*"
    out[#out + 1] = ('%s>\n      <failure message="%s">%s</failure>\n    </testcase>'):format(head,
      escape(first), escape(c.failure))
  elseif c.skipped then
    out[#out + 1] = ('%s>\n      <skipped message="%s"/>\n    </testcase>'):format(head, escape(c.skipped))
  else
    out[#out + 1] = head .. "/>"
  end
end

local function count(cases, what)
  local n = 0
  for _, c in ipairs(cases) do if c[what] then n = n + 1 end end
  return n
end

---@class kubelua.JunitCase
---@field class string
---@field name string
---@field seconds number?
---@field failure string?   why it failed; its first line is the message
---@field skipped string?   why it did not run

---@param suites { name: string, seconds: number?, cases: kubelua.JunitCase[] }[]
---@return string
function M.text(suites)
  local out = { '<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>" }
  for _, s in ipairs(suites) do
    out[#out + 1] = ('  <testsuite name="%s" tests="%d" failures="%d" skipped="%d" time="%.3f">'):format(
      escape(s.name), #s.cases, count(s.cases, "failure"), count(s.cases, "skipped"), s.seconds or 0)
    for _, c in ipairs(s.cases) do case(c, out) end
    out[#out + 1] = "  </testsuite>"
  end
  out[#out + 1] = "</testsuites>"
  return table.concat(out, "\n") .. "\n"
end

return M
