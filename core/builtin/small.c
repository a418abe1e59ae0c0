/* small.c - kinds with few rules: Leases, ControllerRevisions, priority and runtime classes, namespaces. */
#include "check/forms.h"
#include "builtin/fill.h"
#include "builtin/kinds.h"
#include "builtin/pod.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"

#define USER_PRIORITY_MAX 1000000000
#define NODE_CRITICAL 2000001000
#define CLUSTER_CRITICAL 2000000000

void kl__check_lease(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *seconds = kl_value_get(spec, "leaseDurationSeconds");
    const kl__place *at = KL_IN(NULL, "spec");
    if (seconds && kl_value_int_at(seconds, 0, NULL) <= 0)
        kl__say_invalid(w->causes, KL_IN(at, "leaseDurationSeconds"), seconds, "must be greater than 0");
    kl__check_natural(w->causes, spec, at, "leaseTransitions");
}

void kl__check_revision(const kl__write *w)
{
    if (kl__absent(w->o, "data"))
        kl__say_required(w->causes, KL_IN(NULL, "data"), "data is mandatory");
    kl__check_natural(w->causes, w->o, NULL, "revision");
    if (w->old)
        kl__check_same(w->causes, w->old, w->o, NULL, "data");
}

/* Why the class must not have its "system-..." name, or NULL when it is a built-in class. Caller frees. */
static char *system_fault(const char *name, const kl_value *class)
{
    bool node = !strcmp(name, "system-node-critical"), cluster = !strcmp(name, "system-cluster-critical");
    long long value = node ? NODE_CRITICAL : CLUSTER_CRITICAL;
    if (!node && !cluster)
        return kl_sprintf("%s is not a known system priority class", name);
    if (kl_value_int_at(class, 0, "value", NULL) != value)
        return kl_sprintf("value of %s PriorityClass must be %lld", name, value);
    return kl_value_bool(kl_value_get(class, "globalDefault"), false)
        ? kl_sprintf("globalDefault of %s PriorityClass must be false", name)
        : NULL;
}

static void check_new_priority(kl__causes *c, const kl_value *o)
{
    const char *name = kl_object_name(o);
    if (name && !strncmp(name, "system-", 7)) {
        char *fault = system_fault(name, o);
        if (fault)
            kl__say_forbidden(c, KL_IN(KL_IN(NULL, "metadata"), "name"),
                "priority class names with 'system-' prefix are reserved for system use only. error: %s",
                fault);
        kl_free(fault);
    } else if (kl_value_int_at(o, 0, "value", NULL) > USER_PRIORITY_MAX)
        kl__say_forbidden(c, KL_IN(NULL, "value"), "maximum allowed value of a user defined priority is %d",
            USER_PRIORITY_MAX);
    kl__check_word(c, o, NULL, "preemptionPolicy", false, "PreemptLowerPriority Never");
}

void kl__check_priority_class(const kl__write *w)
{
    if (!w->old) {
        check_new_priority(w->causes, w->o);
        return;
    }
    if (!kl_value_equal(kl_value_get(w->old, "value"), kl_value_get(w->o, "value")))
        kl__say_forbidden(w->causes, KL_IN(NULL, "value"), "may not be changed in an update.");
    kl__check_same(w->causes, w->old, w->o, NULL, "preemptionPolicy");
}

void kl__check_runtime_class(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *fixed = kl_value_at(w->o, "overhead", "podFixed", NULL),
                   *scheduling = kl_value_get(w->o, "scheduling"),
                   *tolerations = kl_value_get(scheduling, "tolerations");
    const kl__place *at = KL_IN(NULL, "scheduling"), *tolerations_at = KL_IN(at, "tolerations");
    kl__check_form(c, KL_IN(NULL, "handler"), kl__text(w->o, "handler"), KL_DNS_LABEL);
    if (fixed) {
        kl_builder *b = kl_builder_new();
        kl_build_object(b);
        kl_build_kvalue(b, "limits", fixed);
        kl_build_end(b);
        const kl_value *limits = kl_builder_done(b);
        kl__check_resources(c, limits, KL_IN(NULL, "overhead"));
        kl_value_unref(limits);
    }
    kl__check_labels(c, kl_value_get(scheduling, "nodeSelector"), KL_IN(at, "nodeSelector"));
    kl_finder before = {0};
    for (size_t i = 0; i < kl_value_len(tolerations); i++) {
        const kl_value *t = kl_value_item(tolerations, i);
        kl__check_toleration(c, t, KL_ITEM(KL_IN(tolerations_at, "tolerations"), i));
        if (!kl_finder_repeats(&before, t))
            continue;
        const kl_value *shown = kl__as_go(t, "Key Operator Value Effect TolerationSeconds?");
        kl__say_duplicate(c, KL_ITEM(tolerations_at, i), shown);
        kl_value_unref(shown);
    }
    kl_finder_fini(&before);
    if (w->old)
        kl__check_same(c, w->old, w->o, NULL, "handler");
}

/* ------------------------------------------------------------------ Namespace */

void kl__check_namespace(const kl__write *w)
{
    const kl_value *list = kl_value_at(w->o, "spec", "finalizers", NULL);
    const kl__place *at = KL_IN(KL_IN(NULL, "spec"), "finalizers");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *name = kl__item_text(list, i);
        kl__check_form(w->causes, at, name, KL_QUALIFIED);
        if (!strchr(name, '/') && strcmp(name, "kubernetes") && strcmp(name, "orphan")
            && strcmp(name, "foregroundDeletion"))
            kl__say_invalid_text(
                w->causes, at, name, "name is neither a standard finalizer name nor is it fully qualified");
    }
}
