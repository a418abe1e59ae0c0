---@meta kubelua.names_meta
-- luacheck: ignore 241
-- names_meta.lua - where require "kubelua" has its functions from, for the Lua language server: a copy of
-- FROM_FILES and FOR_PROGRAMS in init.lua (`make lint` finds what is missing here). It is never loaded.

---@class kubelua
local kube = {}
kube.connect = require("kubelua.client").connect
kube.kind_of = require("kubelua.object").kind_of
kube.max = require("kubelua.quantity").max
kube.min = require("kubelua.quantity").min
kube.requests = require("kubelua.quantity").requests
kube.limits = require("kubelua.quantity").limits
kube.controller = require("kubelua.controller").controller
kube.webhook = require("kubelua.webhook").webhook
kube.deny = require("kubelua.webhook").deny
kube.extract = require("kubelua.extract").extract
kube.adopt_fields = require("kubelua.adopt").adopt_fields
kube.equal = require("kubelua.tables").equal
kube.merge = require("kubelua.tables").merge
kube.hash = require("kubelua.tables").hash
kube.template = require("kubelua.tables").template
kube.cron = require("kubelua.tables").cron
kube.merge_patch = require("kubelua.compute").merge_patch
kube.strategic_patch = require("kubelua.compute").strategic_patch
kube.name_problem = require("kubelua.compute").name_problem
kube.generate_name = require("kubelua.compute").generate_name
kube.share = require("kubelua.compute").share
kube.recorder = require("kubelua.recorder").recorder
kube.informers = require("kubelua.informers").informers
kube.json = require("kubelua.core").decode
kube.to_json = require("kubelua.core").encode
kube.certificate = require("kubelua.certificate").certificate
kube.certificate_request = require("kubelua.certificate").certificate_request
kube.base64_encode = require("kubelua.core").base64_encode
kube.base64_decode = require("kubelua.core").base64_decode
kube.ttl_store = require("kubelua.ttl").ttl_store
kube.retry_on_conflict = require("kubelua.upsert").retry_on_conflict
kube.from_template = require("kubelua.object").from_template
kube.set_controller = require("kubelua.owner").set_controller
kube.set_owner = require("kubelua.owner").set_owner
kube.remove_owner = require("kubelua.owner").remove_owner
kube.controller_of = require("kubelua.owner").controller_of
kube.is_owned_by = require("kubelua.owner").is_owned_by
kube.add_finalizer = require("kubelua.owner").add_finalizer
kube.remove_finalizer = require("kubelua.owner").remove_finalizer
kube.has_finalizer = require("kubelua.owner").has_finalizer
kube.set_condition = require("kubelua.conditions").set_condition
kube.find_condition = require("kubelua.conditions").find_condition
kube.remove_condition = require("kubelua.conditions").remove_condition
kube.shared = require("kubelua.shared").shared
kube.counter = require("kubelua.metrics").counter
kube.gauge = require("kubelua.metrics").gauge
kube.histogram = require("kubelua.metrics").histogram
kube.manager = require("kubelua.manager").manager
kube.http = require("kubelua.web").http
kube.testing = require("kubelua.testing").testing
kube.crd = require("kubelua.crd").crd
kube.schema = require("kubelua.crd_schema").schema
kube.retry = require("kubelua.result").retry
kube.fail = require("kubelua.result").fail

error "names_meta.lua is for editors; require \"kubelua\" instead"
