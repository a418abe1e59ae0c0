/* defaults.c - defaults of built-in objects, as in kube-apiserver. Here: pods and the workloads that create
 * them, services, claims, secrets. */
#include "builtin/defaults.h"
#include "builtin/fill.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/quantity.h"
#include "schema/edit.h"
#include "value/edited.h"

/* ------------------------------------------------------------------ pods */

static void port(const kl_value **p) { kl__put_str(p, "protocol", "TCP"); }

static void http_get(const kl_value **h)
{
    kl__put_str(h, "path", "/");
    kl__put_str(h, "scheme", "HTTP");
}

static void probe(const kl_value **p)
{
    kl__inside(p, "httpGet", http_get);
    kl__put_int(p, "timeoutSeconds", 1);
    kl__put_int(p, "periodSeconds", 10);
    kl__put_int(p, "successThreshold", 1);
    kl__put_int(p, "failureThreshold", 3);
}

static void limits_are_requests(const kl_value **resources)
{
    kl_edited e = {.base = kl_value_get(*resources, "requests")};
    kl_edited_fill(&e, kl_value_get(*resources, "limits"));
    if (e.len)
        KL_EDIT(resources, kl_edited_done(&e), "requests");
}

static void field_ref(const kl_value **r) { kl__put_str(r, "apiVersion", "v1"); }
static void value_from(const kl_value **v) { kl__inside(v, "fieldRef", field_ref); }
static void env(const kl_value **e) { kl__inside(e, "valueFrom", value_from); }

static const char *pull_policy(const char *image)
{
    const char *slash = image ? strrchr(image, '/') : NULL,
               *tag = image ? strrchr(slash ? slash : image, ':') : NULL;
    if (image && strchr(image, '@'))
        return "IfNotPresent";
    return !tag || !strcmp(tag, ":latest") ? "Always" : "IfNotPresent";
}

static void container(const kl_value **c)
{
    kl__each_inside(c, "ports", port);
    kl__each_inside(c, "env", env);
    kl__inside(c, "livenessProbe", probe);
    kl__inside(c, "readinessProbe", probe);
    kl__inside(c, "startupProbe", probe);
    kl__put_str(c, "terminationMessagePath", "/dev/termination-log");
    kl__put_str(c, "terminationMessagePolicy", "File");
    kl__put_str(c, "imagePullPolicy", pull_policy(kl_value_str(kl_value_get(*c, "image"))));
}

static void mode420(const kl_value **v) { kl__put_int(v, "defaultMode", 420); }
static void downward_item(const kl_value **i) { kl__inside(i, "fieldRef", field_ref); }
static void downward(const kl_value **v)
{
    mode420(v);
    kl__each_inside(v, "items", downward_item);
}
static void token(const kl_value **t) { kl__put_int(t, "expirationSeconds", 3600); }
static void downward_source(const kl_value **v) { kl__each_inside(v, "items", downward_item); }
static void projection(const kl_value **s)
{
    kl__inside(s, "serviceAccountToken", token);
    kl__inside(s, "downwardAPI", downward_source);
}
static void projected(const kl_value **v)
{
    mode420(v);
    kl__each_inside(v, "sources", projection);
}
static void any_path(const kl_value **v) { kl__put_str(v, "type", ""); }
static void claim_spec(const kl_value **s) { kl__put_str(s, "volumeMode", "Filesystem"); }
static void ephemeral_claim(const kl_value **t) { kl__inside(t, "spec", claim_spec); }
static void ephemeral(const kl_value **v) { kl__inside(v, "volumeClaimTemplate", ephemeral_claim); }
static void volume(const kl_value **v)
{
    kl__inside(v, "ephemeral", ephemeral);
    kl__inside(v, "hostPath", any_path);
    kl__inside(v, "secret", mode420);
    kl__inside(v, "configMap", mode420);
    kl__inside(v, "projected", projected);
    kl__inside(v, "downwardAPI", downward);
    if (kl_value_len(*v) == 1)
        kl__put_object(v, "emptyDir");
}

static void template_spec(const kl_value **spec)
{
    kl__each_inside(spec, "containers", container);
    kl__each_inside(spec, "initContainers", container);
    kl__each_inside(spec, "ephemeralContainers", container);
    kl__each_inside(spec, "volumes", volume);
    kl__put_str(spec, "restartPolicy", "Always");
    kl__put_int(spec, "terminationGracePeriodSeconds", 30);
    kl__put_str(spec, "dnsPolicy", "ClusterFirst");
    kl__put_object(spec, "securityContext");
    kl__put_str(spec, "schedulerName", "default-scheduler");
    const char *sa = kl_value_str(kl_value_get(*spec, "serviceAccountName")),
               *old = kl_value_str(kl_value_get(*spec, "serviceAccount"));
    if (sa && !old)
        kl__put_str(spec, "serviceAccount", sa);
    else if (old && !sa)
        kl__put_str(spec, "serviceAccountName", old);
}

