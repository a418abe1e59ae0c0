-- policies.lua - shows three more of Koordinator's policies on the demo cluster: a webhook that turns a new
-- pod into a batch pod, quotas that lend to each other, and a pod that migrates to capacity reserved for it.
--
-- show.lua calls it once the nodes offer resources. Each scene creates objects, waits for the policies'
-- effect, prints it, and deletes its objects.

local kube = require "kubelua"

local POD, DEPLOYMENT = "v1/Pod", "apps/v1/Deployment"
local PROFILE = "config.koordinator.sh/v1alpha1/ClusterColocationProfile"
local QUOTA = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"
local RESERVATION = "scheduling.koordinator.sh/v1alpha1/Reservation"
local PREFIX, SYSTEM = "quota.scheduling.koordinator.sh/", "koordinator-system"
local WITHIN, EVERY = 30, 0.1 -- seconds

local M = {}

-- ---------------------------------------------------------------- waiting

-- Waits until `get` returns something true, and returns it; after a while it raises what it waited for.
local function await(dev, what, get)
  for _ = 1, WITHIN // EVERY do
    local value = get()
    if value then return value end
    if not dev.wait(EVERY) then error("stopped while it waited for " .. what, 0) end
  end
  error(("%s did not come within %d s"):format(what, WITHIN), 0)
end

-- Deletes what a scene made, and waits until it is gone.
local function clear(client, dev, made)
  for _, o in ipairs(made) do client:delete(o) end
  await(dev, "the end of a scene's objects", function()
    for _, o in ipairs(made) do
      local there
      if o.namespace then
        there = client:get(o.kind, o.namespace, o.name)
      else
        there = client:get(o.kind, o.name)
      end
      if there then return nil end
    end
    return true
  end)
end

-- ---------------------------------------------------------------- the webhook

local function requests_of(pod) return pod.spec.containers[1].resources.requests end

local function report_pod()
  local amounts = { cpu = "2", memory = "4Gi" }
  return { kind = POD, namespace = "analytics", name = "report", labels = { app = "report" }, spec = {
    terminationGracePeriodSeconds = 0, containers = { { name = "main", image = "registry.example/report:1",
      resources = { requests = amounts, limits = amounts } } } } }
end

function M.webhook(client, dev, say)
  say "\nWebhook: a ClusterColocationProfile makes batch pods of the pods with the label app=report."
  local profile = { kind = PROFILE, name = "reports", spec = { qosClass = "BE",
    selector = { matchLabels = { app = "report" } }, priorityClassName = "koord-batch",
    schedulerName = "koord-scheduler" } }
  client:create(profile)
  local pod = report_pod()
  await(dev, "the webhook", function()
    return requests_of(client:create(pod, { dry_run = true }))["kubernetes.io/batch-cpu"]
  end)
  local made = client:create(pod)
  local before, after = requests_of(pod), requests_of(made)
  say("  asked for: cpu %s, memory %s", before.cpu, before.memory)
  say("  was made:  batch-cpu %d (milli-cores), batch-memory %s, priority %d, QoS %s",
    kube.qty(after["kubernetes.io/batch-cpu"]):value(), after["kubernetes.io/batch-memory"],
    made.spec.priority, made.metadata.labels["koordinator.sh/qosClass"])
  local node = await(dev, "a node for the report", function()
    return client:get(POD, "analytics", "report")("spec.nodeName")
  end)
  say("  runs on %s, in what other pods reserved and do not use", node)
  clear(client, dev, { pod, profile })
end

-- ---------------------------------------------------------------- quotas

local function quota(name, parent, min, max, is_parent)
  return { kind = QUOTA, namespace = SYSTEM, name = name, labels = { [PREFIX .. "parent"] = parent,
    [PREFIX .. "is-parent"] = is_parent and "true" or nil },
    spec = { min = { cpu = min }, max = { cpu = max } } }
end

local function quota_pod(team, name, cpu)
  return { kind = POD, namespace = "training", name = name, labels = { [PREFIX .. "name"] = team },
    spec = { schedulerName = "nobody", containers = { { name = "main", image = "registry.example/job:1",
      resources = { requests = { cpu = cpu } } } } } }
end

-- What a quota requests and may use.
local function carried(client, name, what)
  local text = client:get(QUOTA, SYSTEM, name)("metadata.annotations", PREFIX .. what)
  return text and kube.decode(text)("cpu")
end

