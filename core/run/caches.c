/* caches.c - the shared informers of one manager. The set's lock guards the map for readers on other threads; everything
 * else belongs to the loop. */
#include "run/caches.h"

#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "run/caches_impl.h"
#include "run/source.h"

/* A kind that the server lacks is asked for again after this long, doubling: a CRD installed meanwhile is found soon. */
#define RETRY_FIRST KL_SECONDS(1)
#define RETRY_MAX KL_SECONDS(30)


/* --- the client as origin ---------------------------------------------------------------------------------------------- */

static void client_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    kl_client_resolve(((kl_caches *)arg)->o.client, kind, done, done_arg);
}

static void client_forget(void *arg)
{
    kl_client_discovery_forget(((kl_caches *)arg)->o.client);
}

static void client_source(void *arg, const kl_resource *r, const char *ns, kl_projection *keep, kl_source *out)
{
    const kl_caches_options *o = &((kl_caches *)arg)->o;
    kl_client_source(&(kl_client_source_options){.client = o->client, .resource = r, .ns = ns, .max_object = o->max_object,
        .keep = keep}, out);
}

kl_caches *kl_caches_new(const kl_caches_options *o)
{
    kl_caches *s = kl_new(kl_caches);
    s->o = *o;
    s->origin = o->origin ? *o->origin : (kl_caches_origin){client_resolve, client_forget, client_source, s};
    kl_mutex_init(&s->mu);
    kl_cond_init(&s->cond);
    s->by_kind = kl_map_new();
    s->news = kl__news_new();
    s->usual = o->drop_managed_fields ? kl_projection_without_managed_fields() : NULL;
    return s;
}

void kl_caches_free(kl_caches *s)
{
    if (!s)
        return;
    kl_lock(&s->mu);
    while (s->alive)
        kl_cond_wait(&s->cond, &s->mu);
    kl_unlock(&s->mu);
    kl_map_free(s->by_kind, NULL);
    kl_free(s->news);
    kl_projection_unref(s->usual);
    kl_cond_fini(&s->cond);
    kl_mutex_fini(&s->mu);
    kl_free(s);
}

static void cache_maybe_free(kl_cache *c)
{
    if (c->users || c->holds)
        return;
    kl_caches *s = c->set;
    kl_loop_timer_cancel(s->o.loop, c->timer);
    kl_informer_unref(c->informer);
    kl_free(c->problem);
    kl_free(c->kind);
    kl_free(c->label);
    kl_projection_unref(c->keep);
    kl_free(c);
    kl_lock(&s->mu);
    s->alive--;
    kl_cond_broadcast(&s->cond);
    kl_unlock(&s->mu);
}

/* --- the informer ------------------------------------------------------------------------------------------------------ */

static void changed(kl_caches *s)
{
    if (s->o.changed)
        s->o.changed(s->o.changed_arg);
}

static void changed_on_loop(void *arg)
{
    kl__news_look(arg);
    changed(arg);
}

/* Also of a new trouble, on the watch thread: what was posted here runs before the cache is freed. */
static void on_news(void *arg)
{
    kl_caches *s = arg;
    kl_loop_post(s->o.loop, changed_on_loop, s);
}

static void execute(void *arg, void (*fn)(void *), void *fnarg)
{
    kl_cache *c = arg;
    if (atomic_load(&c->use_mapper))
        kl_loop_post(c->set->o.mapper, fn, fnarg);
    else
        fn(fnarg);
}

/* The end of initial events is told in an annotation, which is cut with the others. */
static bool may_stream(const kl_cache *c)
{
    static const char *const annotations[] = {"metadata", "annotations"};
    return c->set->o.stream && kl_projection_keeps(c->keep, annotations, 2);
}

