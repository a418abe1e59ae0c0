/* replay_world.c - the caches of a recording, as real caches. */
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/selector.h"
#include "lab/replay_impl.h"

/* A cache of the recording. */
typedef struct held {
    const kl_past_cache *is;
    kl_map *objects; /* key -> value, borrowed from the recording */
} held;

/* The recorded counterpart of one of our caches. */
typedef struct feed {
    char *kind; /* "v1/Pod" */
    bool exact; /* the recording has a cache with this label */
    bool known; /* the recording has a cache of this kind */
} feed;

struct kl__world {
    const kl_past *p;
    kl_listwatch *caches;
    held *held;
    kl_map *missing; /* kinds that nobody recorded -> their made-up resource */
};

/* --- what caches of ours hear ------------------------------------------------------------- */

/* Whether a recorded cache supplies a feed: the one with its label; otherwise each of its kind with whole
 * objects. */
static bool feeds_from(const kl_listwatch_feed *is, const held *h)
{
    const feed *f = is->mine;
    return f->exact ? !strcmp(h->is->label, is->label) : !strcmp(h->is->kind, f->kind) && !h->is->metadata;
}

static void each(void *arg, const kl_listwatch_feed *is, kl_listwatch_item *item, void *item_arg)
{
    kl__world *w = arg;
    kl_map *seen = kl_map_new();
    for (size_t i = 0; i < w->p->n_caches; i++) {
        char **keys = feeds_from(is, &w->held[i]) ? kl_map_sorted_keys(w->held[i].objects) : NULL;
        for (char **k = keys; k && *k; k++)
            if (!kl_map_has(seen, *k) && item(item_arg, kl_map_get(w->held[i].objects, *k)))
                kl_map_set(seen, *k, w);
        kl_free(keys);
    }
    kl_map_free(seen, NULL);
}

/* The kind of a label: "v1/Pod (labels app=x)". */
static char *kind_of(const char *label)
{
    const char *end = strchr(label, ' ');
    return end ? kl_strndup(label, (size_t)(end - label)) : kl_strdup(label);
}

static void opened(void *arg, kl_listwatch_feed *is)
{
    kl__world *w = arg;
    feed *f = is->mine = kl_new(feed);
    f->kind = kind_of(is->label);
    for (size_t i = 0; i < w->p->n_caches; i++) {
        f->exact = f->exact || !strcmp(w->p->caches[i].label, is->label);
        f->known = f->known || !strcmp(w->p->caches[i].kind, f->kind);
    }
    if (f->exact)
        is->labels = is->fields = NULL;
    if (!f->known && !kl_map_has(w->missing, f->kind))
        kl_map_set(w->missing, f->kind, kl_new(kl_resource));
}

static void closed(void *arg, kl_listwatch_feed *is)
{
    (void)arg;
    feed *f = is->mine;
    kl_free(f->kind);
    kl_free(f);
}

static bool hears(void *h, const kl_listwatch_feed *is) { return feeds_from(is, h); }

static void tell(kl__world *w, held *h, const char *type, const kl_value *v)
{
    kl_listwatch_tell(w->caches, hears, h, type, v);
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

/* Makes up a kind that was not recorded. Reads find nothing, and the report tells so. */
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

static const kl_resource *resolve(void *arg, const char *kind)
{
    const kl_resource *r = kl__world_resource(arg, kind);
    return r ? r : made_up(arg, kind);
}

char **kl__world_missing(kl__world *w, size_t *n)
{
    char **kinds = kl_map_sorted_keys(w->missing);
    for (*n = 0; kinds[*n]; ++*n)
        kinds[*n] = kl_strdup(kinds[*n]);
    return kinds;
}

/* --- events ------------------------------------------------------------------------------- */

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
    w->missing = kl_map_new();
    w->held = kl_new_array(held, p->n_caches + 1);
    for (size_t i = 0; i < p->n_caches; i++)
        w->held[i] = (held){&p->caches[i], kl_map_new()};
    w->caches = kl_listwatch_new(&(kl_listwatch_options){.name = "replay",
        .clock = clock,
        .drop_managed_fields = true,
        .where = "the recording",
        .resolve = resolve,
        .each = each,
        .opened = opened,
        .closed = closed,
        .arg = w});
    return w;
}

kl_listwatch *kl__world_listwatch(kl__world *w) { return w->caches; }

static void resource_free(void *p)
{
    kl_resource_fini(p);
    kl_free(p);
}

void kl__world_free(kl__world *w)
{
    kl_listwatch_free(w->caches);
    for (size_t i = 0; i < w->p->n_caches; i++)
        kl_map_free(w->held[i].objects, NULL);
    kl_map_free(w->missing, resource_free);
    kl_free(w->held);
    kl_free(w);
}
