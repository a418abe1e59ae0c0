/* plugins.c - Priority, DefaultTolerationSeconds, RuntimeClass, DefaultStorageClass,
 * PersistentVolumeClaimResize and TaintNodesByCondition, in kube-apiserver's words. */
#include "builtin/plugins.h"

#include <string.h>

#include "base/mem.h"
#include "builtin/storage.h"
#include "check/check.h"
#include "model/object.h"
#include "schema/edit.h"
#include "schema/status.h"
#include "value/edited.h"

bool kl__plugins_care(const kl__kind *k)
{
    return kl__kind_among(k, "/pods /nodes /persistentvolumeclaims scheduling.k8s.io/priorityclasses");
}

static const char *name_of(const kl_value *o) { return kl_object_name(o) ? kl_object_name(o) : ""; }

/* ------------------------------------------------------------------ Priority */

/* The built-in classes. */
static const struct {
    const char *name;
    int64_t value;
} system_classes[] = {{"system-node-critical", 2000001000}, {"system-cluster-critical", 2000000000}};

typedef struct priority {
    const char *name; /* of the class; "" for none */
    int64_t value;
    const char *policy;
    bool found;
} priority;

/* The default class is the one with the lowest value of those marked globalDefault. */
static void consider_default(void *to, const kl_value *class)
{
    priority *best = to;
    int64_t value = kl_value_int_at(class, 0, "value", NULL);
    if (!kl__true(class, "globalDefault") || (best->found && best->value <= value))
        return;
    const char *policy = kl__text(class, "preemptionPolicy");
    *best = (priority){kl_object_name(class), value, *policy ? policy : best->policy, true};
}

static priority priority_of(const kl__admitted *a, const char *name)
{
    priority p = {"", 0, "PreemptLowerPriority", false};
    if (!*name) {
        a->around->each(a->around->arg, "scheduling.k8s.io", "priorityclasses", NULL, consider_default, &p);
        p.found = true;
        return p;
    }
    p.name = name;
    const kl_value *class = a->around->find(a->around->arg, "scheduling.k8s.io", "priorityclasses", name);
    const char *policy = kl__text(class, "preemptionPolicy");
    p.value = kl_value_int_at(class, 0, "value", NULL);
    p.found = class;
    if (*policy)
        p.policy = policy;
    for (size_t i = 0; i < 2; i++)
        if (!strcmp(name, system_classes[i].name)) {
            p.value = system_classes[i].value;
            p.found = true;
        }
    return p;
}

static void find_default(void *to, const kl_value *class)
{
    const kl_value **found = to;
    if (!*found && kl__true(class, "globalDefault"))
        *found = class;
}

/* At most one class may be the default. */
static kl_status check_only_default(const kl__admitted *a, const kl_value *o, kl_err *err)
{
    const kl_value *found = NULL;
    if (!kl__true(o, "globalDefault"))
        return KL_OK;
    a->around->each(a->around->arg, "scheduling.k8s.io", "priorityclasses", NULL, find_default, &found);
    if (!found || !strcmp(name_of(found), name_of(o)))
        return KL_OK;
    return kl__fail_forbidden(err, a->kind, name_of(o),
        "PriorityClass %s is already marked as default. Only one default can exist", name_of(found));
}

/* A defaulted value survives an update that omits it. */
static void keep_priority(const kl_value *old, const kl_value **o)
{
    static const char *const members[] = {"priority", "preemptionPolicy"};
    for (size_t i = 0; i < 2; i++) {
        const kl_value *was = kl_value_at(old, "spec", members[i], NULL);
        if (was && !kl_value_at(*o, "spec", members[i], NULL))
            KL_EDIT(o, kl_value_ref(was), "spec", members[i]);
    }
}

static kl_status add_priority(const kl__admitted *a, const kl_value **o, kl_err *err)
{
    const kl_value *spec = kl_value_get(*o, "spec"), *value = kl_value_get(spec, "priority");
    const char *class = kl__text(spec, "priorityClassName"), *policy = kl__text(spec, "preemptionPolicy"),
               *name = name_of(*o);
    if (a->old) {
        keep_priority(a->old, o);
        return KL_OK;
    }
    priority p = priority_of(a, class);
    int64_t said = kl_value_int_at(value, p.value, NULL);
    if (a->loaded) {
        p.value = said;
        p.policy = *policy ? policy : p.policy;
    } else if (!p.found)
        return kl__fail_forbidden(err, a->kind, name, "no PriorityClass with name %s was found", class);
    else if (said != p.value)
        return kl__fail_forbidden(err, a->kind, name,
            "the integer value of priority (%lld) must not be provided in pod spec; priority admission "
            "controller computed %lld from the given PriorityClass name",
            (long long)said, (long long)p.value);
    else if (*policy && strcmp(policy, p.policy))
        return kl__fail_forbidden(err, a->kind, name,
            "the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission "
            "controller computed %s from the given PriorityClass name",
            policy, p.policy);
    const kl_value *computed = kl_value_of_str(p.policy);
    if (!*class && *p.name)
        KL_EDIT(o, kl_value_of_str(p.name), "spec", "priorityClassName");
    KL_EDIT(o, kl_value_of_int(p.value), "spec", "priority");
    KL_EDIT(o, computed, "spec", "preemptionPolicy");
    return KL_OK;
}

