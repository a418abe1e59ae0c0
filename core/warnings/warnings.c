/* warnings.c - which kinds have which warnings. */
#include "warnings/warnings.h"

#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/x509.h"
#include "check/addresses.h"
#include "model/names.h"
#include "schema/names.h"

/* A name that is no DNS label, of an object that names pods. */
static void warn_name(kl__causes *out, const kl_value *o, const char *where)
{
    const char *name = kl_value_str_at(o, "metadata", "name", NULL);
    if (!name || !kl_name_dns1123_label(name))
        return;
    bool dotted = strchr(name, '.') != NULL, too_long = strlen(name) > 63;
    kl__cause_add(out, "Warning", "metadata.name",
        "this is used in %s, which can result in surprising behavior; a DNS label is recommended: [%s%s%s]",
        where, too_long ? KL_NAME_TOO_LONG(63) : "", too_long && dotted ? " " : "",
        dotted ? "must not contain dots" : "");
}

/* ------------------------------------------------------------------ what makes pods */

static void warn_pod(const kl__write *w, kl__causes *out)
{
    if (w->old)
        return;
    warn_name(out, w->o, "the Pod's hostname");
    kl__pod_warnings(out, w->o, NULL);
}

/* Whether the write made a new generation, or a new object. */
static bool renewed(const kl__write *w)
{
    return !w->old
        || kl_value_int_at(w->old, 0, "metadata", "generation", NULL)
        != kl_value_int_at(w->o, 0, "metadata", "generation", NULL);
}

static void warn_template(const kl__write *w, kl__causes *out)
{
    if (renewed(w))
        kl__pod_warnings(
            out, kl_value_at(w->o, "spec", "template", NULL), KL_IN(KL_IN(NULL, "spec"), "template"));
}

static void warn_workload(const kl__write *w, kl__causes *out)
{
    if (!w->old)
        warn_name(out, w->o, "Pod names and hostnames");
    warn_template(w, out);
}

static void warn_pod_template(const kl__write *w, kl__causes *out)
{
    if (renewed(w))
        kl__pod_warnings(out, kl_value_get(w->o, "template"), KL_IN(NULL, "template"));
}

static void warn_stateful_set(const kl__write *w, kl__causes *out)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *claims = kl_value_get(spec, "volumeClaimTemplates");
    const kl__place *in = KL_IN(KL_IN(NULL, "spec"), "volumeClaimTemplates");
    warn_template(w, out);
    for (size_t i = 0; i < kl_value_len(claims); i++) {
        const kl__place *at = KL_ITEM(in, i);
        kl__warn_fractions(out, kl_value_at(kl_value_item(claims, i), "spec", "resources", NULL), "storage",
            KL_IN(w->old ? KL_IN(at, "Spec") : at, "resources"));
    }
    if (kl_value_int_at(spec, 0, "revisionHistoryLimit", NULL) < 0)
        kl__cause_add(out, "Warning", "spec.revisionHistoryLimit",
            "a negative value retains all historical revisions; a value >= 0 is recommended");
}

static void warn_job_spec(kl__causes *out, const kl_value *spec, const kl__place *at)
{
    if (kl__is(spec, "completionMode", "Indexed") && kl_value_int_at(spec, 0, "completions", NULL) > 100000
        && kl_value_int_at(spec, 0, "parallelism", NULL) > 10000)
        kl__say_odd(out, at,
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail");
    kl__pod_warnings(out, kl_value_get(spec, "template"), KL_IN(at, "template"));
}

static void warn_job(const kl__write *w, kl__causes *out)
{
    if (!w->old)
        warn_name(out, w->o, "Pod names and hostnames");
    if (renewed(w))
        warn_job_spec(out, kl_value_get(w->o, "spec"), KL_IN(NULL, "spec"));
}

static void warn_cron_job(const kl__write *w, kl__causes *out)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    if (!w->old)
        warn_name(out, w->o, "Pod names and hostnames");
    if (renewed(w))
        warn_job_spec(out, kl_value_at(spec, "jobTemplate", "spec", NULL),
            KL_IN(KL_IN(KL_IN(NULL, "spec"), "jobTemplate"), "spec"));
    if (w->old && strstr(kl__text(spec, "schedule"), "TZ"))
        kl__cause_add(out, "Warning", "",
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
}

/* ------------------------------------------------------------------ the network */

/* Warns of the addresses or networks in a list. */
static void warn_each(kl__causes *out, const kl_value *list, const kl__place *in, kl__address_form form)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl__warn_address(out, KL_ITEM(in, i), kl__item_text(list, i), form);
}

