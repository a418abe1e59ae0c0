/* builtin.c - which checks look at which kind. */
#include "builtin/builtin.h"

#include <string.h>

#include "builtin/kinds.h"
#include "builtin/pod.h"

static void check_pod(const kl__write *w) { kl__check_pod(w->causes, w->sub, w->old, w->o); }

/* The role of a binding is for life. */
static void check_role_ref(const kl__write *w)
{
    static const char *const members[][2] = {{"APIGroup", "apiGroup"}, {"Kind", "kind"}, {"Name", "name"}};
    const kl_value *ref = kl_value_get(w->o, "roleRef");
    if (!*kl__text(ref, "name"))
        kl__say_required(w->causes, KL_IN(KL_IN(NULL, "roleRef"), "name"), "");
    if (!w->old || kl_value_equal(kl_value_get(w->old, "roleRef"), ref))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < 3; i++)
        kl_build_kstr(b, members[i][0], kl__text(ref, members[i][1]));
    kl_build_end(b);
    const kl_value *shown = kl_builder_done(b);
    kl__say_invalid(w->causes, KL_IN(NULL, "roleRef"), shown, "cannot change roleRef");
    kl_value_unref(shown);
}

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
    {"rbac.authorization.k8s.io/rolebindings", check_role_ref},
    {"rbac.authorization.k8s.io/clusterrolebindings", check_role_ref},
    {"storage.k8s.io/storageclasses", check_class},
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
