/* defaults.c - what kube-apiserver fills into built-in objects that leave it out: the fields that clients
 * read back. */
#include "builtin/defaults.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/quantity.h"
#include "schema/edit.h"

static bool absent(const kl_value *v, const char *key) { return !kl_value_get(v, key); }

static void put_str(const kl_value **o, const char *key, const char *text)
{
    if (absent(*o, key))
        KL_EDIT(o, kl_value_of_str(text), key);
}
static void put_int(const kl_value **o, const char *key, int64_t n)
{
    if (absent(*o, key))
        KL_EDIT(o, kl_value_of_int(n), key);
}
static void put_bool(const kl_value **o, const char *key, bool b)
{
    if (absent(*o, key))
        KL_EDIT(o, kl_value_of_bool(b), key);
}
static void put_object(const kl_value **o, const char *key)
{
    if (!absent(*o, key))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_end(b);
    KL_EDIT(o, kl_builder_done(b), key);
}

typedef void edit_fn(const kl_value **v);

/* Runs `edit` on the member `key` when it is there. */
static void inside(const kl_value **o, const char *key, edit_fn *edit)
{
    const kl_value *v = kl_value_get(*o, key);
    if (!v)
        return;
    const kl_value *x = kl_value_ref(v);
    edit(&x);
    if (x == v)
        kl_value_unref(x);
    else
        KL_EDIT(o, x, key);
}

static void each(const kl_value **list, edit_fn *edit)
{
    if (kl_value_type(*list) != KL_ARRAY)
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    bool same = true;
    for (size_t i = 0; i < kl_value_len(*list); i++) {
        const kl_value *v = kl_value_item(*list, i), *x = kl_value_ref(v);
        if (kl_value_type(x) == KL_OBJECT)
            edit(&x);
        same = same && x == v;
        kl_build_value(b, x);
        kl_value_unref(x);
    }
    kl_build_end(b);
    if (same)
        kl_builder_free(b);
    else
        kl__replace(list, kl_builder_done(b));
}

static void each_inside(const kl_value **o, const char *key, edit_fn *edit)
{
    const kl_value *v = kl_value_get(*o, key);
    if (!v)
        return;
    const kl_value *x = kl_value_ref(v);
    each(&x, edit);
    if (x == v)
        kl_value_unref(x);
    else
        KL_EDIT(o, x, key);
}

/* ------------------------------------------------------------------ pods */

static void port(const kl_value **p) { put_str(p, "protocol", "TCP"); }

static void http_get(const kl_value **h)
{
    put_str(h, "path", "/");
    put_str(h, "scheme", "HTTP");
}

static void probe(const kl_value **p)
{
    inside(p, "httpGet", http_get);
    put_int(p, "timeoutSeconds", 1);
    put_int(p, "periodSeconds", 10);
    put_int(p, "successThreshold", 1);
    put_int(p, "failureThreshold", 3);
}

static void limits_are_requests(const kl_value **resources)
{
    const kl_value *limits = kl_value_get(*resources, "limits");
    for (size_t i = 0; i < kl_value_len(limits); i++) {
        const char *name;
        size_t n;
        const kl_value *q = kl_value_member(limits, i, &name, &n);
        if (!kl_value_at(*resources, "requests", name, NULL))
            KL_EDIT(resources, kl_value_ref(q), "requests", name);
    }
}

static void field_ref(const kl_value **r) { put_str(r, "apiVersion", "v1"); }
static void value_from(const kl_value **v) { inside(v, "fieldRef", field_ref); }
static void env(const kl_value **e) { inside(e, "valueFrom", value_from); }

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
    each_inside(c, "ports", port);
    each_inside(c, "env", env);
    inside(c, "livenessProbe", probe);
    inside(c, "readinessProbe", probe);
    inside(c, "startupProbe", probe);
    put_str(c, "terminationMessagePath", "/dev/termination-log");
    put_str(c, "terminationMessagePolicy", "File");
    put_str(c, "imagePullPolicy", pull_policy(kl_value_str(kl_value_get(*c, "image"))));
}

