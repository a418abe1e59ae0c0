-- teams.lua - a scenario for elastic quotas: two teams request more than the cluster has. Search sends 3 jobs
-- every 10 minutes, ads 9 jobs every hour. `search` and `ads` are the teams' weights.

local QUOTA = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local PREFIX = "quota.scheduling.koordinator.sh/"

local function weigh(s)
  for team, weight in pairs(s.params) do
    s.client:patch(s.client:get(QUOTA, "koordinator-system", team), { metadata = { annotations = {
      [PREFIX .. "shared-weight"] = ('{"kubernetes.io/batch-cpu": %d}'):format(weight),
    } } })
  end
end

local function send(team, count)
  return function(s)
    s:add_job { cpu = "4", memory = "4Gi", time = "20m", count = count,
      labels = { [PREFIX .. "name"] = team } }
  end
end

return {
  params = { search = 1, ads = 1 },
  at = { ["0s"] = weigh, ["1m"] = send("ads", 9) },
  every = { ["10m"] = send("search", 3), ["1h"] = send("ads", 9) },
}
