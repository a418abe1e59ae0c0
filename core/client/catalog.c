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
/* A name that a server gives a group, a version, a kind or a resource: longer ones, and those with other
 * characters, could not be written in a script, and could lead to another path of the server. */
#define NAME_MAX_BYTES 253
#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-."
/* Of all groups; a cluster with hundreds of definitions has a thousand. */
#define RESOURCES_MAX 50000
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

static const char *or_empty(const char *s) { return s ? s : ""; }

static bool is_name(const char *s, size_t n, const char *bytes)
{
    return n <= NAME_MAX_BYTES && strspn(s, bytes) == n && *s != '.' && !strstr(s, "..");
}

bool kl__catalog_names(const char *name) { return is_name(name, strlen(name), NAME_BYTES); }

/* The text of a value; NULL where it is not a text, or not a name. */
static const char *name_in(const kl_value *v, const char *bytes)
{
    size_t n;
    const char *s = kl_value_strn(v, &n);
    return s && is_name(s, n, bytes) ? s : NULL;
}

static const char *name_of(const kl_value *v) { return name_in(v, NAME_BYTES); }

/* Of a resource: never empty. NULL: the resource is left out, and counted if somebody may miss it. */
static const char *own_name(kl__catalog *c, const kl_value *v)
{
    const char *s = name_of(v);
    if (s && *s && c->n < RESOURCES_MAX)
        return s;
    c->left_out += kl_value_str(v) && (!s || *s);
    return NULL;
}

static char **strings_of(const kl_value *list)
{
    size_t n = kl_value_len(list), m = 0;
    char **out = kl_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *s = name_of(kl_value_item(list, i));
        if (s)
            out[m++] = kl_strdup(s);
    }
    return out;
}

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
    const char *name = own_name(c, kl_value_get(version, "version")),
               *fresh = kl_value_str_at(version, "freshness", NULL);
    const kl_value *resources = kl_value_get(version, "resources");
    if (!name)
        return;
    if (fresh && !strcmp(fresh, "Stale"))
        kl__catalog_fail(c, group, name, STALE);
    for (size_t i = 0; i < kl_value_len(resources); i++) {
        const kl_value *v = kl_value_item(resources, i), *subs = kl_value_get(v, "subresources");
        const char *plural = own_name(c, kl_value_get(v, "resource")),
                   *kind = plural ? own_name(c, kl_value_at(v, "responseKind", "kind", NULL)) : NULL;
        if (!kind)
            continue;
        kl_resource *r = resource_new(
            group, name, kind, plural, name_of(kl_value_get(v, "singularResource")), v);
        r->namespaced = !strcmp(or_empty(kl_value_str_at(v, "scope", NULL)), "Namespaced");
        r->subresources = kl_new_array(char *, kl_value_len(subs) + 1);
        size_t m = 0;
        for (size_t k = 0; k < kl_value_len(subs); k++) {
            const char *sub = name_in(kl_value_get(kl_value_item(subs, k), "subresource"), NAME_BYTES "/");
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
        const kl_value *given = kl_value_at(group, "metadata", "name", NULL);
        const char *name = given ? name_of(given) : "";
        if (!name) {
            c->left_out++;
            continue;
        }
        kl__catalog_group(c, name);
        for (size_t k = 0; k < kl_value_len(versions); k++)
            read_version(c, name, kl_value_item(versions, k));
    }
}

/* --- legacy: one list of resources per group and version ---------------------------------- */

/* The subresources of one resource, while a list is read. */
typedef struct subs {
    char **v; /* NULL-terminated, if not NULL */
    size_t n, cap;
} subs;

static void subs_free(void *v)
{
    subs *s = v;
    for (size_t i = 0; i < s->n; i++)
        kl_free(s->v[i]);
    kl_free(s->v);
    kl_free(s);
}

static void subs_add(subs *s, const char *name)
{
    if (s->n + 1 >= s->cap) {
        s->cap = s->cap ? 2 * s->cap : 4;
        s->v = kl_realloc(s->v, s->cap * sizeof *s->v);
    }
    s->v[s->n++] = kl_strdup(name);
    s->v[s->n] = NULL;
}

/* resource -> subs * */
static kl_map *subs_of(const kl_value *list)
{
    kl_map *m = kl_map_new();
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *name = name_in(kl_value_get(kl_value_item(list, i), "name"), NAME_BYTES "/"),
                   *slash = name ? strchr(name, '/') : NULL;
        if (!slash)
            continue;
        char *of = kl_strndup(name, (size_t)(slash - name));
        subs *s = kl_map_get(m, of);
        if (!s)
            kl_map_set(m, of, s = kl_new(subs));
        subs_add(s, slash + 1);
        kl_free(of);
    }
    return m;
}

void kl__catalog_list(kl__catalog *c, const char *group, const char *version, const kl_value *v)
{
    const kl_value *list = kl_value_get(v, "resources");
    kl_map *all = subs_of(list);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *x = kl_value_item(list, i);
        const char *any = kl_value_str_at(x, "name", NULL);
        if (any && strchr(any, '/'))
            continue;
        const char *name = own_name(c, kl_value_get(x, "name")),
                   *kind = name ? own_name(c, kl_value_get(x, "kind")) : NULL;
        if (!kind)
            continue;
        kl_resource *r = resource_new(
            group, version, kind, name, name_of(kl_value_get(x, "singularName")), x);
        r->namespaced = kl_value_bool(kl_value_get(x, "namespaced"), false);
        subs *s = kl_map_get(all, name);
        r->subresources = s && s->v ? s->v : kl_new_array(char *, 1);
        if (s)
            *s = (subs){0}; /* a second resource of the same name has none */
        adopt(c, r);
    }
    kl_map_free(all, subs_free);
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

static void tell_what_was_left_out(const kl__catalog *c)
{
    if (c->left_out && !(c->old && c->old->left_out == c->left_out))
        kl_warn("discovery has invalid names, or too many; these are left out", "names=%zu resources=%zu",
            c->left_out, c->n);
}

void kl__catalog_done(kl__catalog *c)
{
    tell_what_failed(c);
    tell_what_was_left_out(c);
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