/* ------------------------------------------------------------------ DefaultTolerationSeconds */

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
        const char *k = kl__text(t, "key"), *effect = kl__text(t, "effect");
        bool all_keys = !*k && kl__is(t, "operator", "Exists");
        if ((all_keys || !strcmp(k, key)) && (!*effect || !strcmp(effect, "NoExecute")))
            return true;
    }
    return false;
}

/* A pod stays five minutes on a node that is down, unless it says otherwise. */
static void add_tolerations(const kl_value **o)
{
    const kl_value *have = kl_value_at(*o, "spec", "tolerations", NULL);
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
    KL_EDIT(o, kl_builder_done(b), "spec", "tolerations");
}

/* ------------------------------------------------------------------ RuntimeClass */

static kl_status add_scheduling(
    const kl__admitted *a, const kl_value *scheduling, const kl_value **o, kl_err *err)
{
    const kl_value *want = kl_value_get(scheduling, "nodeSelector"),
                   *have = kl_value_at(*o, "spec", "nodeSelector", NULL),
                   *tolerated = kl_value_at(*o, "spec", "tolerations", NULL),
                   *more = kl_value_get(scheduling, "tolerations");
    const char *key;
    size_t n;
    for (size_t i = 0; i < kl_value_len(want); i++) {
        const char *wanted = kl_value_str(kl_value_member(want, i, &key, &n)), *is = kl__text(have, key);
        if (kl_value_get(have, key) && wanted && strcmp(is, wanted))
            return kl__fail_forbidden(err, a->kind, name_of(*o),
                "conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s",
                key, wanted, key, is);
    }
    kl_finder had = {0};
    kl_finder_add_all(&had, tolerated);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(tolerated); i++)
        kl_build_value(b, kl_value_item(tolerated, i));
    for (size_t i = 0; i < kl_value_len(more); i++)
        if (kl_finder_find(&had, kl_value_item(more, i)) < 0)
            kl_build_value(b, kl_value_item(more, i));
    kl_finder_fini(&had);
    kl_build_end(b);
    const kl_value *list = kl_builder_done(b);
    kl_edited selector = {.base = have};
    kl_edited_put_all(&selector, want);
    if (selector.len)
        KL_EDIT(o, kl_edited_done(&selector), "spec", "nodeSelector");
    if (kl_value_len(more))
        KL_EDIT(o, kl_value_ref(list), "spec", "tolerations");
    kl_value_unref(list);
    return KL_OK;
}

