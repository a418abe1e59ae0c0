/* replay_world.c - the caches of a recording as a source of lists and watches for real caches, pumped by
 * hand. */
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/selector.h"
#include "lab/replay_impl.h"

typedef struct job {
    void (*fn)(void *arg);
    void *arg;
    struct job *next;
} job;

/* A cache of the recording. */
typedef struct held {
    const kl_past_cache *is;
    kl_map *objects; /* key -> value, borrowed from the recording */
} held;

/* One list and watch of a cache of ours. */
typedef struct feed {
    kl__world *w;
    char *kind, *label, *ns, *is; /* is: the kind alone, "Pod" */
    /* to filter by, where no cache of the recording was just that; or NULL */
    kl_selector *labels;
    bool exact; /* one was */
    bool known; /* there is any of the kind */
    kl_source_sink sink;
    uint64_t id; /* of the open list or watch; 0: none */
    bool listing;
    struct feed *next;
} feed;

struct kl__world {
    const kl_past *p;
    kl_clock *clock;
    kl_loop *loop, *mapper;
    kl_caches *caches;
    held *held;
    feed *feeds;
    job *first, **last;
    uint64_t ids;
    kl_map *missing; /* kinds that nobody recorded -> their made-up resource */
};

/* --- posts -------------------------------------------------------------------------------- */

static void post(kl__world *w, void (*fn)(void *), void *arg)
{
    job *j = kl_new(job);
    *j = (job){.fn = fn, .arg = arg};
    *w->last = j;
    w->last = &j->next;
}

static bool run_posted(kl__world *w)
{
    job *j = w->first;
    if (!j)
        return false;
    w->first = j->next;
    if (!w->first)
        w->last = &w->first;
    j->fn(j->arg);
    kl_free(j);
    return true;
}

void kl__world_pump(kl__world *w)
{
    for (bool more = true; more;) {
        more = false;
        while (run_posted(w))
            more = true;
        for (kl_loop *l = w->loop; l; l = l == w->loop ? w->mapper : NULL)
            if (kl_loop_next(l) == INT64_MIN) {
                kl_loop_step(l);
                more = true;
            }
    }
}

/* --- a source ----------------------------------------------------------------------------- */

/* Whether what a cache of the recording held is what a feed brings: that of its very label; where there is
 * none, that of its kind. */
static bool feeds_from(const feed *f, const held *h)
{
    return f->exact ? !strcmp(h->is->label, f->label) : !strcmp(h->is->kind, f->kind) && !h->is->metadata;
}

static bool wants(const feed *f, const kl_value *v)
{
    const char *ns = kl_object_namespace(v);
    if (f->ns && ns && strcmp(f->ns, ns))
        return false;
    return !f->labels || kl_selector_matches(f->labels, kl_value_at(v, "metadata", "labels", NULL));
}

typedef struct list_job {
    feed *f;
    uint64_t id;
} list_job;

static const kl_value *envelope(const char *kind)
{
    kl_builder *b = kl_builder_new();
    char *list = kl_sprintf("%sList", kind);
    kl_build_object(b);
    kl_build_kstr(b, "kind", list);
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "resourceVersion", "1");
    kl_build_end(b);
    kl_build_end(b);
    kl_free(list);
    return kl_builder_done(b);
}

static void do_list(void *arg)
{
    list_job *j = arg;
    feed *f = j->f;
    kl__world *w = f->w;
    kl_map *seen = kl_map_new();
    for (size_t i = 0; i < w->p->n_caches && f->id == j->id; i++) {
        char **keys = feeds_from(f, &w->held[i]) ? kl_map_sorted_keys(w->held[i].objects) : NULL;
        for (char **k = keys; k && *k; k++) {
            const kl_value *v = kl_map_get(w->held[i].objects, *k);
            if (wants(f, v) && !kl_map_set(seen, *k, f))
                (void)f->sink.item(f->sink.arg, kl_value_ref(v), NULL);
        }
        kl_free(keys);
    }
    kl_map_free(seen, NULL);
    if (f->id == j->id) {
        f->id = 0;
        const kl_value *e = envelope(f->is);
        f->sink.done(f->sink.arg, KL_OK, 200, e, NULL);
        kl_value_unref(e);
    }
    kl_free(j);
}

static uint64_t source_list(void *self, const kl_list_request *r, const kl_source_sink *sink)
{
    (void)r;
    feed *f = self;
    f->sink = *sink;
    f->listing = true;
    f->id = ++f->w->ids;
    list_job *j = kl_new(list_job);
    *j = (list_job){f, f->id};
    post(f->w, do_list, j);
    return f->id;
}

static uint64_t source_watch(void *self, const kl_watch_request *r, const kl_source_sink *sink)
{
    (void)r;
    feed *f = self;
    f->sink = *sink;
    f->listing = false;
    return f->id = ++f->w->ids;
}

