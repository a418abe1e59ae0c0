/* catalog.c - discovery documents become a catalog: aggregated ones, and the lists of one group and
 * version each.
 *
 * The first of each group in the server's order is the group's preferred; stale or failed versions come after
 * all others. The core group comes before all other groups. */
#include "client/catalog.h"

#include <string.h>
#include "base/log.h"
#include "base/mem.h"

#define MISSED_FOR KL_SECONDS(1) /* between the first fetch that misses a kind, and the one that decides */
#define STALE "the server reports its discovery as stale: is the API service behind it up?"

void kl__pool_fini(kl__pool *p)
{
    for (size_t i = 0; i < p->n; i++) {
        kl_resource_fini(p->all[i]);
        kl_free(p->all[i]);
    }
    kl_free(p->all);
}

kl__catalog *kl__catalog_new(kl__pool *pool, const kl__catalog *old, kl_time now)
{
    kl__catalog *c = kl_new(kl__catalog);
    c->pool = pool;
    c->old = old;
    c->made = now;
    c->missed = kl_map_new();
    c->found = kl_map_new();
    c->groups = kl_map_new();
    c->failed = kl_map_new();
    c->asked = kl_map_new();
    return c;
}

void kl__catalog_free(kl__catalog *c)
{
    if (!c)
        return;
    kl_map_free(c->found, NULL);
    kl_map_free(c->groups, NULL);
    kl_map_free(c->failed, kl_free);
    kl_map_free(c->missed, kl_free);
    kl_map_free(c->asked, NULL);
    kl_free(c->order);
    kl_free(c);
}

/* --- keys --------------------------------------------------------------------------------- */

static char *key2(const char *group, const char *version) { return kl_sprintf("%s|%s", group, version); }
static char *key3(const char *group, const char *version, const char *kind)
{
    return kl_sprintf("%s|%s|%s", group, version, kind);
}

static void *take_get(const kl_map *m, char *key)
{
    void *v = kl_map_get(m, key);
    kl_free(key);
    return v;
}

static void set_if_absent(kl_map *m, char *key, const kl_resource *r)
{
    if (!kl_map_has(m, key))
        kl_map_set(m, key, (void *)r);
    kl_free(key);
}

/* --- gathering ---------------------------------------------------------------------------- */

static void add(kl__catalog *c, const kl_resource *r)
{
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 64;
        c->order = kl_realloc(c->order, c->cap * sizeof *c->order);
    }
    c->order[c->n++] = (kl_resource *)r;
}

void kl__catalog_group(kl__catalog *c, const char *group) { kl_map_set(c->groups, group, NULL); }

void kl__catalog_fail(kl__catalog *c, const char *group, const char *version, const char *why)
{
    char *key = key2(group, version);
    kl_free(kl_map_set(c->failed, key, kl_strdup(why)));
    kl_free(key);
    kl__catalog_group(c, group);
}

static bool same_list(char **a, char **b)
{
    for (; a && *a && b && *b; a++, b++)
        if (strcmp(*a, *b))
            return false;
    return !(a && *a) && !(b && *b);
}

static bool same(const kl_resource *a, const kl_resource *b)
{
    return !strcmp(a->group, b->group) && !strcmp(a->version, b->version) && !strcmp(a->kind, b->kind)
        && !strcmp(a->plural, b->plural) && !strcmp(a->singular, b->singular)
        && a->namespaced == b->namespaced && same_list(a->short_names, b->short_names)
        && same_list(a->categories, b->categories) && same_list(a->verbs, b->verbs)
        && same_list(a->subresources, b->subresources);
}

/* r was filled by the caller and now belongs to the pool: a known equal one replaces it. */
static void adopt(kl__catalog *c, kl_resource *r)
{
    kl__pool *p = c->pool;
    const kl_resource *old = c->old ? take_get(c->old->found, key3(r->group, r->version, r->kind)) : NULL;
    if (old && same(old, r)) {
        kl_resource_fini(r);
        kl_free(r);
        add(c, old);
        return;
    }
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 64;
        p->all = kl_realloc(p->all, p->cap * sizeof *p->all);
    }
    p->all[p->n++] = r;
    add(c, r);
}