/* The same for a member of the items. `deep`: the place is the member's, not the item's. */
static void warn_member(
    kl__causes *out, const kl_value *list, const char *member, const kl__place *in, bool deep)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl__place *at = KL_ITEM(in, i);
        kl__warn_address(
            out, deep ? KL_IN(at, member) : at, kl__text(kl_value_item(list, i), member), KL_ADDRESS);
    }
}

static void warn_balancer(const kl__write *w, kl__causes *out)
{
    warn_member(out, kl_value_at(w->o, "status", "loadBalancer", "ingress", NULL), "ip",
        KL_IN(KL_IN(KL_IN(NULL, "status"), "loadBalancer"), "ingress"), false);
}

static void warn_pod_status(const kl__write *w, kl__causes *out)
{
    const kl_value *status = kl_value_get(w->o, "status");
    const kl__place *in = KL_IN(NULL, "status");
    warn_member(out, kl_value_get(status, "podIPs"), "ip", KL_IN(in, "podIPs"), true);
    warn_member(out, kl_value_get(status, "hostIPs"), "ip", KL_IN(in, "hostIPs"), true);
}

/* Whether the label says that one of these manages the object; they write addresses in the new form. */
static bool managed_by(const kl_value *o, const char *label, const char *names)
{
    const char *name = kl_value_str_at(o, "metadata", "labels", label, NULL);
    return name && kl__one_of(name, names);
}

static void warn_endpoints(const kl__write *w, kl__causes *out)
{
    const kl_value *subsets = kl_value_get(w->o, "subsets");
    if (managed_by(w->o, "endpoints.kubernetes.io/managed-by", "endpoint-controller"))
        return;
    for (size_t i = 0; i < kl_value_len(subsets); i++) {
        const kl_value *s = kl_value_item(subsets, i);
        const kl__place *at = KL_ITEM(KL_IN(NULL, "subsets"), i);
        warn_member(out, kl_value_get(s, "addresses"), "ip", KL_IN(at, "addresses"), true);
        warn_member(out, kl_value_get(s, "notReadyAddresses"), "ip", KL_IN(at, "notReadyAddresses"), true);
    }
}

static void warn_peers(kl__causes *out, const kl_value *rules, const char *member, const kl__place *in)
{
    for (size_t i = 0; i < kl_value_len(rules); i++) {
        const kl_value *peers = kl_value_get(kl_value_item(rules, i), member);
        for (size_t k = 0; k < kl_value_len(peers); k++) {
            const kl_value *block = kl_value_get(kl_value_item(peers, k), "ipBlock");
            const kl__place *at = KL_IN(KL_ITEM(KL_IN(KL_ITEM(in, i), member), k), "ipBlock");
            kl__warn_address(out, KL_IN(at, "cidr"), kl__text(block, "cidr"), KL_NETWORK);
            warn_each(out, kl_value_get(block, "except"), KL_IN(at, "except"), KL_NETWORK);
        }
    }
}

static void warn_network_policy(const kl__write *w, kl__causes *out)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    const kl__place *in = KL_IN(NULL, "spec");
    warn_peers(out, kl_value_get(spec, "ingress"), "from", KL_IN(in, "ingress"));
    warn_peers(out, kl_value_get(spec, "egress"), "to", KL_IN(in, "egress"));
}

