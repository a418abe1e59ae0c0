/* columns.c - the columns of built-in kinds: cells that are paths into the object, or computed by a function.
 * A kind without a row here has a name and an age. */
#include "show/columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/selector.h"
#include "model/time.h"
#include "show/cells.h"

void kl_cell_text(const char *text, kl_buf *out)
{
    const kl_value *v = kl_value_of_str(text ? text : "");
    kl_value_encode(v, out);
    kl_value_unref(v);
}

/* ------------------------------------------------------------------ ages */

/* duration.HumanDuration: two units while small, one when large. */
void kl_cell_duration(int64_t s, char *out, size_t n)
{
    int64_t m = s / 60, h = m / 60, d = h / 24;
    if (s < -1)
        snprintf(out, n, "<invalid>");
    else if (s < 0)
        snprintf(out, n, "0s");
    else if (s < 120)
        snprintf(out, n, "%" PRId64 "s", s);
    else if (m < 10)
        s % 60 ? snprintf(out, n, "%" PRId64 "m%" PRId64 "s", m, s % 60)
               : snprintf(out, n, "%" PRId64 "m", m);
    else if (m < 180)
        snprintf(out, n, "%" PRId64 "m", m);
    else if (h < 8)
        m % 60 ? snprintf(out, n, "%" PRId64 "h%" PRId64 "m", h, m % 60)
               : snprintf(out, n, "%" PRId64 "h", h);
    else if (h < 48)
        snprintf(out, n, "%" PRId64 "h", h);
    else if (h < 24 * 8)
        h % 24 ? snprintf(out, n, "%" PRId64 "d%" PRId64 "h", d, h % 24)
               : snprintf(out, n, "%" PRId64 "d", d);
    else if (d < 365 * 2)
        snprintf(out, n, "%" PRId64 "d", d);
    else if (d < 365 * 8)
        d % 365 ? snprintf(out, n, "%" PRId64 "y%" PRId64 "d", d / 365, d % 365)
                : snprintf(out, n, "%" PRId64 "y", d / 365);
    else
        snprintf(out, n, "%" PRId64 "y", d / 365);
}

bool kl_cell_since(const char *text, kl_time now, char *out, size_t n)
{
    int64_t sec;
    int32_t nsec;
    kl_err err = KL_ERR_INIT;
    if (!text || kl_time_parse(text, &sec, &nsec, &err)) {
        kl_err_fini(&err);
        return false;
    }
    kl_cell_duration(now / KL_SECONDS(1) - sec, out, n);
    return true;
}

void kl_cell_age(const char *text, kl_time now, const char *absent, kl_buf *out)
{
    char age[40];
    kl_cell_text(kl_cell_since(text, now, age, sizeof age) ? age : absent, out);
}

static void age(const kl_value *o, kl_time now, kl_buf *out)
{
    kl_cell_age(kl_value_str_at(o, "metadata", "creationTimestamp", NULL), now, "<unknown>", out);
}

/* ------------------------------------------------------------------ workloads and the rest */

static void of_replicas(const kl_value *o, const char *have, int64_t dflt, kl_buf *out)
{
    kl_buf_printf(out, "\"%" PRId64 "/%" PRId64 "\"", kl_value_int_at(o, 0, "status", have, NULL),
        kl_value_int_at(o, dflt, "spec", "replicas", NULL));
}
static void ready_of(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    of_replicas(o, "readyReplicas", 1, out);
}

/* Numbers in columns of texts, as in kube-apiserver. */
static void put_number(const kl_value *o, const char *part, const char *field, kl_buf *out)
{
    kl_buf_printf(out, "%" PRId64, kl_value_int_at(o, 0, part, field, NULL));
}
static void updated(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_number(o, "status", "updatedReplicas", out);
}
static void available(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_number(o, "status", "availableReplicas", out);
}
static void most_pods(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_number(o, "spec", "maxReplicas", out);
}
static void current(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_number(o, "status", "currentReplicas", out);
}

