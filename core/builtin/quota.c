/* quota.c - ResourceQuotas: the usage of an object, and whether it fits. */
#include "builtin/plugins.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check/check.h"
#include "builtin/defaults.h"
#include "builtin/pod.h"
#include "model/object.h"
#include "model/quantity.h"
#include "schema/status.h"
#include "value/edited.h"

/* ------------------------------------------------------------------ what an object uses */

static kl_quantity *some(int64_t n) { return n ? kl_quantity_new(n, 0, KL_DECIMAL_SI) : NULL; }

static bool over(const kl_value *pod)
{
    return kl__one_of(kl__text(kl_value_get(pod, "status"), "phase"), "Succeeded Failed");
}

/* "requests.cpu" and "cpu" are requests, "limits.cpu" limits; "requests.example.com/x" as well. */
static const char *which_of(const char *resource, const char **name)
{
    static const char requests[] = "requests.", limits[] = "limits.";
    if (!strncmp(resource, limits, sizeof limits - 1)) {
        *name = resource + sizeof limits - 1;
        return "limits";
    }
    bool prefixed = !strncmp(resource, requests, sizeof requests - 1);
    *name = prefixed ? resource + sizeof requests - 1 : resource;
    return prefixed || kl__one_of(resource, "cpu memory ephemeral-storage") ? "requests" : NULL;
}

static kl_quantity *used_by_pod(const kl__usage *u, const char *resource)
{
    const char *name, *which = which_of(resource, &name);
    if (!u->requests)
        return NULL;
    if (!strcmp(resource, "pods"))
        return some(1);
    if (!which || !strcmp(name, "storage"))
        return NULL;
    bool requests = !strcmp(which, "requests");
    const kl_quantity *sum = kl_map_get(requests ? u->requests : u->limits, name);
    kl_quantity *overhead = requests || sum
        ? kl__quantity_of(kl_value_str_at(u->o, "spec", "overhead", name, NULL))
        : NULL;
    kl_quantity *all = sum && overhead ? kl_quantity_add(sum, overhead) : sum ? kl_quantity_copy(sum) : NULL;
    if (!all)
        return overhead;
    kl_quantity_free(overhead);
    return all;
}

static kl_quantity *used_by_service(const kl_value *o, const char *resource)
{
    const kl_value *spec = kl_value_get(o, "spec"), *ports = kl_value_get(spec, "ports");
    bool balanced = kl__is(spec, "type", "LoadBalancer");
    if (!strcmp(resource, "services.loadbalancers"))
        return some(balanced);
    if (strcmp(resource, "services.nodeports"))
        return NULL;
    bool without = balanced && kl_value_get(spec, "allocateLoadBalancerNodePorts")
        && !kl__true(spec, "allocateLoadBalancerNodePorts");
    return some(
        !without && (balanced || kl__is(spec, "type", "NodePort")) ? (int64_t)kl_value_len(ports) : 0);
}

static kl_quantity *used_by_claim(const kl_value *o, const char *resource)
{
    static const char of_class[] = ".storageclass.storage.k8s.io/";
    const char *class = kl__text(kl_value_get(o, "spec"), "storageClassName"),
               *at = strstr(resource, of_class);
    if (at && (strncmp(resource, class, strlen(class)) || resource + strlen(class) != at))
        return NULL;
    const char *what = at ? at + sizeof of_class - 1 : resource;
    if (at && !strcmp(what, "persistentvolumeclaims"))
        return some(1);
    return strcmp(what, "requests.storage")
        ? NULL
        : kl__quantity_of(kl_value_str_at(o, "spec", "resources", "requests", "storage", NULL));
}

/* "count/deployments.apps" */
static bool counts(const kl__kind *k, const char *resource)
{
    size_t n = strlen(k->plural);
    if (strncmp(resource, "count/", 6)) /* some core kinds count under their plain name */
        return !*k->group && !strcmp(resource, k->plural)
            && kl__one_of(resource,
                "services secrets configmaps persistentvolumeclaims replicationcontrollers resourcequotas");
    resource += 6;
    return !strncmp(resource, k->plural, n)
        && (*k->group ? resource[n] == '.' && !strcmp(resource + n + 1, k->group) : !resource[n]);
}

