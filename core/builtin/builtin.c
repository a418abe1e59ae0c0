/* builtin.c - the table of checks by kind. */
#include "builtin/builtin.h"

#include <string.h>

#include "builtin/kinds.h"
#include "builtin/pod.h"

static void check_pod(const kl__write *w) { kl__check_pod(w->causes, w->sub, w->old, w->o); }

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
    {"/podtemplates", kl__check_pod_template},
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
    {"storage.k8s.io/storageclasses", kl__check_storage_class},
    {"storage.k8s.io/volumeattributesclasses", kl__check_attributes_class},
    {"storage.k8s.io/csistoragecapacities", kl__check_csi_capacity},
    {"storage.k8s.io/csidrivers", kl__check_csi_driver},
    {"storage.k8s.io/csinodes", kl__check_csi_node},
    {"storage.k8s.io/volumeattachments", kl__check_attachment},
    {"/persistentvolumes", kl__check_volume},
    {"networking.k8s.io/ingresses", kl__check_ingress},
    {"networking.k8s.io/ingressclasses", kl__check_ingress_class},
    {"discovery.k8s.io/endpointslices", kl__check_slice},
    {"/endpoints", kl__check_endpoints},
    {"coordination.k8s.io/leases", kl__check_lease},
    {"apps/controllerrevisions", kl__check_revision},
    {"scheduling.k8s.io/priorityclasses", kl__check_priority_class},
    {"node.k8s.io/runtimeclasses", kl__check_runtime_class},
    {"/namespaces", kl__check_namespace},
    {"/nodes", kl__check_node},
    {"/limitranges", kl__check_limit_range},
    {"/resourcequotas", kl__check_quota},
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
