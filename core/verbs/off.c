/* off.c - fields of features that are off in Kubernetes 1.34; those of devices are in core/devices. */
#include "verbs/off.h"

#include <string.h>
#include "builtin/fill.h"
#include "devices/devices.h"
#include "schema/edit.h"

/* ContainerRestartRules: a container has no rules, and no policy but that of a sidecar. */
static void container(const kl_value **c)
{
    static const char *const off[] = {"restartPolicy", "restartPolicyRules", NULL};
    kl__cut(c, off);
}
static void init_container(const kl_value **c)
{
    static const char *const rules[] = {"restartPolicyRules", NULL};
    const char *policy = kl_value_str_at(*c, "restartPolicy", NULL);
    if (policy && !strcmp(policy, "Always"))
        kl__cut(c, rules);
    else
        container(c);
}
static void pod_spec(const kl_value **spec)
{
    kl__each_inside(spec, "containers", container);
    kl__each_inside(spec, "initContainers", init_container);
    kl__each_inside(spec, "ephemeralContainers", container);
}
static void template(const kl_value **t) { kl__inside(t, "spec", pod_spec); }
static void workload(const kl_value **spec) { kl__inside(spec, "template", template); }
static void job_template(const kl_value **t) { kl__inside(t, "spec", workload); }
static void cron_job(const kl_value **spec) { kl__inside(spec, "jobTemplate", job_template); }

/* What no feature brings back: a ServiceAccount keeps the names of its Secrets alone. */
static void secret(const kl_value **reference)
{
    const kl_value *name = kl_value_ref(kl_value_get(*reference, "name"));
    kl_value_unref(*reference);
    *reference = kl_value_empty(KL_OBJECT);
    KL_EDIT(reference, name, "name");
}

void kl__drop_off(const kl__kind *k, const kl_value **o)
{
    static const struct {
        const char *kinds, *member;
        kl__edit_fn *drop;
    } nested[] = {
        {"/pods", "spec", pod_spec},
        {"/podtemplates", "template", template},
        {"/replicationcontrollers apps/deployments apps/replicasets apps/statefulsets apps/daemonsets "
         "batch/jobs",
            "spec", workload},
        {"batch/cronjobs", "spec", cron_job},
    };
    static const struct {
        const char *kinds, *member, *off;
    } single[] = {
        /* CoordinatedLeaderElection */
        {"coordination.k8s.io/leases", "spec", "strategy"},
        {"coordination.k8s.io/leases", "spec", "preferredHolder"},
        /* DeploymentReplicaSetTerminatingReplicas */
        {"apps/deployments apps/replicasets", "status", "terminatingReplicas"},
        /* MutableCSINodeAllocatableCount */
        {"storage.k8s.io/csidrivers", "spec", "nodeAllocatableUpdatePeriodSeconds"},
        /* configuration of kubelets by the API, which is gone */
        {"/nodes", "spec", "configSource"},
        /* DRAExtendedResource */
        {"/pods", "status", "extendedResourceClaimStatus"},
    };
    if (kl__kind_among(k, "/serviceaccounts"))
        kl__each_inside(o, "secrets", secret);
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++)
        if (kl__kind_among(k, nested[i].kinds))
            kl__inside(o, nested[i].member, nested[i].drop);
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (!kl__absent(kl_value_get(*o, single[i].member), single[i].off)
            && kl__kind_among(k, single[i].kinds))
            KL_CUT(o, single[i].member, single[i].off);
    kl__devices_drop(k, o);
}