/* What a regular container may not have: ContainerRestartRules is off by default. */
static void main_container(const kl_value **c)
{
    if (!absent(*c, "restartPolicy"))
        KL_CUT(c, "restartPolicy");
    container(c);
}

static void mode420(const kl_value **v) { put_int(v, "defaultMode", 420); }
static void downward_item(const kl_value **i) { inside(i, "fieldRef", field_ref); }
static void downward(const kl_value **v)
{
    mode420(v);
    each_inside(v, "items", downward_item);
}
static void token(const kl_value **t) { put_int(t, "expirationSeconds", 3600); }
static void downward_source(const kl_value **v) { each_inside(v, "items", downward_item); }
static void projection(const kl_value **s)
{
    inside(s, "serviceAccountToken", token);
    inside(s, "downwardAPI", downward_source);
}
static void projected(const kl_value **v)
{
    mode420(v);
    each_inside(v, "sources", projection);
}
static void any_path(const kl_value **v) { put_str(v, "type", ""); }
static void volume(const kl_value **v)
{
    inside(v, "hostPath", any_path);
    inside(v, "secret", mode420);
    inside(v, "configMap", mode420);
    inside(v, "projected", projected);
    inside(v, "downwardAPI", downward);
    if (kl_value_len(*v) == 1)
        put_object(v, "emptyDir");
}

static void template_spec(const kl_value **spec)
{
    each_inside(spec, "containers", main_container);
    each_inside(spec, "initContainers", container);
    each_inside(spec, "ephemeralContainers", container);
    each_inside(spec, "volumes", volume);
    put_str(spec, "restartPolicy", "Always");
    put_int(spec, "terminationGracePeriodSeconds", 30);
    put_str(spec, "dnsPolicy", "ClusterFirst");
    put_object(spec, "securityContext");
    put_str(spec, "schedulerName", "default-scheduler");
    const char *sa = kl_value_str(kl_value_get(*spec, "serviceAccountName")),
               *old = kl_value_str(kl_value_get(*spec, "serviceAccount"));
    if (sa && !old)
        put_str(spec, "serviceAccount", sa);
    else if (old && !sa)
        put_str(spec, "serviceAccountName", old);
}

static void toleration(kl_builder *b, const char *key)
{
    kl_build_object(b);
    kl_build_kstr(b, "key", key);
    kl_build_kstr(b, "operator", "Exists");
    kl_build_kstr(b, "effect", "NoExecute");
    kl_build_kint(b, "tolerationSeconds", 300);
    kl_build_end(b);
}

static bool tolerates(const kl_value *list, const char *key)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *t = kl_value_item(list, i);
        const char *k = kl_value_str_at(t, "key", NULL), *effect = kl_value_str_at(t, "effect", NULL),
                   *op = kl_value_str_at(t, "operator", NULL);
        bool all_keys = (!k || !*k) && op && !strcmp(op, "Exists");
        if ((all_keys || (k && !strcmp(k, key))) && (!effect || !*effect || !strcmp(effect, "NoExecute")))
            return true;
    }
    return false;
}

/* Of pods alone: a template keeps what was asked for. */
static void pod_container(const kl_value **c) { inside(c, "resources", limits_are_requests); }

/* On the host's network a port is open as it is. */
static void host_port(const kl_value **p)
{
    const kl_value *number = kl_value_get(*p, "containerPort");
    if (number && absent(*p, "hostPort"))
        KL_EDIT(p, kl_value_ref(number), "hostPort");
}
static void host_ports(const kl_value **c) { each_inside(c, "ports", host_port); }

