-- kubectl_spec.lua - unmodified kubectl: the sessions of spec/fixtures/kubectl on both servers.
--
-- support/sessions.lua says what a session is. After a change, `KL_RECORD=1 make soak
-- F=spec/e2e/kubectl_spec.lua` writes the sessions anew from the real server's answers. What the real server
-- answers changes with its version alone, so the suite types one session at it, and four at the embedded
-- server: a command takes 80 ms of the processor. `make soak` types all of them at both.
-- not in tsan: requests come one by one

local process = require "support.process"
local servers = require "support.servers"
local sessions = require "support.sessions"
local sizes = require "support.sizes"

local DIR = "spec/fixtures/kubectl"

local function names()
  local out = {}
  for path in process.run("ls " .. DIR .. "/*.txt"):gmatch "%S+" do
    out[#out + 1] = path:match "([^/]+)%.txt$"
  end
  return out
end

local count = 0
-- The session that the suite runs on the real server: it shows the version, and lists all kinds.
local TYPED = "look"
-- Those that it types at the embedded one: of every verb there is one that reads, writes or waits like it.
local EMBEDDED = { "apply", "change", "look", "rights" }
local all = sizes.of { short = 0, long = 1 } == 1

servers.each(function(name, start)
  describe("kubectl against " .. name, function()
    local s
    lazy_setup(function() s = start {} end)
    lazy_teardown(function() s:stop() end)

    local typed = all and names() or name == servers.EMBEDDED and EMBEDDED or { TYPED }
    for _, session in ipairs(typed) do
      it("prints what it should: " .. session, function()
        local path = ("%s/%s.txt"):format(DIR, session)
        local steps = sessions.parse(process.read(path))
        count = count + 1
        local ns = ("kubectl-%d-%d"):format(os.time() % 1000000, count)
        local got = sessions.transcript(steps, sessions.run(s, steps, ns), ns)
        if os.getenv "KL_RECORD" and s.shared then process.write(path, got) end
        local differs = process.run(("diff -U 4 %s %s"):format(path,
          process.write(process.tmpname ".txt", got)))
        assert(differs == "", "\n" .. differs)
      end)
    end
  end)
end)

-- The least number of different commands of each verb.
local LEAST = {
  ["annotate"] = 3, ["api-resources"] = 3, ["api-versions"] = 1, ["apply"] = 15,
  ["apply edit-last-applied"] = 1, ["apply set-last-applied"] = 1, ["apply view-last-applied"] = 1,
  ["attach"] = 1, ["auth can-i"] = 6, ["auth reconcile"] = 3, ["auth whoami"] = 2, ["autoscale"] = 3,
  ["certificate approve"] = 1, ["certificate deny"] = 1, ["cluster-info"] = 1, ["cordon"] = 1, ["cp"] = 1,
  ["create"] = 12, ["create clusterrole"] = 3, ["create clusterrolebinding"] = 1, ["create configmap"] = 4,
  ["create cronjob"] = 2, ["create deployment"] = 4, ["create ingress"] = 2, ["create job"] = 3,
  ["create ns"] = 1, ["create pdb"] = 3, ["create priorityclass"] = 1, ["create quota"] = 2,
  ["create role"] = 2, ["create rolebinding"] = 3, ["create secret"] = 4, ["create service"] = 4,
  ["create serviceaccount"] = 1, ["create token"] = 2, ["debug"] = 1, ["delete"] = 20, ["describe"] = 20,
  ["diff"] = 4, ["drain"] = 2, ["edit"] = 4, ["events"] = 3, ["exec"] = 1, ["explain"] = 2, ["expose"] = 4,
  ["get"] = 100, ["kustomize"] = 1, ["label"] = 8, ["logs"] = 2, ["patch"] = 15, ["port-forward"] = 1,
  ["proxy"] = 1, ["replace"] = 4, ["rollout history"] = 2, ["rollout pause"] = 2, ["rollout restart"] = 1,
  ["rollout resume"] = 1, ["rollout status"] = 2, ["rollout undo"] = 2, ["run"] = 3, ["scale"] = 6,
  ["set env"] = 5, ["set image"] = 4, ["set resources"] = 2, ["set selector"] = 2, ["set serviceaccount"] = 1,
  ["set subject"] = 1, ["taint"] = 2, ["top nodes"] = 1, ["top pod"] = 1, ["uncordon"] = 1, ["version"] = 1,
  ["wait"] = 7,
}

describe("the sessions of kubectl", function()
  it("have more than 300 different commands, of every verb", function()
    local seen, verbs, missing, total = {}, {}, {}, 0
    for _, name in ipairs(names()) do
      for _, step in ipairs(sessions.parse(process.read(("%s/%s.txt"):format(DIR, name)))) do
        sessions.tally(step.command, seen, verbs)
      end
    end
    for _, n in pairs(verbs) do total = total + n end
    for verb, least in pairs(LEAST) do
      if (verbs[verb] or 0) < least then
        missing[#missing + 1] = ("%s: %d of %d"):format(verb, verbs[verb] or 0, least)
      end
    end
    table.sort(missing)
    assert.same({}, missing)
    assert.is_true(total > 300, total .. " commands")
  end)
end)
