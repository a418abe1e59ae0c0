-- sessions.lua - what is typed in the pictures of `make picture`: README's session, which moves, and one for
-- each example, which stands still. What stands behind # in a line is for the reader.

local function dev(rest) return ("kubelua dev %s 2> log &"):format(rest) end

local MESSAGES = "kubelua get events -o custom-columns=REASON:reason,MESSAGE:message"

return {
  readme = {
    title = "kubelua: run, edit, refused edit, why, shadow, replay",
    wide = 112,
    high = 24,
    dev "hello.lua --load card.yaml --record hello.tape",
    "kubelua get cm card -o path=data.greeting",
    "sed -i 's/Hello/Good morning/' hello.lua          # an edit: the running controller takes it",
    "kubelua get cm card -o path=data.greeting",
    "sed -i 's/return end/return endd/' hello.lua      # a slip: it is refused, the old logic goes on",
    "kubelua reload",
    "sed -i 's/endd/end/' hello.lua",
    "kubelua why cm card",
    "sed 's/Good morning/Hi/' hello.lua > next.lua     # the next idea, beside what runs, without a write",
    "kubelua shadow next.lua --all",
    "kubelua replay hello.tape next.lua                # and on what has happened",
  },
  autoscaler = {
    dev "autoscaler.lua --crds crd.yaml --load sample.yaml --simulate",
    "kubelua get autoscaler,deploy                        # 25 pieces of work, 10 for each replica",
    "sed 's/\"25\"/\"48\"/' sample.yaml | kubelua apply -f -  # more work comes",
    "kubelua get autoscaler,deploy",
    MESSAGES .. " | grep workers.from",
  },
  catset = {
    dev "catset.lua --crds crd.yaml --load sample.yaml --simulate",
    "kubelua get catset,pods",
    "sed 's/replicas: 2/replicas: 4/' sample.yaml | kubelua apply -f -",
    "kubelua get catset,pods",
    "kubelua delete pod cats-1                            # one runs away: another one comes",
    "kubelua get pods",
  },
  ["cert-approver"] = {
    dev "cert-approver.lua --load sample.yaml",
    "kubelua get csr",
    "sed 's/jane/joe/; s/client auth/server auth/' sample.yaml | kubelua apply -f -",
    "kubelua get csr",
    "grep -o 'left to a person: [^=]*allowed' log",
  },
  ["configmap-generator"] = {
    dev "configmap-generator.lua --crds crd.yaml --load sample.yaml",
    "kubelua get cm motd -o path=data.content",
    "kubelua delete cm motd                               # somebody deletes it: it comes back",
    "kubelua get cm motd -o path=data.content",
    "sed 's/morning/night/' sample.yaml | kubelua apply -f -",
    "kubelua get cm motd -o path=data.content",
  },
  ["cost-report"] = {
    dev "cost-report.lua --crds crd.yaml --load sample.yaml",
    "kubelua get pods -A -o custom-columns=NAME:metadata.name,WANTS:spec.containers[0].resources",
    "kubelua get costreport all -o yaml | sed -n '/^spec/,$p'",
  },
  ["cron-job"] = {
    wide = 116,
    "kubelua test -v                                      # hours in a moment",
    dev "cron-job.lua --crds crd.yaml --load sample.yaml --simulate",
    "kubelua get cronjobs.examples.kubelua.dev",
    "kubelua why cronjobs.examples.kubelua.dev hourly     # when is the next one?",
  },
  ["deny-latest-webhook"] = {
    dev "deny-latest-webhook.lua --load sample.yaml",
    "sed 's/pinned/loose/; s/:3.10//' sample.yaml | kubelua apply -f -",
    "sed 's/pinned/exact/' sample.yaml | kubelua apply -f -",
    "kubelua get pods",
  },
  ["dns-record"] = {
    "kubelua check dns-record.lua                         # where it may go, and what can be set",
    "kubelua test -v                                      # a table is the DNS service",
  },
  janitor = {
    dev "janitor.lua --load sample.yaml",
    "kubelua get cm old                                   # its time was over in 2020",
    MESSAGES,
  },
  memcached = {
    dev "memcached.lua --crds crd.yaml --load sample.yaml --simulate",
    "kubelua get memcached,deploy,pods",
    "sed 's/size: 3/size: 1/' sample.yaml | kubelua apply -f -",
    "kubelua get memcached,deploy",
  },
  ["namespace-defaults"] = {
    dev "namespace-defaults.lua --load sample.yaml",
    "kubelua get resourcequota,limitrange,networkpolicy -n shop",
    "kubelua delete networkpolicy defaults -n shop        # somebody deletes it: it comes back",
    "kubelua get networkpolicy -n shop",
  },
  ["pod-cleanup"] = {
    dev "pod-cleanup.lua --load sample.yaml",
    "kubelua get pods                                     # it was done, and a second has passed",
    "grep -o 'wrote.*object=[^ ]*' log",
  },
  ["secret-copy"] = {
    dev "secret-copy.lua --load sample.yaml",
    "kubelua get secrets -A",
    "sed 's/abc/xyz/' sample.yaml | kubelua apply -f -    # the original changes: its copies follow",
    "kubelua get secret registry -n team-a -o path=data.token | base64 -d; echo",
  },
  ["sidecar-webhook"] = {
    dev "sidecar-webhook.lua",
    "kubelua apply -f sample.yaml                         # a pod with one container",
    "kubelua get pod app -o jsonpath='{range .spec.containers[*]}{.name}{\"   \"}{.image}{\"\\n\"}{end}'",
  },
  ["volume-claim"] = {
    dev "volume-claim.lua --crds crd.yaml --simulate",
    "kubelua apply -f sample.yaml",
    "kubelua get evc",
    "kubelua get pvc -o custom-columns=NAME:metadata.name,SIZE:status.capacity.storage",
    "sed 's/1Gi/500Mi/' sample.yaml | kubelua apply -f -  # a volume does not shrink",
    "kubelua why evc scratch | head -n 5",
  },
}
