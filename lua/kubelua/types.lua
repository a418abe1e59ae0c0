---@meta kubelua.types
-- luacheck: ignore 241
-- types.lua - what the Lua language server should know of the functions that are written in C, and of the
-- tables they take. It is never loaded.

-- ---------------------------------------------------------------- values

--- A Kubernetes object, or a part of one, read-only and shared: every string key is a field, lists count
--- from 1. Absent fields and JSON null read as nil. `view("spec.containers[1].name")` and
--- `view("metadata.labels", "a.b/c")` are nil-safe. `#`, pairs, ipairs, tostring (JSON) and == (by value)
--- work.
---@class kubelua.view
---@field [string] any
---@field [integer] any
---@overload fun(path: string, ...: string|integer): any

--- An object being edited: reads like a view, and can be written. Assigning below an absent field creates
--- the maps between; assigning nil removes; table.insert, remove and sort work on its lists.
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

--- A string that is the same for equal values, for use as a table key.
---@param x any
---@return any
function kube.id(x) end

--- JSON text; names of tables are sorted.
---@param x any
---@param pretty boolean?
---@return string
function kube.encode(x, pretty) end

--- A view, or a scalar. Raises an error of kind "syntax". A name that an object has twice is one, unless
--- `duplicates` lets the last one win, as Go does.
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

--- Bytes as base64, as Secrets and certificates have them.
---@param bytes string
---@return string
function kube.base64_encode(bytes) end

--- The bytes of base64; line breaks are passed over. Raises an error of kind "syntax".
---@param text string
---@return string
function kube.base64_decode(text) end

-- ---------------------------------------------------------------- errors

--- An error of an API call. Calls raise it; kube.try returns it.
---@class kubelua.Error
---@field code integer?       HTTP status
---@field kind string         "not_found", "conflict", "already_exists", "forbidden", "throttled", "timeout", "unreachable", ...
---@field reason string?      Kubernetes' word, "NotFound"
---@field message string
---@field details kubelua.view?
---@field conflicts {manager: string, field: string}[]?  of an apply: who owns which field
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
--- The quantity as Kubernetes writes it.
---@return string
function quantity:canonical() end
---@return "DecimalSI"|"BinarySI"|"DecimalExponent"
function quantity:format() end

--- What is at the end of a path, nil where a step is absent or leads into a scalar:
--- kube.dig(pod, "spec", "containers", 1, "image").
---@param x any
---@param ... string|integer|nil  the steps; the first that is nil ends the path
---@return any
function kube.dig(x, ...) end

--- What is at the end of each path: name, node = kube.pick(pod, "metadata.name", "spec.nodeName"). Nil
--- stands where a step is absent or leads into a scalar.
---@param x any
---@param ... string  paths, as a view is called with
---@return any ...
function kube.pick(x, ...) end

--- The same of quantities, in thousandths: cpu, memory = kube.milli_pick(node, "status.capacity.cpu",
--- "status.capacity.memory").
---@param x any
---@param ... string  paths
---@return integer? ...
function kube.milli_pick(x, ...) end

--- A table for each path, with what every item of a list has there: names, phases = kube.columns(pods,
--- "metadata.name", "status.phase"). Nil stands where an item has nothing; an object or a list is an error.
---@param list kubelua.list|kubelua.view|table
---@param ... string  paths, as a view is called with
---@return any[] ...
function kube.columns(list, ...) end

--- The same of quantities, in thousandths: cpu, memory = kube.milli_columns(containers,
--- "resources.requests.cpu", "resources.requests.memory"). 0 stands where an item has nothing.
---@param list kubelua.list|kubelua.view|table
---@param ... string  paths
---@return integer[] ...
function kube.milli_columns(list, ...) end

--- The sum of each column of kube.milli_columns: cpu = kube.milli_sums(containers, "resources.requests.cpu").
--- A sum that does not fit 64 bits is an error.
---@param list kubelua.list|kubelua.view|table
---@param ... string  paths
---@return integer ...
function kube.milli_sums(list, ...) end

--- Whether kube.columns(list, path) would give a table equal to `column`; no table is made.
---@param list kubelua.list|kubelua.view|table
---@param path string
---@param column any[]
---@return boolean
function kube.is_column(list, path, column) end

--- The place of each item of a list by the text at a path, or by those at several paths with "/" between
--- them: at = kube.places(pods, "metadata.namespace", "metadata.name"), then at["default/web"] is 3. A text
--- is empty where an item has nothing. Of items with the same text it is the last one.
---@param list kubelua.list|kubelua.view|table
---@param ... string  paths
---@return table<string, integer> places, integer texts  how many texts there are
function kube.places(list, ...) end

