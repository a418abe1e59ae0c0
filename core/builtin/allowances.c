/* allowances.c - validation of LimitRanges and ResourceQuotas (ValidateLimitRange, ValidateResourceQuota of
 * pkg/apis/core). limits.c and quota.c enforce them. */
#include "check/forms.h"
#include "builtin/kinds.h"
#include "builtin/pod.h"

#include <string.h>

#include "base/mem.h"

#define SPEC KL_IN(NULL, "spec")

/* ------------------------------------------------------------------ LimitRange */

static void check_type(kl__causes *c, const char *type, const kl__place *at)
{
    size_t before = c->len;
    kl__check_form(c, at, type, KL_QUALIFIED);
    if (c->len == before && !strchr(type, '/') && !kl__one_of(type, "Pod Container PersistentVolumeClaim"))
        kl__say_invalid_text(c, at, type, "must be a standard limit type or fully qualified");
}

static void check_names(
    kl__causes *c, const char *type, const kl_value *limit, const char *member, const kl__place *at)
{
    kl__sorted names = kl__members(kl_value_get(limit, member));
    for (size_t i = 0; i < names.len; i++) {
        const char *name = names.v[i].key;
        const kl__place *here = KL_KEYED(KL_IN(at, member), name, strlen(name));
        if (kl__one_of(type, "Pod Container"))
            kl__check_container_resource_name(c, name, here);
        else
            kl__check_resource_name(c, name, here);
    }
    kl_free(names.v);
}

/* Pairs of quantities: `low` must not exceed `high`. A complaint stands at `place`, and shows `shown`. */
static const struct {
    const char *low, *low_word, *high, *high_word, *place, *shown;
} orders[] = {
    {"min", "min", "max", "max", "min", "min"},
    {"min", "min", "defaultRequest", "default request", "defaultRequest", "defaultRequest"},
    {"defaultRequest", "default request", "max", "max", "defaultRequest", "defaultRequest"},
    {"defaultRequest", "default request", "default", "default limit", "defaultRequest", "defaultRequest"},
    {"min", "min", "default", "default", "default", "min"},
    {"default", "default", "max", "max", "default", "max"},
};

/* The quantity of one resource in a member of the limit, or NULL; the caller frees it. */
static kl_quantity *amount(const kl_value *limit, const char *member, const char *name)
{
    return kl__quantity_of(kl_value_str_at(limit, member, name, NULL));
}

static void check_order(
    kl__causes *c, const kl_value *limit, const char *name, size_t which, const kl__place *up)
{
    const char *low = orders[which].low, *high = orders[which].high;
    kl_quantity *a = amount(limit, low, name), *b = amount(limit, high, name);
    if (a && b && kl_quantity_cmp(a, b) > 0) {
        const kl__place *at = KL_KEYED(KL_IN(up, orders[which].place), name, strlen(name));
        kl__say_invalid(c, at, kl_value_at(limit, orders[which].shown, name, NULL),
            "%s value %s is greater than %s value %s", orders[which].low_word,
            kl_value_str_at(limit, low, name, NULL), orders[which].high_word,
            kl_value_str_at(limit, high, name, NULL));
    }
    kl_quantity_free(a);
    kl_quantity_free(b);
}

static void check_ratio(kl__causes *c, const kl_value *limit, const char *name, const kl__place *up)
{
    const kl_value *shown = kl_value_at(limit, "maxLimitRequestRatio", name, NULL);
    const kl__place *at = KL_KEYED(KL_IN(up, "maxLimitRequestRatio"), name, strlen(name));
    kl_quantity *ratio = amount(limit, "maxLimitRequestRatio", name), *min = amount(limit, "min", name),
                *max = amount(limit, "max", name);
    double most = min && max ? kl_quantity_double(max) / kl_quantity_double(min) : 0;
    if (ratio && kl_quantity_double(ratio) < 1)
        kl__say_invalid(c, at, shown, "ratio %s is less than 1", kl_value_str(shown));
    if (ratio && min && max && kl_quantity_double(ratio) > most)
        kl__say_invalid(c, at, shown, "ratio %s is greater than max/min = %f", kl_value_str(shown), most);
    kl_quantity_free(ratio);
    kl_quantity_free(min);
    kl_quantity_free(max);
}

/* For resources without overcommit the request must equal the limit. */
static void check_overcommit(kl__causes *c, const kl_value *limit, const char *name, const kl__place *up)
{
    const kl_value *want = kl_value_at(limit, "defaultRequest", name, NULL);
    kl_quantity *a = amount(limit, "default", name), *b = amount(limit, "defaultRequest", name);
    if (a && b && kl_quantity_cmp(a, b) && !kl__may_overcommit(name))
        kl__say_invalid(c, KL_KEYED(KL_IN(up, "defaultRequest"), name, strlen(name)), want,
            "default value %s must equal to defaultRequest value %s in %s",
            kl_value_str_at(limit, "default", name, NULL), kl_value_str(want), name);
    kl_quantity_free(a);
    kl_quantity_free(b);
}

