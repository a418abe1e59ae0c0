-- Overflowed: a place in a text that is the least integer there is.
local kube = require "kubelua"
return kube.controller {
  name = "hunt",
  resource = "v1/ConfigMap",
  reconcile = function()
    for _, at in ipairs { string.byte, string.find, string.match, string.sub, utf8.codepoint, utf8.offset,
      utf8.len } do
      pcall(at, "text", math.mininteger, math.mininteger)
      pcall(at, "text", "t", math.mininteger)
      pcall(at, "text", 1, math.mininteger)
    end
  end,
}