/* Admission's part: what DefaultTolerationSeconds adds; of the other plugins, plugins.h. */
static void pod_spec(const kl_value **spec)
{
    template_spec(spec);
    each_inside(spec, "containers", pod_container);
    each_inside(spec, "initContainers", pod_container);
    if (kl_value_bool(kl_value_get(*spec, "hostNetwork"), false)) {
        each_inside(spec, "containers", host_ports);
        each_inside(spec, "initContainers", host_ports);
    }
    put_bool(spec, "enableServiceLinks", true);
    const kl_value *have = kl_value_get(*spec, "tolerations");
    bool ready = tolerates(have, "node.kubernetes.io/not-ready"),
         reach = tolerates(have, "node.kubernetes.io/unreachable");
    if (ready && reach)
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(have); i++)
        kl_build_value(b, kl_value_item(have, i));
    if (!ready)
        toleration(b, "node.kubernetes.io/not-ready");
    if (!reach)
        toleration(b, "node.kubernetes.io/unreachable");
    kl_build_end(b);
    KL_EDIT(spec, kl_builder_done(b), "tolerations");
}

static void template(const kl_value **t) { inside(t, "spec", template_spec); }

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
    put_str(r, "maxUnavailable", "25%");
    put_str(r, "maxSurge", "25%");
}
static void deployment_strategy(const kl_value **s)
{
    put_str(s, "type", "RollingUpdate");
    const char *type = kl_value_str(kl_value_get(*s, "type"));
    if (type && !strcmp(type, "RollingUpdate")) {
        put_object(s, "rollingUpdate");
        inside(s, "rollingUpdate", rolling_deployment);
    }
}
static void deployment_spec(const kl_value **s)
{
    put_int(s, "replicas", 1);
    put_object(s, "strategy");
    inside(s, "strategy", deployment_strategy);
    inside(s, "template", template);
    put_int(s, "revisionHistoryLimit", 10);
    put_int(s, "progressDeadlineSeconds", 600);
}
static void replica_spec(const kl_value **s)
{
    put_int(s, "replicas", 1);
    inside(s, "template", template);
}
static void rolling_set(const kl_value **r) { put_int(r, "partition", 0); }
static void set_strategy(const kl_value **s)
{
    if (absent(*s, "type")) {
        put_str(s, "type", "RollingUpdate");
        put_object(s, "rollingUpdate");
    }
    const char *type = kl_value_str(kl_value_get(*s, "type"));
    if (type && !strcmp(type, "RollingUpdate"))
        inside(s, "rollingUpdate", rolling_set);
}
static void claim_retention(const kl_value **p)
{
    put_str(p, "whenDeleted", "Retain");
    put_str(p, "whenScaled", "Retain");
}
static void claim_spec(const kl_value **s) { put_str(s, "volumeMode", "Filesystem"); }
static void claim_template(const kl_value **c)
{
    put_str(c, "apiVersion", "v1");
    put_str(c, "kind", "PersistentVolumeClaim");
    inside(c, "spec", claim_spec);
    if (!kl_value_at(*c, "status", "phase", NULL))
        KL_EDIT(c, kl_value_of_str("Pending"), "status", "phase");
}
static void stateful_spec(const kl_value **s)
{
    replica_spec(s);
    each_inside(s, "volumeClaimTemplates", claim_template);
    put_str(s, "podManagementPolicy", "OrderedReady");
    put_object(s, "updateStrategy");
    inside(s, "updateStrategy", set_strategy);
    put_int(s, "revisionHistoryLimit", 10);
    put_object(s, "persistentVolumeClaimRetentionPolicy");
    inside(s, "persistentVolumeClaimRetentionPolicy", claim_retention);
}
static void rolling_daemon(const kl_value **r)
{
    put_int(r, "maxUnavailable", 1);
    put_int(r, "maxSurge", 0);
}
static void daemon_strategy(const kl_value **s)
{
    put_str(s, "type", "RollingUpdate");
    const char *type = kl_value_str(kl_value_get(*s, "type"));
    if (type && !strcmp(type, "RollingUpdate")) {
        put_object(s, "rollingUpdate");
        inside(s, "rollingUpdate", rolling_daemon);
    }
}
static void daemon_spec(const kl_value **s)
{
    inside(s, "template", template);
    put_object(s, "updateStrategy");
    inside(s, "updateStrategy", daemon_strategy);
    put_int(s, "revisionHistoryLimit", 10);
}
static void pod_condition(const kl_value **p) { put_str(p, "status", "True"); }
static void failure_rule(const kl_value **r) { each_inside(r, "onPodConditions", pod_condition); }
static void failure_policy(const kl_value **p) { each_inside(p, "rules", failure_rule); }
static void job_spec(const kl_value **s)
{
    if (absent(*s, "completions") && absent(*s, "parallelism"))
        put_int(s, "completions", 1);
    put_int(s, "parallelism", 1);
    put_int(s, "backoffLimit", absent(*s, "backoffLimitPerIndex") ? 6 : INT32_MAX);
    put_str(s, "completionMode", "NonIndexed");
    put_bool(s, "suspend", false);
    put_str(s, "podReplacementPolicy", absent(*s, "podFailurePolicy") ? "TerminatingOrFailed" : "Failed");
    put_bool(s, "manualSelector", false);
    inside(s, "podFailurePolicy", failure_policy);
    inside(s, "template", template);
}
static void cron_pods(const kl_value **s)
{
    inside(s, "podFailurePolicy", failure_policy);
    inside(s, "template", template);
}
static void cron_template(const kl_value **t) { inside(t, "spec", cron_pods); }
static void cron_job(const kl_value **s)
{
    put_str(s, "concurrencyPolicy", "Allow");
    put_bool(s, "suspend", false);
    put_int(s, "successfulJobsHistoryLimit", 3);
    put_int(s, "failedJobsHistoryLimit", 1);
    inside(s, "jobTemplate", cron_template);
}
static void service_port(const kl_value **p)
{
    put_str(p, "protocol", "TCP");
    const kl_value *number = kl_value_get(*p, "port"), *target = kl_value_get(*p, "targetPort");
    const char *name = kl_value_str(target);
    bool none = !target || (name ? !*name : !kl_value_int_at(target, 0, NULL));
    if (number && none)
        KL_EDIT(p, kl_value_ref(number), "targetPort");
}
/* Three hours, where clients stay with one pod. */
static void session_affinity(const kl_value **s)
{
    const char *affinity = kl_value_str(kl_value_get(*s, "sessionAffinity"));
    if (affinity && !strcmp(affinity, "None") && !absent(*s, "sessionAffinityConfig"))
        KL_CUT(s, "sessionAffinityConfig");
    if (affinity && !strcmp(affinity, "ClientIP")
        && !kl_value_at(*s, "sessionAffinityConfig", "clientIP", "timeoutSeconds", NULL))
        KL_EDIT(s, kl_value_of_int(10800), "sessionAffinityConfig", "clientIP", "timeoutSeconds");
}
static void service_spec(const kl_value **s)
{
    put_str(s, "sessionAffinity", "None");
    session_affinity(s);
    put_str(s, "type", "ClusterIP");
    each_inside(s, "ports", service_port);
    const char *type = kl_value_str(kl_value_get(*s, "type"));
    if (!type)
        return;
    bool node = !strcmp(type, "NodePort"), balanced = !strcmp(type, "LoadBalancer"),
         plain = !strcmp(type, "ClusterIP");
    if (node || balanced || (plain && kl_value_len(kl_value_get(*s, "externalIPs"))))
        put_str(s, "externalTrafficPolicy", "Cluster");
    if (node || balanced || plain)
        put_str(s, "internalTrafficPolicy", "Cluster");
    if (balanced)
        put_bool(s, "allocateLoadBalancerNodePorts", true);
}
static void volume_spec(const kl_value **s)
{
    inside(s, "hostPath", any_path);
    put_str(s, "persistentVolumeReclaimPolicy", "Retain");
    put_str(s, "volumeMode", "Filesystem");
}