static void expands(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_buf_puts(out, kl_value_bool(kl_value_get(o, "allowVolumeExpansion"), false) ? "true" : "false");
}

static void template_list(const kl_value *o, const char *field, kl_buf *out)
{
    const kl_value *spec = kl_value_get(o, "spec"), *job = kl_value_at(spec, "jobTemplate", "spec", NULL),
                   *made = job ? job
        : spec                 ? spec
                               : o, /* a PodTemplate */
                       *list = kl_value_at(made, "template", "spec", "containers", NULL);
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *word = kl_value_str(kl_value_get(kl_value_item(list, i), field));
        kl_buf_printf(&text, "%s%s", i ? "," : "", word ? word : "");
    }
    kl_cell_text(kl_buf_str(&text), out);
    kl_buf_fini(&text);
}
static void containers(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    template_list(o, "name", out);
}
static void images(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    template_list(o, "image", out);
}

static void put_selector(const kl_value *v, kl_buf *out)
{
    char *text = kl_selector_text_of(v);
    kl_cell_text(text && *text ? text : "<none>", out);
    kl_free(text);
}
static void selector(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *job = kl_value_at(o, "spec", "jobTemplate", NULL);
    put_selector(kl_value_at(job ? job : o, "spec", "selector", NULL), out);
}
static void node_selector(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_selector(kl_value_at(o, "spec", "template", "spec", "nodeSelector", NULL), out);
}
static void template_labels(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_selector(kl_value_at(o, "template", "metadata", "labels", NULL), out);
}
static void pod_selector(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_selector(kl_value_at(o, "spec", "podSelector", NULL), out);
}

static void data_count(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_buf_printf(
        out, "%zu", kl_value_len(kl_value_get(o, "data")) + kl_value_len(kl_value_get(o, "binaryData")));
}

static void created(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_cell_text(kl_value_str_at(o, "metadata", "creationTimestamp", NULL), out);
}

#define NAME                                                                                                 \
    {                                                                                                        \
        "Name", "string", 0, "metadata.name", NULL                                                           \
    }
#define AGE                                                                                                  \
    {                                                                                                        \
        "Age", "string", 0, NULL, age                                                                        \
    }
#define WIDE_TEMPLATE                                                                                        \
    {"Containers", "string", 1, NULL, containers}, {"Images", "string", 1, NULL, images},                    \
    {                                                                                                        \
        "Selector", "string", 1, NULL, selector                                                              \
    }

