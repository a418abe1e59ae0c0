/* off.c - fields of features that are off in Kubernetes 1.34: of containers and Leases here, of devices in
 * core/devices. */
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

/* CoordinatedLeaderElection */
static void lease(const kl_value **spec)
{
    static const char *const off[] = {"strategy", "preferredHolder", NULL};
    kl__cut(spec, off);
}

/* DeploymentReplicaSetTerminatingReplicas */
static void counters(const kl_value **status)
{
    static const char *const off[] = {"terminatingReplicas", NULL};
    kl__cut(status, off);
}

/* MutableCSINodeAllocatableCount */
static void csi_driver(const kl_value **spec)
{
    static const char *const off[] = {"nodeAllocatableUpdatePeriodSeconds", NULL};
    kl__cut(spec, off);
}

/* DRAExtendedResource */
static void pod_status(const kl_value **status)
{
    static const char *const off[] = {"extendedResourceClaimStatus", NULL};
    kl__cut(status, off);
}

/* Configuration of kubelets by the API, which is gone. */
static void node(const kl_value **spec)
{
    static const char *const off[] = {"configSource", NULL};
    kl__cut(spec, off);
}

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
    } kinds[] = {
        {"/pods", "spec", pod_spec},
        {"/podtemplates", "template", template},
        {"/replicationcontrollers apps/deployments apps/replicasets apps/statefulsets apps/daemonsets "
         "batch/jobs",
            "spec", workload},
        {"batch/cronjobs", "spec", cron_job},
        {"coordination.k8s.io/leases", "spec", lease},
        {"apps/deployments apps/replicasets", "status", counters},
        {"storage.k8s.io/csidrivers", "spec", csi_driver},
        {"/nodes", "spec", node},
        {"/pods", "status", pod_status},
    };
    if (kl__kind_among(k, "/serviceaccounts"))
        kl__each_inside(o, "secrets", secret);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kl__kind_among(k, kinds[i].kinds))
            kl__inside(o, kinds[i].member, kinds[i].drop);
    kl__devices_drop(k, o);
}