static void policy_rule(const kl_value **r) { each_inside(r, "ports", port); }
static void policy_spec(const kl_value **s)
{
    each_inside(s, "ingress", policy_rule);
    each_inside(s, "egress", policy_rule);
    if (!absent(*s, "policyTypes"))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_str(b, "Ingress");
    if (kl_value_len(kl_value_get(*s, "egress")))
        kl_build_str(b, "Egress");
    kl_build_end(b);
    KL_EDIT(s, kl_builder_done(b), "policyTypes");
}

/* What a container may have at most is what it has, and asks for. */
static void limit_item(const kl_value **l)
{
    static const char *const from[] = {"max", "default", "min"},
                             *const to[] = {"default", "defaultRequest", "defaultRequest"};
    const char *type = kl_value_str(kl_value_get(*l, "type"));
    for (size_t step = 0; step < 3 && type && !strcmp(type, "Container"); step++) {
        const kl_value *have = kl_value_ref(kl_value_get(*l, from[step]));
        for (size_t i = 0; i < kl_value_len(have); i++) {
            const char *name;
            size_t n;
            const kl_value *q = kl_value_member(have, i, &name, &n);
            if (!kl_value_at(*l, to[step], name, NULL))
                KL_EDIT(l, kl_value_ref(q), to[step], name);
        }
        kl_value_unref(have);
    }
}
static void limit_spec(const kl_value **s) { each_inside(s, "limits", limit_item); }