static void check_amounts(kl__causes *c, const kl_value *limit, const char *name, const kl__place *at)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        check_order(c, limit, name, i, at);
    check_ratio(c, limit, name, at);
    check_overcommit(c, limit, name, at);
}

static void check_limit(kl__causes *c, const kl_value *limit, const kl__place *at)
{
    static const char *const members[] = {"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"};
    const char *type = kl__text(limit, "type");
    for (size_t i = 0; i < 4; i++)
        if (i >= 2 && !strcmp(type, "Pod")) {
            if (kl_value_len(kl_value_get(limit, members[i])))
                kl__say_forbidden(c, KL_IN(at, members[i]), "may not be specified when `type` is 'Pod'");
        } else
            check_names(c, type, limit, members[i], at);
    if (!strcmp(type, "PersistentVolumeClaim") && !kl_value_at(limit, "min", "storage", NULL)
        && !kl_value_at(limit, "max", "storage", NULL))
        kl__say_required(c, KL_IN(at, "limits"),
            "either minimum or maximum storage value is required, but neither was provided");
    check_names(c, type, limit, members[4], at);
    for (size_t i = 0; i < 5; i++) {
        kl__sorted names = kl__members(kl_value_get(limit, members[i]));
        for (size_t m = 0; m < names.len; m++) {
            bool seen = false;
            for (size_t k = 0; k < i && !seen; k++)
                seen = kl_value_at(limit, members[k], names.v[m].key, NULL) != NULL;
            if (!seen)
                check_amounts(c, limit, names.v[m].key, at);
        }
        kl_free(names.v);
    }
}

void kl__check_limit_range(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *list = kl_value_at(w->o, "spec", "limits", NULL);
    const kl__place *in = KL_IN(SPEC, "limits");
    if (kl__write_same_spec(w))
        return;
    kl_finder types = {.key = "type", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *limit = kl_value_item(list, i);
        const kl__place *at = KL_ITEM(in, i), *type_at = KL_IN(at, "type");
        check_type(c, kl__text(limit, "type"), type_at);
        if (kl_finder_repeats(&types, limit))
            kl__say_duplicate(c, type_at, kl_value_get(limit, "type"));
        check_limit(c, limit, at);
    }
    kl_finder_fini(&types);
}

/* ------------------------------------------------------------------ ResourceQuota */

static const char quota_resources[] =
    "cpu memory ephemeral-storage requests.cpu requests.memory requests.storage requests.ephemeral-storage "
    "limits.cpu limits.memory limits.ephemeral-storage pods resourcequotas services replicationcontrollers "
    "secrets persistentvolumeclaims configmaps services.nodeports services.loadbalancers";

static bool is_huge(const char *name)
{
    return !strncmp(name, "hugepages-", 10) || !strncmp(name, "requests.hugepages-", 19);
}

static void check_hard(kl__causes *c, const kl_value *o, const char *member, const kl__place *up)
{
    kl__sorted hard = kl__members(kl_value_get(o, member));
    for (size_t i = 0; i < hard.len; i++) {
        const char *name = hard.v[i].key;
        const kl__place *at = KL_KEYED(KL_IN(up, member), name, strlen(name));
        kl__check_resource_name(c, name, at);
        if (!strchr(name, '/') && !kl__one_of(name, quota_resources) && !is_huge(name))
            kl__say_invalid_text(c, at, name, "must be a standard resource for quota");
        kl__check_quantity(c, name, hard.v[i].v, at);
    }
    kl_free(hard.v);
}

static const char scopes[] = "Terminating NotTerminating BestEffort NotBestEffort PriorityClass "
                             "CrossNamespacePodAffinity VolumeAttributesClass";

/* Whether a quota of this scope can count the resource. */
static bool counts(const char *scope, const char *resource)
{
    if (!kl__one_of(scope, scopes) || (!kl__one_of(resource, quota_resources) && !is_huge(resource)))
        return true;
    if (!strcmp(scope, "BestEffort"))
        return !strcmp(resource, "pods");
    if (!strcmp(scope, "VolumeAttributesClass"))
        return kl__one_of(resource, "persistentvolumeclaims requests.storage");
    return kl__one_of(resource, "pods cpu memory limits.cpu limits.memory requests.cpu requests.memory");
}

/* How many resources of a quota its scopes cannot count: BestEffort, VolumeAttributesClass, any other scope.
 * Asked once for each quota, since its sender chooses how often it names a scope. */
typedef struct uncounted {
    size_t best_effort, attributes, others;
} uncounted;