static void warn_service(const kl__write *w, kl__causes *out)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    const kl_value *addresses = kl_value_get(spec, "clusterIPs");
    const kl__place *in = KL_IN(NULL, "spec");
    bool outside = kl__is(spec, "type", "ExternalName"),
         ips = kl_value_len(kl_value_get(spec, "externalIPs"));
    if (kl_value_at(w->o, "metadata", "annotations", "service.kubernetes.io/topology-aware-hints", NULL))
        kl__cause_add(out, "Warning", "",
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
            "service.kubernetes.io/topology-mode instead");
    if (!kl__is(spec, "clusterIP", "None"))
        warn_each(out, addresses, KL_IN(in, "clusterIPs"), KL_ADDRESS);
    if (kl__is(spec, "type", "ClusterIP") && kl__is(spec, "clusterIP", "None")) {
        if (*kl__text(spec, "loadBalancerIP"))
            kl__cause_add(out, "Warning", "", "spec.loadBalancerIP is ignored for headless services");
        if (ips)
            kl__cause_add(out, "Warning", "", "spec.externalIPs is ignored for headless services");
        if (!kl__is(spec, "sessionAffinity", "None"))
            kl__cause_add(out, "Warning", "", "spec.SessionAffinity is ignored for headless services");
    }
    warn_each(out, kl_value_get(spec, "externalIPs"), KL_IN(in, "externalIPs"), KL_ADDRESS);
    kl__warn_address(out, KL_IN(in, "loadBalancerIP"), kl__text(spec, "loadBalancerIP"), KL_ADDRESS);
    warn_each(out, kl_value_get(spec, "loadBalancerSourceRanges"), KL_IN(in, "loadBalancerSourceRanges"),
        KL_NETWORK);
    if (outside && ips)
        kl__cause_add(out, "Warning", "", "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    if (!outside && *kl__text(spec, "externalName"))
        kl__cause_add(
            out, "Warning", "", "spec.externalName is ignored when spec.type is not \"ExternalName\"");
}

static void warn_ingress(const kl__write *w, kl__causes *out)
{
    static const char key[] = "kubernetes.io/ingress.class";
    if (!w->old && kl_value_at(w->o, "metadata", "annotations", key, NULL)
        && !kl_value_at(w->o, "spec", "ingressClassName", NULL))
        kl__cause_add(out, "Warning", "",
            "annotation \"%s\" is deprecated, please use 'spec.ingressClassName' instead", key);
}

static void warn_slice(const kl__write *w, kl__causes *out)
{
    if (!w->old && kl__is(w->o, "addressType", "FQDN"))
        kl__cause_add(out, "Warning", "spec.addressType", "FQDN endpoints are deprecated");
    const kl_value *list = kl_value_get(w->o, "endpoints");
    if (managed_by(w->o, "endpointslice.kubernetes.io/managed-by",
            "endpointslice-controller.k8s.io endpointslicemirroring-controller.k8s.io"))
        return;
    for (size_t i = 0; i < kl_value_len(list); i++)
        warn_each(out, kl_value_get(kl_value_item(list, i), "addresses"),
            KL_IN(KL_ITEM(KL_IN(NULL, "endpoints"), i), "addresses"), KL_ADDRESS);
}

/* ------------------------------------------------------------------ storage and nodes */

#define OLD_CLASS                                                                                            \
    {                                                                                                        \
        "volume.beta.kubernetes.io/storage-class",                                                           \
            "deprecated since v1.8; use \"storageClassName\" attribute instead"                              \
    }