static void source_cancel(void *self, uint64_t id)
{
    feed *f = self;
    if (f->id == id)
        f->id = 0;
}

/* Time stands: nothing is due by itself. */
static uint64_t source_timer(void *self, kl_time after, void (*fn)(void *), void *arg)
{
    (void)after, (void)fn, (void)arg;
    return ++((feed *)self)->w->ids;
}

static void source_timer_cancel(void *self, uint64_t id) { (void)self, (void)id; }

static void source_post(void *self, void (*fn)(void *), void *arg) { post(((feed *)self)->w, fn, arg); }

static void source_free(void *self)
{
    feed *f = self;
    for (feed **at = &f->w->feeds; *at; at = &(*at)->next)
        if (*at == f) {
            *at = f->next;
            break;
        }
    kl_selector_free(f->labels);
    kl_free(f->kind);
    kl_free(f->is);
    kl_free(f->label);
    kl_free(f->ns);
    kl_free(f);
}

/* The kind of a label: "v1/Pod (labels app=x)". */
static char *kind_of(const char *label)
{
    const char *end = strchr(label, ' ');
    return end ? kl_strndup(label, (size_t)(end - label)) : kl_strdup(label);
}

static void origin_source(void *arg, const kl_resource *r, const kl_cache_source *want, kl_source *out)
{
    kl__world *w = arg;
    feed *f = kl_new(feed);
    f->is = kl_strdup(r->kind);
    f->w = w;
    f->label = kl_strdup(want->label);
    f->kind = kind_of(want->label);
    f->ns = kl_strdup(want->ns);
    for (size_t i = 0; i < w->p->n_caches; i++) {
        f->exact = f->exact || !strcmp(w->p->caches[i].label, f->label);
        f->known = f->known || !strcmp(w->p->caches[i].kind, f->kind);
    }
    if (!f->exact && want->labels && kl_selector_parse(want->labels, &f->labels, NULL))
        f->labels = NULL;
    if (!f->known && !kl_map_has(w->missing, f->kind))
        kl_map_set(w->missing, f->kind, kl_new(kl_resource));
    f->next = w->feeds;
    w->feeds = f;
    *out = (kl_source){source_list, source_watch, source_cancel, source_timer, source_timer_cancel,
        source_post, source_free, f, NULL, NULL, false};
}

/* --- kinds -------------------------------------------------------------------------------- */

static bool is_named(const kl_past_kind *k, const char *kind)
{
    if (!strcmp(k->name, kind))
        return true;
    char *full = kl_gvk_text(k->resource.group, k->resource.version, k->resource.kind);
    bool is = !strcmp(full, kind) || !strcmp(k->resource.kind, kind) || !strcmp(k->resource.plural, kind);
    kl_free(full);
    return is;
}

const kl_resource *kl__world_resource(kl__world *w, const char *kind)
{
    for (size_t i = 0; i < w->p->n_kinds; i++)
        if (is_named(&w->p->kinds[i], kind))
            return &w->p->kinds[i].resource;
    return NULL;
}

/* Of a kind that nobody recorded, as it mostly is: what reads it finds nothing, and the report says so. */
static const kl_resource *made_up(kl__world *w, const char *kind)
{
    kl_resource *r = kl_map_get(w->missing, kind);
    kl_gvk g;
    if (r && r->kind)
        return r;
    if (kl_gvk_parse(kind, &g, NULL))
        return NULL;
    if (!r)
        kl_map_set(w->missing, kind, r = kl_new(kl_resource));
    char *plural = kl_sprintf("%ss", g.kind);
    for (char *c = plural; *c; c++)
        *c |= *c >= 'A' && *c <= 'Z' ? 'a' - 'A' : 0;
    *r = (kl_resource){
        .group = g.group, .version = g.version, .kind = g.kind, .plural = plural, .namespaced = true};
    return r;
}

static void origin_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    kl__world *w = arg;
    const kl_resource *r = kl__world_resource(w, kind);
    if (!r)
        r = made_up(w, kind);
    kl_err err = KL_ERR_INIT;
    done(done_arg, r ? KL_OK : kl_fail(&err, KL_ENOTFOUND, "the recording has no kind %s", kind), r, &err);
    kl_err_fini(&err);
}

static void origin_forget(void *arg) { (void)arg; }

char **kl__world_missing(kl__world *w, size_t *n)
{
    char **kinds = kl_map_sorted_keys(w->missing);
    for (*n = 0; kinds[*n]; ++*n)
        kinds[*n] = kl_strdup(kinds[*n]);
    return kinds;
}

/* --- events ------------------------------------------------------------------------------- */