void kl__usage_init(kl__usage *u, const kl__kind *k, const kl_value *o)
{
    *u = (kl__usage){.kind = k, .o = o};
    if (!o || !kl__kind_among(k, "/pods") || over(o))
        return;
    u->requests = kl__limits_totals(o, "requests");
    u->limits = kl__limits_totals(o, "limits");
}

void kl__usage_fini(kl__usage *u)
{
    kl__limits_totals_free(u->requests);
    kl__limits_totals_free(u->limits);
}

kl_quantity *kl__quota_used(const kl__usage *u, const char *resource)
{
    if (counts(u->kind, resource))
        return some(1);
    if (kl__kind_among(u->kind, "/pods"))
        return used_by_pod(u, resource);
    if (kl__kind_among(u->kind, "/services"))
        return used_by_service(u->o, resource);
    return kl__kind_among(u->kind, "/persistentvolumeclaims") ? used_by_claim(u->o, resource) : NULL;
}

/* ------------------------------------------------------------------ which objects a quota is about */

static bool priority_matches(const kl_value *o, const char *operator, const kl_value * values)
{
    const char *class = kl__text(kl_value_get(o, "spec"), "priorityClassName");
    bool in = false;
    for (size_t i = 0; i < kl_value_len(values) && !in; i++)
        in = !strcmp(
            kl_value_str(kl_value_item(values, i)) ? kl_value_str(kl_value_item(values, i)) : "", class);
    return !strcmp(operator, "In")          ? *class && in
        : !strcmp(operator, "NotIn")        ? !in
        : !strcmp(operator, "DoesNotExist") ? !*class
                                            : *class != 0;
}

static bool scope_matches(const kl_value *o, const char *scope, const char *operator, const kl_value * values)
{
    const kl_value *deadline = kl_value_at(o, "spec", "activeDeadlineSeconds", NULL);
    bool best = !strcmp(kl__pod_qos(o), "BestEffort");
    return !strcmp(scope, "BestEffort")   ? best
        : !strcmp(scope, "NotBestEffort") ? !best
        : !strcmp(scope, "Terminating")   ? deadline != NULL
        : !strcmp(scope, "NotTerminating")
        ? !deadline
        : !strcmp(scope, "PriorityClass") && priority_matches(o, operator, values);
}

bool kl__quota_concerns(const kl_value *quota, const kl__kind *k, const kl_value *o)
{
    const kl_value *scopes = kl_value_at(quota, "spec", "scopes", NULL),
                   *list = kl_value_at(quota, "spec", "scopeSelector", "matchExpressions", NULL);
    if (!kl_value_len(scopes) && !kl_value_len(list))
        return true;
    bool all = kl__kind_among(k, "/pods");
    for (size_t i = 0; i < kl_value_len(scopes) && all; i++) {
        const char *scope = kl_value_str(kl_value_item(scopes, i));
        all = scope && scope_matches(o, scope, "Exists", NULL);
    }
    for (size_t i = 0; i < kl_value_len(list) && all; i++) {
        const kl_value *x = kl_value_item(list, i);
        all = scope_matches(o, kl__text(x, "scopeName"), kl__text(x, "operator"), kl_value_get(x, "values"));
    }
    return all;
}

/* ------------------------------------------------------------------ whether there is room */

/* Limited resources that some containers do not set: "cpu for: a,b; memory for: a". */
static void find_missing(const kl_value *hard, const kl_value *pod, kl_buf *out)
{
    static const char *const lists[] = {"containers", "initContainers"};
    kl__sorted resources = kl__members(hard);
    for (size_t i = 0; i < resources.len; i++) {
        const char *resource = resources.v[i].key, *name, *which = which_of(resource, &name);
        if (!kl__one_of(resource, "cpu memory requests.cpu requests.memory limits.cpu limits.memory"))
            continue;
        size_t found = 0;
        for (size_t l = 0; l < 2; l++) {
            const kl_value *list = kl_value_at(pod, "spec", lists[l], NULL);
            for (size_t c = 0; c < kl_value_len(list); c++) {
                const kl_value *one = kl_value_item(list, c);
                if (kl_value_at(one, "resources", which, name, NULL))
                    continue;
                if (found++)
                    kl_buf_puts(out, ",");
                else
                    kl_buf_printf(out, "%s%s for: ", out->len ? "; " : "", resource);
                kl_buf_puts(out, kl__text(one, "name"));
            }
        }
    }
    kl_free(resources.v);
}

