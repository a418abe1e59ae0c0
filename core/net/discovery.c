/* discovery.c - which resources the server has, fetched when somebody asks for a kind that is not known.
 *
 *   miss -> GET /api and GET /apis (aggregated: two requests tell all) -> published
 *                   `-> a server without it: GET /api/v1, /apis/GROUP/VERSION, each on its own -> published
 *
 * The calls thread owns the fetch; what it found is published under the lock and read from any thread. A resource once
 * handed out stays for the client's life: a later fetch that says the same yields the same pointer. A group/version whose
 * discovery fails keeps what was known of it, and only kinds of its group hear of the failure. A fetch that did not find a
 * kind answers for it for two seconds more, so that parked controllers do not make a storm. */
#include "net/discovery.h"

#include <string.h>
#include <strings.h>
#include "base/heap.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "net/client_impl.h"

#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," \
                   "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
#define FETCH_TIMEOUT KL_SECONDS(32)        /* as client-go */
#define MISS_FRESH KL_SECONDS(2)            /* a miss is not asked for again so soon */
#define SUGGESTIONS_MAX 3
#define LETTERS_MAX 2                       /* that may be wrong in a kind that somebody meant; a third of it at most */

typedef struct waiter {
    kl_list link;
    kl__discovery *d;
    char *kind;
    kl_resolve_fn *done;
    void *arg;
} waiter;

typedef struct part part;

/* What one fetch gathers. */
typedef struct fetch {
    kl__discovery *d;
    int pending;                            /* requests in flight */
    part **parts;                           /* legacy: in the order of the server's preference */
    size_t n_parts;
    kl_map *found;                          /* "group|version|Kind", "group||Kind" and "||Kind" -> const kl_resource * (borrowed) */
    kl_map *groups;                         /* group -> NULL */
    kl_map *failed;                         /* "group|version" -> message (char *) */
    kl_resource **order;                    /* as the server lists them, preferred versions first (borrowed) */
    size_t n, cap;
    kl_err fatal;                           /* /apis itself failed */
} fetch;

struct kl__discovery {
    kl_client *c;
    /* calls thread */
    kl_list waiters;
    fetch *running;

    kl_mutex mu;                            /* of what follows */
    kl_resource **all;                      /* everything ever handed out; owned */
    size_t n_all, cap_all;
    fetch *known;                           /* the last fetch that succeeded, or NULL */
    kl_time known_at;                       /* -1: ask again */
};

/* --- keys ----------------------------------------------------------------------------------------------------------------- */

static char *key3(const char *group, const char *version, const char *kind)
{
    return kl_sprintf("%s|%s|%s", group, version, kind);
}

static void *take_get(kl_map *m, char *key)
{
    void *v = kl_map_get(m, key);
    kl_free(key);
    return v;
}

static const kl_resource *find(const fetch *f, const kl_gvk *g)
{
    return f ? take_get(f->found, key3(g->group, g->version, g->kind)) : NULL;
}

static void set_if_absent(kl_map *m, char *key, const kl_resource *r)
{
    if (!kl_map_has(m, key))
        kl_map_set(m, key, (void *)r);
    kl_free(key);
}

/* --- gathering ------------------------------------------------------------------------------------------------------------ */

static fetch *fetch_new(kl__discovery *d)
{
    fetch *f = kl_new(fetch);
    f->d = d;
    f->found = kl_map_new();
    f->groups = kl_map_new();
    f->failed = kl_map_new();
    return f;
}

static void fetch_free(fetch *f)
{
    if (!f)
        return;
    kl_map_free(f->found, NULL);
    kl_map_free(f->groups, NULL);
    kl_map_free(f->failed, kl_free);
    kl_free(f->order);
    kl_err_fini(&f->fatal);
    kl_free(f);
}

static void fetch_add(fetch *f, kl_resource *r)
{
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 64;
        f->order = kl_realloc(f->order, f->cap * sizeof *f->order);
    }
    f->order[f->n++] = r;
}

static void fetch_fail(fetch *f, const char *group, const char *version, const char *why)
{
    char *key = kl_sprintf("%s|%s", group, version);
    kl_free(kl_map_set(f->failed, key, kl_strdup(why)));
    kl_free(key);
    kl_map_set(f->groups, group, NULL);
    kl_warn("discovery of a group failed", "group=%s version=%s", group, version);
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
    return !strcmp(a->group, b->group) && !strcmp(a->version, b->version) && !strcmp(a->kind, b->kind) && !strcmp(a->plural, b->plural)
        && !strcmp(a->singular, b->singular) && a->namespaced == b->namespaced && same_list(a->short_names, b->short_names)
        && same_list(a->categories, b->categories) && same_list(a->verbs, b->verbs) && same_list(a->subresources, b->subresources);
}