static void warn_volume(const kl__write *w, kl__causes *out)
{
    static const char *const notes[][2] = {OLD_CLASS,
        {"volume.beta.kubernetes.io/mount-options",
            "deprecated since v1.31; use \"mountOptions\" attribute instead"},
        {NULL, NULL}};
    const kl_value *spec = kl_value_get(w->o, "spec"),
                   *terms = kl_value_at(spec, "nodeAffinity", "required", "nodeSelectorTerms", NULL);
    const kl__place *in = KL_IN(NULL, "spec"),
                    *at = KL_IN(KL_IN(KL_IN(in, "nodeAffinity"), "required"), "nodeSelectorTerms");
    kl__warn_annotations(out, kl_value_get(w->o, "metadata"), NULL, notes);
    if (kl__is(spec, "persistentVolumeReclaimPolicy", "Recycle"))
        kl__cause_add(out, "Warning", "spec.persistentVolumeReclaimPolicy",
            "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic "
            "provisioning.");
    for (size_t i = 0; i < kl_value_len(terms); i++)
        kl__warn_term(out, kl_value_item(terms, i), false, KL_ITEM(at, i));
    kl__warn_source(out, spec, in);
}

static void warn_claim(const kl__write *w, kl__causes *out)
{
    static const char *const notes[][2] = {OLD_CLASS, {NULL, NULL}};
    kl__warn_annotations(out, kl_value_get(w->o, "metadata"), NULL, notes);
    kl__warn_fractions(out, kl_value_at(w->o, "spec", "resources", NULL), "storage",
        KL_IN(KL_IN(NULL, "spec"), "resources"));
}

static void warn_node(const kl__write *w, kl__causes *out)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    if (kl_value_get(spec, "configSource"))
        kl__cause_add(out, "Warning", "spec.configSource", "the feature is removed");
    if (*kl__text(spec, "externalID"))
        kl__cause_add(
            out, "Warning", "spec.externalID", "this field is deprecated, and is unused by Kubernetes");
    warn_each(out, kl_value_get(spec, "podCIDRs"), KL_IN(KL_IN(NULL, "spec"), "podCIDRs"), KL_NETWORK);
}

static void warn_account(const kl__write *w, kl__causes *out)
{
    static const char key[] = "kubernetes.io/enforce-mountable-secrets";
    if (kl_value_at(w->o, "metadata", "annotations", key, NULL)
        && !kl_value_at(w->old, "metadata", "annotations", key, NULL))
        kl__say_odd(out, KL_KEYED(KL_IN(KL_IN(NULL, "metadata"), "annotations"), key, sizeof key - 1),
            "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets");
}

/* What Go says of a certificate and a key that are no pair, or NULL. Static. */
static const char *pair_fault(const char *cert, const char *key)
{
    static const char begin[] = "-----BEGIN ", certificate[] = "-----BEGIN CERTIFICATE-----";
    if (!strstr(cert, begin))
        return "tls: failed to find any PEM data in certificate input";
    if (!strstr(cert, certificate) && strstr(cert, " PRIVATE KEY-----"))
        return "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
               "PEM "
               "inputs may have been switched";
    if (!strstr(key, begin))
        return "tls: failed to find any PEM data in key input";
    if (!strstr(key, " PRIVATE KEY-----") && strstr(key, certificate))
        return "tls: found a certificate rather than a key in the PEM for the private key";
    switch (kl_x509_check_pair(cert, key, NULL)) {
    case KL_OK: return NULL;
    case KL_EINVAL: return "tls: private key does not match public key";
    default: return "x509: malformed certificate";
    }
}

static char *data_of(const kl_value *secret, const char *key)
{
    const char *text = kl_value_str_at(secret, "data", key, NULL);
    kl_buf out = KL_BUF_INIT;
    if (!text || kl_base64_decode(text, strlen(text), &out, NULL))
        kl_buf_clear(&out);
    return kl_buf_take(&out);
}

static void warn_secret(const kl__write *w, kl__causes *out)
{
    if (!kl__is(w->o, "type", "kubernetes.io/tls"))
        return;
    char *cert = data_of(w->o, "tls.crt"), *key = data_of(w->o, "tls.key");
    const char *fault = pair_fault(cert, key);
    if (fault)
        kl__cause_add(out, "Warning", "", "%s", fault);
    kl_free(cert);
    kl_free(key);
}

