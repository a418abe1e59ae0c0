---@meta kubelua.types
-- luacheck: ignore 241
-- types.lua - what the Lua language server should know of the functions that are written in C, and of the tables they take.
-- It is never loaded.

error "types.lua is for editors; require \"kubelua\" instead"

-- ---------------------------------------------------------------- values

--- A Kubernetes object, or a part of one, read-only and shared: every string key is a field, lists count from 1. Absent fields and
--- JSON null read as nil. `view("spec.containers[1].name")` and `view("metadata.labels", "a.b/c")` are nil-safe. `#`, pairs, ipairs,
--- tostring (JSON) and == (by value) work.
---@class kubelua.view
---@field [string] any
---@field [integer] any
---@overload fun(path: string, ...: string|integer): any

--- An object being edited: reads like a view, and can be written. Assigning below an absent field creates the maps between;
--- assigning nil removes; table.insert, remove and sort work on its lists.
---@class kubelua.draft: kubelua.view

---@class kubelua.null: userdata
---@class kubelua.uint64: userdata
---@field number fun(self: kubelua.uint64): number

---@class kubelua
---@field null kubelua.null  writes JSON null; removes a field in a merge patch
local kube = {}

--- Marks a table as a list, which matters when it is empty.
---@param t table?
---@return table
function kube.array(t) end

--- Marks a table as an object.
---@param t table?
---@return table
function kube.object(t) end

--- An integer above int64, from its digits.
---@param x string|integer
---@return kubelua.uint64
function kube.uint64(x) end

--- Plain tables of one's own that remember which of them are lists. Null is kept as kube.null.
---@generic T
---@param x T
---@return T
function kube.copy(x) end

--- A string that equal values share, for table keys.
---@param x any
---@return any
function kube.id(x) end

--- JSON text; names of tables are sorted.
---@param x any
---@param pretty boolean?
---@return string
function kube.encode(x, pretty) end

--- A view, or a scalar. Raises an error of kind "syntax". A name that an object has twice is one, unless `duplicates` lets the
--- last one win, as Go does.
---@param text string
---@param opts {duplicates: "last"}?
---@return any
function kube.decode(text, opts) end

--- The documents of a YAML text; `name` stands in messages.
---@param text string
---@param name string?
---@return kubelua.view[]
function kube.yaml(text, name) end

---@param x any
---@return string
function kube.to_yaml(x) end

---@param x any
---@return boolean
function kube.is_view(x) end

-- ---------------------------------------------------------------- errors

--- What the world did: raised by API calls, told apart by kube.try.
---@class kubelua.Error
---@field code integer?       HTTP status
---@field kind string         "not_found", "conflict", "already_exists", "forbidden", "throttled", "timeout", "unreachable", ...
---@field reason string?      Kubernetes' word, "NotFound"
---@field message string
---@field details kubelua.view?
---@field retry_after number? seconds
---@field verb string?
---@field resource string?    the kind
---@field key string?         "namespace/name"

---@param x any
---@return boolean
function kube.is_error(x) end

-- ---------------------------------------------------------------- quantities

---@class kubelua.quantity
---@operator add(kubelua.quantity|string|number): kubelua.quantity
---@operator sub(kubelua.quantity|string|number): kubelua.quantity
---@operator mul(integer): kubelua.quantity
---@operator unm: kubelua.quantity
local quantity = {}

--- Whole units, rounded away from zero.
---@return integer
function quantity:value() end
--- Thousandths, rounded away from zero.
---@return integer
function quantity:milli() end
--- Units of 10^scale, rounded away from zero.
---@param scale integer
---@return integer
function quantity:scaled(scale) end
--- The nearest float.
---@return number
function quantity:number() end
---@return -1|0|1
function quantity:sign() end
---@return boolean
function quantity:is_zero() end
---@param other kubelua.quantity|string|number
---@return -1|0|1
function quantity:cmp(other) end
--- The text that Kubernetes would write.
---@return string
function quantity:canonical() end
---@return "DecimalSI"|"BinarySI"|"DecimalExponent"
function quantity:format() end

--- A quantity of "500m", "1Gi", 2 or 0.5.
---@param x kubelua.quantity|string|number
---@return kubelua.quantity
function kube.qty(x) end

--- n thousandths; of a quantity, the same rounded up to thousandths.
---@param n integer|kubelua.quantity
---@return kubelua.quantity
function kube.milli(n) end

---@param x any
---@return boolean
function kube.is_quantity(x) end

