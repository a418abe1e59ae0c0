-- bench_spec.lua - `make bench`: its judgement of figures, what it builds, and that the programs in bench/
-- compile and run.
-- not in check, asan, tsan: it compiles bench/ and reads reports

local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"

-- The output of Python code in bench/, without its last newline.
local function python(code)
  local out, status = process.run("cd bench && PYTHONDONTWRITEBYTECODE=1 python3 - <<'END'\n" .. code
    .. "\nEND\n")
  assert.equal(0, status, out)
  return (out:gsub("\n$", ""))
end

local RESULTS = [[
from tables import *
CPU, RATE = Column("CPU s", "cpu"), Column("MB/s", "rate", more_is_better=True)
r = Results()
for name, cpu, rate in (("kubelua", 0.5, 400), ("kubelua", 0.4, 380), ("go", 6.0, 50), ("go-list", 4.0, 60),
                        ("rs", 2.0, 200)):
    r.add(name, {"cpu": cpu, "rate": rate})
r.add("kopf", None, "no Python here")
]]

describe("the report of `make bench`", function()
  it("uses the minimum of the runs, shows the maximum, and gives ratios to ours", function()
    assert.equal(table.concat({
      "| peer | CPU s | MB/s |",
      "| --- | --- | --- |",
      "| **kubelua** | 0.400 .. 0.500 | 400 .. 380 |",
      "| go | 6.00 (x15) | 50 (x0.12) |",
      "| go-list | 4.00 (x10) | 60 (x0.15) |",
      "| rs | 2.00 (x5.0) | 200 (x0.50) |",
      "| kopf | not run: no Python here | |",
    }, "\n"), python(RESULTS .. 'print(table(r, [CPU, RATE], "peer"))'))
  end)

  local goals = {
    { "a number that is kept", 'Goal("cpu", 0.5)', "CPU s; at most 0.500; 0.400; met, 20 % below" },
    { "a number that is missed", 'Goal("cpu", 0.3)', "CPU s; at most 0.300; 0.400; **not met**, 33 % above" },
    { "a number that is missed by far", 'Goal("cpu", 0.1)',
      "CPU s; at most 0.100; 0.400; **not met**, 4.0 times as much" },
    { "a rate that is reached", 'Goal("rate", 300)', "MB/s; at least 300; 400; met, 33 % above" },
    { "a rate that is missed", 'Goal("rate", 800)', "MB/s; at least 800; 400; **not met**, 50 % short" },
    { "the best of several peers", 'Ratio("cpu", ("go",), 1 / 7, "Go")',
      "CPU s; at most 1/7 of Go (go-list, 4.00); 1/10; met, 30 % below" },
    { "a ratio that is missed", 'Ratio("cpu", ("rs",), 1 / 10, "Rust")',
      "CPU s; at most 1/10 of Rust (rs, 2.00); 1/5.0; **not met**, 2.0 times as much" },
    { "peers that did not run", 'Ratio("cpu", ("kopf",), 1 / 2, "kopf")',
      "CPU s; at most 1/2 of kopf; -; not run" },
  }
  for _, case in ipairs(goals) do
    it("judges " .. case[1], function()
      assert.equal(case[3], python(RESULTS .. ('print(*judge(r, [CPU, RATE], [%s])[0], sep="; ")'):format(
        case[2])))
    end)
  end

  it("holds the rates of the embedded server, with all that the real one does, against five times of its",
    function()
      assert.equal("gets a second, 8 clients, TLS and RBAC; 5 times kube-apiserver + etcd (2,000); \z
        9,000, 4.5 times; 4.0 times in a second of its processor; **not met**, 10 % short", python [[
from apiservers import *
from tables import Results
r = Results()
for name, rate, cpu in ((OURS, 20000, 40), (LIKE_THEIRS, 9000, 100), (REAL, 2000, 400),
                        (REAL + ", fsync", 100, 500)):
    r.add(name, {"get_8_per_s": rate, "get_8_cpu_us": cpu})
print(*faster(r, "get", 8), sep="; ")]])
    end)

  it("puts one figure of several measurements side by side, and goals of one kind", function()
    assert.equal([[
| CPU us | 1 in flight | 8 in flight |
| --- | --- | --- |
| **kubelua** | 1.50 .. 2.50 | 4.00 |
| peer | 3.00 (x2.0) | - |
| other | not run: no Go | |
| goal for | goal | 1 in flight | 8 in flight |
| --- | --- | --- | --- |
| CPU | 1/2 | 1/3: met | - |
| rate | theirs | - | 9: met |]], python [[
from tables import *
few, many = Results(), Results()
for name, cpu in (("kubelua", 1.5), ("kubelua", 2.5), ("peer", 3.0)):
    few.add(name, {"cpu_us": cpu})
many.add("kubelua", {"cpu_us": 4.0})
few.add("other", None, "no Go")
print(pivot([("1 in flight", few), ("8 in flight", many)], Column("CPU us", "cpu_us")))
print(goal_grid([("CPU", "1/2", {"1 in flight": ("1/3", "met")}),
                 ("rate", "theirs", {"8 in flight": ("9", "met")})]))]])
  end)

  it("computes how many bytes a complete cache holds", function()
    local list = process.tmpname ".json"
    assert.equal("True", python(([==[
import json, subprocess, sys
from measure import served_bytes
subprocess.run([sys.executable, "gen.py", "40", %q], check=True, stderr=subprocess.DEVNULL)
kept = [dict(o, kind="Pod", apiVersion="v1") for o in json.load(open(%q))["items"]]
def size(o):
    return len(json.dumps(o, separators=(",", ":"), ensure_ascii=False).encode())
print(served_bytes(%q) == sum(map(size, kept)))]==]):format(list, list, list)))
  end)

  it("puts the figures of a run between the markers of a page and nowhere else, those of some sections in \z
    their places", function()
    local figures, page = process.write(process.tmpname ".md", "### New\n"), process.tmpname ".md"
    local begin, finish = "<!-- figures: `make bench-docs` writes what follows -->", "<!-- end of figures -->"
    process.write(page, ("before\n%s\n\nold\n\n%s\nafter\n"):format(begin, finish))
    local command = "python3 bench/measure.py --figures " .. process.quote(figures) .. " --write "
    assert.equal(0, select(2, process.run(command .. process.quote(page))))
    assert.equal(("before\n%s\n\n### New\n\n%s\nafter\n"):format(begin, finish), process.read(page))
    process.write(figures, "`make bench`\nmore\n\n### Sync\n\none\n\n### Growth\n\ntwo\n")
    assert.equal(0, select(2, process.run(command .. process.quote(page))))
    process.write(figures, "`make bench SECTIONS=growth`, later\nmore\n\n### Growth\n\nthree\n")
    assert.equal(0, select(2, process.run(command .. process.quote(page))))
    process.write(figures, "`make bench SECTIONS=store,idle`, at last, 2 runs of each, in turn.\nmore\n\n\z
      ### Idle, and start\n\nfour\n\n### Store\n\nfive\n")
    assert.equal(0, select(2, process.run(command .. process.quote(page))))
    assert.equal(("before\n%s\n\n`make bench`\nmore\n\n| measured apart | by |\n| --- | --- |\n" ..
      "| Growth | `make bench SECTIONS=growth`, later |\n" ..
      "| Idle, and start; Store | `make bench SECTIONS=store,idle`, at last, 2 runs |\n\n" ..
      "### Sync\n\none\n\n### Growth\n\nthree\n\n### Idle, and start\n\nfour\n\n### Store\n\nfive\n\n" ..
      "%s\nafter\n"):format(begin, finish), process.read(page))
    local out, status = process.run(command .. process.quote(figures))
    assert.equal(1, status)
    assert.truthy(out:find("has not the two lines", 1, true), out)
  end)
end)