/* r is the caller's to fill and ours from here: what is known already takes its place. */
static void adopt(fetch *f, kl_resource *r)
{
    kl__discovery *d = f->d;
    kl_lock(&d->mu);
    kl_gvk g = { r->group, r->version, r->kind };
    const kl_resource *old = find(d->known, &g);
    if (old && same(old, r)) {
        kl_resource_fini(r);
        kl_free(r);
        r = (kl_resource *)old;
    } else {
        if (d->n_all == d->cap_all) {
            d->cap_all = d->cap_all ? 2 * d->cap_all : 64;
            d->all = kl_realloc(d->all, d->cap_all * sizeof *d->all);
        }
        d->all[d->n_all++] = r;
    }
    kl_unlock(&d->mu);
    fetch_add(f, r);
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

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

static kl_resource *resource_new(const char *group, const char *version, const char *kind, const char *plural, const char *singular, const kl_value *from)
{
    kl_resource *r = kl_new(kl_resource);
    r->group = kl_strdup(group);
    r->version = kl_strdup(version);
    r->kind = kl_strdup(kind);
    r->plural = kl_strdup(plural);
    r->singular = kl_strdup(or_empty(singular));
    r->short_names = strings_of(kl_value_get(from, "shortNames"));
    r->categories = strings_of(kl_value_get(from, "categories"));
    r->verbs = strings_of(kl_value_get(from, "verbs"));
    return r;
}

/* --- aggregated: items[group].versions[].resources[].subresources[] ---------------------------------------------------------- */

static void read_aggregated_version(fetch *f, const char *group, const kl_value *version)
{
    const char *name = kl_value_str_at(version, "version", NULL), *fresh = kl_value_str_at(version, "freshness", NULL);
    const kl_value *resources = kl_value_get(version, "resources");
    if (!name)
        return;
    if (fresh && !strcmp(fresh, "Stale"))
        fetch_fail(f, group, name, "the server calls what it knows of it stale: is the API service behind it up?");
    for (size_t i = 0; i < kl_value_len(resources); i++) {
        const kl_value *v = kl_value_item(resources, i), *subs = kl_value_get(v, "subresources");
        const char *plural = kl_value_str_at(v, "resource", NULL), *kind = kl_value_str_at(v, "responseKind", "kind", NULL);
        if (!plural || !*plural || !kind || !*kind)
            continue;
        kl_resource *r = resource_new(group, name, kind, plural, kl_value_str_at(v, "singularResource", NULL), v);
        r->namespaced = !strcmp(or_empty(kl_value_str_at(v, "scope", NULL)), "Namespaced");
        r->subresources = kl_new_array(char *, kl_value_len(subs) + 1);
        size_t m = 0;
        for (size_t k = 0; k < kl_value_len(subs); k++) {
            const char *sub = kl_value_str_at(kl_value_item(subs, k), "subresource", NULL);
            if (sub)
                r->subresources[m++] = kl_strdup(sub);
        }
        adopt(f, r);
    }
}

static void read_aggregated(fetch *f, const kl_value *v)
{
    const kl_value *items = kl_value_get(v, "items");
    for (size_t i = 0; i < kl_value_len(items); i++) {
        const kl_value *group = kl_value_item(items, i), *versions = kl_value_get(group, "versions");
        const char *name = or_empty(kl_value_str_at(group, "metadata", "name", NULL));
        kl_map_set(f->groups, name, NULL);
        for (size_t k = 0; k < kl_value_len(versions); k++)
            read_aggregated_version(f, name, kl_value_item(versions, k));
    }
}

/* --- legacy: one list of resources per group and version ------------------------------------------------------------------------ */

/* One request; what it brought waits until all are there, so that the server's order and not the network's counts. */
struct part { fetch *f; char *group, *version; const kl_value *list; };

static void read_resource_list(fetch *f, const char *group, const char *version, const kl_value *v)
{
    const kl_value *list = kl_value_get(v, "resources");
    size_t n = kl_value_len(list);
    for (size_t i = 0; i < n; i++) {
        const kl_value *x = kl_value_item(list, i);
        const char *name = kl_value_str_at(x, "name", NULL), *kind = kl_value_str_at(x, "kind", NULL);
        if (!name || !*name || !kind || strchr(name, '/'))
            continue;
        size_t len = strlen(name), m = 0;
        kl_resource *r = resource_new(group, version, kind, name, kl_value_str_at(x, "singularName", NULL), x);
        r->namespaced = kl_value_bool(kl_value_get(x, "namespaced"), false);
        r->subresources = kl_new_array(char *, n + 1);
        for (size_t k = 0; k < n; k++) {
            const char *sub = or_empty(kl_value_str_at(kl_value_item(list, k), "name", NULL));
            if (!strncmp(sub, name, len) && sub[len] == '/')
                r->subresources[m++] = kl_strdup(sub + len + 1);
        }
        adopt(f, r);
    }
}

static void fetch_step(fetch *f);

static void on_part(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    part *p = arg;
    fetch *f = p->f;
    (void)code;
    if (st)
        fetch_fail(f, p->group, p->version, kl_err_message(err));
    else
        p->list = kl_value_ref(body);
    f->pending--;
    fetch_step(f);
}

static void get_part(fetch *f, const char *group, const char *version)
{
    part *p = kl_new(part);
    p->f = f;
    p->group = kl_strdup(group);
    p->version = kl_strdup(version);
    f->parts = kl_realloc(f->parts, (f->n_parts + 1) * sizeof *f->parts);
    f->parts[f->n_parts++] = p;
    char *path = *group ? kl_sprintf("/apis/%s/%s", group, version) : kl_sprintf("/api/%s", version);
    f->pending++;
    kl__client_get(f->d->c, path, "application/json", FETCH_TIMEOUT, on_part, p);
    kl_free(path);
}

static void read_parts(fetch *f)
{
    for (size_t i = 0; i < f->n_parts; i++) {
        part *p = f->parts[i];
        if (p->list)
            read_resource_list(f, p->group, p->version, p->list);
        kl_value_unref(p->list);
        kl_free(p->group);
        kl_free(p->version);
        kl_free(p);
    }
    kl_free(f->parts);
    f->parts = NULL;
    f->n_parts = 0;
}

static void read_legacy_groups(fetch *f, const kl_value *v)
{
    const kl_value *groups = kl_value_get(v, "groups");
    for (size_t i = 0; i < kl_value_len(groups); i++) {
        const kl_value *g = kl_value_item(groups, i), *versions = kl_value_get(g, "versions");
        const char *name = kl_value_str_at(g, "name", NULL), *preferred = or_empty(kl_value_str_at(g, "preferredVersion", "version", NULL));
        if (!name)
            continue;
        kl_map_set(f->groups, name, NULL);
        if (*preferred)
            get_part(f, name, preferred);
        for (size_t k = 0; k < kl_value_len(versions); k++) {
            const char *version = kl_value_str_at(kl_value_item(versions, k), "version", NULL);
            if (version && strcmp(version, preferred))
                get_part(f, name, version);
        }
    }
}

static void read_legacy_core(fetch *f, const kl_value *v)
{
    const kl_value *versions = kl_value_get(v, "versions");
    for (size_t i = 0; i < kl_value_len(versions); i++) {
        const char *version = kl_value_str(kl_value_item(versions, i));
        if (version)
            get_part(f, "", version);
    }
}

/* --- a fetch from its start to its publication ------------------------------------------------------------------------------------ */

static bool is_aggregated(const kl_value *v)
{
    return !strcmp(or_empty(kl_value_str_at(v, "kind", NULL)), "APIGroupDiscoveryList");
}

static void on_core(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    fetch *f = arg;
    (void)code;
    kl_map_set(f->groups, "", NULL);
    if (st && st != KL_ENOTFOUND)               /* an aggregated API server alone has no core group */
        fetch_fail(f, "", "v1", kl_err_message(err));
    else if (!st && is_aggregated(body))
        read_aggregated(f, body);
    else if (!st)
        read_legacy_core(f, body);
    f->pending--;
    fetch_step(f);
}

static void on_groups(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    fetch *f = arg;
    (void)code;
    if (st)
        kl_err_move(&f->fatal, err);
    else if (is_aggregated(body))
        read_aggregated(f, body);
    else
        read_legacy_groups(f, body);
    f->pending--;
    fetch_step(f);
}

static void fetch_start(kl__discovery *d)
{
    fetch *f = d->running = fetch_new(d);
    f->pending = 2;
    kl__client_get(d->c, "/api", AGGREGATED, FETCH_TIMEOUT, on_core, f);
    kl__client_get(d->c, "/apis", AGGREGATED, FETCH_TIMEOUT, on_groups, f);
}

/* What failed this time keeps what was known of it. */
static void carry_over(fetch *f, const fetch *old)
{
    for (size_t i = 0; old && i < old->n; i++) {
        kl_resource *r = old->order[i];
        char *key = kl_sprintf("%s|%s", r->group, r->version);
        bool failed = kl_map_has(f->failed, key);
        kl_free(key);
        key = key3(r->group, r->version, r->kind);
        if (failed && !kl_map_has(f->found, key)) {
            fetch_add(f, r);
            kl_map_set(f->found, key, r);
        }
        kl_free(key);
    }
}

/* Exact names first; then the first of each group in the server's order is the group's, and the core group's or the first
 * of all is the bare kind's. A stale or failed version stands in only where no other has the kind. */
static void index_found(fetch *f, const fetch *old)
{
    for (size_t i = 0; i < f->n; i++)
        set_if_absent(f->found, key3(f->order[i]->group, f->order[i]->version, f->order[i]->kind), f->order[i]);
    carry_over(f, old);
    for (int pass = 0; pass < 4; pass++)
        for (size_t i = 0; i < f->n; i++) {
            const kl_resource *r = f->order[i];
            char *key = kl_sprintf("%s|%s", r->group, r->version);
            bool failed = kl_map_has(f->failed, key), core = !*r->group;
            kl_free(key);
            if (pass / 2 != (int)failed || (pass % 2 == 0) != core)
                continue;
            set_if_absent(f->found, key3(r->group, "", r->kind), r);
            set_if_absent(f->found, key3("", "", r->kind), r);
        }
}

static kl_status answer(const fetch *f, const char *kind, const kl_resource **out, kl_err *err);

static void tell_waiters(kl__discovery *d, const kl_err *fatal)
{
    kl_list told;
    kl_list_init(&told);
    for (kl_list *l; (l = kl_list_shift(&d->waiters));)
        kl_list_push(&told, l);                 /* who asks from a callback waits for the next fetch */
    for (kl_list *l; (l = kl_list_shift(&told));) {
        waiter *w = KL_CONTAINER(l, waiter, link);
        const kl_resource *r = NULL;
        kl_err err = KL_ERR_INIT;
        kl_status st;
        if (fatal) {
            kl_err_copy(&err, fatal);
            st = kl_err_prefix(&err, "looking up \"%s\"", w->kind);
        } else {
            kl_lock(&d->mu);
            st = answer(d->known, w->kind, &r, &err);
            kl_unlock(&d->mu);
        }
        w->done(w->arg, st, r, &err);
        kl_err_fini(&err);
        kl_free(w->kind);
        kl_free(w);
    }
}

static void fetch_step(fetch *f)
{
    if (f->pending)
        return;
    kl__discovery *d = f->d;
    d->running = NULL;
    read_parts(f);
    if (f->fatal.status) {
        tell_waiters(d, &f->fatal);
        fetch_free(f);
    } else {
        kl_lock(&d->mu);
        fetch *old = d->known;
        index_found(f, old);
        d->known = f;
        d->known_at = kl_clock_now(d->c->clock);
        fetch_free(old);
        kl_unlock(&d->mu);
        kl_debug("discovered", "resources=%zu groups=%zu failed=%zu", f->n, kl_map_len(f->groups), kl_map_len(f->failed));
        tell_waiters(d, NULL);
    }
    if (!kl_list_empty(&d->waiters) && !d->running)
        fetch_start(d);
}

/* --- what to say about a kind that is not there ------------------------------------------------------------------------------------ */

/* 0 is nearest; -1 is no match at all. */
static int nearness(const kl_gvk *g, const kl_resource *r)
{
    size_t most = strlen(g->kind) / 3, letters = kl_edit_distance(g->kind, r->kind);
    bool group = !strcmp(g->group, r->group), other_name = !strcasecmp(g->kind, r->plural) || !strcasecmp(g->kind, r->singular);
    for (char **s = r->short_names; s && *s; s++)
        other_name = other_name || !strcasecmp(g->kind, *s);
    if (letters > (most < LETTERS_MAX ? most : LETTERS_MAX) && !other_name)
        return -1;
    return (other_name ? 0 : (int)letters) * 2 + !group;
}

static void suggest(const fetch *f, const kl_gvk *g, kl_buf *out)
{
    int told = 0;
    for (int rank = 0; rank <= 2 * LETTERS_MAX + 1 && told < SUGGESTIONS_MAX; rank++)
        for (size_t i = 0; i < f->n && told < SUGGESTIONS_MAX; i++) {
            const kl_resource *r = f->order[i];
            if (nearness(g, r) != rank)
                continue;
            char *name = kl_gvk_text(r->group, r->version, r->kind);
            kl_buf_printf(out, "%s\"%s\"", told++ ? " or " : "; did you mean ", name);
            kl_free(name);
        }
    if (told)
        kl_buf_putc(out, '?');
    else if (!kl_map_has(f->groups, g->group))
        kl_buf_printf(out, "; it has no API group \"%s\": is the CRD installed?", g->group);
}

static const char *failure_in_group(const fetch *f, const kl_gvk *g)
{
    size_t it = 0, n = strlen(g->group);
    const char *key;
    void *why;
    while (kl_map_next(f->failed, &it, &key, &why))
        if (!strncmp(key, g->group, n) && key[n] == '|' && (!*g->version || !strcmp(key + n + 1, g->version)))
            return why;
    return NULL;
}

static kl_status answer(const fetch *f, const char *kind, const kl_resource **out, kl_err *err)
{
    kl_gvk g;
    kl_status st = kl_gvk_parse(kind, &g, err);
    if (st)
        return st;
    const kl_resource *r = find(f, &g);
    const char *why = f && !r ? failure_in_group(f, &g) : NULL;
    if (r)
        *out = r;
    else if (why)
        st = kl_fail(err, KL_ESERVER, "looking up \"%s\": discovery of its API group failed: %s", kind, why);
    else {
        kl_buf more = KL_BUF_INIT;
        if (f)
            suggest(f, &g, &more);
        st = kl_fail(err, KL_ENOTFOUND, "the server has no \"%s\"%s", kind, kl_buf_str(&more));
        kl_buf_fini(&more);
    }
    kl_gvk_fini(&g);
    return st;
}

/* --- the public face ------------------------------------------------------------------------------------------------------------------ */

kl__discovery *kl__discovery_new(kl_client *c)
{
    kl__discovery *d = kl_new(kl__discovery);
    d->c = c;
    d->known_at = -1;
    kl_list_init(&d->waiters);
    kl_mutex_init(&d->mu);
    return d;
}

void kl__discovery_free(kl__discovery *d)
{
    if (!d)
        return;
    fetch_free(d->known);
    fetch_free(d->running);
    for (size_t i = 0; i < d->n_all; i++) {
        kl_resource_fini(d->all[i]);
        kl_free(d->all[i]);
    }
    kl_free(d->all);
    kl_mutex_fini(&d->mu);
    kl_free(d);
}

static void on_wanted(void *arg)
{
    waiter *w = arg;
    kl__discovery *d = w->d;
    kl_list_push(&d->waiters, &w->link);
    if (d->running)
        return;
    kl_lock(&d->mu);
    bool fresh = d->known_at >= 0 && kl_clock_now(d->c->clock) - d->known_at < MISS_FRESH;
    kl_unlock(&d->mu);
    if (fresh)                                  /* also when somebody's fetch found it in between */
        tell_waiters(d, NULL);
    else
        fetch_start(d);
}

const kl_resource *kl_client_resolve_cached(kl_client *c, const char *kind)
{
    kl_gvk g;
    if (kl_gvk_parse(kind, &g, NULL))
        return NULL;
    kl_lock(&c->discovery->mu);
    const kl_resource *r = c->discovery->known_at >= 0 ? find(c->discovery->known, &g) : NULL;
    kl_unlock(&c->discovery->mu);
    kl_gvk_fini(&g);
    return r;
}

void kl_client_resolve(kl_client *c, const char *kind, kl_resolve_fn *done, void *arg)
{
    const kl_resource *r = kl_client_resolve_cached(c, kind);
    kl_err err = KL_ERR_INIT;
    kl_gvk g;
    kl_status st = r ? KL_OK : kl_gvk_parse(kind, &g, &err);
    if (r || st) {
        done(arg, st, r, &err);
        kl_err_fini(&err);
        return;
    }
    kl_gvk_fini(&g);
    waiter *w = kl_new(waiter);
    w->kind = kl_strdup(kind);
    w->done = done;
    w->arg = arg;
    w->d = c->discovery;
    kl_http_post(c->calls, on_wanted, w);
}

void kl_client_discovery_forget(kl_client *c)
{
    kl_lock(&c->discovery->mu);
    c->discovery->known_at = -1;
    kl_unlock(&c->discovery->mu);
}
