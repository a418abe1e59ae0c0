/* defaults_other.c - defaults of kinds that neither are nor create pods: storage, networking, rights,
 * admission, nodes, namespaces. */
#include "builtin/defaults.h"
#include "builtin/fill.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "schema/edit.h"
#include "value/edited.h"

static void any_path(const kl_value **v) { kl__put_str(v, "type", ""); }
static void volume_spec(const kl_value **s)
{
    kl__inside(s, "hostPath", any_path);
    kl__put_str(s, "persistentVolumeReclaimPolicy", "Retain");
    kl__put_str(s, "volumeMode", "Filesystem");
}

static void port(const kl_value **p) { kl__put_str(p, "protocol", "TCP"); }

static void policy_rule(const kl_value **r) { kl__each_inside(r, "ports", port); }
static void policy_spec(const kl_value **s)
{
    kl__each_inside(s, "ingress", policy_rule);
    kl__each_inside(s, "egress", policy_rule);
    if (!kl__absent(*s, "policyTypes"))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_str(b, "Ingress");
    if (kl_value_len(kl_value_get(*s, "egress")))
        kl_build_str(b, "Egress");
    kl_build_end(b);
    KL_EDIT(s, kl_builder_done(b), "policyTypes");
}

/* A maximum is also the default limit, and the default request. */
static void limit_item(const kl_value **l)
{
    static const char *const from[] = {"max", "default", "min"},
                             *const to[] = {"default", "defaultRequest", "defaultRequest"};
    const char *type = kl_value_str(kl_value_get(*l, "type"));
    for (size_t step = 0; step < 3 && type && !strcmp(type, "Container"); step++) {
        kl_edited e = {.base = kl_value_get(*l, to[step])};
        kl_edited_fill(&e, kl_value_get(*l, from[step]));
        if (e.len)
            KL_EDIT(l, kl_edited_done(&e), to[step]);
    }
}
static void limit_spec(const kl_value **s) { kl__each_inside(s, "limits", limit_item); }

/* podCIDR and the first of podCIDRs are the same: each defaults to the other. */
static void node_spec(const kl_value **s)
{
    const kl_value *one = kl_value_get(*s, "podCIDR"), *list = kl_value_get(*s, "podCIDRs");
    if (!one && kl_value_len(list))
        KL_EDIT(s, kl_value_ref(kl_value_item(list, 0)), "podCIDR");
    if (!one || !kl__absent(*s, "podCIDRs"))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_value(b, one);
    kl_build_end(b);
    KL_EDIT(s, kl_builder_done(b), "podCIDRs");
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
    kl__put_object(o, "roleRef");
    kl__inside(o, "roleRef", role_ref);
    kl__each_inside(o, "subjects", subject);
}

static void admission_rule(const kl_value **o) { kl__put_str(o, "scope", "*"); }

static void match_resources(const kl_value **o)
{
    kl__put_str(o, "matchPolicy", "Equivalent");
    kl__put_object(o, "namespaceSelector");
    kl__put_object(o, "objectSelector");
    kl__each_inside(o, "resourceRules", admission_rule);
    kl__each_inside(o, "excludeResourceRules", admission_rule);
}

static void admission_policy_spec(const kl_value **o)
{
    kl__put_str(o, "failurePolicy", "Fail");
    kl__inside(o, "matchConstraints", match_resources);
}

static void admission_binding_spec(const kl_value **o) { kl__inside(o, "matchResources", match_resources); }

/* ------------------------------------------------------------------ webhooks */

static void hook_service(const kl_value **o) { kl__put_int(o, "port", 443); }
static void hook_client(const kl_value **o) { kl__inside(o, "service", hook_service); }

static void hook(const kl_value **o)
{
    kl__put_str(o, "failurePolicy", "Fail");
    kl__put_str(o, "matchPolicy", "Equivalent");
    kl__put_object(o, "namespaceSelector");
    kl__put_object(o, "objectSelector");
    kl__put_int(o, "timeoutSeconds", 10);
    kl__each_inside(o, "rules", admission_rule);
    kl__inside(o, "clientConfig", hook_client);
}