/* The first of the ranges is also said alone. */
static void node_spec(const kl_value **s)
{
    const kl_value *one = kl_value_get(*s, "podCIDR");
    if (!one || !absent(*s, "podCIDRs"))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_value(b, one);
    kl_build_end(b);
    KL_EDIT(s, kl_builder_done(b), "podCIDRs");
}

/* Four fifths of the processors that were asked for, where nothing else is said. */
static void scaler_spec(const kl_value **s)
{
    put_int(s, "minReplicas", 1);
    if (kl_value_len(kl_value_get(*s, "metrics")))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "type", "Resource");
    kl_build_key(b, "resource");
    kl_build_object(b);
    kl_build_kstr(b, "name", "cpu");
    kl_build_key(b, "target");
    kl_build_object(b);
    kl_build_kstr(b, "type", "Utilization");
    kl_build_kint(b, "averageUtilization", 80);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    KL_EDIT(s, kl_builder_done(b), "metrics");
}

static void subject(const kl_value **s)
{
    const char *kind = kl_value_str(kl_value_get(*s, "kind")),
               *group = kl_value_str(kl_value_get(*s, "apiGroup"));
    if (kind && (!strcmp(kind, "User") || !strcmp(kind, "Group")) && (!group || !*group))
        KL_EDIT(s, kl_value_of_str("rbac.authorization.k8s.io"), "apiGroup");
}

static void role_ref(const kl_value **r)
{
    const char *group = kl_value_str(kl_value_get(*r, "apiGroup"));
    if (!group || !*group)
        KL_EDIT(r, kl_value_of_str("rbac.authorization.k8s.io"), "apiGroup");
}

static void binding(const kl_value **o)
{
    put_object(o, "roleRef");
    inside(o, "roleRef", role_ref);
    each_inside(o, "subjects", subject);
}

static void admission_rule(const kl_value **o) { put_str(o, "scope", "*"); }

static void match_resources(const kl_value **o)
{
    put_str(o, "matchPolicy", "Equivalent");
    put_object(o, "namespaceSelector");
    put_object(o, "objectSelector");
    each_inside(o, "resourceRules", admission_rule);
    each_inside(o, "excludeResourceRules", admission_rule);
}

static void admission_policy_spec(const kl_value **o)
{
    put_str(o, "failurePolicy", "Fail");
    inside(o, "matchConstraints", match_resources);
}

static void admission_binding_spec(const kl_value **o) { inside(o, "matchResources", match_resources); }

