-- gc_torture.lua - uses the library like scripts do, and prints "ok" at the end; gc_spec.lua runs it with a
-- collector that runs as often as possible.
--
--   gc_torture.lua calls [N]     runs a full collection at every N-th instruction of Lua
--   gc_torture.lua close         closes the state in the middle of everything, with finalisers that use it

local kube = require "kubelua"
local core = require "kubelua.core"

local mode, every = arg[1], tonumber(arg[2] or "")

local POD = [[{
  "kind": "Pod", "apiVersion": "v1",
  "metadata": {"name": "web", "namespace": "shop",
    "labels": {"app.kubernetes.io/name": "web", "tier": "front-of-the-house-with-a-view"}},
  "spec": {"nodeName": "a-node-with-a-name-of-more-than-forty-characters", "priority": 9007199254740993,
           "containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}},
             {"name": "b"}],
           "big": 18446744073709551615, "nothing": null}
}]]

local function check(ok, what) if not ok then error("torture: " .. what, 2) end end

local function views()
  local pod = kube.decode(POD)
  local spec = pod.spec
  check(rawequal(spec, pod.spec), "a view that is held is found again")
  check(pod.spec.containers[2].name == "b", "a field")
  local container = kube.decode((POD:gsub("web", "other"))).spec.containers[2]
  check(container.name == "b", "a view keeps its object")
  check(pod.spec.nodeName == "a-node-with-a-name-of-more-than-forty-characters", "a long text")
  check(pod("metadata.labels", "app.kubernetes.io/name") == "web", "a path and a key")
  check(pod("spec.containers[1].resources").limits.cpu == "1", "a path to a container")
  check(pod("spec.containers[1].resources") == pod.spec.containers[1].resources, "equality")
  check(tostring(pod.spec.big) == "18446744073709551615", "uint64")
  check(pod.status == nil and pod("status.x") == nil, "absent fields")
  local n = 0
  for key, value in pairs(pod.spec) do n = n + #key + (value == nil and 0 or 1) end
  check(n == #"nodeNameprioritycontainersbignothing" + 4, "pairs")
  for i, c in ipairs(pod.spec.containers) do check(c.name == ({ "a", "b" })[i], "ipairs") end
  local ok, err = pcall(function() pod("spec.containers[1].resources").requests.cpu = 2 end)
  check(not ok and err:find("spec.containers[1].resources.requests.cpu of Pod shop/web", 1, true),
    tostring(err))
  ok, err = pcall(function() pod.spec.containers[1].resources.limits.cpu = 2 end)
  check(not ok and err:find("spec.containers[1].resources.limits.cpu of Pod shop/web", 1, true),
    tostring(err))
  check(tostring(pod.spec.containers[2]) == '{"name":"b"}', "text")
  check(kube.copy(pod).spec.containers[1].resources.limits.cpu == "1", "a copy")
  check(kube.decode(kube.encode { a = { pod.spec, kube.null, kube.array {} } }).a[1] == pod.spec,
    "encode and decode")
  for i = 1, 70 do check(pod(("metadata.labels[tier%d]"):format(i)) == nil, "many paths") end
end

local function drafts()
  local before = core.nil_swap(true)
  local pod = kube.decode(POD)
  local draft = core.draft(pod)
  draft.metadata.labels.tier = "back"
  local since, cpu = kube.time "2026-01-02T15:04:05Z", kube.qty "500m" + kube.qty "1"
  draft.status.conditions[1] = { type = "Ready", since = since, cpu = cpu }
  draft.spec.containers[3] = kube.copy(pod.spec.containers[2])
  draft.spec.containers[1].resources = nil
  for key, value in pairs(draft.metadata) do check(key and value, "pairs of a draft") end
  core.draft_close(draft)
  local patch, list = core.draft_patch(draft)
  core.nil_swap(before)
  check(list == true, "a list changed")
  check(tostring(patch.metadata) == '{"labels":{"tier":"back"}}', tostring(patch))
  check(patch.status.conditions[1].cpu == "1500m", "a quantity in a draft")
  check(#patch.spec.containers == 3, "a list in a patch")
end

-- Enough objects for several keepers, with views that outlive the list.
local function store()
  local s = kube.ttl_store(60)
  for i = 1, 70 do
    s:put(kube.decode((POD:gsub('"web", "namespace"', ('"web-%d", "namespace"'):format(i)))))
  end
  return s
end

local function each_of(list)
  check(#list == 70 and list[71] == nil, "the length of a list")
  local last = list[70].metadata
  local names = {}
  for i, pod in ipairs(list) do names[i] = pod.metadata.name end
  check(#names == 70 and names[70] == last.name, "each of a list")
  check(#kube.decode(kube.encode(list)) == 70, "a list as a value")
  table.sort(list, function(a, b) return a.metadata.name < b.metadata.name end)
  check(list[1].metadata.name == "web-1" and list[70].metadata.name == "web-9", "a list that was sorted")
  return last
end

local function lists()
  local last = each_of(store():list())
  collectgarbage()
  check(last.labels.tier == "front-of-the-house-with-a-view", "a view keeps its objects")
end

local function words()
  local selector = kube.selector { matchLabels = { tier = "front-of-the-house-with-a-view" } }
  pcall(selector.matches, selector, kube.decode(POD).metadata.labels)
  check(kube.duration "1h5m" == 3900, "a duration")
  check(kube.time "2026-01-02T15:04:05Z" - kube.time "2026-01-02T15:04:00Z" == 5, "times")
  check(kube.yaml("a: 1\n---\nb: [2]\n")[2].b[1] == 2, "yaml")
  local ok, err = kube.try(function() kube.decode "{" end)
  check(ok == nil and err.message, "an error as a value")
end

if mode == "calls" then
  views() drafts() lists() words()         -- values that are made once exist now, and modules are loaded
  if every then debug.sethook(function() collectgarbage() end, "", every) end
  views() drafts() lists() words()
  debug.sethook()
  collectgarbage()
  print "ok"
elseif mode == "close" then
  -- Finalisers run in the reverse order of creation, so some of these are created before what they use, and
  -- some after. They create no new values: Lua does not finalise values that are created while the state
  -- closes.
  local things = {}
  local function use()
    pcall(function() return things.pod.spec.containers[1].name end)
    pcall(function() return things.spec "containers[1].name" end)
    pcall(function() return things.pod "spec.nodeName", #things.spec.containers end)
    pcall(function() for _, v in pairs(things.spec) do local _ = v end end)
    pcall(function() things.draft.metadata.labels.tier = "x" return things.draft.metadata.labels.tier end)
    pcall(function() return tostring(things.pod), tostring(things.draft) end)
    pcall(function() return things.pod == things.draft end)
    pcall(function() return things.cpu < things.cpu end)
    pcall(function() return things.item.metadata.name, things.list[1].metadata.name, #things.list end)
    pcall(function() for _, pod in ipairs(things.list) do local _ = pod.spec.nodeName end end)
    pcall(function() return things.selector:matches(things.pod.metadata.labels) end)
  end
  local function finaliser() return setmetatable({}, { __gc = use }) end
  local kept = {}
  for i = 1, 5 do
    kept[#kept + 1] = finaliser()
    local pod = kube.decode(POD)
    things = { pod = pod, spec = pod.spec, draft = core.draft(pod), cpu = kube.qty(i),
      selector = kube.selector "a=b", list = store():list() }
    things.item = things.list[70]
    kept[#kept + 1] = things
    kept[#kept + 1] = finaliser()
    use()
  end
  local held = coroutine.wrap(function()
    local draft <close> = setmetatable({}, { __close = use })
    for _, c in ipairs(things.spec.containers) do coroutine.yield(c, draft) end
  end)
  held()
  kept[#kept + 1] = held
  print "ok"
  os.exit(0, true)
end
