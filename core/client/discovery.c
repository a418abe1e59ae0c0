/* discovery.c - the server's resources, fetched when an unknown kind is used.
 *
 *   miss -> GET /api and GET /apis (aggregated: two requests tell all; 304: what we have is good) ->
 *   published
 *                   `-> a server without it: GET /api/v1, /apis/GROUP/VERSION, each on its own -> published
 *
 * The calls thread owns the fetch; what it found is published under the lock and read from any thread. A
 * returned resource lives as long as the client: a later fetch with the same data yields the same pointer. A
 * group/version whose discovery fails keeps its old data, and only kinds of its group get the failure. A
 * known kind is gone when two fetches, some time apart, miss it; a document that is not discovery (a load
 * balancer's page) is ignored. A missing kind is cached for two seconds, so that parked controllers do not
 * make a storm; news (forget) end that at once.
 *
 * The two aggregated documents are stored on the shelf with their ETags. A starting client reads them there;
 * within their configured age it uses them, and otherwise revalidates them, which costs no body. A miss
 * always sends a request. */
#include "client/discovery.h"

#include <string.h>
#include "base/heap.h"
#include "base/log.h"
#include "base/mem.h"
#include "client/catalog.h"
#include "client/client_impl.h"

#define AGGREGATED                                                                                           \
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"                                  \
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
#define FETCH_TIMEOUT KL_SECONDS(32) /* as client-go */
/* Requests of one fetch: each group and version is one. So many are under way at a time. */
#define PARTS_MAX 1000
#define PARTS_AT_ONCE 32
#define MISS_FRESH KL_SECONDS(2) /* how long a miss is cached */

typedef struct waiter {
    kl_list link;
    kl__discovery *d;
    char *kind;
    kl_resolve_fn *done;
    void *arg;
    uint64_t round; /* when it asked */
} waiter;

/* One legacy request; its result waits until all have arrived, so that the server's order counts and not the
 * network's. */
typedef struct part {
    struct fetch *f;
    char *group, *version;
    const kl_value *list;
} part;

/* What one fetch gathers. */
typedef struct fetch {
    kl__discovery *d;
    kl__catalog *catalog;
    uint64_t round; /* when it began */
    int pending;    /* requests without an answer */
    part **parts;   /* legacy: in the order of the server's preference */
    size_t n_parts;
    size_t asked, under_way; /* of the parts */
    kl_err fatal;            /* /apis itself failed */
} fetch;

enum { CORE, GROUPS, DOCUMENTS };
static const char *const paths[DOCUMENTS] = {"/api", "/apis"};
static const char *const shelved[DOCUMENTS] = {"discovery/api", "discovery/apis"};

struct kl__discovery {
    kl_client *c;
    /* calls thread */
    kl_shelf *shelf;
    kl_time ttl;
    bool looked; /* on the shelf, once */
    kl_list waiters;
    fetch *running;
    char *etags[DOCUMENTS]; /* of the documents in `known`; NULL: request the complete document */

    /* guards what follows; only the calls thread writes `known` and `pool` */
    kl_mutex mu;
    kl__pool pool;
    kl__catalog *known; /* the last that a fetch or the shelf gave, or NULL */
    kl_time known_at;   /* -1: ask again */
    /* one more with every forget: a fetch begun before does not answer it */
    uint64_t round;
};

/* --- a fetch ------------------------------------------------------------------------------ */

static uint64_t round_of(kl__discovery *d)
{
    kl_lock(&d->mu);
    uint64_t n = d->round;
    kl_unlock(&d->mu);
    return n;
}

static fetch *fetch_new(kl__discovery *d)
{
    fetch *f = kl_new(fetch);
    f->d = d;
    f->round = round_of(d);
    f->catalog = kl__catalog_new(&d->pool, d->known, kl_clock_now(d->c->clock));
    return f;
}

static void fetch_free(fetch *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n_parts; i++) {
        kl_value_unref(f->parts[i]->list);
        kl_free(f->parts[i]->group);
        kl_free(f->parts[i]->version);
        kl_free(f->parts[i]);
    }
    kl_free(f->parts);
    kl__catalog_free(f->catalog);
    kl_err_fini(&f->fatal);
    kl_free(f);
}

static void fetch_step(fetch *f);

/* A body that is not a discovery document (empty, foreign JSON) says nothing about kinds. */
static kl_status document_check(const kl_value *body, const char *kind, kl_err *err)
{
    const char *is = kl_value_str_at(body, "kind", NULL);
    if (is && !strcmp(is, kind))
        return KL_OK;
    return kl_fail(err, KL_ESERVER,
        "the answer is not a Kubernetes %s%s%s: is there a proxy or load balancer before the API server?",
        kind, is ? ", but a " : "", is ? is : "");
}