static void informer_create(kl_cache *c)
{
    kl_caches *s = c->set;
    char *display = kl_resource_display(c->resource), *api_version = kl_api_version(c->resource->group, c->resource->version);
    const char *ns = c->resource->namespaced ? s->o.ns : NULL;
    kl_informer_options o = {.clock = s->o.clock, .resource = display, .api_version = api_version, .kind = c->resource->kind, .namespace_ = ns,
        .seed = kl_hash(c->kind, strlen(c->kind)), .stream = may_stream(c), .execute = execute, .execute_arg = c,
        .on_trouble = on_news, .trouble_arg = s};
    s->origin.source(s->origin.arg, c->resource, ns, c->keep, &o.source);
    kl_informer *i = kl_informer_new(&o);
    kl_lock(&s->mu);
    c->informer = i;
    kl_unlock(&s->mu);
    kl_free(api_version);
    kl_free(display);
    c->sub = kl_informer_subscribe(i, &(kl_handler){.on_synced = c->is_news ? kl__news_came : on_news, .on_event = c->is_news ? kl__news_event : NULL, .arg = s});
    kl_informer_start(i);
}

/* --- resolving ----------------------------------------------------------------------------------------------------------- */

typedef struct resolved {
    kl_cache *c;
    kl_status st;
    const kl_resource *r;
    char *message;
} resolved;



static void retry_resolve(void *arg)
{
    kl_cache *c = arg;
    c->timer = 0;
    c->set->origin.forget(c->set->origin.arg);
    kl__cache_resolve(c);
}

static void resolved_on_loop(void *arg)
{
    resolved *r = arg;
    kl_cache *c = r->c;
    c->holds--;
    c->resolving = false;
    if (!c->users) {
        cache_maybe_free(c);
    } else if (!r->st) {
        if (c->problem)
            kl_info("the kind is there now", "kind=%s", c->kind);
        kl_free(c->problem);
        c->problem = NULL;
        c->resource = r->r;
        informer_create(c);
        changed(c->set);
    } else if (c->is_news && r->st == KL_ENOTFOUND) {
        kl__news_give_up(c->set, r->message);
    } else {
        if (!c->is_news)
            kl__news_begin(c->set);
        if (!c->problem || strcmp(c->problem, r->message))
            kl_warn(r->st == KL_ENOTFOUND ? "a kind is missing; what needs it is parked until it appears" : "a kind cannot be looked up; trying again",
                "kind=%s error=%s", c->kind, kl_log_quoted(r->message));
        kl_free(c->problem);
        c->problem = r->message;
        r->message = NULL;
        c->retry = c->retry ? c->retry * 2 : RETRY_FIRST;
        if (c->retry > RETRY_MAX)
            c->retry = RETRY_MAX;
        c->timer = kl_loop_timer(c->set->o.loop, c->retry, retry_resolve, c);
        changed(c->set);
    }
    kl_free(r->message);
    kl_free(r);
}

static void resolve_done(void *arg, kl_status st, const kl_resource *res, kl_err *err)
{
    kl_cache *c = arg;
    resolved *r = kl_new(resolved);
    *r = (resolved){c, st, res, st ? kl_strdup(kl_err_message(err)) : NULL};
    kl_loop_post(c->set->o.loop, resolved_on_loop, r);
}

void kl__cache_resolve(kl_cache *c)
{
    c->holds++;
    c->resolving = true;
    c->set->origin.resolve(c->set->origin.arg, c->kind, resolve_done, c);
}

/* --- users ------------------------------------------------------------------------------------------------------------------ */

/* What a keeps holds all that b keeps, as far as that is easy to see. */
static bool keeps_as_much(const kl_projection *a, const kl_projection *b)
{
    static const char *const managed[] = {"metadata", "managedFields"};
    if (!a || kl_projection_equal(a, b))
        return true;
    kl_projection *without = kl_projection_without_managed_fields();
    bool enough = kl_projection_equal(a, without) && !kl_projection_keeps(b, managed, 2);
    kl_projection_unref(without);
    return enough;
}