static kl_status add_runtime(const kl__admitted *a, const kl_value **o, kl_err *err)
{
    const char *name = kl__text(kl_value_get(*o, "spec"), "runtimeClassName");
    const kl_value *overhead = kl_value_at(*o, "spec", "overhead", NULL);
    if (a->old || a->loaded)
        return KL_OK;
    if (!*name && kl_value_len(overhead))
        return kl__fail_forbidden(err, a->kind, name_of(*o),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
    if (!*name)
        return KL_OK;
    const kl_value *class = a->around->find(a->around->arg, "node.k8s.io", "runtimeclasses", name),
                   *defined = kl_value_at(class, "overhead", "podFixed", NULL);
    if (!class)
        return kl__fail_forbidden(
            err, a->kind, name_of(*o), "pod rejected: RuntimeClass \"%s\" not found", name);
    if (kl_value_len(overhead) && !kl_value_equal(overhead, defined))
        return kl__fail_forbidden(err, a->kind, name_of(*o), "pod rejected: %s",
            defined ? "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
                    : "Pod Overhead set without corresponding RuntimeClass defined Overhead");
    if (kl_value_len(defined))
        KL_EDIT(o, kl_value_ref(defined), "spec", "overhead");
    return add_scheduling(a, kl_value_get(class, "scheduling"), o, err);
}

/* ------------------------------------------------------------------ DefaultStorageClass */

/* The newest of the default classes; of equally old ones the first by name. */
static void consider_class(void *to, const kl_value *class)
{
    const kl_value **best = to;
    const char *says = kl_value_str(
                   kl_object_annotation(class, "storageclass.kubernetes.io/is-default-class")),
               *beta = kl_value_str(
                   kl_object_annotation(class, "storageclass.beta.kubernetes.io/is-default-class"));
    if (!(says && !strcmp(says, "true")) && !(beta && !strcmp(beta, "true")))
        return;
    const char *born = kl_value_str_at(class, "metadata", "creationTimestamp", NULL),
               *had = kl_value_str_at(*best, "metadata", "creationTimestamp", NULL);
    if (!*best || (born && had && strcmp(born, had) > 0))
        *best = class;
}

static void add_class(const kl__admitted *a, const kl_value **o)
{
    const kl_value *best = NULL;
    if (a->old || a->loaded || kl_value_at(*o, "spec", "storageClassName", NULL)
        || kl_object_annotation(*o, "volume.beta.kubernetes.io/storage-class"))
        return;
    a->around->each(a->around->arg, "storage.k8s.io", "storageclasses", NULL, consider_class, &best);
    if (best)
        KL_EDIT(o, kl_value_of_str(name_of(best)), "spec", "storageClassName");
}

/* ------------------------------------------------------------------ PersistentVolumeClaimResize */

static kl_status check_growth(const kl__admitted *a, const kl_value *o, kl_err *err)
{
    static const char *const where[] = {"spec", "resources", "requests", "storage"};
    const kl_value *was = kl_value_at(a->old, where[0], where[1], where[2], where[3], NULL),
                   *is = kl_value_at(o, where[0], where[1], where[2], where[3], NULL);
    if (!was || !is || kl__compare_sizes(is, was) <= 0)
        return KL_OK;
    const char *beta = kl_value_str(kl_object_annotation(o, "volume.beta.kubernetes.io/storage-class")),
               *name = beta ? beta : kl__text(kl_value_get(o, "spec"), "storageClassName");
    const kl_value *class = *name ? a->around->find(a->around->arg, "storage.k8s.io", "storageclasses", name)
                                  : NULL;
    if (kl__true(class, "allowVolumeExpansion"))
        return KL_OK;
    return kl__fail_forbidden(err, a->kind, name_of(o),
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
        "support resize");
}

/* ------------------------------------------------------------------ TaintNodesByCondition */

/* No pod goes to a new node until a node lifecycle controller has seen that it is ready. */
static void add_taint(const kl__admitted *a, const kl_value **o)
{
    static const char key[] = "node.kubernetes.io/not-ready", effect[] = "NoSchedule";
    const kl_value *have = kl_value_at(*o, "spec", "taints", NULL);
    if (a->old || a->loaded)
        return;
    for (size_t i = 0; i < kl_value_len(have); i++)
        if (kl__is(kl_value_item(have, i), "key", key) && kl__is(kl_value_item(have, i), "effect", effect))
            return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(have); i++)
        kl_build_value(b, kl_value_item(have, i));
    kl_build_object(b);
    kl_build_kstr(b, "key", key);
    kl_build_kstr(b, "effect", effect);
    kl_build_end(b);
    kl_build_end(b);
    KL_EDIT(o, kl_builder_done(b), "spec", "taints");
}

kl_status kl__plugins_add(const kl__admitted *a, const kl_value **o, kl_err *err)
{
    if (kl__kind_among(a->kind, "/persistentvolumeclaims"))
        add_class(a, o);
    if (kl__kind_among(a->kind, "/nodes"))
        add_taint(a, o);
    if (!kl__kind_among(a->kind, "/pods"))
        return KL_OK;
    if (!a->old && !a->loaded)
        kl__limits_add(a, o);
    kl_status st = add_priority(a, o, err);
    add_tolerations(o);
    return st ? st : add_runtime(a, o, err);
}

kl_status kl__plugins_check(const kl__admitted *a, const kl_value *o, kl_err *err)
{
    if (a->loaded || kl__kind_among(a->kind, "/nodes"))
        return KL_OK;
    if (kl__kind_among(a->kind, "scheduling.k8s.io/priorityclasses"))
        return check_only_default(a, o, err);
    kl_status st = kl__limits_check(a, o, err);
    return !st && a->old && kl__kind_among(a->kind, "/persistentvolumeclaims") ? check_growth(a, o, err) : st;
}