/* Only for pods: a template stays as it was given. */
static void pod_container(const kl_value **c) { kl__inside(c, "resources", limits_are_requests); }

/* On the host's network, hostPort defaults to containerPort. */
static void host_port(const kl_value **p)
{
    const kl_value *number = kl_value_get(*p, "containerPort");
    if (number && kl__absent(*p, "hostPort"))
        KL_EDIT(p, kl_value_ref(number), "hostPort");
}
static void host_ports(const kl_value **c) { kl__each_inside(c, "ports", host_port); }

static void pod_spec(const kl_value **spec)
{
    template_spec(spec);
    kl__each_inside(spec, "containers", pod_container);
    kl__each_inside(spec, "initContainers", pod_container);
    if (kl_value_bool(kl_value_get(*spec, "hostNetwork"), false)) {
        kl__each_inside(spec, "containers", host_ports);
        kl__each_inside(spec, "initContainers", host_ports);
    }
    kl__put_bool(spec, "enableServiceLinks", true);
}

static void template(const kl_value **t) { kl__inside(t, "spec", template_spec); }

void kl__pod_template_defaults(const kl_value **o) { kl__inside(o, "template", template); }

/* "Guaranteed", "Burstable" or "BestEffort" by the containers' cpu and memory. */
const char *kl__pod_qos(const kl_value *pod)
{
    static const char *const lists[] = {"containers", "initContainers"}, *const names[] = {"cpu", "memory"};
    bool any = false, guaranteed = true;
    for (size_t l = 0; l < 2; l++) {
        const kl_value *list = kl_value_at(pod, "spec", lists[l], NULL);
        for (size_t i = 0; i < kl_value_len(list); i++)
            for (size_t k = 0; k < 2; k++) {
                const kl_value *c = kl_value_item(list, i);
                const kl_value *request = kl_value_at(c, "resources", "requests", names[k], NULL),
                               *limit = kl_value_at(c, "resources", "limits", names[k], NULL);
                any = any || request || limit;
                guaranteed = guaranteed && limit && (!request || kl_value_equal(request, limit));
            }
    }
    return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

/* ------------------------------------------------------------------ the other kinds */

static void rolling_deployment(const kl_value **r)
{
    kl__put_str(r, "maxUnavailable", "25%");
    kl__put_str(r, "maxSurge", "25%");
}
static void deployment_strategy(const kl_value **s)
{
    kl__put_str(s, "type", "RollingUpdate");
    const char *type = kl_value_str(kl_value_get(*s, "type"));
    if (type && !strcmp(type, "RollingUpdate")) {
        kl__put_object(s, "rollingUpdate");
        kl__inside(s, "rollingUpdate", rolling_deployment);
    }
}
static void deployment_spec(const kl_value **s)
{
    kl__put_int(s, "replicas", 1);
    kl__put_object(s, "strategy");
    kl__inside(s, "strategy", deployment_strategy);
    kl__inside(s, "template", template);
    kl__put_int(s, "revisionHistoryLimit", 10);
    kl__put_int(s, "progressDeadlineSeconds", 600);
}
static void replica_spec(const kl_value **s)
{
    kl__put_int(s, "replicas", 1);
    kl__inside(s, "template", template);
}
static void rolling_set(const kl_value **r) { kl__put_int(r, "partition", 0); }
static void set_strategy(const kl_value **s)
{
    if (kl__absent(*s, "type")) {
        kl__put_str(s, "type", "RollingUpdate");
        kl__put_object(s, "rollingUpdate");
    }
    const char *type = kl_value_str(kl_value_get(*s, "type"));
    if (type && !strcmp(type, "RollingUpdate"))
        kl__inside(s, "rollingUpdate", rolling_set);
}
static void claim_retention(const kl_value **p)
{
    kl__put_str(p, "whenDeleted", "Retain");
    kl__put_str(p, "whenScaled", "Retain");
}
static void claim_template(const kl_value **c)
{
    kl__put_str(c, "apiVersion", "v1");
    kl__put_str(c, "kind", "PersistentVolumeClaim");
    kl__inside(c, "spec", claim_spec);
    if (!kl_value_at(*c, "status", "phase", NULL))
        KL_EDIT(c, kl_value_of_str("Pending"), "status", "phase");
}
static void stateful_spec(const kl_value **s)
{
    replica_spec(s);
    kl__each_inside(s, "volumeClaimTemplates", claim_template);
    kl__put_str(s, "podManagementPolicy", "OrderedReady");
    kl__put_object(s, "updateStrategy");
    kl__inside(s, "updateStrategy", set_strategy);
    kl__put_int(s, "revisionHistoryLimit", 10);
    kl__put_object(s, "persistentVolumeClaimRetentionPolicy");
    kl__inside(s, "persistentVolumeClaimRetentionPolicy", claim_retention);
}
static void rolling_daemon(const kl_value **r)
{
    kl__put_int(r, "maxUnavailable", 1);
    kl__put_int(r, "maxSurge", 0);
}
static void daemon_strategy(const kl_value **s)
{
    kl__put_str(s, "type", "RollingUpdate");
    const char *type = kl_value_str(kl_value_get(*s, "type"));
    if (type && !strcmp(type, "RollingUpdate")) {
        kl__put_object(s, "rollingUpdate");
        kl__inside(s, "rollingUpdate", rolling_daemon);
    }
}
static void daemon_spec(const kl_value **s)
{
    kl__inside(s, "template", template);
    kl__put_object(s, "updateStrategy");
    kl__inside(s, "updateStrategy", daemon_strategy);
    kl__put_int(s, "revisionHistoryLimit", 10);
}
static void pod_condition(const kl_value **p)
{
    if (!kl_value_len(kl_value_get(*p, "status")))
        KL_EDIT(p, kl_value_of_str("True"), "status");
}
static void failure_rule(const kl_value **r) { kl__each_inside(r, "onPodConditions", pod_condition); }
static void failure_policy(const kl_value **p) { kl__each_inside(p, "rules", failure_rule); }
static void job_spec(const kl_value **s)
{
    if (kl__absent(*s, "completions") && kl__absent(*s, "parallelism"))
        kl__put_int(s, "completions", 1);
    kl__put_int(s, "parallelism", 1);
    kl__put_int(s, "backoffLimit", kl__absent(*s, "backoffLimitPerIndex") ? 6 : INT32_MAX);
    kl__put_str(s, "completionMode", "NonIndexed");
    kl__put_bool(s, "suspend", false);
    kl__put_str(
        s, "podReplacementPolicy", kl__absent(*s, "podFailurePolicy") ? "TerminatingOrFailed" : "Failed");
    kl__put_bool(s, "manualSelector", false);
    kl__inside(s, "podFailurePolicy", failure_policy);
    kl__inside(s, "template", template);
}
static void cron_pods(const kl_value **s)
{
    kl__inside(s, "podFailurePolicy", failure_policy);
    kl__inside(s, "template", template);
}
static void cron_template(const kl_value **t) { kl__inside(t, "spec", cron_pods); }
static void cron_job(const kl_value **s)
{
    kl__put_str(s, "concurrencyPolicy", "Allow");
    kl__put_bool(s, "suspend", false);
    kl__put_int(s, "successfulJobsHistoryLimit", 3);
    kl__put_int(s, "failedJobsHistoryLimit", 1);
    kl__inside(s, "jobTemplate", cron_template);
}
static void service_port(const kl_value **p)
{
    kl__put_str(p, "protocol", "TCP");
    const kl_value *number = kl_value_get(*p, "port"), *target = kl_value_get(*p, "targetPort");
    const char *name = kl_value_str(target);
    bool none = !target || (name ? !*name : !kl_value_int_at(target, 0, NULL));
    if (number && none)
        KL_EDIT(p, kl_value_ref(number), "targetPort");
}
/* With session affinity, the default timeout is three hours. */
static void session_affinity(const kl_value **s)
{
    const char *affinity = kl_value_str(kl_value_get(*s, "sessionAffinity"));
    if (affinity && !strcmp(affinity, "None") && !kl__absent(*s, "sessionAffinityConfig"))
        KL_CUT(s, "sessionAffinityConfig");
    if (affinity && !strcmp(affinity, "ClientIP")
        && !kl_value_at(*s, "sessionAffinityConfig", "clientIP", "timeoutSeconds", NULL))
        KL_EDIT(s, kl_value_of_int(10800), "sessionAffinityConfig", "clientIP", "timeoutSeconds");
}
static void service_spec(const kl_value **s)
{
    kl__put_str(s, "sessionAffinity", "None");
    session_affinity(s);
    kl__put_str(s, "type", "ClusterIP");
    kl__each_inside(s, "ports", service_port);
    const char *type = kl_value_str(kl_value_get(*s, "type"));
    if (!type)
        return;
    bool node = !strcmp(type, "NodePort"), balanced = !strcmp(type, "LoadBalancer"),
         plain = !strcmp(type, "ClusterIP");
    if (node || balanced || (plain && kl_value_len(kl_value_get(*s, "externalIPs"))))
        kl__put_str(s, "externalTrafficPolicy", "Cluster");
    if (node || balanced || plain)
        kl__put_str(s, "internalTrafficPolicy", "Cluster");
    if (balanced)
        kl__put_bool(s, "allocateLoadBalancerNodePorts", true);
}
static void ingress_mode(const kl_value **i)
{
    if (kl_value_get(*i, "ip"))
        kl__put_str(i, "ipMode", "VIP");
}
static void balancer_ingress(const kl_value **b) { kl__each_inside(b, "ingress", ingress_mode); }
static void service_status(const kl_value **s) { kl__inside(s, "loadBalancer", balancer_ingress); }

static const struct {
    const char *group, *plural;
    kl__edit_fn *spec;
} specs[] = {
    {"", "pods", pod_spec},
    {"", "replicationcontrollers", replica_spec},
    {"", "services", service_spec},
    {"", "persistentvolumeclaims", claim_spec},
    {"apps", "deployments", deployment_spec},
    {"apps", "replicasets", replica_spec},
    {"apps", "statefulsets", stateful_spec},
    {"apps", "daemonsets", daemon_spec},
    {"batch", "jobs", job_spec},
    {"batch", "cronjobs", cron_job},
};

/* Members that Go writes although they are zero. */
static const struct {
    const char *group, *plural, *object, *numbers[5];
} statuses[] = {
    {"", "services", "loadBalancer", {NULL}},
    {"networking.k8s.io", "ingresses", "loadBalancer", {NULL}},
    {"", "replicationcontrollers", NULL, {"replicas"}},
    {"apps", "replicasets", NULL, {"replicas"}},
    {"apps", "statefulsets", NULL, {"availableReplicas", "replicas"}},
    {"apps", "daemonsets", NULL,
        {"currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"}},
    {"policy", "poddisruptionbudgets", NULL,
        {"currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"}},
};

const kl_value *kl__empty_status(const char *group, const char *plural)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (strcmp(statuses[i].group, group) || strcmp(statuses[i].plural, plural))
            continue;
        if (statuses[i].object) {
            kl_build_key(b, statuses[i].object);
            kl_build_object(b);
            kl_build_end(b);
        }
        for (size_t j = 0; statuses[i].numbers[j]; j++)
            kl_build_kint(b, statuses[i].numbers[j], 0);
    }
    if (!strcmp(group, "storage.k8s.io") && !strcmp(plural, "volumeattachments")) {
        kl_build_key(b, "attached");
        kl_build_bool(b, false);
    }
    if (!strcmp(group, "autoscaling") && !strcmp(plural, "horizontalpodautoscalers")) {
        kl_build_key(b, "currentMetrics");
        kl_build_null(b);
        kl_build_kint(b, "desiredReplicas", 0);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* stringData is write-only: it is merged into data. */
static void secret(const kl_value **o)
{
    kl__put_str(o, "type", "Opaque");
    const kl_value *data = kl_secret_data(*o);
    if (data)
        KL_EDIT(o, data, "data");
    if (kl_value_get(*o, "stringData"))
        KL_CUT(o, "stringData");
}

/* Its labels and its selector default to the labels of its pods. */
static void controller_labels(const kl_value **o)
{
    const kl_value *labels = kl_value_at(*o, "spec", "template", "metadata", "labels", NULL);
    if (!labels)
        return;
    if (!kl_value_len(kl_value_at(*o, "spec", "selector", NULL)))
        KL_EDIT(o, kl_value_ref(labels), "spec", "selector");
    if (!kl_value_len(kl_value_at(*o, "metadata", "labels", NULL)))
        KL_EDIT(o, kl_value_ref(labels), "metadata", "labels");
}

void kl__defaults(const char *group, const char *plural, const kl_value **o)
{
    if (!*group && !strcmp(plural, "services"))
        kl__inside(o, "status", service_status);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        if (!strcmp(specs[i].group, group) && !strcmp(specs[i].plural, plural))
            kl__inside(o, "spec", specs[i].spec);
    if (!*group && !strcmp(plural, "secrets"))
        secret(o);
    if (!*group && !strcmp(plural, "replicationcontrollers"))
        controller_labels(o);
    kl__defaults_other(group, plural, o);
}