static const struct {
    const char *group, *plural;
    edit_fn *spec;
} specs[] = {
    {"", "pods", pod_spec},
    {"", "replicationcontrollers", replica_spec},
    {"", "services", service_spec},
    {"", "persistentvolumeclaims", claim_spec},
    {"", "persistentvolumes", volume_spec},
    {"apps", "deployments", deployment_spec},
    {"apps", "replicasets", replica_spec},
    {"apps", "statefulsets", stateful_spec},
    {"apps", "daemonsets", daemon_spec},
    {"batch", "jobs", job_spec},
    {"batch", "cronjobs", cron_job},
    {"networking.k8s.io", "networkpolicies", policy_spec},
    {"autoscaling", "horizontalpodautoscalers", scaler_spec},
    {"admissionregistration.k8s.io", "validatingadmissionpolicies", admission_policy_spec},
    {"admissionregistration.k8s.io", "validatingadmissionpolicybindings", admission_binding_spec},
    {"", "limitranges", limit_spec},
    {"", "nodes", node_spec},
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
    if (!strcmp(group, "autoscaling") && !strcmp(plural, "horizontalpodautoscalers")) {
        kl_build_key(b, "currentMetrics");
        kl_build_null(b);
        kl_build_kint(b, "desiredReplicas", 0);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static char *base64(const char *s, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = kl_zalloc((n + 2) / 3 * 4 + 1), *p = out;
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)(unsigned char)s[i] << 16
            | (i + 1 < n ? (unsigned)(unsigned char)s[i + 1] << 8 : 0)
            | (i + 2 < n ? (unsigned char)s[i + 2] : 0);
        *p++ = digits[v >> 18];
        *p++ = digits[v >> 12 & 63];
        *p++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
        *p++ = i + 2 < n ? digits[v & 63] : '=';
    }
    return out;
}

/* stringData is written only: it ends in data. */
static void secret(const kl_value **o)
{
    put_str(o, "type", "Opaque");
    const kl_value *plain = kl_value_get(*o, "stringData");
    if (!plain)
        return;
    plain = kl_value_ref(plain);
    for (size_t i = 0; i < kl_value_len(plain); i++) {
        const char *key;
        size_t n, len;
        const char *text = kl_value_strn(kl_value_member(plain, i, &key, &n), &len);
        if (!text)
            continue;
        char *coded = base64(text, len);
        KL_EDIT(o, kl_value_of_str(coded), "data", key);
        kl_free(coded);
    }
    kl_value_unref(plain);
    KL_CUT(o, "stringData");
}

/* The labels of its pods are its own, and select them, where it says nothing else. */
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

static void namespace(const kl_value **o)
{
    const char *name = kl_object_name(*o);
    if (name && !kl_object_label(*o, "kubernetes.io/metadata.name"))
        KL_EDIT(o, kl_value_of_str(name), "metadata", "labels", "kubernetes.io/metadata.name");
}

void kl__defaults(const char *group, const char *plural, const kl_value **o)
{
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        if (!strcmp(specs[i].group, group) && !strcmp(specs[i].plural, plural))
            inside(o, "spec", specs[i].spec);
    if (!strcmp(group, "storage.k8s.io") && !strcmp(plural, "storageclasses")) {
        put_str(o, "reclaimPolicy", "Delete");
        put_str(o, "volumeBindingMode", "Immediate");
    }
    if (!*group && !strcmp(plural, "secrets"))
        secret(o);
    if (!strcmp(group, "rbac.authorization.k8s.io") && strstr(plural, "bindings"))
        binding(o);
    if (!*group && !strcmp(plural, "replicationcontrollers"))
        controller_labels(o);
    if (!*group && !strcmp(plural, "namespaces"))
    namespace(o);
    if (!*group && !strcmp(plural, "nodes") && kl_value_at(*o, "status", "capacity", NULL)
        && !kl_value_at(*o, "status", "allocatable", NULL))
        KL_EDIT(o, kl_value_ref(kl_value_at(*o, "status", "capacity", NULL)), "status", "allocatable");
}