static void tell(kl__world *w, const held *h, const char *type, const kl_value *v)
{
    for (feed *f = w->feeds, *next; f; f = next) {
        next = f->next;
        if (!f->id || f->listing || !feeds_from(f, h))
            continue;
        const char *what = wants(f, v) ? type : "DELETED";
        (void)f->sink.event(f->sink.arg, what, kl_value_ref(v), NULL);
    }
}

static void lose(kl__world *w, held *h, const char *key)
{
    const kl_value *v = kl_map_take(h->objects, key);
    if (v)
        tell(w, h, "DELETED", v);
}

static void close_held(kl__world *w, held *h)
{
    char **keys = kl_map_sorted_keys(h->objects);
    for (char **k = keys; *k; k++) {
        char *key = kl_strdup(*k);
        lose(w, h, key);
        kl_free(key);
    }
    kl_free(keys);
}

void kl__world_event(kl__world *w, const kl_past_event *e)
{
    held *h = &w->held[e->cache];
    char *key;
    switch (e->what) {
    case KL_PAST_PUT:
        key = kl_object_key(e->object);
        if (key && kl_map_set(h->objects, key, (void *)e->object) != e->object)
            tell(w, h, "MODIFIED", e->object);
        kl_free(key);
        break;
    case KL_PAST_GONE: lose(w, h, e->key); break;
    case KL_PAST_CLOSED: close_held(w, h); break;
    default: break;
    }
}

/* --- looking ------------------------------------------------------------------------------ */

static bool is_of(kl__world *w, const held *h, const kl_resource *r)
{
    const kl_resource *x = kl__world_resource(w, h->is->kind);
    return x && !strcmp(x->group, r->group) && !strcmp(x->plural, r->plural);
}

const kl_value *kl__world_object(kl__world *w, const kl_resource *r, const char *ns, const char *name)
{
    char *key = kl_key_join(r->namespaced ? ns : NULL, name);
    const kl_value *v = NULL;
    for (size_t i = 0; i < w->p->n_caches && !v; i++)
        if (!w->held[i].is->metadata && is_of(w, &w->held[i], r))
            v = kl_map_get(w->held[i].objects, key);
    kl_free(key);
    return v;
}

bool kl__world_has(kl__world *w, const kl_resource *r)
{
    for (size_t i = 0; i < w->p->n_caches; i++)
        if (is_of(w, &w->held[i], r))
            return true;
    return false;
}

void kl__world_each(
    kl__world *w, const kl_resource *r, const char *ns, void (*fn)(void *arg, const kl_value *v), void *arg)
{
    kl_map *seen = kl_map_new();
    for (size_t i = 0; i < w->p->n_caches; i++) {
        char **keys = !w->held[i].is->metadata && is_of(w, &w->held[i], r)
            ? kl_map_sorted_keys(w->held[i].objects)
            : NULL;
        for (char **k = keys; k && *k; k++) {
            const kl_value *v = kl_map_get(w->held[i].objects, *k);
            const char *has = kl_object_namespace(v);
            if ((!ns || !has || !strcmp(ns, has)) && !kl_map_set(seen, *k, w))
                fn(arg, v);
        }
        kl_free(keys);
    }
    kl_map_free(seen, NULL);
}

/* --- life --------------------------------------------------------------------------------- */

kl__world *kl__world_new(const kl_past *p, kl_clock *clock)
{
    kl__world *w = kl_new(kl__world);
    w->p = p;
    w->clock = clock;
    w->last = &w->first;
    w->missing = kl_map_new();
    w->held = kl_new_array(held, p->n_caches + 1);
    for (size_t i = 0; i < p->n_caches; i++)
        w->held[i] = (held){&p->caches[i], kl_map_new()};
    w->loop = kl_loop_new("replay", clock);
    w->mapper = kl_loop_new("replay-mapper", clock);
    w->caches = kl_caches_new(
        &(kl_caches_options){.origin = &(kl_caches_origin){origin_resolve, origin_forget, origin_source, w},
            .clock = clock,
            .loop = w->loop,
            .mapper = w->mapper,
            .drop_managed_fields = true});
    return w;
}

kl_caches *kl__world_caches(kl__world *w) { return w->caches; }
kl_loop *kl__world_loop(kl__world *w) { return w->loop; }
kl_loop *kl__world_mapper(kl__world *w) { return w->mapper; }

static void resource_free(void *p)
{
    kl_resource_fini(p);
    kl_free(p);
}

void kl__world_free(kl__world *w)
{
    kl__world_pump(w);
    kl_caches_free(w->caches);
    kl_loop_free(w->loop);
    kl_loop_free(w->mapper);
    for (size_t i = 0; i < w->p->n_caches; i++)
        kl_map_free(w->held[i].objects, NULL);
    kl_map_free(w->missing, resource_free);
    kl_free(w->held);
    kl_free(w);
}
