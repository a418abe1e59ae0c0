-- sim_input_spec.lua - invalid traces and recordings: kubelua sim names the line or the object that it cannot
-- use, and a short file does not cause much work.

local kube = require "kubelua"
local process = require "support.process"

local BIN = os.getenv "KL_BUILD" .. "/kubelua"
local SCRIPT = process.write(process.tmpname ".lua", [[
  local kube = require "kubelua"
  return kube.controller { name = "none", resource = "v1/Node", reconcile = function() end }]])

local function sim(options) return process.run(("%s sim %s %s 2>&1"):format(BIN, SCRIPT, options)) end

local function refused(options, why)
  local out, code = sim(options)
  assert.equal("kubelua sim: " .. why, (out:gsub("%s*$", "")))
  return code
end

describe("a trace", function()
  local function openb(nodes, pods)
    local dir = process.tmpname ""
    process.run("mkdir -p " .. dir)
    process.write(dir .. "/node.csv", "sn,cpu_milli,memory_mib\n" .. nodes)
    process.write(dir .. "/pod.csv", "name,cpu_milli,memory_mib,qos,creation_time,deletion_time\n" .. pods)
    return ("--trace openb:%s --for 10m"):format(dir), dir
  end

  local function alibaba(machines, containers, tasks)
    local dir = process.tmpname ""
    process.run("mkdir -p " .. dir)
    process.write(dir .. "/machine_meta.csv", machines)
    process.write(dir .. "/container_meta.csv", containers)
    process.write(dir .. "/container_usage.csv", "")
    process.write(dir .. "/batch_task.csv", tasks)
    return ("--trace alibaba2018:%s --for 10m"):format(dir), dir
  end

  it("with excessive numbers is rejected with file and line", function()
    for _, n in ipairs { "1e999", "1e300", "-5", "0x7fffffffffffffff" } do
      local options, dir = openb(("n1,%s,1024\n"):format(n), "")
      refused(options, ("%s/node.csv:2: cpu_milli must be from 0 to 1000000000: %q"):format(dir, n))
    end
    local options, dir = alibaba("m1,0,1,1,96,1e6\n", "", "")
    refused(options, dir .. '/machine_meta.csv:1: the memory must be from 0 to 100: "1e6"')
  end)

  it("may have fractional numbers", function()
    local out, code = sim((openb("n1,4000.5,1024.5\n", "p1,100.5,0.5,LS,0,1000\n")))
    assert.equal(0, code, out)
  end)

  it("with a line of too many pods, or a cut one, is rejected with file and line", function()
    local options, dir = alibaba("m1,0,1,1,96,100\n", "", "t1,1e9,j1,1,Terminated,10,100,50,0.5\n")
    refused(options, dir .. "/batch_task.csv:1: that is more than 1000000 pods: --cut \z
      from=DURATION,nodes=N takes a "
      .. "part of the trace")
    options, dir = alibaba("m1,0,1,1,96,100\n", "", "t1\n")
    refused(options, dir .. "/batch_task.csv:1: the job is missing")
    options, dir = alibaba("m1,0,1,1,96,100\n", "c1,m1\n", "")
    refused(options, dir .. "/container_meta.csv:1: the app is missing")
  end)
end)

