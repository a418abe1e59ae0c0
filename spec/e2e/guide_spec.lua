-- guide_spec.lua - docs/guide.md on both API servers: its files are written, its commands run in order, and
-- their output is compared.
--
-- "..." in an expected line stands for anything. A `kubelua get` or `curl` is asked again until it says
-- what it should: controllers take a moment.
-- not in asan, tsan: the page is the subject; what its commands
-- run, other specs run

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local GUIDE = "docs/guide.md"
local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- The parts of the page in order: { title =, file =, text = } and { title =, command =, expected = { lines
-- } }.
local function parts()
  local out, title, name, fence, lines = {}, nil, nil, nil, nil
  for line in (process.read(GUIDE) .. "\n"):gmatch "(.-)\n" do
    if fence then
      if line ~= "```" then
        lines[#lines + 1] = line
      else
        if fence == "console" then
          for _, l in ipairs(lines) do
            if l:find "^%$ " then
              out[#out + 1] = { title = title, command = l:sub(3), expected = {} }
            else
              table.insert(out[#out].expected, l)
            end
          end
        else
          assert(name, "a fence of " .. fence .. " has no file name above it")
          out[#out + 1] = { title = title, file = name, text = table.concat(lines, "\n") .. "\n" }
        end
        fence, name = nil, nil
      end
    elseif line:find "^```" then
      fence, lines = line:sub(4), {}
    elseif line:find "^## " then
      title = line:sub(4)
    elseif line:find "^`[^`]+`$" then
      name = line:sub(2, -2)
    elseif line ~= "" then
      name = nil
    end
  end
  return out
end

local function pattern(text) return "^" .. text:gsub("%p", "%%%0"):gsub("%%%.%%%.%%%.", ".*") .. "$" end

local function agrees(said, expected)
  local n = 0
  for line in said:gmatch "[^\n]+" do
    n = n + 1
    if not expected[n] or not line:find(pattern(expected[n])) then return expected[n] == "..." end
  end
  return n == #expected or (#expected == 1 and expected[1] == "..." and n > 0)
end

local function is_about_a_server(command)
  return command:find "kubelua apiserver" or command:find "^export KUBECONFIG"
end

servers.each(function(server_name, start)
  describe("docs/guide.md, against " .. server_name, function()
    local server, client, dir, running, ports, setting

    lazy_setup(function()
      server = start { empty = true }
      client = controller.client(server)
      dir = process.tmpname ".guide"
      process.run("mkdir -p " .. dir .. "/bin && ln -s $(readlink -f " .. KUBELUA .. ") " .. dir
        .. "/bin/kubelua")
      running, ports = {}, {}
      setting = ("cd %s && PATH=$PWD/bin:$PATH KUBECONFIG=%s && export PATH KUBECONFIG && "):format(dir,
        server.kubeconfig)
    end)
    lazy_teardown(function()
      for _, p in ipairs(running or {}) do controller.finish(p) end
      if server then server:stop() end
    end)

    -- Replaces the ports on the page, which may be in use here.
    local function with_ports(command)
      return (command:gsub("127%.0%.0%.1:(%d+)", function(port)
        ports[port] = ports[port] or servers.free_port()
        return "127.0.0.1:" .. ports[port]
      end))
    end

    local function run(part)
      local command = with_ports(part.command)
      local background = command:match "^(.-)%s*&$"
      if background then
        local p = process.spawn { "bash", "-c", setting .. "exec " .. background, name = background }
        running[#running + 1] = p
        p:wait_for_log(60, "controller is running")
        return
      end
      local said
      local function good()
        said = process.run(("bash -c %s 2>&1"):format(process.quote(setting .. command)))
        return agrees(said, part.expected)
      end
      if command:find "^kubelua get" or command:find "^curl" then
        local ok = pcall(wait.until_true, 60, command, good)
        if ok then return end
      elseif good() then
        return
      end
      error(("$ %s\nsaid:\n%s\ninstead of:\n%s"):format(command, said, table.concat(part.expected, "\n")), 0)
    end

    for _, section in ipairs { "1. A first controller", "2. Owning and watching", "3. Finalizers",
      "4. Testing", "5. Going to production" } do
      it("is correct in " .. section, function()
        local done = 0
        for _, part in ipairs(parts()) do
          if part.title == section and part.file then
            process.write(dir .. "/" .. part.file, part.text)
            done = done + 1
          elseif part.title == section and not is_about_a_server(part.command) then
            run(part)
            done = done + 1
          end
        end
        assert.is_true(done > 1)
        if section:find "^3" then assert.is_nil(client:get("v1/ServiceAccount", "default", "ada")) end
      end)
    end

    it("shows how the embedded server is started", function()
      local shown = {}
      for _, part in ipairs(parts()) do
        if part.command and is_about_a_server(part.command) then shown[#shown + 1] = part.command end
      end
      assert.equal(2, #shown)
      local p = process.spawn { "bash", "-c", setting .. "exec " .. with_ports(shown[1]):gsub("%s*&$", ""),
        name = shown[1] }
      running[#running + 1] = p
      wait.until_true(30, "an answer", function()
        local out = process.run(("bash -c %s 2>&1"):format(process.quote(setting .. shown[2]
          .. " && kubelua get ns default -o name")))
        return out == "namespace/default\n"
      end)
    end)
  end)
end)