--- Sums of quantities over a list of objects, by the class of each; what did not change since the last list
--- costs little.
---@class kubelua.tally
---@field count fun(self: kubelua.tally, list: any, classes: table<string, integer>): boolean?  nil: count another way
---@field sum fun(self: kubelua.tally, class: integer): integer, integer, ...  how many items, and each sum

--- used = kube.tally { key = { "namespace", "name" }, amounts = { "podUsage.resources.cpu" } }, then
--- used:count(metric.status.podsMetric, classes) and n, cpu = used:sum(1). `classes` has a number from 1 to 7
--- by the texts at the key paths with "/" between them; all other items are of class 0. Nobody may change it.
--- count returns nil if the list is not part of an object, or if an item has no key of its own or another
--- number than a quantity in plain digits: then use kube.milli_columns and kube.places.
---@param o { key: string[], amounts: string[] }
---@return kubelua.tally
function kube.tally(o) end

--- A quantity of "500m", "1Gi", 2 or 0.5.
---@param x kubelua.quantity|string|number
---@return kubelua.quantity
function kube.qty(x) end

--- n thousandths; of a quantity, the same rounded up to thousandths.
---@param n integer|kubelua.quantity
---@return kubelua.quantity
function kube.milli(n) end

--- The thousandths of a quantity or its text as an integer, rounded up: kube.qty(x):milli(), at a fifth of
--- the cost.
---@param x kubelua.quantity|string|number
---@return integer
function kube.to_milli(x) end

---@param x any
---@return boolean
function kube.is_quantity(x) end

-- ---------------------------------------------------------------- time

---@alias kubelua.Duration number|string  seconds, or "1h5m30s"

--- Seconds of a duration, an integer when they are whole: kube.duration "1h" * 2 + 30 is a duration, too.
---@param x kubelua.Duration
---@return number
function kube.duration(x) end

--- Go's text of a duration: "1h5m0s".
---@param x kubelua.Duration
---@return string
function kube.format_duration(x) end

--- t - t gives seconds, and so does t - "2026-01-02T15:04:05Z"; t + seconds, t + "1h30m" and t - "1h30m" give
--- times; times compare with each other, with RFC 3339 text and with Unix seconds.
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

--- Whether the selector matches labels (or the labels of an object).
---@param labels table<string, string>|kubelua.view|nil
---@return boolean
function selector:matches(labels) end
--- Whether the selector matches everything.
---@return boolean
function selector:is_empty() end

--- A label selector from its text or from a metav1.LabelSelector. nil selects nothing.
---@param x string|table|kubelua.view|nil
---@return kubelua.selector
function kube.selector(x) end

-- ---------------------------------------------------------------- objects and options

--- A manifest (apiVersion, kind, metadata), or the short form: kind = "group/version/Kind" with name or
--- generateName, namespace, labels, annotations, finalizers.
---@class kubelua.Object
---@field kind string
---@field apiVersion string?
---@field metadata table?
---@field name string?
---@field generateName string?
---@field namespace string?
---@field labels table<string, string>?
---@field annotations table<string, string>?
---@field finalizers string[]?
---@field [string] any

---@class kubelua.ConnectOptions
---@field server string?           URL; alone it means: no kubeconfig at all
---@field kubeconfig string?       path
---@field context string?
---@field cluster string?
---@field user string?
---@field namespace string?
---@field token string?            bearer token
---@field token_file string?       file with one, read again as it rotates
---@field username string?         basic authentication
---@field password string?
---@field ca_file string?          CAs that the server's certificate is verified against, read again as they rotate
---@field ca_data string?          the same as PEM text
---@field cert_file string?        client certificate, read again as it rotates
---@field cert_data string?        the same as PEM text
---@field key_file string?         its key
---@field key_data string?
---@field as string?               user to impersonate
---@field as_uid string?           and with this uid
---@field as_groups string[]?      and in these groups
---@field as_extra table<string, string|string[]>?  and these extra fields
---@field proxy string?            http://, https:// or socks5:// URL; default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY
---@field tls_server_name string?  the name that the server's certificate must have
---@field insecure boolean?        believe any certificate
---@field disable_compression boolean?
---@field timeout string?          of each request
---@field http1 boolean?
---@field allow_http boolean?  ctx.http of controllers that kube.manager runs with this client
---@field protobuf boolean?         false: built-in kinds are read in JSON, too (true)
---@field user_agent string?
---@field field_manager string?    default of writes
---@field qps number?              at most so many requests per second on the average; no limit of ours when absent
---@field burst integer?           so many at once before qps counts (twice qps)
---@field on_warning "log"|"none"|fun(text: string, call: string)|nil  what the server warns of: into the log, nowhere, or to you after the call
---@field check boolean?          false: tables are sent as they are, without a look at the server's schemas
---@field cache_dir string|false?  where discovery and schemas are remembered; default $KUBELUA_CACHE_DIR, else kubelua in the user's cache directory
---@field cache_ttl kubelua.Duration?  what is younger there is believed without asking (0: always ask whether it is still good)