/* --- legacy: one request per group and version -------------------------------------------- */

static void ask_parts(fetch *f);

static void on_part(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    part *p = arg;
    fetch *f = p->f;
    (void)code;
    if (!st)
        st = document_check(body, "APIResourceList", err);
    if (st)
        kl__catalog_fail(f->catalog, p->group, p->version, kl_err_message(err));
    else
        p->list = kl_value_ref(body);
    f->under_way--;
    ask_parts(f);
    f->pending--;
    fetch_step(f);
}

static void ask_parts(fetch *f)
{
    while (f->asked < f->n_parts && f->under_way < PARTS_AT_ONCE) {
        part *p = f->parts[f->asked++];
        char *path = *p->group ? kl_sprintf("/apis/%s/%s", p->group, p->version)
                               : kl_sprintf("/api/%s", p->version);
        f->under_way++;
        kl__client_get(f->d->c, path, "application/json", FETCH_TIMEOUT, on_part, p);
        kl_free(path);
    }
}

static void get_part(fetch *f, const char *group, const char *version)
{
    if (f->n_parts == PARTS_MAX || !kl__catalog_names(group) || !kl__catalog_names(version)) {
        f->catalog->left_out++;
        return;
    }
    part *p = kl_new(part);
    p->f = f;
    p->group = kl_strdup(group);
    p->version = kl_strdup(version);
    f->parts = kl_realloc(f->parts, (f->n_parts + 1) * sizeof *f->parts);
    f->parts[f->n_parts++] = p;
    f->pending++;
    ask_parts(f);
}

