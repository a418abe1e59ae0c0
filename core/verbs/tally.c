/* tally.c - see tally.h.
 *
 *   not counted --due--> counted --an object of the namespace changes--> counted, due
 *        ^                  |
 *        +------------------+-- the quota's spec changes, or definitions change
 *
 * A quota without a tally is not counted. */
#include "verbs/tally.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "builtin/plugins.h"

typedef struct tally {
    const kl_value *quota;  /* as it was when it was counted; its spec is the present one */
    const char **resources; /* of spec.hard */
    kl_quantity **sums;
    size_t n;
} tally;

struct kl__tallies {
    const kl__kinds *kinds;
    kl_map *of;  /* "ns/name" -> tally */
    kl_map *due; /* "ns/name"; the values are not used */
    bool all_due;
};

static void tally_free(void *p)
{
    tally *y = p;
    if (!y)
        return;
    for (size_t i = 0; i < y->n; i++)
        kl_quantity_free(y->sums[i]);
    kl_free(y->sums);
    kl_free(y->resources);
    kl_value_unref(y->quota);
    kl_free(y);
}

kl__tallies *kl__tallies_new(const kl__kinds *kinds)
{
    kl__tallies *t = kl_new(kl__tallies);
    t->kinds = kinds;
    t->of = kl_map_new();
    t->due = kl_map_new();
    t->all_due = true;
    return t;
}

void kl__tallies_free(kl__tallies *t)
{
    if (!t)
        return;
    kl_map_free(t->of, tally_free);
    kl_map_free(t->due, NULL);
    kl_free(t);
}

static const kl__bucket *quotas_of(const kl__tallies *t)
{
    return kl__kinds_get(t->kinds, "", "v1", "resourcequotas")->bucket;
}

/* --- counting ----------------------------------------------------------------------------- */

typedef kl_quantity *combine(const kl_quantity *a, const kl_quantity *b);

/* Adds what the object uses to the sums, or subtracts it. NULL uses nothing. */
static void count(tally *y, const kl__kind *k, const kl_value *o, combine *by)
{
    kl__usage u;
    if (!o || !kl__quota_concerns(y->quota, k, o))
        return;
    kl__usage_init(&u, k, o);
    for (size_t i = 0; i < y->n; i++) {
        kl_quantity *one = kl__quota_used(&u, y->resources[i]), *sum = one ? by(y->sums[i], one) : NULL;
        kl_quantity_free(one);
        if (sum) {
            kl_quantity_free(y->sums[i]);
            y->sums[i] = sum;
        }
    }
    kl__usage_fini(&u);
}

static void count_all(const kl__tallies *t, tally *y, const char *key)
{
    size_t ns = strcspn(key, "/") + 1;
    char *prefix = kl_strndup(key, ns);
    for (size_t i = 0; i < kl__kinds_len(t->kinds); i++) {
        const kl__kind *k = kl__kinds_at(t->kinds, i);
        const kl__bucket *b = k->bucket;
        /* a resource is counted once, whatever its versions */
        if (!k->namespaced || kl__kinds_of_bucket(t->kinds, b) != k)
            continue;
        for (size_t e = kl__bucket_from(b, prefix); e < b->len && !strncmp(b->v[e]->key, prefix, ns); e++)
            count(y, k, b->v[e]->object, kl_quantity_add);
    }
    kl_free(prefix);
}

static tally *tally_new(const kl__tallies *t, const char *key, const kl_value *quota)
{
    tally *y = kl_new(tally);
    y->quota = kl_value_ref(quota);
    const kl_value *hard = kl_value_at(quota, "spec", "hard", NULL);
    y->n = kl_value_len(hard);
    y->resources = kl_new_array(const char *, y->n);
    y->sums = kl_new_array(kl_quantity *, y->n);
    for (size_t i = 0; i < y->n; i++) {
        (void)kl_value_member(hard, i, &y->resources[i], NULL);
        y->sums[i] = kl_quantity_new(0, 0, KL_DECIMAL_SI);
    }
    count_all(t, y, key);
    return y;
}

/* A new reference; NULL without resources. */
static const kl_value *used_of(const tally *y)
{
    if (!y->n)
        return NULL;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < y->n; i++) {
        char *text = kl_quantity_canonical(y->sums[i], NULL, NULL);
        kl_build_kstr(b, y->resources[i], text);
        kl_free(text);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* --- following ---------------------------------------------------------------------------- */

static void forget_all(kl__tallies *t)
{
    kl_map_free(t->of, tally_free);
    t->of = kl_map_new();
    t->all_due = true;
}

static bool is_definitions(const kl__bucket *b)
{
    return !strcmp(b->plural, "customresourcedefinitions") && !strcmp(b->group, "apiextensions.k8s.io");
}

void kl__tallies_change(kl__tallies *t, const kl__bucket *b, const kl__change *c)
{
    const kl__bucket *quotas = quotas_of(t);
    const kl_value *now = c->type == KL_DELETED ? NULL : c->now;
    const char *slash = strchr(c->key, '/');
    if (is_definitions(b)) /* kinds come and go */
        forget_all(t);
    if (b == quotas && !kl_value_equal(kl_value_get(c->old, "spec"), kl_value_get(now, "spec")))
        tally_free(kl_map_take(t->of, c->key));
    const kl__kind *k = quotas->len && slash ? kl__kinds_of_bucket(t->kinds, b) : NULL;
    if (!k)
        return;
    size_t ns = (size_t)(slash - c->key) + 1;
    char *prefix = kl_strndup(c->key, ns);
    for (size_t i = kl__bucket_from(quotas, prefix);
         i < quotas->len && !strncmp(quotas->v[i]->key, prefix, ns); i++) {
        tally *y = kl_map_get(t->of, quotas->v[i]->key);
        if (y) {
            count(y, k, c->old, kl_quantity_sub);
            count(y, k, now, kl_quantity_add);
        }
        kl_map_set(t->due, quotas->v[i]->key, t);
    }
    kl_free(prefix);
}

void kl__tallies_due(
    kl__tallies *t, void (*fn)(void *arg, const kl_value *quota, const kl_value *used), void *arg)
{
    const kl__bucket *quotas = quotas_of(t);
    for (size_t i = 0; t->all_due && i < quotas->len; i++)
        kl_map_set(t->due, quotas->v[i]->key, t);
    t->all_due = false;
    if (!kl_map_len(t->due))
        return;
    kl_map *due = t->due; /* what `fn` writes is due the next time */
    t->due = kl_map_new();
    char **keys = kl_map_sorted_keys(due);
    for (char **key = keys; *key; key++) {
        const kl__entry *e = kl__bucket_get(quotas, *key);
        if (!e)
            continue;
        tally *y = kl_map_get(t->of, *key);
        if (!y)
            kl_map_set(t->of, *key, y = tally_new(t, *key, e->object));
        const kl_value *used = used_of(y), *quota = kl_value_ref(e->object);
        fn(arg, quota, used);
        kl_value_unref(quota);
        kl_value_unref(used);
    }
    kl_free(keys);
    kl_map_free(due, NULL);
}