---@alias kubelua.LabelSelector string|table|kubelua.view|kubelua.selector
---@alias kubelua.FieldSelector string|table<string, string>

---@class kubelua.GetOptions
---@field subresource string?
---@field resource_version string?
---@field metadata_only boolean?        a PartialObjectMetadata instead of the object
---@field timeout kubelua.Duration?     of the call

---@class kubelua.ListOptions
---@field namespace string?             all namespaces when absent
---@field labels kubelua.LabelSelector?
---@field fields kubelua.FieldSelector?
---@field limit integer?
---@field resource_version string?
---@field resource_version_match "Exact"|"NotOlderThan"|nil
---@field metadata_only boolean?
---@field timeout kubelua.Duration?     of each request
---@field server_timeout kubelua.Duration?  timeoutSeconds: what the server is told

---@class kubelua.TableOptions: kubelua.ListOptions
---@field include "None"|"Metadata"|"Object"|nil  what of each object comes beside its cells

---@class kubelua.WatchOptions
---@field namespace string?
---@field name string?
---@field labels kubelua.LabelSelector?
---@field fields kubelua.FieldSelector?
---@field resource_version string?      begin after this version
---@field bookmarks boolean?            show them
---@field metadata_only boolean?
---@field timeout kubelua.Duration?     end by then

---@class kubelua.StatusOptions
---@field manager string?
---@field dry_run boolean?
---@field validation "Strict"|"Warn"|"Ignore"|nil
---@field timeout kubelua.Duration?

---@class kubelua.ApplyStatusOptions: kubelua.StatusOptions
---@field force boolean?

---@class kubelua.WriteOptions: kubelua.StatusOptions
---@field subresource string?
---@field of string?                    whose subresource, where it speaks another kind: of = "v1/Pod", subresource = "eviction"

---@class kubelua.ApplyOptions: kubelua.StatusOptions
---@field subresource string?
---@field force boolean?

---@class kubelua.DeleteOptions
---@field propagation "Foreground"|"Background"|"Orphan"|nil
---@field uid string?
---@field resource_version string?      only while the object is still this version
---@field resourceVersion string?       the same
---@field grace integer?                seconds
---@field dry_run boolean?
---@field timeout kubelua.Duration?

---@class kubelua.DeleteCollectionOptions
---@field namespace string?             needed for namespaced kinds
---@field labels kubelua.LabelSelector?
---@field fields kubelua.FieldSelector?
---@field resource_version string?
---@field resource_version_match "Exact"|"NotOlderThan"|nil
---@field propagation "Foreground"|"Background"|"Orphan"|nil
---@field grace integer?                seconds
---@field dry_run boolean?
---@field timeout kubelua.Duration?

---@class kubelua.PatchStatusOptions: kubelua.StatusOptions
---@field lock boolean?                 only while the object is still the version that was read

---@class kubelua.PatchOptions: kubelua.PatchStatusOptions
---@field type "merge"|"json"|"strategic"|nil
---@field subresource string?
---@field force boolean?

---@class kubelua.ScaleOptions
---@field manager string?
---@field resource_version string?      only while the object is still this version
---@field resourceVersion string?       the same
---@field dry_run boolean?
---@field timeout kubelua.Duration?

---@class kubelua.BindOptions
---@field annotations table<string, string>?
---@field labels table<string, string>?
---@field dry_run boolean?
---@field timeout kubelua.Duration?

---@class kubelua.TokenOptions
---@field audiences string[]?           the API server's own when absent
---@field expiration kubelua.Duration?  an hour when absent
---@field bound kubelua.Object|kubelua.view|nil  the Pod, Secret or Node that the token dies with
---@field timeout kubelua.Duration?

---@class kubelua.DecideOptions
---@field reason string?
---@field message string?
---@field manager string?
---@field dry_run boolean?
---@field timeout kubelua.Duration?

---@class kubelua.FinalizeOptions
---@field dry_run boolean?
---@field timeout kubelua.Duration?

--- What the client and ctx have in common beside the plain verbs. In a reconcile a name alone is in the
--- key's namespace, elsewhere in the context's.
---@class kubelua.Verbs
local verbs = {}

