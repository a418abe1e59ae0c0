/* builtin.c - the order of the checks is kube-apiserver's: a client sees the causes in it. */
#include "server/builtin.h"

#include <string.h>

#include "base/mem.h"
#include "model/selector.h"
#include "schema/edit.h"

/* Fields of built-in kinds that have to be there: `member` of the object, or `below` it. */
static const struct {
    const char *kinds, *field, *member, *below;
} required[] = {
    {"/pods", "spec.containers", "spec", "containers"},
    {"rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/clusterrolebindings", "roleRef.name",
        "roleRef", "name"},
    {"storage.k8s.io/storageclasses", "provisioner", "provisioner", NULL},
};

static void check_required(const kl__kind *k, const kl_value *o, kl__causes *causes)
{
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (kl__kind_among(k, required[i].kinds)
            && !kl_value_len(kl_value_at(o, required[i].member, required[i].below, NULL)))
            kl__cause_required(causes, required[i].field, "");
}

/* ------------------------------------------------------------------ ConfigMap, Secret */

static const char *bad_key(const char *key, size_t n)
{
    if (n > 253)
        return "must be no more than 253 characters";
    if (!n || strspn(key, "-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") < n)
        return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
               "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
               "'[-._a-zA-Z0-9]+')";
    if (n == 1 && *key == '.')
        return "must not be '.'";
    if (n >= 2 && !strncmp(key, "..", 2))
        return n == 2 ? "must not be '..'" : "must not start with '..'";
    return NULL;
}

static void check_keys(const kl_value *o, const char *which, const kl_value *binary, kl__causes *causes)
{
    const kl_value *map = kl_value_get(o, which);
    for (size_t i = 0; i < kl_value_len(map); i++) {
        const char *key;
        size_t n;
        kl_value_member(map, i, &key, &n);
        const kl_value *text = kl_value_of_strn(key, n);
        char *field = kl_sprintf("%s[%.*s]", which, (int)n, key);
        const char *why = bad_key(key, n);
        if (why)
            kl__cause_invalid(causes, field, text, "%s", why);
        if (kl_value_getn(binary, key, n))
            kl__cause_invalid(causes, field, text, "duplicate of key present in binaryData");
        kl_free(field);
        kl_value_unref(text);
    }
}

static bool moved(const kl_value *old, const kl_value *o, const char *member)
{
    return !kl_value_equal(kl_value_get(old, member), kl_value_get(o, member));
}

static void check_data(bool secret, const kl_value *old, const kl_value *o, kl__causes *causes)
{
    static const char why[] = "field is immutable when `immutable` is set";
    if (secret && old && moved(old, o, "type"))
        kl__cause_invalid(causes, "type", kl_value_get(o, "type"), "field is immutable");
    if (kl_value_bool(kl_value_get(old, "immutable"), false)) {
        if (!kl_value_bool(kl_value_get(o, "immutable"), false))
            kl__cause_forbidden(causes, "immutable", why);
        if (moved(old, o, "data"))
            kl__cause_forbidden(causes, "data", why);
        if (moved(old, o, "binaryData"))
            kl__cause_forbidden(causes, "binaryData", why);
    }
    check_keys(o, "data", kl_value_get(o, "binaryData"), causes);
    check_keys(o, "binaryData", NULL, causes);
}

/* ------------------------------------------------------------------ workloads */

static void check_selector(const kl__kind *k, const kl_value *old, const kl_value *o, kl__causes *causes)
{
    const kl_value *spec = kl_value_get(o, "spec"), *selector = kl_value_get(spec, "selector"),
                   *labels = kl_value_at(spec, "template", "metadata", "labels", NULL);
    bool daemons = kl__kind_among(k, "apps/daemonsets"), sets = kl__kind_among(k, "apps/statefulsets");
    bool empty = selector && !kl_value_len(kl_value_get(selector, "matchLabels"))
        && !kl_value_len(kl_value_get(selector, "matchExpressions"));
    kl_selector *s = NULL;
    if (empty)
        kl__cause_add(causes, "FieldValueInvalid", "spec.selector",
            "Invalid value: {}: empty selector is invalid for %s",
            daemons    ? "daemonset"
                : sets ? "statefulset"
                       : "deployment");
    else if (!selector && !daemons)
        kl__cause_required(causes, "spec.selector", "");
    if (!empty && !kl_selector_from_struct(selector, &s, NULL)) {
        if (!kl_selector_matches(s, labels))
            kl__cause_invalid(causes, "spec.template.metadata.labels", labels,
                "`selector` does not match template `labels`");
        kl_selector_free(s);
    }
    if (old && !sets && !kl_value_equal(kl_value_at(old, "spec", "selector", NULL), selector))
        kl__cause_invalid(causes, "spec.selector", selector, "field is immutable");
}

/* The specs without the members that may change. */
static void check_stateful_set(const kl_value *old, const kl_value *o, kl__causes *causes)
{
    static const char *const free_to_change[] = {"replicas", "ordinals", "template", "updateStrategy",
        "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"};
    const kl_value *a = kl_value_ref(kl_value_get(old, "spec")), *b = kl_value_ref(kl_value_get(o, "spec"));
    for (size_t i = 0; i < sizeof free_to_change / sizeof *free_to_change; i++) {
        KL_CUT(&a, free_to_change[i]);
        KL_CUT(&b, free_to_change[i]);
    }
    if (!kl_value_equal(a, b))
        kl__cause_forbidden(causes, "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden");
    kl_value_unref(a);
    kl_value_unref(b);
}

/* ------------------------------------------------------------------ RoleBinding */

static void check_role_ref(const kl_value *old, const kl_value *o, kl__causes *causes)
{
    if (!moved(old, o, "roleRef"))
        return;
    static const char *const members[][2] = {{"APIGroup", "apiGroup"}, {"Kind", "kind"}, {"Name", "name"}};
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < 3; i++)
        kl_build_kstr(b, members[i][0], kl_value_str_at(o, "roleRef", members[i][1], NULL));
    kl_build_end(b);
    const kl_value *shown = kl_builder_done(b);
    kl__cause_invalid(causes, "roleRef", shown, "cannot change roleRef");
    kl_value_unref(shown);
}

void kl__builtin_validate(const kl__kind *k, const kl_value *old, const kl_value *o, kl__causes *causes)
{
    check_required(k, o, causes);
    if (kl__kind_among(k, "/configmaps /secrets"))
        check_data(kl__kind_among(k, "/secrets"), old, o, causes);
    const kl_value *replicas = kl_value_at(o, "spec", "replicas", NULL);
    if (kl__kind_among(k, "apps/deployments apps/replicasets apps/statefulsets /replicationcontrollers")
        && kl_value_int_at(replicas, 0, NULL) < 0)
        kl__cause_invalid(causes, "spec.replicas", replicas, "must be greater than or equal to 0");
    if (kl__kind_among(k, "apps/deployments apps/replicasets apps/daemonsets apps/statefulsets"))
        check_selector(k, old, o, causes);
    if (old && kl__kind_among(k, "apps/statefulsets"))
        check_stateful_set(old, o, causes);
    if (old
        && kl__kind_among(
            k, " rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/clusterrolebindings "))
        check_role_ref(old, o, causes);
}