static void mutating_hook(const kl_value **o)
{
    hook(o);
    kl__put_str(o, "reinvocationPolicy", "Never");
}

static void hooks(const kl_value **o) { kl__each_inside(o, "webhooks", hook); }
static void mutating_hooks(const kl_value **o) { kl__each_inside(o, "webhooks", mutating_hook); }

/* ------------------------------------------------------------------ whole objects */

static void class_parameters(const kl_value **o) { kl__put_str(o, "scope", "Cluster"); }
static void ingress_class_spec(const kl_value **o) { kl__inside(o, "parameters", class_parameters); }

static void slice_port(const kl_value **o)
{
    kl__put_str(o, "name", "");
    port(o);
}
static void slice(const kl_value **o) { kl__each_inside(o, "ports", slice_port); }

static void subset(const kl_value **o) { kl__each_inside(o, "ports", port); }
static void endpoints(const kl_value **o) { kl__each_inside(o, "subsets", subset); }

static void storage_class(const kl_value **o)
{
    kl__put_str(o, "reclaimPolicy", "Delete");
    kl__put_str(o, "volumeBindingMode", "Immediate");
}

static void csi_spec(const kl_value **o)
{
    kl__put_bool(o, "attachRequired", true);
    kl__put_bool(o, "podInfoOnMount", false);
    kl__put_bool(o, "storageCapacity", false);
    kl__put_bool(o, "requiresRepublish", false);
    kl__put_bool(o, "seLinuxMount", false);
    kl__put_str(o, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if (kl_value_len(kl_value_get(*o, "volumeLifecycleModes")))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_str(b, "Persistent");
    kl_build_end(b);
    KL_EDIT(o, kl_builder_done(b), "volumeLifecycleModes");
}

static void priority_class(const kl_value **o) { kl__put_str(o, "preemptionPolicy", "PreemptLowerPriority"); }

static void namespace(const kl_value **o)
{
    const char *name = kl_object_name(*o);
    if (name)
        KL_EDIT(o, kl_value_of_str(name), "metadata", "labels", "kubernetes.io/metadata.name");
}

static void node(const kl_value **o)
{
    const kl_value *capacity = kl_value_at(*o, "status", "capacity", NULL);
    if (capacity && !kl_value_at(*o, "status", "allocatable", NULL))
        KL_EDIT(o, kl_value_ref(capacity), "status", "allocatable");
}

static const struct {
    const char *group, *plural;
    kl__edit_fn *spec, *whole;
} kinds[] = {
    {"", "persistentvolumes", volume_spec, NULL},
    {"", "limitranges", limit_spec, NULL},
    {"", "nodes", node_spec, node},
    {"", "namespaces", NULL, namespace},
    {"", "podtemplates", NULL, kl__pod_template_defaults},
    {"", "endpoints", NULL, endpoints},
    {"discovery.k8s.io", "endpointslices", NULL, slice},
    {"networking.k8s.io", "networkpolicies", policy_spec, NULL},
    {"networking.k8s.io", "ingressclasses", ingress_class_spec, NULL},
    {"storage.k8s.io", "storageclasses", NULL, storage_class},
    {"storage.k8s.io", "csidrivers", csi_spec, NULL},
    {"scheduling.k8s.io", "priorityclasses", NULL, priority_class},
    {"autoscaling", "horizontalpodautoscalers", NULL, kl__scaler_defaults},
    {"rbac.authorization.k8s.io", "rolebindings", NULL, binding},
    {"rbac.authorization.k8s.io", "clusterrolebindings", NULL, binding},
    {"admissionregistration.k8s.io", "validatingadmissionpolicies", admission_policy_spec, NULL},
    {"admissionregistration.k8s.io", "validatingadmissionpolicybindings", admission_binding_spec, NULL},
    {"admissionregistration.k8s.io", "validatingwebhookconfigurations", NULL, hooks},
    {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", NULL, mutating_hooks},
};

void kl__defaults_other(const char *group, const char *plural, const kl_value **o)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].group, group) || strcmp(kinds[i].plural, plural))
            continue;
        if (kinds[i].spec)
            kl__inside(o, "spec", kinds[i].spec);
        if (kinds[i].whole)
            kinds[i].whole(o);
    }
}