local function is_told(client, name, request, runtime)
  return carried(client, name, "request") == request and carried(client, name, "runtime") == runtime
end

local function say_quotas(client, say)
  for _, team in ipairs { "search", "vision" } do
    say("    %-6s  guaranteed %s, asks for %2s, may use %2s", team,
      client:get(QUOTA, SYSTEM, team).spec.min.cpu, carried(client, team, "request"),
      carried(client, team, "runtime"))
  end
end

function M.quota(client, dev, say)
  say "\nQuota: two teams share 40 processors. What one does not ask for, the other may use."
  local made = {}
  local function create(o)
    client:create(o)
    table.insert(made, 1, o)
  end
  create(quota("company", "koordinator-root-quota", "40", "40", true))
  for _, team in ipairs { "search", "vision" } do create(quota(team, "company", "20", "40")) end
  create(quota_pod("search", "index", "32"))
  create(quota_pod("vision", "label", "8"))
  await(dev, "what the teams may use", function()
    return is_told(client, "search", "32", "32") and is_told(client, "vision", "8", "8")
  end)
  say_quotas(client, say)
  create(quota_pod("vision", "train", "16"))
  await(dev, "what the teams may use", function()
    return is_told(client, "search", "32", "20") and is_told(client, "vision", "24", "20")
  end)
  say "  A pod of vision asks for 16 more: each team gets its guarantee."
  say_quotas(client, say)
  clear(client, dev, made)
end

-- ---------------------------------------------------------------- migration

local function checkout()
  return { kind = DEPLOYMENT, namespace = "shop", name = "checkout", spec = { replicas = 2,
    selector = { matchLabels = { app = "checkout" } },
    template = { metadata = { labels = { app = "checkout" } }, spec = { schedulerName = "koord-scheduler",
      terminationGracePeriodSeconds = 0,
      containers = { { name = "main", image = "registry.example/checkout:1",
        resources = { requests = { cpu = "1", memory = "1Gi" } } } } } } } }
end

local function pods_of(client) return client:list(POD, { namespace = "shop", labels = "app=checkout" }) end

local function all_run(client)
  local pods = pods_of(client)
  for _, pod in ipairs(pods) do
    local ready = kube.find_condition(pod, "Ready")
    if not ready or ready.status ~= "True" then return nil end
  end
  return #pods == 2 and pods
end

local function is_over(job) return job("status.phase") == "Succeeded" or job("status.phase") == "Failed" end

function M.migration(client, dev, say)
  say "\nMigration: a pod of the Deployment checkout moves, and its new place is reserved before it goes."
  local deployment = checkout()
  client:create(deployment)
  local moved = await(dev, "two pods that run", function() return all_run(client) end)[1]
  local name = moved.metadata.name
  say("  %s runs on %s", name, moved.spec.nodeName)
  local job = { kind = JOB, name = "move-checkout", spec = { mode = "ReservationFirst",
    podRef = { namespace = "shop", name = name, uid = moved.metadata.uid } } }
  client:create(job)
  local room = await(dev, "a reservation", function()
    -- it is available only for a moment: the next pod takes it
    local one = client:list(RESERVATION)[1]
    return one and one("status.nodeName") and one
  end)
  say("  a Reservation holds a place on %s", room.status.nodeName)
  await(dev, "the eviction", function() return not client:get(POD, "shop", name) end)
  say("  %s was evicted", name)
  local ended = await(dev, "the end of the job", function()
    local one = client:get(JOB, job.name)
    return is_over(one) and one
  end)
  for _, pod in ipairs(await(dev, "two pods that run", function() return all_run(client) end)) do
    if pod("metadata.annotations", "scheduling.koordinator.sh/reservation-allocated") then
      say("  %s took that place on %s: the PodMigrationJob has %s", pod.metadata.name, pod.spec.nodeName,
        ended.status.phase:lower())
    end
  end
  client:patch(client:get(DEPLOYMENT, "shop", deployment.name), { spec = { replicas = 0 } })
  await(dev, "the end of its pods", function()
    return #pods_of(client) == 0 and not client:get(DEPLOYMENT, "shop", deployment.name)("status.replicas")
  end)
  clear(client, dev, { job, { kind = RESERVATION, name = room.metadata.name }, deployment })
end

--- Plays all scenes; raises what did not happen.
function M.show(client, dev, say)
  M.webhook(client, dev, say)
  M.quota(client, dev, say)
  M.migration(client, dev, say)
end

return M