static char **strings_of(const kl_value *list)
{
    size_t n = kl_value_len(list), m = 0;
    char **out = kl_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *s = kl_value_str(kl_value_item(list, i));
        if (s)
            out[m++] = kl_strdup(s);
    }
    return out;
}

static const char *or_empty(const char *s) { return s ? s : ""; }

/* The server omits a singular name that equals the kind in lower case. */
static char *singular_of(const char *singular, const char *kind)
{
    char *s = kl_strdup(singular && *singular ? singular : kind);
    for (char *p = s; (!singular || !*singular) && *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    return s;
}

static kl_resource *resource_new(const char *group, const char *version, const char *kind, const char *plural,
    const char *singular, const kl_value *from)
{
    kl_resource *r = kl_new(kl_resource);
    r->group = kl_strdup(group);
    r->version = kl_strdup(version);
    r->kind = kl_strdup(kind);
    r->plural = kl_strdup(plural);
    r->singular = singular_of(singular, kind);
    r->short_names = strings_of(kl_value_get(from, "shortNames"));
    r->categories = strings_of(kl_value_get(from, "categories"));
    r->verbs = strings_of(kl_value_get(from, "verbs"));
    return r;
}

/* --- aggregated: items[group].versions[].resources[].subresources[] ----------------------- */

bool kl__is_aggregated(const kl_value *v)
{
    return !strcmp(or_empty(kl_value_str_at(v, "kind", NULL)), "APIGroupDiscoveryList");
}

static void read_version(kl__catalog *c, const char *group, const kl_value *version)
{
    const char *name = kl_value_str_at(version, "version", NULL),
               *fresh = kl_value_str_at(version, "freshness", NULL);
    const kl_value *resources = kl_value_get(version, "resources");
    if (!name)
        return;
    if (fresh && !strcmp(fresh, "Stale"))
        kl__catalog_fail(c, group, name, STALE);
    for (size_t i = 0; i < kl_value_len(resources); i++) {
        const kl_value *v = kl_value_item(resources, i), *subs = kl_value_get(v, "subresources");
        const char *plural = kl_value_str_at(v, "resource", NULL),
                   *kind = kl_value_str_at(v, "responseKind", "kind", NULL);
        if (!plural || !*plural || !kind || !*kind)
            continue;
        kl_resource *r = resource_new(
            group, name, kind, plural, kl_value_str_at(v, "singularResource", NULL), v);
        r->namespaced = !strcmp(or_empty(kl_value_str_at(v, "scope", NULL)), "Namespaced");
        r->subresources = kl_new_array(char *, kl_value_len(subs) + 1);
        size_t m = 0;
        for (size_t k = 0; k < kl_value_len(subs); k++) {
            const char *sub = kl_value_str_at(kl_value_item(subs, k), "subresource", NULL);
            if (sub)
                r->subresources[m++] = kl_strdup(sub);
        }
        adopt(c, r);
    }
}

void kl__catalog_aggregated(kl__catalog *c, const kl_value *v)
{
    const kl_value *items = kl_value_get(v, "items");
    for (size_t i = 0; i < kl_value_len(items); i++) {
        const kl_value *group = kl_value_item(items, i), *versions = kl_value_get(group, "versions");
        const char *name = or_empty(kl_value_str_at(group, "metadata", "name", NULL));
        kl__catalog_group(c, name);
        for (size_t k = 0; k < kl_value_len(versions); k++)
            read_version(c, name, kl_value_item(versions, k));
    }
}

/* --- legacy: one list of resources per group and version ---------------------------------- */

void kl__catalog_list(kl__catalog *c, const char *group, const char *version, const kl_value *v)
{
    const kl_value *list = kl_value_get(v, "resources");
    size_t n = kl_value_len(list);
    for (size_t i = 0; i < n; i++) {
        const kl_value *x = kl_value_item(list, i);
        const char *name = kl_value_str_at(x, "name", NULL), *kind = kl_value_str_at(x, "kind", NULL);
        if (!name || !*name || !kind || !*kind || strchr(name, '/'))
            continue;
        size_t len = strlen(name), m = 0;
        kl_resource *r = resource_new(
            group, version, kind, name, kl_value_str_at(x, "singularName", NULL), x);
        r->namespaced = kl_value_bool(kl_value_get(x, "namespaced"), false);
        r->subresources = kl_new_array(char *, n + 1);
        for (size_t k = 0; k < n; k++) {
            const char *sub = or_empty(kl_value_str_at(kl_value_item(list, k), "name", NULL));
            if (!strncmp(sub, name, len) && sub[len] == '/')
                r->subresources[m++] = kl_strdup(sub + len + 1);
        }
        adopt(c, r);
    }
}

/* --- the end ------------------------------------------------------------------------------ */

static bool is_missed(const kl__catalog *c, const kl_resource *r)
{
    char *key = key3(r->group, r->version, r->kind);
    bool missed = kl_map_has(c->missed, key);
    kl_free(key);
    return missed;
}

void kl__catalog_carry(kl__catalog *c, bool core)
{
    size_t it = 0;
    const char *key;
    void *v;
    for (size_t i = 0; c->old && i < c->old->n; i++)
        if (core == !*c->old->order[i]->group && !is_missed(c->old, c->old->order[i]))
            add(c, c->old->order[i]);
    while (c->old && kl_map_next(c->old->groups, &it, &key, &v))
        if (core == !*key)
            kl__catalog_group(c, key);
    for (it = 0; c->old && kl_map_next(c->old->failed, &it, &key, &v);)
        if (core == (*key == '|'))
            kl_free(kl_map_set(c->failed, key, kl_strdup(v)));
}

static bool is_failed(const kl__catalog *c, const kl_resource *r)
{
    char *key = key2(r->group, r->version);
    bool failed = kl_map_has(c->failed, key);
    kl_free(key);
    return failed;
}

static void keep_what_failed(kl__catalog *c)
{
    for (size_t i = 0; c->old && i < c->old->n; i++) {
        kl_resource *r = c->old->order[i];
        char *key = key3(r->group, r->version, r->kind);
        if (is_failed(c, r) && !kl_map_has(c->found, key)) {
            add(c, r);
            kl_map_set(c->found, key, r);
        }
        kl_free(key);
    }
}

/* A server that is starting, or one of several that lags behind, lacks kinds for a moment: the second fetch
 * decides. */
static void keep_what_is_missed(kl__catalog *c)
{
    for (size_t i = 0; c->old && !c->old->remembered && i < c->old->n; i++) {
        kl_resource *r = c->old->order[i];
        char *key = key3(r->group, r->version, r->kind);
        const kl_time *first = kl_map_get(c->old->missed, key);
        if (!kl_map_has(c->found, key) && (!first || c->made - *first < MISSED_FOR)) {
            kl_time *since = kl_new(kl_time);
            *since = first ? *first : c->made;
            add(c, r);
            kl_map_set(c->found, key, r);
            kl_free(kl_map_set(c->missed, key, since));
        }
        kl_free(key);
    }
}

bool kl__catalog_knows_core(const kl__catalog *c)
{
    for (size_t i = 0; c && i < c->n; i++)
        if (!*c->order[i]->group)
            return true;
    return false;
}

static void tell_what_failed(const kl__catalog *c)
{
    size_t it = 0;
    const char *key;
    void *why;
    while (kl_map_next(c->failed, &it, &key, &why)) {
        if (c->old && kl_map_has(c->old->failed, key))
            continue;
        int n = (int)strcspn(key, "|");
        kl_warn("discovery of a group failed; its kinds cannot be used until it works",
            "group=%.*s version=%s why=%s", n ? n : 4, n ? key : "core", key + n + 1, kl_log_quoted(why));
    }
}

void kl__catalog_done(kl__catalog *c)
{
    tell_what_failed(c);
    for (size_t i = 0; i < c->n; i++)
        set_if_absent(
            c->found, key3(c->order[i]->group, c->order[i]->version, c->order[i]->kind), c->order[i]);
    keep_what_failed(c);
    keep_what_is_missed(c);
    c->old = NULL;
    /* Kinds of working versions, core first; then kinds that only stale or failed versions have. */
    kl_resource **sorted = kl_new_array(kl_resource *, c->n + 1);
    size_t n = 0;
    for (int pass = 0; pass < 4; pass++)
        for (size_t i = 0; i < c->n; i++)
            if (pass / 2 == (int)is_failed(c, c->order[i]) && (pass % 2 == 0) == !*c->order[i]->group)
                sorted[n++] = c->order[i];
    kl_free(c->order);
    c->order = sorted;
    c->cap = n + 1;
}