/* ------------------------------------------------------------------ old labels of nodes */

static void warn_class(const kl__write *w, kl__causes *out)
{
    const kl_value *list = kl_value_get(w->o, "allowedTopologies");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *some = kl_value_get(kl_value_item(list, i), "matchLabelExpressions");
        const kl__place *in = KL_IN(KL_ITEM(KL_IN(NULL, "allowedTopologies"), i), "matchLabelExpressions");
        for (size_t k = 0; k < kl_value_len(some); k++) {
            const char *why = kl__old_node_label(kl__text(kl_value_item(some, k), "key"));
            if (why)
                kl__say_odd(out, KL_IN(KL_ITEM(in, k), "key"), "%s", why);
        }
    }
}

/* Of the keys of a map. `named`: the place is that of the key. */
static void warn_keys(kl__causes *out, const kl_value *map, const kl__place *in, bool named)
{
    for (size_t i = 0; i < kl_value_len(map); i++) {
        const char *key;
        (void)kl_value_member(map, i, &key, NULL);
        const char *why = kl__old_node_label(key);
        if (why)
            kl__say_odd(out, named ? KL_IN(in, key) : in, "%s", why);
    }
}

static void warn_runtime_class(const kl__write *w, kl__causes *out)
{
    warn_keys(out, kl_value_at(w->o, "scheduling", "nodeSelector", NULL),
        KL_IN(KL_IN(NULL, "scheduling"), "nodeSelector"), false);
}

static void warn_capacity(const kl__write *w, kl__causes *out)
{
    const kl_value *topology = kl_value_get(w->o, "nodeTopology");
    const kl__place *in = KL_IN(NULL, "nodeTopology");
    kl__warn_term(out, topology, false, in);
    warn_keys(out, kl_value_get(topology, "matchLabels"), KL_IN(in, "matchLabels"), true);
}

/* ------------------------------------------------------------------ all */

static const struct entry {
    const char *kind; /* or several, see kl__kind_among */
    void (*warn)(const kl__write *w, kl__causes *out);
} kinds[] =
    {
        {"/pods", warn_pod},
        {"/podtemplates", warn_pod_template},
        {"/replicationcontrollers", warn_workload},
        {"apps/deployments", warn_workload},
        {"apps/replicasets", warn_workload},
        {"apps/daemonsets", warn_template},
        {"apps/statefulsets", warn_stateful_set},
        {"batch/jobs", warn_job},
        {"batch/cronjobs", warn_cron_job},
        {"/services", warn_service},
        {"networking.k8s.io/ingresses", warn_ingress},
        {"discovery.k8s.io/endpointslices", warn_slice},
        {"/persistentvolumes", warn_volume},
        {"/persistentvolumeclaims", warn_claim},
        {"/nodes", warn_node},
        {"/serviceaccounts", warn_account},
        {"/secrets", warn_secret},
        {"/endpoints", warn_endpoints},
        {"networking.k8s.io/networkpolicies", warn_network_policy},
        {"storage.k8s.io/storageclasses", warn_class},
        {"storage.k8s.io/csistoragecapacities", warn_capacity},
        {"node.k8s.io/runtimeclasses", warn_runtime_class},
},
  statuses[] = {
      {"/pods", warn_pod_status},
      {"/services networking.k8s.io/ingresses", warn_balancer},
};

void kl__builtin_warnings(const kl__write *w, kl__causes *out)
{
    bool status = w->sub && !strcmp(w->sub, "status");
    const struct entry *v = status ? statuses : kinds;
    size_t n = status ? sizeof statuses / sizeof *statuses : w->sub ? 0 : sizeof kinds / sizeof *kinds;
    for (size_t i = 0; i < n; i++)
        if (kl__kind_among(w->kind, v[i].kind)) {
            v[i].warn(w, out);
            return;
        }
}