static const struct {
    const char *group, *plural;
    kl_column columns[12];
} known[] = {
    {"", "pods",
        {NAME, {"Ready", "string", 0, NULL, kl_cell_pod_ready},
            {"Status", "string", 0, NULL, kl_cell_pod_status},
            {"Restarts", "string", 0, NULL, kl_cell_pod_restarts}, AGE,
            {"IP", "string", 1, NULL, kl_cell_pod_ip}, {"Node", "string", 1, NULL, kl_cell_pod_node},
            {"Nominated Node", "string", 1, NULL, kl_cell_pod_nominated},
            {"Readiness Gates", "string", 1, NULL, kl_cell_pod_gates}}},
    {"", "nodes",
        {NAME, {"Status", "string", 0, NULL, kl_cell_node_status},
            {"Roles", "string", 0, NULL, kl_cell_node_roles}, AGE,
            {"Version", "string", 0, "status.nodeInfo.kubeletVersion", NULL},
            {"Internal-IP", "string", 1, NULL, kl_cell_node_internal},
            {"External-IP", "string", 1, NULL, kl_cell_node_external},
            {"OS-Image", "string", 1, NULL, kl_cell_node_os},
            {"Kernel-Version", "string", 1, NULL, kl_cell_node_kernel},
            {"Container-Runtime", "string", 1, NULL, kl_cell_node_runtime}}},
    {"", "namespaces", {NAME, {"Status", "string", 0, "status.phase", NULL}, AGE}},
    {"", "configmaps", {NAME, {"Data", "string", 0, NULL, data_count}, AGE}},
    {"", "secrets",
        {NAME, {"Type", "string", 0, "type", NULL}, {"Data", "string", 0, NULL, data_count}, AGE}},
    {"", "services",
        {NAME, {"Type", "string", 0, "spec.type", NULL},
            {"Cluster-IP", "string", 0, NULL, kl_cell_service_address},
            {"External-IP", "string", 0, NULL, kl_cell_service_external},
            {"Port(s)", "string", 0, NULL, kl_cell_service_ports}, AGE,
            {"Selector", "string", 1, NULL, selector}}},
    {"", "events",
        {{"Last Seen", "string", 0, NULL, kl_cell_event_seen}, {"Type", "string", 0, "type", NULL},
            {"Reason", "string", 0, "reason", NULL}, {"Object", "string", 0, NULL, kl_cell_event_object},
            {"Subobject", "string", 1, "involvedObject.fieldPath", NULL},
            {"Source", "string", 1, NULL, kl_cell_event_source},
            {"Message", "string", 0, NULL, kl_cell_event_message},
            {"First Seen", "string", 1, NULL, kl_cell_event_first},
            {"Count", "string", 1, NULL, kl_cell_event_count}, {"Name", "string", 1, "metadata.name", NULL}}},
    {"", "replicationcontrollers",
        {NAME, {"Desired", "integer", 0, "spec.replicas", NULL},
            {"Current", "integer", 0, "status.replicas", NULL},
            {"Ready", "integer", 0, "status.readyReplicas", NULL}, AGE,
            {"Containers", "string", 1, NULL, containers}, {"Images", "string", 1, NULL, images},
            {"Selector", "string", 1, NULL, selector}}},
    {"apps", "deployments",
        {NAME, {"Ready", "string", 0, NULL, ready_of}, {"Up-to-date", "string", 0, NULL, updated},
            {"Available", "string", 0, NULL, available}, AGE, WIDE_TEMPLATE}},
    {"apps", "replicasets",
        {NAME, {"Desired", "integer", 0, "spec.replicas", NULL},
            {"Current", "integer", 0, "status.replicas", NULL},
            {"Ready", "integer", 0, "status.readyReplicas", NULL}, AGE, WIDE_TEMPLATE}},
    {"apps", "statefulsets",
        {NAME, {"Ready", "string", 0, NULL, ready_of}, AGE, {"Containers", "string", 1, NULL, containers},
            {"Images", "string", 1, NULL, images}}},
    {"apps", "daemonsets",
        {NAME, {"Desired", "integer", 0, "status.desiredNumberScheduled", NULL},
            {"Current", "integer", 0, "status.currentNumberScheduled", NULL},
            {"Ready", "integer", 0, "status.numberReady", NULL},
            {"Up-to-date", "integer", 0, "status.updatedNumberScheduled", NULL},
            {"Available", "integer", 0, "status.numberAvailable", NULL},
            {"Node Selector", "string", 0, NULL, node_selector}, AGE, WIDE_TEMPLATE}},
    {"batch", "jobs",
        {NAME, {"Status", "string", 0, NULL, kl_cell_job_status},
            {"Completions", "string", 0, NULL, kl_cell_job_completions},
            {"Duration", "string", 0, NULL, kl_cell_job_duration}, AGE, WIDE_TEMPLATE}},
    {"batch", "cronjobs",
        {NAME, {"Schedule", "string", 0, "spec.schedule", NULL},
            {"Timezone", "string", 0, NULL, kl_cell_cron_zone},
            {"Suspend", "boolean", 0, NULL, kl_cell_cron_suspend},
            {"Active", "integer", 0, NULL, kl_cell_cron_active},
            {"Last Schedule", "string", 0, NULL, kl_cell_cron_last}, AGE, WIDE_TEMPLATE}},
    {"rbac.authorization.k8s.io", "rolebindings",
        {NAME, {"Role", "string", 0, NULL, kl_cell_role_ref}, AGE,
            {"Users", "string", 1, NULL, kl_cell_users}, {"Groups", "string", 1, NULL, kl_cell_groups},
            {"ServiceAccounts", "string", 1, NULL, kl_cell_accounts}}},
    {"rbac.authorization.k8s.io", "clusterrolebindings",
        {NAME, {"Role", "string", 0, NULL, kl_cell_role_ref}, AGE,
            {"Users", "string", 1, NULL, kl_cell_users}, {"Groups", "string", 1, NULL, kl_cell_groups},
            {"ServiceAccounts", "string", 1, NULL, kl_cell_accounts}}},
    {"rbac.authorization.k8s.io", "roles", {NAME, {"Created At", "date", 0, NULL, created}}},
    {"rbac.authorization.k8s.io", "clusterroles", {NAME, {"Created At", "date", 0, NULL, created}}},
    {"", "resourcequotas",
        {NAME, {"Request", "string", 0, NULL, kl_cell_quota_requests},
            {"Limit", "string", 0, NULL, kl_cell_quota_limits}, AGE}},
    {"", "limitranges", {NAME, {"Created At", "date", 0, NULL, created}}},
    {"policy", "poddisruptionbudgets",
        {NAME, {"Min Available", "string", 0, NULL, kl_cell_min_available},
            {"Max Unavailable", "string", 0, NULL, kl_cell_max_unavailable},
            {"Allowed Disruptions", "integer", 0, "status.disruptionsAllowed", NULL}, AGE}},
    {"autoscaling", "horizontalpodautoscalers",
        {NAME, {"Reference", "string", 0, NULL, kl_cell_hpa_reference},
            {"Targets", "string", 0, NULL, kl_cell_hpa_targets},
            {"MinPods", "string", 0, NULL, kl_cell_hpa_min}, {"MaxPods", "string", 0, NULL, most_pods},
            {"Replicas", "string", 0, NULL, current}, AGE}},
    {"networking.k8s.io", "ingresses",
        {NAME, {"Class", "string", 0, NULL, kl_cell_ingress_class},
            {"Hosts", "string", 0, NULL, kl_cell_ingress_hosts},
            {"Address", "string", 0, NULL, kl_cell_ingress_address},
            {"Ports", "string", 0, NULL, kl_cell_ingress_ports}, AGE}},
    {"networking.k8s.io", "networkpolicies", {NAME, {"Pod-Selector", "string", 0, NULL, pod_selector}, AGE}},
    {"certificates.k8s.io", "certificatesigningrequests",
        {NAME, AGE, {"SignerName", "string", 0, "spec.signerName", NULL},
            {"Requestor", "string", 0, "spec.username", NULL},
            {"RequestedDuration", "string", 0, NULL, kl_cell_csr_duration},
            {"Condition", "string", 0, NULL, kl_cell_csr_condition}}},
    {"", "persistentvolumes",
        {NAME, {"Capacity", "string", 0, "spec.capacity.storage", NULL},
            {"Access Modes", "string", 0, NULL, kl_cell_volume_modes},
            {"Reclaim Policy", "string", 0, "spec.persistentVolumeReclaimPolicy", NULL},
            {"Status", "string", 0, NULL, kl_cell_storage_status},
            {"Claim", "string", 0, NULL, kl_cell_volume_claim},
            {"StorageClass", "string", 0, NULL, kl_cell_storage_class},
            {"VolumeAttributesClass", "string", 0, NULL, kl_cell_storage_attributes},
            {"Reason", "string", 0, "status.reason", NULL}, AGE,
            {"VolumeMode", "string", 1, "spec.volumeMode", NULL}}},
    {"", "persistentvolumeclaims",
        {NAME, {"Status", "string", 0, NULL, kl_cell_storage_status},
            {"Volume", "string", 0, "spec.volumeName", NULL},
            {"Capacity", "string", 0, NULL, kl_cell_claim_capacity},
            {"Access Modes", "string", 0, NULL, kl_cell_claim_modes},
            {"StorageClass", "string", 0, NULL, kl_cell_storage_class},
            {"VolumeAttributesClass", "string", 0, NULL, kl_cell_storage_attributes}, AGE,
            {"VolumeMode", "string", 1, "spec.volumeMode", NULL}}},
    {"storage.k8s.io", "storageclasses",
        {{"Name", "string", 0, NULL, kl_cell_class_name}, {"Provisioner", "string", 0, "provisioner", NULL},
            {"ReclaimPolicy", "string", 0, "reclaimPolicy", NULL},
            {"VolumeBindingMode", "string", 0, "volumeBindingMode", NULL},
            {"AllowVolumeExpansion", "string", 0, NULL, expands}, AGE}},
    {"apiregistration.k8s.io", "apiservices",
        {NAME, {"Service", "string", 0, NULL, kl_cell_api_service},
            {"Available", "string", 0, NULL, kl_cell_api_available}, AGE}},
    {"flowcontrol.apiserver.k8s.io", "flowschemas",
        {NAME, {"PriorityLevel", "string", 0, "spec.priorityLevelConfiguration.name", NULL},
            {"MatchingPrecedence", "string", 0, "spec.matchingPrecedence", NULL},
            {"DistinguisherMethod", "string", 0, NULL, kl_cell_flow_distinguisher}, AGE,
            {"MissingPL", "string", 0, NULL, kl_cell_flow_dangling}}},
    {"flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations",
        {NAME, {"Type", "string", 0, "spec.type", NULL},
            {"NominalConcurrencyShares", "string", 0, NULL, kl_cell_level_shares},
            {"Queues", "string", 0, NULL, kl_cell_level_queues},
            {"HandSize", "string", 0, NULL, kl_cell_level_hand},
            {"QueueLengthLimit", "string", 0, NULL, kl_cell_level_length}, AGE}},
    {"networking.k8s.io", "servicecidrs", {NAME, {"CIDRs", "string", 0, NULL, kl_cell_service_ranges}, AGE}},
    {"networking.k8s.io", "ipaddresses",
        {NAME, {"ParentRef", "string", 0, NULL, kl_cell_address_parent}, {"", "string", 0, NULL, age}}},
    {"resource.k8s.io", "resourceclaims", {NAME, {"State", "string", 0, NULL, kl_cell_claim_state}, AGE}},
    {"resource.k8s.io", "resourceslices",
        {NAME, {"Node", "string", 0, "spec.nodeName", NULL}, {"Driver", "string", 0, "spec.driver", NULL},
            {"Pool", "string", 0, "spec.pool.name", NULL}, AGE}},
    {"coordination.k8s.io", "leases", {NAME, {"Holder", "string", 0, "spec.holderIdentity", NULL}, AGE}},
    {"apiextensions.k8s.io", "customresourcedefinitions", {NAME, {"Created At", "date", 0, NULL, created}}},
    {"", "componentstatuses",
        {NAME, {"Status", "string", 0, "status", NULL}, {"Message", "string", 0, "message", NULL},
            {"Error", "string", 0, "error", NULL}}},
    {"", "endpoints", {NAME, {"Endpoints", "string", 0, NULL, kl_cell_endpoints}, AGE}},
    {"", "podtemplates",
        {NAME, {"Containers", "string", 0, NULL, containers}, {"Images", "string", 0, NULL, images},
            {"Pod Labels", "string", 0, NULL, template_labels}}},
    {"", "serviceaccounts", {NAME, {"Secrets", "string", 0, NULL, kl_cell_account_secrets}, AGE}},
    {"apps", "controllerrevisions",
        {NAME, {"Controller", "string", 0, NULL, kl_cell_controller},
            {"Revision", "string", 0, "revision", NULL}, AGE}},
    {"networking.k8s.io", "ingressclasses",
        {NAME, {"Controller", "string", 0, "spec.controller", NULL},
            {"Parameters", "string", 0, NULL, kl_cell_parameters}, AGE}},
    {"storage.k8s.io", "csidrivers",
        {NAME, {"AttachRequired", "boolean", 0, NULL, kl_cell_driver_attaches},
            {"PodInfoOnMount", "boolean", 0, "spec.podInfoOnMount", NULL},
            {"StorageCapacity", "boolean", 0, "spec.storageCapacity", NULL},
            {"TokenRequests", "string", 0, NULL, kl_cell_driver_tokens},
            {"RequiresRepublish", "boolean", 0, "spec.requiresRepublish", NULL},
            {"Modes", "string", 0, NULL, kl_cell_driver_modes}, AGE}},
    {"storage.k8s.io", "csinodes", {NAME, {"Drivers", "integer", 0, NULL, kl_cell_node_drivers}, AGE}},
    {"storage.k8s.io", "csistoragecapacities", {NAME, {"Created At", "date", 0, NULL, created}}},
    {"storage.k8s.io", "volumeattachments",
        {NAME, {"Attacher", "string", 0, "spec.attacher", NULL},
            {"PV", "string", 0, "spec.source.persistentVolumeName", NULL},
            {"Node", "string", 0, "spec.nodeName", NULL}, {"Attached", "boolean", 0, "status.attached", NULL},
            AGE}},
    {"storage.k8s.io", "volumeattributesclasses",
        {NAME, {"DriverName", "string", 0, "driverName", NULL}, AGE}},
    {"admissionregistration.k8s.io", "mutatingwebhookconfigurations",
        {NAME, {"Webhooks", "integer", 0, NULL, kl_cell_webhooks}, AGE}},
    {"admissionregistration.k8s.io", "validatingwebhookconfigurations",
        {NAME, {"Webhooks", "integer", 0, NULL, kl_cell_webhooks}, AGE}},
    {"admissionregistration.k8s.io", "validatingadmissionpolicies",
        {NAME, {"Validations", "integer", 0, NULL, kl_cell_validations},
            {"ParamKind", "string", 0, NULL, kl_cell_param_kind}, AGE}},
    {"admissionregistration.k8s.io", "validatingadmissionpolicybindings",
        {NAME, {"PolicyName", "string", 0, "spec.policyName", NULL},
            {"ParamRef", "string", 0, NULL, kl_cell_param_ref}, AGE}},
    {"node.k8s.io", "runtimeclasses", {NAME, {"Handler", "string", 0, "handler", NULL}, AGE}},
    {"discovery.k8s.io", "endpointslices",
        {NAME, {"AddressType", "string", 0, "addressType", NULL},
            {"Ports", "string", 0, NULL, kl_cell_slice_ports},
            {"Endpoints", "string", 0, NULL, kl_cell_slice_endpoints}, AGE}},
    {"scheduling.k8s.io", "priorityclasses",
        {NAME, {"Value", "integer", 0, "value", NULL},
            {"Global-Default", "boolean", 0, "globalDefault", NULL}, AGE,
            {"PreemptionPolicy", "string", 0, "preemptionPolicy", NULL}}},
};

static const kl_column plain[] = {NAME, AGE, {0}}, custom[] = {NAME, {"Age", "date", 0, NULL, age}, {0}};

const kl_column *kl_columns_of(const kl__kind *k)
{
    const char *group = strcmp(k->group, "events.k8s.io") ? k->group : "";
    for (size_t i = 0; i < sizeof known / sizeof *known && !k->custom; i++)
        if (!strcmp(known[i].group, group) && !strcmp(known[i].plural, k->plural))
            return known[i].columns;
    return k->custom ? custom : plain;
}

const char *kl_column_text(const kl__kind *k, size_t i)
{
    for (const kl_column_texts *t = kl__column_texts; t->kind; t++) {
        if (k->custom ? strcmp(t->kind, "*") : !kl__kind_among(k, t->kind))
            continue;
        for (size_t n = 0; t->texts[n]; n++)
            if (n == i)
                return t->texts[n];
    }
    return "";
}