--- Evicts a pod: the server checks its disruption budget, then deletes it. An absent pod is success. If the
--- budget refuses, the error has code 429, with details.causes. evict(pod, opts), evict("ns/name", opts),
--- evict("ns", "name", opts)
---@param pod string|kubelua.Object|kubelua.view
---@param name_or_opts string|kubelua.DeleteOptions|nil
---@param opts kubelua.DeleteOptions?
---@return true
function verbs:evict(pod, name_or_opts, opts) end

--- Binds a pod to a node, as a scheduler does.
---@param pod string|kubelua.Object|kubelua.view  or "ns/name"
---@param node string
---@param opts kubelua.BindOptions?
---@return true
function verbs:bind(pod, node, opts) end

--- Sets the number of replicas; returns the Scale. scale(object, n, opts), scale(kind, key, n, opts),
--- scale(kind, namespace, name, n, opts)
---@param kind string|kubelua.Object|kubelua.view
---@param ... any
---@return kubelua.view
function verbs:scale(kind, ...) end

--- The Scale of an object, or nil: spec.replicas, status.replicas, status.selector.
---@param kind string|kubelua.Object|kubelua.view
---@param ... any
---@return kubelua.view?
function verbs:get_scale(kind, ...) end

--- A token of a service account, and when it expires (RFC 3339). token(account, opts), token("ns/name",
--- opts), token("ns", "name", opts)
---@param account string|kubelua.Object|kubelua.view
---@param name_or_opts string|kubelua.TokenOptions|nil
---@param opts kubelua.TokenOptions?
---@return string token, string expires
function verbs:token(account, name_or_opts, opts) end

--- Sets the finalizers in a namespace's spec, none by default, so that the namespace can be removed.
---@param namespace string|kubelua.Object|kubelua.view
---@param finalizers string[]?
---@param opts kubelua.FinalizeOptions?
---@return kubelua.view
function verbs:finalize(namespace, finalizers, opts) end

--- Approves a CertificateSigningRequest.
---@param csr string|kubelua.Object|kubelua.view
---@param opts kubelua.DecideOptions?
---@return kubelua.view
function verbs:approve(csr, opts) end

--- Denies a CertificateSigningRequest.
---@param csr string|kubelua.Object|kubelua.view
---@param opts kubelua.DecideOptions?
---@return kubelua.view
function verbs:deny(csr, opts) end

--- Replaces the status, through the status subresource.
---@param o kubelua.Object|kubelua.view
---@param opts kubelua.StatusOptions?
---@return kubelua.view
function verbs:update_status(o, opts) end

--- Server-side apply of the status.
---@param o kubelua.Object|kubelua.view
---@param opts kubelua.ApplyStatusOptions?
---@return kubelua.view
function verbs:apply_status(o, opts) end

--- Deletes all objects that match; returns the list of them. A namespaced kind needs its namespace.
---@param kind string
---@param opts kubelua.DeleteCollectionOptions?
---@return kubelua.view
function verbs:delete_collection(kind, opts) end

---@class kubelua.LogOptions
---@field container string?             the pod's only or default one when absent
---@field follow boolean?               follow the log
---@field previous boolean?             the log of the container before its last restart
---@field since kubelua.Duration?       only lines not older than this
---@field since_time string|number|kubelua.time|nil
---@field tail integer?                 only the last so many lines
---@field timestamps boolean?           prefix each line with its timestamp
---@field limit_bytes integer?          stop after this many bytes
---@field raw boolean?                  chunks of bytes instead of lines
---@field resume boolean?               go on after a broken connection, without gaps or repeats

---@class kubelua.ExecOptions
---@field container string?
---@field stdin string|(fun(): string?)|nil
---@field tty boolean?                  a terminal: stderr comes with stdout
---@field timeout kubelua.Duration?     raises when it is over
---@field limit integer?                bytes of stdout and of stderr; 16 MiB
---@field protocol "v5.channel.k8s.io"|"v4.channel.k8s.io"|nil

---@class kubelua.StreamOptions
---@field container string?
---@field stdin boolean?                standard input is ours to write
---@field tty boolean?
---@field protocol "v5.channel.k8s.io"|"v4.channel.k8s.io"|nil

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

--- kind is the whole text here, "apps/v1/Deployment", and name the kind alone.
---@class kubelua.ResourceInfo: kubelua.Resource
---@field name string

---@class kubelua.ResourceFilter
---@field group string?         "" is core
---@field version string?
---@field verb string?          "list", "watch", ...
---@field category string?      "all", ...
---@field namespaced boolean?

error "types.lua is for editors; require \"kubelua\" instead"
