-- helm_spec.lua - unmodified Helm and kustomize, on both servers.
-- not in check, asan, tsan: what runs are programs in Go

local api_of = require "support.api"
local process = require "support.process"
local servers = require "support.servers"

local FOUND = process.run("readlink -f build/assets/helm/helm || command -v helm"):match "%S+helm%f[%s]"
local HELM = FOUND and process.read(FOUND) and FOUND

local CHART = {
  ["Chart.yaml"] = "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
  ["values.yaml"] = "replicas: 2\ngreeting: hello\n",
  ["templates/all.yaml"] = [[
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-words}
data: {greeting: {{ .Values.greeting | quote }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: web, image: "web:1"}]}
{{- if .Capabilities.APIVersions.Has "apps/v1/Deployment" }}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: shop}, ports: [{port: 80}]}
{{- end }}
]],
}

local KUSTOMIZATION = {
  ["base/kustomization.yaml"] = "resources: [web.yaml]\n",
  ["base/web.yaml"] = [[
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
]],
  ["over/kustomization.yaml"] = [[
resources: [../base]
namePrefix: over-
images: [{name: web, newName: shop, newTag: "2"}]
replicas: [{name: web, count: 3}]
configMapGenerator: [{name: words, literals: [a=1]}]
]],
}

local function write_files(files)
  local dir = process.tmpname ".files"
  for name, text in pairs(files) do
    process.run("mkdir -p " .. process.quote((dir .. "/" .. name):match "^(.*)/"))
    process.write(dir .. "/" .. name, text)
  end
  return dir
end

servers.each(function(server_name, start)
  describe("against " .. server_name, function()
    local s, api, chart, ns
    lazy_setup(function()
      s = start {}
      api = api_of(s)
      chart = write_files(CHART)
      ns = "helm-" .. tostring(math.random(1, 1 << 40))
    end)
    lazy_teardown(function() if s then s:stop() end end)

    -- The output of Helm, which must succeed.
    local function helm(...)
      local words = { "env", "HOME=" .. process.quote(process.tmpdir()), HELM, "--kubeconfig",
        process.quote(s.kubeconfig), "-n", ns }
      for _, word in ipairs { ... } do words[#words + 1] = process.quote(word) end
      local out, code = process.run(table.concat(words, " "))
      assert.equal(0, code, out)
      return out
    end

    -- The state of the release: replicas, text, port; nil: the object is gone.
    local function state()
      local deploy = api:get(("/apis/apps/v1/namespaces/%s/deployments/a"):format(ns)).body
      local map = api:get(("/api/v1/namespaces/%s/configmaps/a-words"):format(ns)).body
      local service = api:get(("/api/v1/namespaces/%s/services/a"):format(ns)).body
      return { deploy.spec and deploy.spec.replicas, map.data and map.data.greeting,
        service.spec and service.spec.ports[1].port }
    end

    local function install_upgrade_rollback()
      assert.matches("STATUS: deployed\nREVISION: 1\n", helm("install", "a", chart, "--create-namespace"), 1,
        true)
      assert.same({ 2, "hello", 80 }, state())
      local tried = helm("upgrade", "a", chart, "--dry-run=server", "--set", "replicas=9")
      assert.matches("replicas: 9", tried, 1, true)
      helm("upgrade", "a", chart, "--set", "replicas=3,greeting=bye")
      assert.same({ 3, "bye", 80 }, state())
      helm("rollback", "a", "1")
      assert.same({ 2, "hello", 80 }, state())
      local seen = {}
      for number, status in helm("history", "a"):gmatch "\n(%d+)%s+%a+ %a+ +%d+ %S+ %d+%s+(%a+)" do
        seen[#seen + 1] = number .. " " .. status
      end
      assert.same({ "1 superseded", "2 superseded", "3 deployed" }, seen)
      helm("uninstall", "a")
      assert.same({}, state())
      local secrets = api:get(("/api/v1/namespaces/%s/secrets?labelSelector=owner=helm"):format(ns)).body
      assert.equal(0, #secrets.items)
    end

    if HELM then
      it("Helm installs, tries, upgrades, rolls back and uninstalls", install_upgrade_rollback)
    elseif (os.getenv "CI" or "") ~= "" then
      it("Helm installs", function() error("helm is missing: `make versions` builds it", 0) end)
    else
      pending "Helm installs: helm is missing, `make versions` builds it"
    end

    it("kubectl applies, compares and deletes a kustomization", function()
      local dir = write_files(KUSTOMIZATION) .. "/over"
      local own = ns .. "-k"
      s:must_kubectl("create", "namespace", own)
      s:must_kubectl("-n", own, "apply", "-k", dir)
      local web = api:get(("/apis/apps/v1/namespaces/%s/deployments/over-web"):format(own)).body
      assert.equal("shop:2 3", web.spec.template.spec.containers[1].image .. " " .. web.spec.replicas)
      local said, code = s:kubectl("-n", own, "diff", "-k", dir)
      assert.equal("", said)
      assert.equal(0, code)
      local maps = api:get(("/api/v1/namespaces/%s/configmaps"):format(own)).body
      assert.matches("^over%-words%-%w+$", maps.items[1].metadata.name)
      s:must_kubectl("-n", own, "delete", "-k", dir)
      assert.equal(404, api:get(("/apis/apps/v1/namespaces/%s/deployments/over-web"):format(own)).code)
    end)
  end)
end)
