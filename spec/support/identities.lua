-- identities.lua - identities of clients for API servers: certificates, kubeconfigs, credential plugins.

local kube = require "kubelua"
local process = require "support.process"

local M = {}

local function sh(command)
  local out, code = process.run(command)
  if code ~= 0 then error(("%s: exit %d\n%s"):format(command, code, out), 2) end
  return out
end

--- A CA in its own directory: { dir, crt, key }.
function M.ca(name)
  local dir = process.tmpname ".ca"
  sh(("mkdir -p %s && cd %s && openssl ecparam -name prime256v1 -genkey -noout -out ca.key && openssl req \z
    -x509 -new -key ca.key -subj /CN=%s -days 30 -out ca.crt")
    :format(dir, dir, name))
  return { dir = dir, crt = dir .. "/ca.crt", key = dir .. "/ca.key" }
end

--- A certificate signed by `ca`, as { crt = path, key = path }. `san` makes it one for a server.
function M.certificate(ca, subject, san)
  local base = process.tmpname ""
  local extension = ""
  if san then extension = "-extfile " .. process.write(base .. ".cnf", "subjectAltName=" .. san .. "\n") end
  sh(("openssl ecparam -name prime256v1 -genkey -noout -out %s.key && openssl req -new -key %s.key -subj %s \z
    -out %s.csr && "
    .. "openssl x509 -req -in %s.csr -CA %s -CAkey %s -CAcreateserial -CAserial %s.srl -days 30 %s -out \z
      %s.crt")
    :format(base, base, process.quote(subject), base, base, ca.crt, ca.key, base, extension, base))
  return { crt = base .. ".crt", key = base .. ".key" }
end

--- Replaces a file at once by the text of one or more files, as rotation tools do.
function M.rotate(to, ...)
  local text = {}
  for i, from in ipairs { ... } do text[i] = process.read(from) end
  process.write(to .. ".new", table.concat(text))
  assert(os.rename(to .. ".new", to))
end

local KUBECONFIG = [[
apiVersion: v1
kind: Config
clusters:
- name: c
  cluster:
    server: "%s"
%s
users:
- name: u
  user:
%s
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
]]

local function indent(text) return (text:gsub("[^\n]+", "    %0")) end

--- A kubeconfig of `server` with this user section (YAML); `cluster`: further fields of its cluster; the CA
--- is added if it is absent.
function M.kubeconfig(server, user, cluster)
  cluster = cluster or ""
  if server.ca and not cluster:find "certificate%-authority" and not cluster:find "insecure" then
    cluster = ("certificate-authority: %s\n"):format(server.ca) .. cluster
  end
  local url = cluster:match "server: (%S+)" or server.url
  cluster = cluster:gsub("server: %S+\n?", "")
  return process.write(process.tmpname ".kubeconfig", KUBECONFIG:format(url, indent(cluster), indent(user)))
end

--- Sets `ca` (a file) and `token` of an embedded server that asks who a client is, from its kubeconfig.
function M.logged_in(server)
  local text = process.read(server.kubeconfig)
  local ca = text:match "certificate%-authority%-data: (%S+)"
  server.ca = process.write(process.tmpname ".crt", kube.base64_decode(ca))
  server.token = text:match "token: (%x+)"
  return server
end

--- A credential plugin: a shell script that counts its runs. `body` runs with $N, the number of this run,
--- and prints the status' members. Returns the user section, and a function that says how often it ran.
function M.plugin(body, more)
  local path = process.tmpname ".plugin"
  process.write(path, ([[#!/bin/sh
echo run >> %s.runs
N=$(wc -l < %s.runs); N=$(echo $N)
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{'
%s
printf '}}\n'
]]):format(path, path, body))
  sh("chmod +x " .. path)
  local user = ("exec:\n  apiVersion: client.authentication.k8s.io/v1\n  interactiveMode: Never\n  command: \z
    %s\n%s"):format(path, more or "")
  return user, function() return select(2, (process.read(path .. ".runs") or ""):gsub("\n", "\n")) end
end

--- The status members of a certificate, as a file that a plugin prints.
function M.status_of(certificate, expires)
  local function text(path) return (process.read(path):gsub("\n", "\\n")) end
  return process.write(process.tmpname ".status", ('"clientCertificateData":"%s","clientKeyData":"%s"%s')
    :format(text(certificate.crt), text(certificate.key),
      expires and (',"expirationTimestamp":"%s"'):format(expires) or ""))
end

--- Local ports of this process's connections to `port`.
function M.connections(port)
  local pid = process.read "/proc/self/stat":match "^%d+"
  local mine, out = {}, {}
  -- ls reports an error for descriptors that were closed meanwhile.
  for inode in sh("ls -l /proc/" .. pid .. "/fd 2>/dev/null || true"):gmatch "socket:%[(%d+)%]" do
    mine[inode] = true
  end
  for line in process.read "/proc/net/tcp":gmatch "[^\n]+" do
    local here, there, state,
      inode = line:match "^%s*%d+: %x+:(%x+) %x+:(%x+) (%x%x) %S+ %S+ %S+%s+%d+%s+%d+ (%d+)"
    if there and tonumber(there, 16) == port and state == "01" and mine[inode] then
      out[tonumber(here, 16)] = true
    end
  end
  return out
end

return M
