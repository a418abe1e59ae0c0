/* builtin.c - which checks look at which kind. */
#include "builtin/builtin.h"

#include <string.h>

#include "builtin/kinds.h"
#include "builtin/pod.h"

static void check_pod(const kl__write *w) { kl__check_pod(w->causes, w->sub, w->old, w->o); }

static void check_class(const kl__write *w) { kl__check_present(w->causes, w->o, NULL, "provisioner"); }

static const struct {
    const char *kind;
    void (*check)(const kl__write *w);
} checks[] = {
    {"/pods", check_pod},
    {"/configmaps", kl__check_data},
    {"/secrets", kl__check_data},
    {"/services", kl__check_service},
    {"/persistentvolumeclaims", kl__check_claim},
    {"/replicationcontrollers", kl__check_controller},
    {"apps/deployments", kl__check_deployment},
    {"apps/replicasets", kl__check_replica_set},
    {"apps/statefulsets", kl__check_stateful_set},
    {"apps/daemonsets", kl__check_daemon_set},
    {"batch/jobs", kl__check_job},
    {"batch/cronjobs", kl__check_cron_job},
    {"rbac.authorization.k8s.io/roles", kl__check_role},
    {"rbac.authorization.k8s.io/clusterroles", kl__check_role},
    {"rbac.authorization.k8s.io/rolebindings", kl__check_binding},
    {"rbac.authorization.k8s.io/clusterrolebindings", kl__check_binding},
    {"policy/poddisruptionbudgets", kl__check_budget},
    {"networking.k8s.io/networkpolicies", kl__check_network_policy},
    {"autoscaling/horizontalpodautoscalers", kl__check_autoscaler},
    {"storage.k8s.io/storageclasses", check_class},
    {"/events", kl__check_event},
    {"events.k8s.io/events", kl__check_event},
};

bool kl__write_same_spec(const kl__write *w)
{
    return w->old && kl_value_equal(kl_value_get(w->old, "spec"), kl_value_get(w->o, "spec"));
}

void kl__builtin_validate(const kl__write *w)
{
    if (w->sub && !strcmp(w->sub, "status")) {
        kl__check_status(w);
        return;
    }
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (kl__kind_among(w->kind, checks[i].kind)) {
            checks[i].check(w);
            return;
        }
}