describe("a snapshot", function()
  local LIST = '{"apiVersion":"v1","kind":"List","items":['
    .. '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},'
    .. '"status":{"capacity":{"cpu":"4","memory":"8Gi"}}},'
    .. '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"d"},"spec":{%s}}]}'

  it("names the node, or the pod, whose parts have other types", function()
    local node, pod = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},%s}',
      '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"%s},"spec":%s}'
    for object, why in pairs {
      [node:format '"status":5'] = 'Node "n": status must be an object, got 5',
      [node:format '"status":{"capacity":"x"}'] = 'Node "n": status.capacity must be an object, got x',
      [node:format '"status":{"allocatable":[1]}'] =
        'Node "n": status.allocatable must be an object, got [1]',
      [pod:format("", "true")] = 'Pod "p": spec must be an object, got true',
      [pod:format(',"namespace":{"a":1}', "{}")] =
        'Pod "p": metadata.namespace must be a string, got {"a":1}',
    } do
      local path = process.write(process.tmpname ".json",
        ('{"apiVersion":"v1","kind":"List","items":[%s]}'):format(object))
      refused(("--snapshot %s --for 10m"):format(path), "the snapshot: " .. why)
    end
    local path = process.write(process.tmpname ".json", node:format '"spec":null,"status":{"capacity":null}')
    local out, code = sim(("--snapshot %s --for 10m"):format(path))
    assert.equal(0, code, out)
  end)

  it("drops what is not simulated while it is read, and says how much", function()
    local event = '{"apiVersion":"v1","kind":"Event","metadata":{"name":"e%d","namespace":"d"}}'
    local lines = { '{"apiVersion":"v1","items":[' }
    for k = 1, 3 do lines[#lines + 1] = event:format(k) .. "," end
    lines[#lines + 1] = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},'
      .. '"status":{"capacity":{"cpu":"4","memory":"8Gi"}}}],"kind":"List"}'
    local json = table.concat(lines, "\n")
    local forms = { [".json"] = json, [".yaml"] = kube.to_yaml(kube.decode(json)) }
    for ending, content in pairs(forms) do
      local path = process.write(process.tmpname(ending), content)
      for _, file in ipairs { path, ("<(cat %s)"):format(path) } do
        local out, code = process.run(("bash -c 'build/kubelua sim %s --snapshot %s --for 10m'"):format(
          "controllers/hello.lua", file))
        assert.equal(0, code, out)
        assert.matches("Event[%w/]* %(3%)", out)
      end
    end
  end)

  it("names the file and the place of what is no object", function()
    local path = process.write(process.tmpname ".yaml", "kind: Node\n")
    refused(("--snapshot %s --for 10m"):format(path), path .. ": the object needs an apiVersion and a kind")
    path = process.write(process.tmpname ".yaml", "apiVersion: v1\nkind: List\nitems:\n- a: 1\n- b: 2\n")
    refused(("--snapshot %s --for 10m"):format(path),
      path .. ", object 1: the object needs an apiVersion and a kind")
    path = process.write(process.tmpname ".yaml", "apiVersion: v1\nkind: List\nitems:\n- a: [\n- b: 2\n")
    refused(("--snapshot %s --for 10m"):format(path),
      path .. ":5:1: did not find expected node content, while parsing a flow node")
  end)

  it("names the pod and the field that cannot be used", function()
    local pods = {
      { '"priority":"x"', "spec.priority must be an integer" },
      { '"containers":5', "spec.containers must be a list" },
      { '"containers":[5]', "a container must be an object" },
      { '"containers":[{"resources":{"requests":{"cpu":"much"}}}]',
        'the request of cpu must be a quantity from 0 on, such as 500m or 2Gi, not "much"' },
      { '"containers":[{"resources":{"requests":{"memory":"-1"}}}]',
        'the request of memory must be a quantity from 0 on, such as 500m or 2Gi, not "-1"' },
    }
    for _, one in ipairs(pods) do
      local path = process.write(process.tmpname ".json", LIST:format(one[1]))
      refused(("--snapshot %s --for 10m"):format(path), 'the snapshot: Pod "p": ' .. one[2])
    end
  end)
end)

describe("a recording", function()
  local HEAD = '{"t":"tape","format":1,"recording":"a","file":1,"at":1700000000000000000}\n' ..
    '{"t":"cache","c":1,"label":"v1/Node","kind":"v1/Node"}\n' ..
    '{"t":"put","c":1,"o":1,"v":{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},' ..
    '"status":{"capacity":{"cpu":"4","memory":"8Gi"}}}}\n'
  local END = '{"t":"ended","r":"r","at":1700000600000000000}\n'

  local function tape(text)
    local path = process.write(process.tmpname ".tape", text)
    return "--recording " .. path, path
  end

  it("is simulated", function()
    local out, code = sim((tape(HEAD .. END)))
    assert.equal(0, code, out)
  end)

  it("with invalid objects is rejected with file and line", function()
    for _, v in ipairs { '{}', '{"metadata":5}', '{"metadata":{"name":5}}',
      '{"metadata":{"name":"a","namespace":[]}}' } do
      local options, path = tape(HEAD .. ('{"t":"put","c":1,"o":2,"v":%s}\n'):format(v) .. END)
      refused(options, path .. ":4: a v1/Node has no name, or a name that is not a string")
    end
    local options, path = tape(HEAD .. '{"t":"gone","c":1}\n' .. END)
    refused(options, path .. ':4: the record "gone" has no "key"')
    options, path = tape(HEAD .. '{"t":"cache","c":2,"kind":7}\n' .. END)
    refused(options, path .. ":4: a cache without a kind")
    options, path = tape '{"t":"tape","at":"soon"}\n'
    refused(options, path .. " is not a recording; kubelua run or dev --record FILE writes recordings, and "
      .. "kwokctl snapshot record")
  end)

  it("names an unusable object at its time", function()
    local options = tape(HEAD .. '{"t":"began","r":"r","at":1700000100000000000}\n' ..
      '{"t":"put","c":1,"o":2,"v":{"apiVersion":"v1","kind":"Node","metadata":{"name":"m"},' ..
      '"status":{"capacity":{"cpu":"much"}}}}\n' .. END)
    local out, code = sim(options)
    assert.equal(1, code)
    assert.truthy(out:find("the recording: v1/Node m: ", 1, true), out)
  end)

  it("that spans years is reported, not simulated", function()
    local options = tape(HEAD .. '{"t":"ended","r":"r","at":9223372036854775807}\n')
    local out, code = sim(options)
    assert.equal(2, code, out)
    assert.truthy(out:find("long; give the length of the part to simulate", 1, true), out)
  end)
end)

describe("a resumed sweep", function()
  it("continues with its own results, and ignores other files", function()
    local dir = process.tmpname ""
    process.run("mkdir -p " .. dir)
    process.write(dir .. "/big.bin", ("\xff\xfe"):rep(3 << 20))
    process.write(dir .. "/nodes.yaml", "# " .. ("ä\xc2\xa0"):rep(1 << 20) .. [[

apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "10"}, allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
]])
    process.write(dir .. "/none.lua", process.read(SCRIPT))
    local command = ("cd %s && %s sim none.lua --snapshot nodes.yaml --for 10m --seeds 2 --out out && \z
      ls out/cells"):format(dir, process.quote((process.run("realpath " .. BIN):gsub("%s+$", ""))))
    local first, code = process.run(command)
    assert.equal(0, code, first)
    local again = process.run(command)
    assert.equal(2, select(2, again:gsub("%.json\n", "")))
    assert.equal(first:match "%w+%.json\n.*", again:match "%w+%.json\n.*")
  end)
end)

describe("a snapshot", function()
  local NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n\z
    status: {capacity: {cpu: '4', memory: 8Gi}}\n"

  it("may come from standard input", function()
    local path = process.write(process.tmpname ".yaml", NODE)
    local out, code = sim("--for 10m --snapshot - <" .. path)
    assert.equal(0, code, out)
    local named = sim("--for 10m --snapshot " .. path)
    assert.equal((out:gsub("^[^\n]*", "")), (named:gsub("^[^\n]*", "")))
  end)

  it("that cannot be read is named", function()
    local dir = process.tmpname ""
    process.run(("mkdir -p %s/a.yaml"):format(dir))
    refused("--snapshot " .. dir, ("%s: this directory has no .yaml, .yml or .json file"):format(dir))
    refused("--snapshot /no/such.yaml", "cannot read /no/such.yaml: No such file or directory")
  end)
end)