static uncounted count_unfit(const kl_value *spec)
{
    const kl_value *hard = kl_value_get(spec, "hard");
    uncounted n = {0};
    for (size_t i = 0; i < kl_value_len(hard); i++) {
        const char *name;
        kl_value_member(hard, i, &name, NULL);
        n.best_effort += !counts("BestEffort", name);
        n.attributes += !counts("VolumeAttributesClass", name);
        n.others += !counts("Terminating", name);
    }
    return n;
}

/* A complaint for each resource that the scope cannot count. */
static void check_counted(
    kl__causes *c, const uncounted *n, const char *scope, const kl_value *shown, const kl__place *at)
{
    size_t left = !kl__one_of(scope, scopes)      ? 0
        : !strcmp(scope, "BestEffort")            ? n->best_effort
        : !strcmp(scope, "VolumeAttributesClass") ? n->attributes
                                                  : n->others;
    for (; left && !kl__causes_full(c); left--)
        kl__say_invalid(c, at, shown, "unsupported scope applied to resource");
    c->len += left ? left - 1 : 0; /* looking at the full list has counted one */
}

static void check_conflicts(kl__causes *c, bool (*has)(const kl_value *list, const char *scope),
    const kl_value *list, const kl_value *shown, const kl__place *at)
{
    if (has(list, "BestEffort") && has(list, "NotBestEffort"))
        kl__say_invalid(c, at, shown, "conflicting scopes");
    if (has(list, "Terminating") && has(list, "NotTerminating"))
        kl__say_invalid(c, at, shown, "conflicting scopes");
}

static bool has_scope(const kl_value *list, const char *scope)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *text = kl_value_str(kl_value_item(list, i));
        if (text && !strcmp(text, scope))
            return true;
    }
    return false;
}

static bool selects_scope(const kl_value *list, const char *scope)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        if (kl__is(kl_value_item(list, i), "scopeName", scope))
            return true;
    return false;
}

static void check_scopes(kl__causes *c, const kl_value *spec)
{
    const kl_value *list = kl_value_get(spec, "scopes");
    const kl__place *at = KL_IN(SPEC, "scopes");
    uncounted n = count_unfit(spec);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *scope = kl__item_text(list, i);
        if (!kl__one_of(scope, scopes))
            kl__say_invalid(c, at, list, "unsupported scope");
        check_counted(c, &n, scope, list, at);
    }
    check_conflicts(c, has_scope, list, list, at);
}

/* The selector in the form that Go prints; the caller owns the reference. */
static const kl_value *shown_selector(const kl_value *list)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_key(b, "MatchExpressions");
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl__as_go(kl_value_item(list, i), "ScopeName Operator Values?");
        kl_build_value(b, one);
        kl_value_unref(one);
    }
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void check_selector(kl__causes *c, const kl_value *spec)
{
    const kl_value *list = kl_value_at(spec, "scopeSelector", "matchExpressions", NULL);
    const kl__place *at = KL_IN(KL_IN(SPEC, "scopeSelector"), "matchExpressions"),
                    *values_at = KL_IN(at, "values"), *op_at = KL_IN(at, "operator");
    const kl_value *shown = shown_selector(list);
    uncounted n = count_unfit(spec);
    for (size_t i = 0; i < kl_value_len(list); i++) { /* kube-apiserver does not name the item */
        const kl_value *one = kl_value_item(list, i), *values = kl_value_get(one, "values");
        const char *scope = kl__text(one, "scopeName"), *op = kl__text(one, "operator");
        if (!kl__one_of(scope, scopes))
            kl__say_invalid_text(c, KL_IN(at, "scopeName"), scope, "unsupported scope");
        check_counted(c, &n, scope, shown, at);
        if (kl__one_of(scope, "BestEffort NotBestEffort Terminating NotTerminating CrossNamespacePodAffinity")
            && strcmp(op, "Exists"))
            kl__say_invalid_text(c, op_at, op,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity");
        if (kl__one_of(op, "In NotIn")) {
            if (!kl_value_len(values))
                kl__say_required(c, values_at,
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
        } else if (kl__one_of(op, "Exists DoesNotExist")) {
            if (kl_value_len(values))
                kl__say_invalid(c, values_at, values,
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
        } else
            kl__say_invalid_text(c, op_at, op, "not a valid selector operator");
    }
    check_conflicts(c, selects_scope, list, NULL, at);
    kl_value_unref(shown);
}

void kl__check_quota(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *old = kl_value_get(w->old, "spec");
    if (kl__write_same_spec(w))
        return;
    check_hard(w->causes, spec, "hard", SPEC);
    check_scopes(w->causes, spec);
    check_selector(w->causes, spec);
    if (w->old)
        kl__check_same(w->causes, old, spec, SPEC, "scopes");
}

void kl__check_quota_status(const kl__write *w)
{
    const kl_value *status = kl_value_get(w->o, "status");
    check_hard(w->causes, status, "hard", KL_IN(NULL, "status"));
    check_hard(w->causes, status, "used", KL_IN(NULL, "status"));
}
