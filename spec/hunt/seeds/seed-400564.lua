-- Left memory of C behind: a finaliser ran where the stack was used up, and failed.
local kube = require "kubelua"
local K, H, count = {}, {}, 0
local function P(f, ...)
  local ok, x = pcall(f, ...)
end
function H.recurse(...) return (H.recurse(..., 1)) end
local c = kube.controller {
  name = "hunt",
  resource = "batch/v1/Job",
  finalize = function(obj, ctx, ...)
local v1_1 = P(function(...) return ctx[obj] end, ...)
P(function(...) ctx[kube.shared:set("v1/Pod")] = ctx:create_or_patch(obj, H.recurse) end, ...)
P(function(...) return H.tower(64, function(...)
K[4] = P(function(...) return K[3](H.mt({}, { __unm = function(...)
end })) end, ...)
end) end, ...)
P(function(...)
for k, v in ({ ["going"] = K[9], labels = ((1 ^ -0.0) and K[6]), qps = { kind = "v1/Pod", name = "new",
  namespace = H.cycle(), metadata = H.mt({ a = 1, kind = "v1/Pod", name = "a", 1, 2, 3 },
    { __eq = H.nothing, __unm = obj }), labels = obj } }) do
local v2_1 = P(function(...) return kube.shared:incr(H.wide(1000), H.mt({}, { __tostring = function(...)
end })) end, ...)
end
end, ...)
P(function(...)
for k, v in ipairs(k[K[2]]) do
end
end, ...)
end,
  reconcile = function(obj, ctx, ...)
P(function(...) return ctx:update(obj) end, ...)
P(function(...) return coroutine.wrap(function(...)
end)({ kind = "v1/Secret", name = "b", spec = kube.shared:names(), namespace = ctx:apply({
    kind = "v1/ConfigMap", name = "b", annotations = "..", spec = "app=a", data = { a = obj } },
  H.mt({ a = 1, kind = "v1/Pod", name = "a", 1, 2, 3 }, { __close = error, __index = "going" })),
  data = { a = H.mt(obj.kind, { __pairs = function(...)
local v2_1 = P(function(...) return ctx.log:each("v1/Node", obj) end, ...)
end }) } }) end, ...)
P(function(...) return string.gsub(obj.metadata, "1e1000000000", coroutine.wrap) end, ...)
end,
}
return c
