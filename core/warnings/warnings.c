/* warnings.c - which kinds have which warnings. */
#include "warnings/warnings.h"

#include <string.h>

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

static void warn_service(const kl__write *w, kl__causes *out)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    bool outside = kl__is(spec, "type", "ExternalName"),
         ips = kl_value_len(kl_value_get(spec, "externalIPs"));
    if (kl_value_at(w->o, "metadata", "annotations", "service.kubernetes.io/topology-aware-hints", NULL))
        kl__cause_add(out, "Warning", "",
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
            "service.kubernetes.io/topology-mode instead");
    if (kl__is(spec, "type", "ClusterIP") && kl__is(spec, "clusterIP", "None")) {
        if (*kl__text(spec, "loadBalancerIP"))
            kl__cause_add(out, "Warning", "", "spec.loadBalancerIP is ignored for headless services");
        if (ips)
            kl__cause_add(out, "Warning", "", "spec.externalIPs is ignored for headless services");
        if (!kl__is(spec, "sessionAffinity", "None"))
            kl__cause_add(out, "Warning", "", "spec.SessionAffinity is ignored for headless services");
    }
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
        kl__warn_term(out, kl_value_item(terms, i), KL_ITEM(at, i));
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
}

static void warn_account(const kl__write *w, kl__causes *out)
{
    static const char key[] = "kubernetes.io/enforce-mountable-secrets";
    if (kl_value_at(w->o, "metadata", "annotations", key, NULL)
        && !kl_value_at(w->old, "metadata", "annotations", key, NULL))
        kl__say_odd(out, KL_KEYED(KL_IN(KL_IN(NULL, "metadata"), "annotations"), key, sizeof key - 1),
            "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets");
}

/* ------------------------------------------------------------------ all */

static const struct {
    const char *kind;
    void (*warn)(const kl__write *w, kl__causes *out);
} kinds[] = {
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
};

void kl__builtin_warnings(const kl__write *w, kl__causes *out)
{
    for (size_t i = 0; !w->sub && i < sizeof kinds / sizeof *kinds; i++)
        if (kl__kind_among(w->kind, kinds[i].kind)) {
            kinds[i].warn(w, out);
            return;
        }
}