static kl_cache *suitable_locked(kl_caches *s, const char *kind, const kl_projection *keep) KL_REQUIRES(s->mu)
{
    size_t it = 0;
    const char *label;
    void *v;
    while (kl_map_next(s->by_kind, &it, &label, &v)) {
        kl_cache *c = v;
        if (!strcmp(c->kind, kind) && keeps_as_much(c->keep, keep))
            return c;
    }
    return NULL;
}

kl_cache *kl__cache_new(kl_caches *s, const char *kind, const char *label, kl_projection *keep)
{
    kl_cache *c = kl_new(kl_cache);
    c->set = s;
    c->kind = kl_strdup(kind);
    c->label = kl_strdup(label);
    c->keep = kl_projection_ref(keep);
    atomic_init(&c->use_mapper, false);
    return c;
}

kl_cache *kl_caches_acquire(kl_caches *s, const char *kind, const kl_keep *keep)
{
    kl_projection *wanted = keep ? keep->projection : s->usual;
    kl_lock(&s->mu);
    kl_cache *c = suitable_locked(s, kind, wanted);
    if (!c) {
        char *label = keep && keep->what && !kl_projection_equal(wanted, s->usual) ? kl_sprintf("%s (%s)", kind, keep->what) : kl_strdup(kind);
        c = kl__cache_new(s, kind, label, wanted);
        kl_free(label);
        kl_map_set(s->by_kind, c->label, c);
        s->alive++;
    }
    kl_unlock(&s->mu);
    if (!c->users++) {
        s->news->used++;
        kl__cache_resolve(c);
    }
    return c;
}

static void stopped_on_loop(void *arg)
{
    kl_cache *c = arg;
    c->holds--;
    cache_maybe_free(c);
}

static void informer_stopped(void *arg)
{
    kl_cache *c = arg;
    kl_loop_post(c->set->o.loop, stopped_on_loop, c);
}

void kl__cache_stop(kl_cache *c)
{
    c->users = 0;
    if (c->informer) {
        c->holds++;
        kl_informer_unsubscribe(c->sub);
        kl_informer_stop(c->informer, informer_stopped, c);
    }
    cache_maybe_free(c);
}

void kl_cache_release(kl_cache *c)
{
    kl_caches *s = c->set;
    if (--c->users)
        return;
    kl_lock(&s->mu);
    kl_map_take(s->by_kind, c->label);
    kl_unlock(&s->mu);
    kl__cache_stop(c);
    if (!--s->news->used)
        kl__news_end(s);
}

const char *kl_cache_kind(const kl_cache *c) { return c->kind; }
kl_informer *kl_cache_informer(kl_cache *c) { return c->informer; }
const kl_resource *kl_cache_resource(kl_cache *c) { return c->resource; }
void kl_cache_use_mapper(kl_cache *c) { atomic_store(&c->use_mapper, true); }

char *kl_cache_problem(kl_cache *c)
{
    if (c->problem)
        return kl_strdup(c->problem);
    if (!c->informer)
        return NULL;
    kl_informer_stats st;
    kl_informer_stats_get(c->informer, &st);
    char *why = st.message && (st.parked || !st.synced) ? kl_strdup(st.message) : NULL;
    kl_informer_stats_fini(&st);
    return why;
}

void kl_caches_notify(kl_caches *s, void (**fn)(void *), void **arg)
{
    *fn = s->o.changed;
    *arg = s->o.changed_arg;
}

void kl_caches_each(kl_caches *s, void (*fn)(void *arg, const char *kind, kl_informer *i), void *arg)
{
    kl_lock(&s->mu);
    char **kinds = kl_map_sorted_keys(s->by_kind);
    for (char **k = kinds; *k; k++) {
        kl_cache *c = kl_map_get(s->by_kind, *k);
        if (c->informer)
            fn(arg, *k, c->informer);
    }
    kl_free(kinds);
    kl_unlock(&s->mu);
}