struct sums {
    kl_buf requested, used, limited;
};

static void tell(kl_buf *b, const char *resource, const char *text)
{
    kl_buf_printf(b, "%s%s=%s", b->len ? "," : "", resource, text);
}

/* What a write changes in one quota. */
struct charging {
    kl__usage now, old; /* the old object's, if there is one */
    kl_edited used;     /* the quota's status.used */
    struct sums sums;
};

/* One resource of the quota; a complaint where it is too much. */
static void charge(struct charging *c, const char *resource, const char *hard)
{
    kl_quantity *want = kl__quota_used(&c->now, resource),
                *had = c->old.o ? kl__quota_used(&c->old, resource) : NULL, *more = NULL;
    if (want && had)
        more = kl_quantity_sub(want, had);
    const kl_quantity *delta = more ? more : want;
    if (delta && kl_quantity_sign(delta) > 0) {
        const char *before = kl_value_str(kl_edited_get(&c->used, resource));
        kl_quantity *limit = kl__quantity_of(hard), *have = kl__quantity_of(before ? before : ""),
                    *sum = have ? kl_quantity_add(have, delta) : kl_quantity_copy(delta);
        char *text = kl_quantity_canonical(sum, NULL, NULL),
             *asked = kl_quantity_canonical(delta, NULL, NULL);
        if (limit && kl_quantity_cmp(sum, limit) > 0) {
            tell(&c->sums.requested, resource, asked);
            tell(&c->sums.used, resource, have ? before : "0");
            tell(&c->sums.limited, resource, hard);
        }
        const kl_value *v = kl_value_of_str(text);
        kl_edited_put(&c->used, resource, v);
        kl_value_unref(v);
        kl_free(text);
        kl_free(asked);
        kl_quantity_free(limit);
        kl_quantity_free(have);
        kl_quantity_free(sum);
    }
    kl_quantity_free(want);
    kl_quantity_free(had);
    kl_quantity_free(more);
}

static void charge_all(struct charging *c, const kl__admitted *a, const kl_value *o, const kl_value *hard)
{
    kl__sorted resources = kl__members(hard);
    kl__usage_init(&c->now, a->kind, o);
    kl__usage_init(&c->old, a->kind, a->old);
    for (size_t i = 0; i < resources.len; i++)
        if (kl_value_str(resources.v[i].v))
            charge(c, resources.v[i].key, kl_value_str(resources.v[i].v));
    kl__usage_fini(&c->now);
    kl__usage_fini(&c->old);
    kl_free(resources.v);
}

kl_status kl__quota_charge(
    const kl__admitted *a, const kl_value *quota, const kl_value *o, const kl_value **used, kl_err *err)
{
    const kl_value *hard = kl_value_at(quota, "status", "hard", NULL);
    struct charging c = {.used = {.base = kl_value_at(quota, "status", "used", NULL)}};
    struct sums *s = &c.sums;
    kl_buf missing = KL_BUF_INIT;
    kl_status st = KL_OK;
    const char *name = kl_object_name(quota);
    *used = kl_value_ref(c.used.base);
    if (!kl__quota_concerns(quota, a->kind, o))
        return KL_OK;
    if (kl__kind_among(a->kind, "/pods") && !a->old)
        find_missing(hard, o, &missing);
    charge_all(&c, a, o, hard);
    kl_value_unref(*used);
    *used = kl_edited_done(&c.used);
    if (missing.len)
        st = kl__fail_forbidden(
            err, a->kind, kl_object_name(o), "failed quota: %s: must specify %s", name, kl_buf_str(&missing));
    else if (s->requested.len)
        st = kl__fail_forbidden(err, a->kind, kl_object_name(o),
            "exceeded quota: %s, requested: %s, used: %s, limited: %s", name, kl_buf_str(&s->requested),
            kl_buf_str(&s->used), kl_buf_str(&s->limited));
    kl_buf_fini(&missing);
    kl_buf_fini(&s->requested);
    kl_buf_fini(&s->used);
    kl_buf_fini(&s->limited);
    return st;
}