describe("what is built before `make bench`", function()
  for sections, needed in pairs { ["sandbox,reload"] = "ours", lua = "ours", server = "ours",
    ["sandbox,wq"] = "ours peers limit",
    idle = "ours peers limit", [""] = "ours peers limit" } do
    it("depends on its sections: " .. (sections == "" and "all" or sections), function()
      local make = "env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory -C bench "
      local out, status = process.run(make .. "needed SECTIONS=" .. sections)
      assert.same({ 0, needed }, { status, (out:gsub("%s+$", "")) })
    end)
  end
end)

-- bench/ is compiled only for measurements, while the code that it uses changes every day.
if (os.getenv "KL_VARIANT" or "release") == "release" then
  describe("bench/", function()
    it("has C programs that compile", function()
      local out,
        status = process.run "env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory -C bench \z
        ours 2>&1"
      assert.equal(0, status, out)
    end)
  end)

  servers.each(function(name, start)
    describe("bin/load on " .. name, function()
      local s, c
      lazy_setup(function()
        s = start()
        c = kube.connect { kubeconfig = s.kubeconfig }
        c:create { kind = "v1/Namespace", name = "bench" }
      end)
      lazy_teardown(function()
        c:delete("v1/Namespace", "bench")
        c:close()
        s:stop()
      end)

      local function load(words)
        local out, status = process.run(("bench/bin/load --server %s %s %s"):format(s.url,
          s.token and "--token " .. s.token or "", words))
        assert.equal(0, status, out)
        return kube.json(out)
      end

      it("makes objects, reads and lists them, and shows every change to every watcher", function()
        load "--mode create --clients 4 --requests 90"
        load "--mode create --clients 1 --requests 10 --first 90"
        local rv = s:must_kubectl("get", "--raw", "/api/v1/namespaces/bench/configmaps?limit=1"):match
          '"resourceVersion":"(%d+)"'
        assert.truthy(load("--mode get --clients 8 --requests 100 --objects 100").bytes > 100 * 1000)
        assert.truthy(load("--mode list --limit 60 --requests 2").bytes > 120 * 1000)
        local seen = load("--mode watch --watchers 5 --clients 2 --requests 200 --rv " .. rv)
        assert.truthy(seen.bytes > 5 * 200 * 1000, seen.bytes)
      end)

      it("reports failures", function()
        local out, status = process.run(("bench/bin/load --server %s %s --mode get --objects 200 --first 1 \z
          --requests 1 2>&1"):format(s.url, s.token and "--token " .. s.token or ""))
        assert.same({ 1, "load: the server answered: 404\n" }, { status, out })
      end)
    end)
  end)
end
