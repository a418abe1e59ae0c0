/* scheduling.c - where a pod may run: affinity, tolerations, spreading. */
#include "builtin/pod.h"

#include <string.h>

#include "base/mem.h"

/* ------------------------------------------------------------------ nodes */

static void check_expression(kl__causes *c, const kl_value *r, bool any_value, const kl__place *at)
{
    const char *op = kl__text(r, "operator");
    const kl_value *values = kl_value_get(r, "values");
    const kl__place *in = KL_IN(at, "values");
    if (kl__one_of(op, "In NotIn")) {
        if (!kl_value_len(values))
            kl__say_required(c, in, "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (kl__one_of(op, "Exists DoesNotExist")) {
        if (kl_value_len(values))
            kl__say_forbidden(c, in, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (kl__one_of(op, "Gt Lt")) {
        if (kl_value_len(values) != 1)
            kl__say_required(c, in, "must be specified single value when `operator` is 'Lt' or 'Gt'");
    } else
        kl__say_invalid_text(c, KL_IN(at, "operator"), op, "not a valid selector operator");
    kl__check_form(c, KL_IN(at, "key"), kl__text(r, "key"), KL_QUALIFIED);
    for (size_t i = 0; !any_value && i < kl_value_len(values); i++) {
        kl__check_form(c, KL_ITEM(in, i), kl__item_text(values, i), KL_LABEL_VALUE);
    }
}

static void check_field(kl__causes *c, const kl_value *r, const kl__place *at)
{
    const char *op = kl__text(r, "operator"), *key = kl__text(r, "key");
    const kl_value *values = kl_value_get(r, "values");
    const kl__place *in = KL_IN(at, "values");
    if (!kl__one_of(op, "In NotIn"))
        kl__say_invalid_text(c, KL_IN(at, "operator"), op, "not a valid selector operator");
    else if (kl_value_len(values) != 1)
        kl__say_required(
            c, in, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
    if (strcmp(key, "metadata.name"))
        kl__say_invalid_text(c, KL_IN(at, "key"), key, "not a valid field selector key");
    else
        for (size_t i = 0; i < kl_value_len(values); i++) {
            kl__check_form(c, KL_ITEM(in, i), kl__item_text(values, i), KL_DNS_SUBDOMAIN);
        }
}

static void check_term(kl__causes *c, const kl_value *term, bool any_value, const kl__place *at)
{
    const kl_value *labels = kl_value_get(term, "matchExpressions"),
                   *fields = kl_value_get(term, "matchFields");
    const kl__place *in = KL_IN(at, "matchExpressions"), *fields_in = KL_IN(at, "matchFields");
    for (size_t i = 0; i < kl_value_len(labels); i++)
        check_expression(c, kl_value_item(labels, i), any_value, KL_ITEM(in, i));
    for (size_t i = 0; i < kl_value_len(fields); i++)
        check_field(c, kl_value_item(fields, i), KL_ITEM(fields_in, i));
}

void kl__check_node_selector(kl__causes *c, const kl_value *selector, const kl__place *at)
{
    const kl_value *terms = kl_value_get(selector, "nodeSelectorTerms");
    const kl__place *in = KL_IN(at, "nodeSelectorTerms");
    if (!kl_value_len(terms))
        kl__say_required(c, in, "must have at least one node selector term");
    for (size_t i = 0; i < kl_value_len(terms); i++)
        check_term(c, kl_value_item(terms, i), false, KL_ITEM(in, i));
}

static void check_weight(kl__causes *c, const kl_value *term, const kl__place *at)
{
    int64_t weight = kl_value_int_at(term, 0, "weight", NULL);
    if (weight <= 0 || weight > 100)
        kl__say_invalid_int(c, KL_IN(at, "weight"), weight, "must be in the range 1-100");
}

/* ------------------------------------------------------------------ pods */

static void check_keys(kl__causes *c, const kl_value *term, const char *member, const kl__place *at)
{
    const kl_value *keys = kl_value_get(term, member);
    const kl__place *in = KL_IN(at, member);
    if (kl_value_len(keys) && !kl_value_get(term, "labelSelector"))
        kl__say_forbidden(c, in, "must not be specified when labelSelector is not set");
    else
        for (size_t i = 0; i < kl_value_len(keys); i++)
            kl__check_form(c, KL_ITEM(in, i), kl__item_text(keys, i), KL_QUALIFIED);
}

static void check_both_keys(kl__causes *c, const kl_value *term, const kl__place *at)
{
    const kl_value *match = kl_value_get(term, "matchLabelKeys"),
                   *mismatch = kl_value_get(term, "mismatchLabelKeys");
    check_keys(c, term, "matchLabelKeys", at);
    check_keys(c, term, "mismatchLabelKeys", at);
    kl_finder mismatches = {0};
    kl_finder_add_all(&mismatches, mismatch);
    for (size_t i = 0; i < kl_value_len(match); i++)
        if (kl_finder_find(&mismatches, kl_value_item(match, i)) >= 0)
            kl__say_invalid_text(c, KL_ITEM(KL_IN(at, "matchLabelKeys"), i), kl__item_text(match, i),
                "exists in both matchLabelKeys and mismatchLabelKeys");
    kl_finder_fini(&mismatches);
}

static void check_pod_term(kl__causes *c, const kl_value *term, const kl__place *at)
{
    const kl_value *namespaces = kl_value_get(term, "namespaces");
    kl__check_selector(c, kl_value_get(term, "labelSelector"), KL_IN(at, "labelSelector"));
    kl__check_selector(c, kl_value_get(term, "namespaceSelector"), KL_IN(at, "namespaceSelector"));
    for (size_t i = 0; i < kl_value_len(namespaces); i++)
        kl__check_form(c, KL_IN(at, "namespace"), kl__item_text(namespaces, i), KL_DNS_LABEL);
    check_both_keys(c, term, at);
    const char *key = kl__text(term, "topologyKey");
    if (!*key)
        kl__say_required(c, KL_IN(at, "topologyKey"), "can not be empty");
    kl__check_form(c, KL_IN(at, "topologyKey"), key, KL_QUALIFIED);
}

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static void check_pods(kl__causes *c, const kl_value *affinity, const kl__place *at)
{
    const kl_value *hard = kl_value_get(affinity, REQUIRED), *soft = kl_value_get(affinity, PREFERRED);
    const kl__place *in = KL_IN(at, REQUIRED), *soft_in = KL_IN(at, PREFERRED);
    for (size_t i = 0; i < kl_value_len(hard); i++)
        check_pod_term(c, kl_value_item(hard, i), KL_ITEM(in, i));
    for (size_t i = 0; i < kl_value_len(soft); i++) {
        const kl_value *one = kl_value_item(soft, i);
        check_weight(c, one, KL_ITEM(soft_in, i));
        check_pod_term(
            c, kl_value_get(one, "podAffinityTerm"), KL_IN(KL_ITEM(soft_in, i), "podAffinityTerm"));
    }
}

void kl__check_affinity(kl__causes *c, const kl_value *affinity, const kl__place *at)
{
    const kl_value *nodes = kl_value_get(affinity, "nodeAffinity"), *hard = kl_value_get(nodes, REQUIRED),
                   *soft = kl_value_get(nodes, PREFERRED);
    const kl__place *in = KL_IN(at, "nodeAffinity"), *soft_in = KL_IN(in, PREFERRED);
    if (!affinity)
        return;
    if (hard)
        kl__check_node_selector(c, hard, KL_IN(in, REQUIRED));
    for (size_t i = 0; i < kl_value_len(soft); i++) {
        const kl_value *one = kl_value_item(soft, i);
        check_weight(c, one, KL_ITEM(soft_in, i));
        check_term(c, kl_value_get(one, "preference"), true, KL_IN(KL_ITEM(soft_in, i), "preference"));
    }
    check_pods(c, kl_value_get(affinity, "podAffinity"), KL_IN(at, "podAffinity"));
    check_pods(c, kl_value_get(affinity, "podAntiAffinity"), KL_IN(at, "podAntiAffinity"));
}

/* ------------------------------------------------------------------ tolerations, spreading */

static void check_toleration_value(kl__causes *c, const kl_value *t, const kl__place *at)
{
    const char *op = kl__text(t, "operator"), *value = kl__text(t, "value");
    const char *why[KL_FAULTS_MAX];
    if (!*op || !strcmp(op, "Equal")) {
        size_t n = kl__faults(value, KL_LABEL_VALUE, why);
        if (n)
            kl__say_invalid_text(
                c, KL_IN(at, "operator"), value, "%s%s%s", why[0], n > 1 ? ";" : "", n > 1 ? why[1] : "");
    } else if (!strcmp(op, "Exists")) {
        if (*value)
            kl__say_invalid_text(
                c, KL_IN(at, "operator"), value, "value must be empty when `operator` is 'Exists'");
    } else
        kl__say_unsupported(c, KL_IN(at, "operator"), kl_value_get(t, "operator"), "Equal Exists");
}

void kl__check_toleration(kl__causes *c, const kl_value *t, const kl__place *at)
{
    kl__check_member(c, t, at, "key", KL_QUALIFIED);
    if (!*kl__text(t, "key") && !kl__is(t, "operator", "Exists"))
        kl__say_invalid_text(c, KL_IN(at, "operator"), kl__text(t, "operator"),
            "operator must be Exists when `key` is empty, which means \"match all values and all "
            "keys\"");
    if (kl_value_get(t, "tolerationSeconds") && !kl__is(t, "effect", "NoExecute"))
        kl__say_invalid_text(c, KL_IN(at, "effect"), kl__text(t, "effect"),
            "effect must be 'NoExecute' when `tolerationSeconds` is set");
    check_toleration_value(c, t, at);
    kl__check_word(c, t, at, "effect", false, "NoSchedule PreferNoSchedule NoExecute");
}

void kl__check_tolerations(kl__causes *c, const kl_value *list, const kl__place *in)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl__check_toleration(c, kl_value_item(list, i), KL_ITEM(in, i));
}

static void check_min_domains(kl__causes *c, const kl_value *one, const kl__place *at)
{
    const kl_value *n = kl_value_get(one, "minDomains");
    if (!n)
        return;
    if (kl_value_int_at(n, 0, NULL) <= 0)
        kl__say_invalid(c, KL_IN(at, "minDomains"), n, "must be greater than zero");
    if (!kl__is(one, "whenUnsatisfiable", "DoNotSchedule"))
        kl__say_invalid(c, KL_IN(at, "minDomains"), n,
            "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not %s",
            kl__text(one, "whenUnsatisfiable"));
}

/* For each constraint, whether a later one has its key and its action: kube-apiserver complains about the
 * earlier one. The caller frees. */
static bool *repeated_later(const kl_value *list)
{
    static const char *const when[] = {"whenUnsatisfiable", NULL};
    kl_finder later = {.key = "topologyKey", .more = when, .empty_is_absent = true};
    bool *repeated = kl_zalloc(kl_value_len(list) + 1);
    for (size_t i = kl_value_len(list); i-- > 0;)
        repeated[i] = kl_finder_repeats(&later, kl_value_item(list, i));
    kl_finder_fini(&later);
    return repeated;
}

void kl__check_spread(kl__causes *c, const kl_value *list, const kl__place *in)
{
    bool *repeated = repeated_later(list);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const kl__place *at = KL_ITEM(in, i);
        const char *key = kl__text(one, "topologyKey"), *when = kl__text(one, "whenUnsatisfiable");
        int64_t skew = kl_value_int_at(one, 0, "maxSkew", NULL);
        if (skew <= 0)
            kl__say_invalid_int(c, KL_IN(at, "maxSkew"), skew, "must be greater than zero");
        if (!*key)
            kl__say_required(c, KL_IN(at, "topologyKey"), "can not be empty");
        if (!kl__one_of(when, "DoNotSchedule ScheduleAnyway"))
            kl__say_unsupported(c, KL_IN(at, "whenUnsatisfiable"), kl_value_get(one, "whenUnsatisfiable"),
                "DoNotSchedule ScheduleAnyway");
        if (repeated[i]) {
            char *shown = kl_sprintf("{%s, %s}", key, when);
            const kl_value *v = kl_value_of_str(shown);
            kl__say_duplicate(c, KL_IN(at, "{topologyKey, whenUnsatisfiable}"), v);
            kl_value_unref(v);
            kl_free(shown);
        }
        check_min_domains(c, one, at);
        kl__check_word(c, one, at, "nodeAffinityPolicy", false, "Honor Ignore");
        kl__check_word(c, one, at, "nodeTaintsPolicy", false, "Honor Ignore");
        check_both_keys(c, one, at);
        kl__check_selector(c, kl_value_get(one, "labelSelector"), KL_IN(at, "labelSelector"));
    }
    kl_free(repeated);
}
