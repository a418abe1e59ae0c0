-- elasticquota.lua - Koordinator's elastic quotas: writes what each may use now (runtime), its requests and
-- its use to the objects, and evicts pods of quotas that use too much. The policy is in elasticquota/, as
-- pure functions.
--
--   kubelua run controllers/koordinator/elasticquota.lua
--
-- All quotas of a tree depend on each other, so one key stands for all of them: the namespace of the reserved
-- quotas. Any change wakes it; at most once a second it calculates everything and writes the
-- differences.

local kube = require "kubelua"
local forest = require "elasticquota.forest"
local inputs = require "elasticquota.inputs"
local keys = require "elasticquota.keys"
local members = require "elasticquota.members"
local lists = require "lib.lists"
local quota = require "elasticquota.quota"
local revoke = require "elasticquota.revoke"
local status = require "elasticquota.status"
local whole = require "lib.whole"

local INTERVAL = 1 -- seconds between two calculations, as Koordinator's

local read, calculate = inputs.reader(), forest.keeper() -- of the one worker
local last_pass = -math.huge

local function create_reserved(ctx, index)
  local max = lists.texts(quota.unlimited("").max)
  local function missing(name, more)
    if index.by_name[name] then return end
    local object = { kind = quota.KIND, namespace = whole.NAMESPACE, name = name }
    for key, value in pairs(more) do object[key] = value end
    ctx:create(object)
  end
  missing(quota.ROOT, { labels = {
    [keys.is_parent] = "true",
    [keys.allow_lent_resource] = "false",
    [keys.parent] = "",
  } })
  missing(quota.SYSTEM, { spec = { max = max } })
  missing(quota.DEFAULT, { spec = { max = max } })
end

local function write(ctx, objects, infos)
  for _, object in ipairs(objects) do
    local info = infos[object.metadata.name]
    local changes = info and status.changes(object, info)
    if changes then ctx:patch(object, function(draft) status.write(draft, changes) end) end
    if info and info.orphan then
      ctx.log:warn("quota %s has no runtime: its parents do not lead to %s", object.metadata.name, quota.ROOT)
    end
  end
end

local function evict(ctx, name, victims)
  for _, pod in ipairs(victims) do
    local _, why = kube.try(ctx.evict, ctx, pod)
    local namespace, pod_name = pod.metadata.namespace, pod.metadata.name
    if why then
      ctx.log:warn("quota %s uses too much, pod %s/%s was not evicted: %s", name, namespace, pod_name,
        tostring(why))
    else
      ctx.log:info("quota %s uses too much, pod %s/%s is evicted", name, namespace, pod_name)
    end
  end
end

-- The pods that count toward the use of a quota.
local function assigned_pods(ctx, index, pods, name)
  local out = {}
  for _, pod in ipairs(pods) do
    if pod.assigned and members.of_pod(index, pod.label, pod.namespace) == name then
      out[#out + 1] = ctx:get(inputs.POD, pod.key)
    end
  end
  return out
end

-- Returns whether some quota exceeds its runtime. The time since when is kept across reloads.
local function take_back(ctx, index, pods, infos, now)
  local since, next_since, any = ctx.memo.under or {}, {}, false
  local delay = kube.duration(ctx.params.delay_evict_time)
  for _, q in ipairs(index.list) do
    local info = infos[q.name]
    if q.name ~= quota.SYSTEM and q.name ~= quota.ROOT and info and not info.orphan then
      local act
      next_since[q.name], act = revoke.watch(since[q.name], info.used, info.runtime, now, delay)
      any = any or not lists.within(info.used, info.runtime)
      if act then
        evict(ctx, q.name, revoke.victims(assigned_pods(ctx, index, pods, q.name), info.used, info.runtime))
      end
    end
  end
  ctx.memo.under = next_since
  return any
end

return whole.controller {
  name = "elasticquota",
  watches = { quota.KIND, inputs.POD, inputs.NODE },
  fields = inputs.FIELDS,
  params = kube.merge(inputs.PARAMS, {
    monitor_all_quotas = false,      -- evict pods of quotas that use too much
    delay_evict_time = "120s",       -- ... for longer than this
  }),

  reconcile = function(_, ctx)
    local now = ctx:now():unix()
    if now - last_pass < INTERVAL then return { requeue_after = INTERVAL } end
    last_pass = now

    local known = read(ctx)
    create_reserved(ctx, known.index)
    local infos = calculate(known.index, known.pods, known.total, ctx.params)
    write(ctx, known.objects, infos)
    if ctx.params.monitor_all_quotas and take_back(ctx, known.index, known.pods, infos, now) then
      return { requeue_after = INTERVAL }
    end
    return known.again and { requeue_after = known.again }
  end,
}
