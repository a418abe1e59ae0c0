/* habits.c - how writes differ between kinds: lists of kinds, from kube-apiserver's strategies. */
#include "builtin/habits.h"

#include "model/object.h"
#include "schema/edit.h"

/* --- verbs -------------------------------------------------------------------------------- */

bool kl__habit_create_on_update(const kl__kind *k)
{
    return !k->custom
        && kl__kind_among(k,
            " coordination.k8s.io/leases /endpoints /events events.k8s.io/events /services /limitranges "
            "rbac.authorization.k8s.io/roles rbac.authorization.k8s.io/rolebindings "
            "rbac.authorization.k8s.io/clusterroles rbac.authorization.k8s.io/clusterrolebindings "
            "node.k8s.io/runtimeclasses ");
}

bool kl__habit_needs_rv(const kl__kind *k)
{
    return k->custom
        || kl__kind_among(k,
            " coordination.k8s.io/leases policy/poddisruptionbudgets "
            "apiextensions.k8s.io/customresourcedefinitions "
            "apiregistration.k8s.io/apiservices admissionregistration.k8s.io/mutatingwebhookconfigurations "
            "admissionregistration.k8s.io/validatingwebhookconfigurations "
            "admissionregistration.k8s.io/validatingadmissionpolicies "
            "admissionregistration.k8s.io/validatingadmissionpolicybindings "
            "storage.k8s.io/csidrivers storage.k8s.io/csinodes storage.k8s.io/volumeattachments "
            "storage.k8s.io/csistoragecapacities "
            "node.k8s.io/runtimeclasses ");
}

bool kl__habit_returns_deleted(const kl__kind *k)
{
    return !k->custom
        && kl__kind_among(k,
            " /pods /podtemplates /resourcequotas /services /serviceaccounts /persistentvolumeclaims "
            "/persistentvolumes storage.k8s.io/storageclasses storage.k8s.io/csidrivers "
            "storage.k8s.io/csinodes storage.k8s.io/volumeattachments "
            "storage.k8s.io/volumeattributesclasses resource.k8s.io/resourceclaims "
            "resource.k8s.io/resourceclaimtemplates resource.k8s.io/deviceclasses "
            "resource.k8s.io/resourceslices ");
}

/* --- generation --------------------------------------------------------------------------- */

typedef enum generation {
    NO_GENERATION,
    BY_SPEC,
    BY_SPEC_AND_ANNOTATIONS,
    BY_SPEC_FROM_NONE, /* a new object has none */
    BY_ALL_BUT_METADATA,
    ALWAYS_ONE
} generation;

static generation generation_rule(const kl__kind *k)
{
    if (k->custom)
        return kl__kind_sub(k, "status") ? BY_SPEC : BY_ALL_BUT_METADATA;
    if (kl__kind_among(k, "apps/deployments"))
        return BY_SPEC_AND_ANNOTATIONS;
    if (kl__kind_among(k,
            " /pods apps/replicasets apps/statefulsets apps/daemonsets /replicationcontrollers batch/jobs "
            "batch/cronjobs networking.k8s.io/ingresses "
            "networking.k8s.io/networkpolicies networking.k8s.io/ingressclasses policy/poddisruptionbudgets "
            "apiextensions.k8s.io/customresourcedefinitions "
            "resource.k8s.io/deviceclasses resource.k8s.io/resourceslices "
            "flowcontrol.apiserver.k8s.io/flowschemas "
            "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations "
            "admissionregistration.k8s.io/validatingadmissionpolicies "
            "admissionregistration.k8s.io/validatingadmissionpolicybindings "))
        return BY_SPEC;
    if (kl__kind_among(k,
            " discovery.k8s.io/endpointslices admissionregistration.k8s.io/mutatingwebhookconfigurations "
            "admissionregistration.k8s.io/validatingwebhookconfigurations /podtemplates "))
        return BY_ALL_BUT_METADATA;
    return kl__kind_among(k, "scheduling.k8s.io/priorityclasses") ? ALWAYS_ONE
        : kl__kind_among(k, "storage.k8s.io/csidrivers")          ? BY_SPEC_FROM_NONE
                                                                  : NO_GENERATION;
}

/* Whether all members are equal, except for metadata, and for status where it is a subresource. */
static bool same_content(const kl_value *a, const kl_value *b, bool status_apart)
{
    static const char *const skip[] = {"apiVersion", "kind", "metadata", "status"};
    const kl_value *x = kl_value_ref(a), *y = kl_value_ref(b);
    for (size_t i = 0; i < (status_apart ? 4u : 3u); i++) {
        KL_CUT(&x, skip[i]);
        KL_CUT(&y, skip[i]);
    }
    bool same = kl_value_equal(x, y);
    kl_value_unref(x);
    kl_value_unref(y);
    return same;
}

bool kl__generation_kept(const kl__kind *k)
{
    generation rule = generation_rule(k);
    return rule != NO_GENERATION && rule != BY_SPEC_FROM_NONE;
}

bool kl__generation_moves(const kl__kind *k, const char *sub, const kl_value *old, const kl_value *o)
{
    generation rule = generation_rule(k);
    if (sub && k->custom && rule != BY_ALL_BUT_METADATA)
        return false;
    switch (rule) {
    case BY_SPEC:
    case BY_SPEC_FROM_NONE:
        return k->custom ? !same_content(old, o, true)
                         : !kl_value_equal(kl_value_get(old, "spec"), kl_value_get(o, "spec"));
    case BY_SPEC_AND_ANNOTATIONS:
        return !kl_value_equal(kl_value_get(old, "spec"), kl_value_get(o, "spec"))
            || !kl_value_equal(kl_value_at(old, "metadata", "annotations", NULL),
                kl_value_at(o, "metadata", "annotations", NULL));
    case BY_ALL_BUT_METADATA: return !same_content(old, o, false);
    case NO_GENERATION:
    case ALWAYS_ONE: break;
    }
    return false;
}