-- ---------------------------------------------------------------- time

---@alias kubelua.Duration number|string  seconds, or "1h5m30s"

--- Seconds of a duration; an integer when they are whole.
---@param x kubelua.Duration
---@return number
function kube.duration(x) end

--- Go's text of a duration: "1h5m0s".
---@param x kubelua.Duration
---@return string
function kube.format_duration(x) end

--- t - t gives seconds; t + seconds and t - seconds give times; times compare with each other and with Unix seconds.
---@class kubelua.time
---@operator add(kubelua.Duration): kubelua.time
---@operator sub(kubelua.time): number
---@operator sub(kubelua.Duration): kubelua.time
local time = {}

--- Whole seconds since 1970.
---@return integer
function time:unix() end
--- Seconds since 1970 with their fraction.
---@return number
function time:seconds() end
--- As metav1.MicroTime: "2026-01-02T15:04:05.000000Z"
---@return string
function time:micro() end

--- A time of RFC 3339 text or Unix seconds.
---@param x string|number|kubelua.time
---@return kubelua.time
function kube.time(x) end

--- "2026-01-02T15:04:05Z"
---@param x string|number|kubelua.time
---@return string
function kube.format_time(x) end

-- ---------------------------------------------------------------- selectors

---@class kubelua.selector
local selector = {}

--- Whether labels (or the labels of an object) are selected.
---@param labels table<string, string>|kubelua.view|nil
---@return boolean
function selector:matches(labels) end
--- Whether it selects everything.
---@return boolean
function selector:is_empty() end

--- A label selector of its text, or of a metav1.LabelSelector. nil selects nothing.
---@param x string|table|kubelua.view|nil
---@return kubelua.selector
function kube.selector(x) end

-- ---------------------------------------------------------------- objects and options

--- A manifest (apiVersion, kind, metadata), or the short form: kind = "group/version/Kind" with name, namespace, labels, annotations.
---@class kubelua.Object
---@field kind string
---@field apiVersion string?
---@field metadata table?
---@field name string?
---@field namespace string?
---@field labels table<string, string>?
---@field annotations table<string, string>?
---@field [string] any

---@class kubelua.ConnectOptions
---@field server string?           URL; alone it means: no kubeconfig at all
---@field kubeconfig string?       path
---@field context string?
---@field cluster string?
---@field user string?
---@field namespace string?
---@field token string?
---@field as string?               user to impersonate
---@field tls_server_name string?
---@field insecure boolean?
---@field timeout string?          of each request
---@field http1 boolean?
---@field user_agent string?
---@field field_manager string?    default of writes

---@alias kubelua.LabelSelector string|table|kubelua.view|kubelua.selector
---@alias kubelua.FieldSelector string|table<string, string>

---@class kubelua.ListOptions
---@field namespace string?             all namespaces when absent
---@field labels kubelua.LabelSelector?
---@field fields kubelua.FieldSelector?
---@field limit integer?
---@field resource_version string?

---@class kubelua.WatchOptions
---@field namespace string?
---@field name string?
---@field labels kubelua.LabelSelector?
---@field fields kubelua.FieldSelector?
---@field resource_version string?      begin after this version
---@field bookmarks boolean?            show them
---@field timeout kubelua.Duration?     end by then

---@class kubelua.WriteOptions
---@field manager string?
---@field dry_run boolean?
---@field validation "Strict"|"Warn"|"Ignore"|nil
---@field subresource string?

---@class kubelua.ApplyOptions: kubelua.WriteOptions
---@field force boolean?

---@class kubelua.DeleteOptions
---@field propagation "Foreground"|"Background"|"Orphan"|nil
---@field uid string?
---@field resourceVersion string?
---@field grace integer?                seconds
---@field dry_run boolean?

---@class kubelua.PatchStatusOptions
---@field lock boolean?                 only while the object is still the version that was read
---@field manager string?
---@field dry_run boolean?

---@class kubelua.PatchOptions: kubelua.PatchStatusOptions
---@field type "merge"|"json"|"strategic"|nil
---@field subresource string?
---@field force boolean?

---@class kubelua.Resource
---@field group string
---@field version string
---@field kind string
---@field plural string
---@field singular string
---@field namespaced boolean
---@field verbs string[]
---@field short_names string[]
---@field categories string[]
---@field subresources string[]

---@class kubelua.ResourceInfo
---@field kind string         "apps/v1/Deployment"
---@field plural string
---@field namespaced boolean
---@field verbs string[]

return kube