static void read_legacy_groups(fetch *f, const kl_value *v)
{
    const kl_value *groups = kl_value_get(v, "groups");
    for (size_t i = 0; i < kl_value_len(groups); i++) {
        const kl_value *g = kl_value_item(groups, i), *versions = kl_value_get(g, "versions");
        const char *name = kl_value_str_at(g, "name", NULL),
                   *preferred = kl_value_str_at(g, "preferredVersion", "version", NULL);
        if (!name || !kl__catalog_names(name))
            continue;
        kl__catalog_group(f->catalog, name);
        if (preferred && *preferred)
            get_part(f, name, preferred);
        for (size_t k = 0; k < kl_value_len(versions); k++) {
            const char *version = kl_value_str_at(kl_value_item(versions, k), "version", NULL);
            if (version && !(preferred && !strcmp(version, preferred)))
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

/* --- aggregated --------------------------------------------------------------------------- */

/* A complete aggregated document, and the ETag for its revalidation. */
static void take_document(fetch *f, int which, const kl_value *body, const char *etag)
{
    kl__discovery *d = f->d;
    kl__catalog_aggregated(f->catalog, body);
    kl_free(d->etags[which]);
    d->etags[which] = etag ? kl_strdup(etag) : NULL;
    if (!etag || !kl_shelf_dir(d->shelf))
        return;
    kl_buf text = KL_BUF_INIT;
    if (!kl_value_encode(body, &text))
        (void)kl_shelf_put(d->shelf, shelved[which], kl_clock_wall(d->c->clock), etag, text.data, text.len);
    kl_buf_fini(&text);
}

static void take_unchanged(fetch *f, int which)
{
    kl__catalog_carry(f->catalog, which == CORE);
    kl_shelf_touch(f->d->shelf, shelved[which], kl_clock_wall(f->d->c->clock));
}

static void forget_document(fetch *f, int which)
{
    kl_free(f->d->etags[which]);
    f->d->etags[which] = NULL;
}

static void on_core(void *arg, kl_status st, int code, const kl_value *body, const char *etag, kl_err *err)
{
    fetch *f = arg;
    kl__catalog_group(f->catalog, "");
    bool aggregated = !st && code != 304 && kl__is_aggregated(body);
    /* a standalone aggregated API server has no core group */
    bool absent = st == KL_ENOTFOUND && !kl__catalog_knows_core(f->d->known);
    if (!st && code != 304 && !aggregated)
        st = document_check(body, "APIVersions", err);
    if (!st && code == 304)
        take_unchanged(f, CORE);
    else if (aggregated)
        take_document(f, CORE, body, etag);
    else {
        forget_document(f, CORE);
        if (!st)
            read_legacy_core(f, body);
        else if (!absent)
            kl__catalog_fail(f->catalog, "", "v1", kl_err_message(err));
    }
    f->pending--;
    fetch_step(f);
}

static void on_groups(void *arg, kl_status st, int code, const kl_value *body, const char *etag, kl_err *err)
{
    fetch *f = arg;
    bool aggregated = !st && code != 304 && kl__is_aggregated(body);
    if (!st && code != 304 && !aggregated)
        st = document_check(body, "APIGroupList", err);
    /* every API server has /apis: a server without it is not one */
    if (st == KL_ENOTFOUND)
        st = kl_fail(&f->fatal, KL_ESERVER, "discovery failed: %s", kl_err_message(err));
    else if (st)
        kl_err_move(&f->fatal, err);
    else if (code == 304)
        take_unchanged(f, GROUPS);
    else if (aggregated)
        take_document(f, GROUPS, body, etag);
    else {
        forget_document(f, GROUPS);
        read_legacy_groups(f, body);
    }
    f->pending--;
    fetch_step(f);
}

/* --- the shelf ---------------------------------------------------------------------------- */

/* Both stored documents, or none. True: they are young enough to be used. */
static bool look_on_shelf(kl__discovery *d)
{
    const kl_value *body[DOCUMENTS] = {0};
    char *etag[DOCUMENTS] = {0};
    bool young = d->ttl > 0, whole = true;
    for (int i = 0; i < DOCUMENTS && whole; i++) {
        kl_buf text = KL_BUF_INIT;
        kl_time age = 0;
        whole = kl_shelf_get(d->shelf, shelved[i], kl_clock_wall(d->c->clock), &text, &etag[i], &age)
            && !kl_value_decode(kl_buf_str(&text), text.len, &body[i], NULL) && kl__is_aggregated(body[i]);
        young = young && age < d->ttl;
        kl_buf_fini(&text);
    }
    if (whole) {
        kl__catalog *c = kl__catalog_new(&d->pool, NULL, 0);
        c->remembered = true;
        for (int i = 0; i < DOCUMENTS; i++) {
            kl__catalog_aggregated(c, body[i]);
            d->etags[i] = etag[i];
            etag[i] = NULL;
        }
        kl__catalog_group(c, "");
        kl__catalog_done(c);
        kl_lock(&d->mu);
        d->known = c;
        /* as old as a miss may be, so that a miss sends a request */
        if (young)
            d->known_at = kl_clock_now(d->c->clock) - MISS_FRESH;
        kl_unlock(&d->mu);
        kl_debug("discovery is remembered", "dir=%s resources=%zu believed=%s",
            kl_log_quoted(kl_shelf_dir(d->shelf)), c->n, young ? "yes" : "no");
    }
    for (int i = 0; i < DOCUMENTS; i++) {
        kl_value_unref(body[i]);
        kl_free(etag[i]);
    }
    return whole && young;
}

/* --- a fetch from its start to its publication -------------------------------------------- */

static void fetch_start(kl__discovery *d)
{
    fetch *f = d->running = fetch_new(d);
    static kl__tagged_fn *const done[DOCUMENTS] = {on_core, on_groups};
    f->pending = DOCUMENTS;
    for (int i = 0; i < DOCUMENTS; i++)
        kl__client_get_tagged(
            d->c, paths[i], AGGREGATED, FETCH_TIMEOUT, d->known ? d->etags[i] : NULL, done[i], f);
}

/* A request after news, or from a callback, waits for a fetch that began after it. */
static void tell_waiters(kl__discovery *d, uint64_t upto, const kl_err *fatal)
{
    kl_list told, later;
    kl_list_init(&told);
    kl_list_init(&later);
    for (kl_list *l; (l = kl_list_shift(&d->waiters));)
        kl_list_push(KL_CONTAINER(l, waiter, link)->round <= upto ? &told : &later, l);
    for (kl_list *l; (l = kl_list_shift(&later));)
        kl_list_push(&d->waiters, l);
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
            st = kl__catalog_find(d->known, w->kind, &r, &err);
            kl_unlock(&d->mu);
        }
        w->done(w->arg, st, r, &err);
        kl_err_fini(&err);
        kl_free(w->kind);
        kl_free(w);
    }
}

static void read_parts(fetch *f)
{
    for (size_t i = 0; i < f->n_parts; i++)
        if (f->parts[i]->list)
            kl__catalog_list(f->catalog, f->parts[i]->group, f->parts[i]->version, f->parts[i]->list);
}

static void publish(kl__discovery *d, kl__catalog *c, uint64_t begun)
{
    kl_lock(&d->mu);
    kl__catalog *old = d->known;
    d->known = c;
    d->known_at = begun == d->round ? kl_clock_now(d->c->clock) : -1;
    kl_unlock(&d->mu);
    kl__catalog_free(old);
    kl_debug("discovered", "resources=%zu groups=%zu failed=%zu", c->n, kl_map_len(c->groups),
        kl_map_len(c->failed));
}

static void fetch_step(fetch *f)
{
    if (f->pending)
        return;
    kl__discovery *d = f->d;
    d->running = NULL;
    if (f->fatal.status) {
        tell_waiters(d, f->round, &f->fatal);
    } else {
        read_parts(f);
        kl__catalog_done(f->catalog);
        kl__catalog *c = f->catalog;
        f->catalog = NULL;
        publish(d, c, f->round);
        tell_waiters(d, f->round, NULL);
    }
    fetch_free(f);
    if (!kl_list_empty(&d->waiters) && !d->running)
        fetch_start(d);
}

/* --- the public face ---------------------------------------------------------------------- */

kl__discovery *kl__discovery_new(kl_client *c, kl_shelf *shelf, kl_time ttl)
{
    kl__discovery *d = kl_new(kl__discovery);
    d->c = c;
    d->shelf = shelf;
    d->ttl = ttl;
    d->known_at = -1;
    kl_list_init(&d->waiters);
    kl_mutex_init(&d->mu);
    return d;
}

void kl__discovery_free(kl__discovery *d)
{
    if (!d)
        return;
    fetch_free(d->running);
    kl__catalog_free(d->known);
    kl__pool_fini(&d->pool);
    for (int i = 0; i < DOCUMENTS; i++)
        kl_free(d->etags[i]);
    kl_mutex_fini(&d->mu);
    kl_free(d);
}

static void on_wanted(void *arg)
{
    waiter *w = arg;
    kl__discovery *d = w->d;
    w->round = round_of(d);
    kl_list_push(&d->waiters, &w->link);
    if (d->running)
        return;
    if (!d->looked && kl_shelf_dir(d->shelf)) {
        d->looked = true;
        if (look_on_shelf(d) && kl_client_resolve_cached(d->c, w->kind)) {
            tell_waiters(d, w->round, NULL);
            return;
        }
    }
    kl_lock(&d->mu);
    bool fresh = d->known_at >= 0 && kl_clock_now(d->c->clock) - d->known_at < MISS_FRESH;
    kl_unlock(&d->mu);
    /* also when another fetch has found the kind meanwhile */
    if (fresh || kl_client_resolve_cached(d->c, w->kind))
        tell_waiters(d, w->round, NULL);
    else
        fetch_start(d);
}

const kl_resource *kl_client_resolve_cached(kl_client *c, const char *kind)
{
    kl_lock(&c->discovery->mu);
    const kl_resource *r = c->discovery->known_at >= 0 ? kl__catalog_word(c->discovery->known, kind) : NULL;
    kl_unlock(&c->discovery->mu);
    return r;
}

void kl_client_resolve(kl_client *c, const char *kind, kl_resolve_fn *done, void *arg)
{
    const kl_resource *r = kl_client_resolve_cached(c, kind);
    kl_err err = KL_ERR_INIT;
    kl_status st = r ? KL_OK : kl__word_check(kind, &err);
    if (r || st) {
        done(arg, st, r, &err);
        kl_err_fini(&err);
        return;
    }
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
    c->discovery->round++;
    kl_unlock(&c->discovery->mu);
    if (c->openapi)
        kl__openapi_forget(c->openapi);
}

const kl_resource **kl_client_resources(kl_client *c, size_t *n)
{
    kl__discovery *d = c->discovery;
    const kl_resource **out = NULL;
    kl_lock(&d->mu);
    if (d->known && d->known_at >= 0) {
        *n = d->known->n;
        out = kl_new_array(const kl_resource *, *n + 1);
        for (size_t i = 0; i < *n; i++)
            out[i] = d->known->order[i];
    }
    kl_unlock(&d->mu);
    return out;
}

char **kl_client_discovery_failures(kl_client *c)
{
    kl__discovery *d = c->discovery;
    size_t it = 0, n = 0;
    const char *key;
    void *why;
    kl_lock(&d->mu);
    char **out = kl_new_array(char *, 2 * (d->known ? kl_map_len(d->known->failed) : 0) + 1);
    while (d->known && kl_map_next(d->known->failed, &it, &key, &why)) {
        const char *bar = strchr(key, '|');
        char *group = kl_strndup(key, (size_t)(bar - key));
        out[n++] = kl_api_version(group, bar + 1);
        out[n++] = kl_strdup(why);
        kl_free(group);
    }
    kl_unlock(&d->mu);
    return out;
}
