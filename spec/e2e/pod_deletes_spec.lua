-- pod_deletes_spec.lua - the events of watches and the answers to deletes when pods are deleted, on both
-- servers.
-- not in tsan: one request after the other

local api = require "support.api"
local both = require "support.both"
local json = require "dkjson"
local servers = require "support.servers"

local function pod(name, more)
  return both.merge({ apiVersion = "v1", kind = "Pod", metadata = { name = name },
    spec = { containers = { { name = "a", image = "b" } } } }, more)
end

local NODE = { spec = { nodeName = "n" } }

both.describe("deletes of pods", function(ns)
  local pods = "/api/v1/namespaces/" .. ns .. "/pods"
  local rows = {}
  local function row(...) rows[#rows + 1] = { ... } end
  local function make(name, more) row("make " .. name, "POST", pods, pod(name, more), 201) end
  local function delete(what, name, body) row(what, "DELETE", pods .. "/" .. name, body, 200) end
  make "waits"
  delete("a pod without a node, as a dry run", "waits?dryRun=All")
  delete("a pod without a node", "waits")
  make("runs", NODE)
  delete("a pod on a node, as a dry run", "runs?dryRun=All")
  delete("a pod on a node", "runs")
  delete("once more", "runs")
  delete("with more time", "runs", { gracePeriodSeconds = 60 })
  delete("with less time", "runs", { gracePeriodSeconds = 5 })
  delete("at once", "runs", { gracePeriodSeconds = 0 })
  make("negative", NODE)
  delete("with less time than none", "negative", { gracePeriodSeconds = -5 })
  make("long", NODE)
  delete("with much time", "long", { gracePeriodSeconds = 600 })
  delete("which stays when nothing is said of it", "long")
  make("ended", NODE)
  row("it ends", "PATCH", pods .. "/ended/status", { status = { phase = "Succeeded" } }, 200)
  delete("a pod that has ended", "ended")
  make("ends", NODE)
  delete("a pod that will end", "ends")
  row("it ends, too", "PATCH", pods .. "/ends/status", { status = { phase = "Failed" } }, 200)
  delete("which waits for its kubelet", "ends")
  make("held", { metadata = { finalizers = { "a.b/c" } } })
  delete("a pod that is held", "held")
  delete("and again", "held", { gracePeriodSeconds = 0 })
  row("it is held no more", "PATCH", pods .. "/held", { metadata = { finalizers = both.NONE } }, 200)
  return rows
end)

servers.each(function(name, start)
  describe("a watcher of pods, on " .. name, function()
    local s
    lazy_setup(function() s = start {} end)
    lazy_teardown(function() s:stop() end)

    -- The events of a watch of `list` after the version of an answer, and their text.
    local function watched(list, answer)
      local events, r = api(s):watched(("%s?resourceVersion=%s"):format(list,
        answer.body.metadata.resourceVersion))
      return events, r.text
    end

    local count = 0
    -- The events of a watch since the namespace was created; play(pods) gives rows that change pods in it.
    local function seen(play)
      count = count + 1
      local ns = ("pod-deletes-%d-%d"):format(os.time() % 1000000, count)
      local pods = "/api/v1/namespaces/" .. ns .. "/pods"
      local rows = { { "", "POST", "/api/v1/namespaces", { metadata = { name = ns } } }, { "", "GET", pods } }
      table.move(play(pods), 1, 99, 3, rows)
      local answers = both.ask(s, rows)
      for i, answer in ipairs(answers) do assert.is_true(answer.code < 300, json.encode(answer.body), i) end
      local out = {}
      for _, event in ipairs((watched(pods, answers[2]))) do
        local m = event.object.metadata
        out[#out + 1] = ("%s %s generation %s%s%s"):format(event.type, m.name, m.generation,
          m.deletionTimestamp and ", goes" or "",
          m.deletionGracePeriodSeconds and (" in %d s"):format(m.deletionGracePeriodSeconds) or "")
      end
      both.ask(s, { { "", "DELETE", "/api/v1/namespaces/" .. ns } })
      return out
    end

    it("sees a pod without a node marked before it is gone", function()
      assert.same({ "ADDED a generation 1", "MODIFIED a generation 2, goes in 0 s",
        "DELETED a generation 2, goes in 0 s" }, seen(function(pods)
        return { { "", "POST", pods, pod "a" }, { "", "DELETE", pods .. "/a" } }
      end))
    end)

    it("sees a pod on a node marked, and marked again when it is gone at once", function()
      assert.same({ "ADDED a generation 1", "MODIFIED a generation 2, goes in 30 s",
        "MODIFIED a generation 2, goes in 0 s", "DELETED a generation 2, goes in 0 s" }, seen(function(pods)
        return { { "", "POST", pods, pod("a", NODE) }, { "", "DELETE", pods .. "/a" },
          { "", "DELETE", pods .. "/a", { gracePeriodSeconds = 0 } } }
      end))
    end)

    it("sees all pods of a collection marked", function()
      assert.same({ "ADDED a generation 1", "MODIFIED a generation 2, goes in 0 s",
        "DELETED a generation 2, goes in 0 s" }, seen(function(pods)
        return { { "", "POST", pods, pod "a" }, { "", "DELETE", pods } }
      end))
    end)

    it("sees the reason of an eviction, and the pod marked", function()
      assert.same({ "ADDED a generation 1", "MODIFIED a generation 1", "MODIFIED a generation 2, goes in 0 s",
        "DELETED a generation 2, goes in 0 s" }, seen(function(pods)
        return { { "", "POST", pods, pod "a" }, { "", "POST", pods .. "/a/eviction",
          { apiVersion = "policy/v1", kind = "Eviction", metadata = { name = "a" } } } }
      end))
    end)

    it("sees a ConfigMap gone without a mark", function()
      local ns = "pod-deletes-" .. os.time() % 1000000
      local maps = "/api/v1/namespaces/" .. ns .. "/configmaps"
      local answers = both.ask(s, { { "", "POST", "/api/v1/namespaces", { metadata = { name = ns } } },
        { "", "POST", maps, { metadata = { name = "a" } } }, { "", "DELETE", maps .. "/a" },
        { "", "DELETE", "/api/v1/namespaces/" .. ns } })
      local _, text = watched(maps, answers[2])
      assert.is_truthy(text:find '^{"type":"DELETED"')
      assert.is_nil(text:find "deletionTimestamp")
    end)
  end)
end)
