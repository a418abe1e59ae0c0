/* caches.c - the shared informers of one manager. The registry's lock guards the table for readers on other
 * threads; everything else belongs to the loop. */
#include "informers/caches.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"
#include "informers/caches_impl.h"
#include "informers/source.h"

/* A missing kind is looked up again after this time, doubling: a CRD installed meanwhile is found soon. */
#define RETRY_FIRST KL_SECONDS(1)
#define RETRY_MAX KL_SECONDS(30)
/* The longest wait after a failed discovery: the kind may exist, and the server may be back at any moment. */
#define RETRY_UNKNOWN_MAX KL_SECONDS(4)

/* --- the client as origin ----------------------------------------------------------------- */

static void client_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    kl_client_resolve(((kl_caches *)arg)->o.client, kind, done, done_arg);
}

static void client_forget(void *arg) { kl_client_discovery_forget(((kl_caches *)arg)->o.client); }

static void client_source(void *arg, const kl_resource *r, const kl_cache_source *w, kl_source *out)
{
    const kl_caches_options *o = &((kl_caches *)arg)->o;
    kl_client_source(&(kl_client_source_options){.client = o->client,
                         .resource = r,
                         .ns = w->ns,
                         .labels = w->labels,
                         .fields = w->fields,
                         .metadata = w->metadata,
                         .max_object = o->max_object,
                         .keep = w->keep},
        out);
}

kl_caches *kl_caches_new(const kl_caches_options *o)
{
    kl_caches *s = kl_new(kl_caches);
    s->o = *o;
    s->origin = o->origin ? *o->origin : (kl_caches_origin){client_resolve, client_forget, client_source, s};
    kl__registry_init(&s->reg);
    kl__kinds_init(s);
    s->usual = o->drop_managed_fields ? kl_projection_without_managed_fields() : NULL;
    return s;
}

void kl_caches_end(kl_caches *s) { atomic_store(&s->ending, true); }
bool kl_caches_ending(const kl_caches *s) { return atomic_load(&s->ending); }
kl_indexing *kl_caches_indexing(kl_caches *s) { return &s->indexing; }

void kl_caches_free(kl_caches *s)
{
    if (!s)
        return;
    kl_lock(&s->reg.mu);
    while (s->reg.entries)
        kl_cond_wait(&s->reg.cond, &s->reg.mu);
    kl_unlock(&s->reg.mu);
    kl_projection_unref(s->usual);
    kl__registry_fini(&s->reg);
    kl_free(s);
}

static void cache_maybe_free(kl_cache *c)
{
    if (c->entry.users || c->holds)
        return;
    kl_caches *s = c->set;
    kl_loop_timer_cancel(s->o.loop, c->timer);
    kl_informer_unref(c->informer);
    kl_free(c->problem);
    kl_free(c->told);
    kl_free(c->what);
    kl__cache_holds_free(c);
    kl_lock(&s->reg.mu);
    kl__registry_drop_locked(&s->reg, &c->entry);
    kl_unlock(&s->reg.mu);
    kl_free(c);
}

/* --- the informer ------------------------------------------------------------------------- */

static void changed(kl_caches *s)
{
    if (s->o.changed)
        s->o.changed(s->o.changed_arg);
}

static void changed_on_loop(void *arg)
{
    kl__kinds_look(arg);
    changed(arg);
}

/* Called after the first sync and on new trouble, on the watch thread. The post runs before the cache is
 * freed. */
static void on_news(void *arg)
{
    kl_caches *s = arg;
    kl_loop_post(s->o.loop, changed_on_loop, s);
}

static void is_strange(void *arg);

/* Notices an object of another scope: the name now belongs to another kind, without a gap in between. */
static void on_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    kl_cache *c = arg;
    (void)type, (void)old, (void)flags;
    const char *ns = now ? kl_object_namespace(now) : NULL;
    if (now && (ns && *ns) != c->resource->namespaced && !atomic_exchange(&c->strange, true))
        kl_loop_post(c->set->o.loop, is_strange, c);
}

static void on_synced(void *arg) { on_news(((kl_cache *)arg)->set); }

static void execute(void *arg, void (*fn)(void *), void *fnarg)
{
    kl_cache *c = arg;
    if (atomic_load(&c->use_mapper))
        kl_loop_post(c->set->o.mapper, fn, fnarg);
    else
        fn(fnarg);
}

kl_informer_part kl__cache_part(kl_cache *c, const char *ns)
{
    kl_informer_part p = {.namespace_ = ns};
    c->set->origin.source(c->set->origin.arg, c->resource,
        &(kl_cache_source){.label = c->entry.label,
            .ns = ns,
            .labels = c->entry.scope.labels,
            .fields = c->entry.scope.fields,
            .metadata = c->entry.scope.metadata,
            .keep = c->entry.scope.keep},
        &p.source);
    return p;
}

/* The parts of the informer: one for each selected namespace, or one for all. The caller frees the array. */
static kl_informer_part *parts_of(kl_cache *c, size_t *n)
{
    char **names = c->resource->namespaced ? c->entry.scope.namespaces : NULL;
    for (*n = 0; names && names[*n];)
        ++*n;
    kl_informer_part *parts = kl_new_array(kl_informer_part, *n + 1);
    for (size_t i = 0; i < *n; i++)
        parts[i] = kl__cache_part(c, names[i]);
    if (!*n)
        parts[(*n)++] = kl__cache_part(c, c->resource->namespaced ? c->set->o.ns : NULL);
    return parts;
}

static void informer_create(kl_cache *c)
{
    kl_caches *s = c->set;
    char *display = kl_resource_display(c->resource),
         *api_version = kl_api_version(c->resource->group, c->resource->version);
    kl_informer_options o = {.clock = s->o.clock,
        .resource = display,
        .api_version = api_version,
        .kind = c->resource->kind,
        .seed = kl_hash(c->entry.label, strlen(c->entry.label)),
        .stream = s->o.stream && kl__scope_streams(&c->entry.scope),
        .execute = execute,
        .execute_arg = c,
        .on_trouble = on_news,
        .trouble_arg = s};
    if (c->entry.scope.divided) {
        o.changing = true;
        o.source = kl__cache_part(c, NULL).source;
        o.on_part = on_news;
        o.part_arg = s;
    } else {
        o.parts = parts_of(c, &o.n_parts);
    }
    kl_informer *i = kl_informer_new(&o);
    kl_free((void *)o.parts);
    kl_lock(&s->reg.mu);
    c->informer = i;
    kl_unlock(&s->reg.mu);
    kl_free(api_version);
    kl_free(display);
    if (s->o.begun && !c->entry.hidden)
        s->o.begun(s->o.begun_arg, c->entry.kind, c->resource,
            &(kl_cache_source){.label = c->entry.label,
                .labels = c->entry.scope.labels,
                .fields = c->entry.scope.fields,
                .metadata = c->entry.scope.metadata,
                .keep = c->entry.scope.keep},
            i);
    c->sub = kl_informer_subscribe(i,
        c->entry.hidden ? &(kl_handler){.on_synced = kl__kinds_came, .on_event = kl__kinds_event, .arg = s}
                        : &(kl_handler){.on_synced = on_synced, .on_event = on_event, .arg = c});
    kl_informer_start(i);
    if (c->entry.scope.divided)
        kl__cache_fit(c);
}

/* --- resolving ---------------------------------------------------------------------------- */

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

static void retry_later(kl_cache *c, kl_time max)
{
    c->retry = c->retry ? c->retry * 2 : RETRY_FIRST;
    if (c->retry > max)
        c->retry = max;
    c->timer = kl_loop_timer(c->set->o.loop, c->retry, retry_resolve, c);
}

/* Takes the text at `why` over. */
static void problem_set(kl_cache *c, char **why)
{
    kl_free(c->problem);
    c->problem = why ? *why : NULL;
    if (why)
        *why = NULL;
}

/* The kind exists. Namespaces do not select cluster-scoped objects: such a cache uses the unselected one. */
static void found(kl_cache *c, const kl_resource *r)
{
    if (c->problem)
        kl_info("the kind exists now", "kind=%s", c->entry.kind);
    problem_set(c, NULL);
    c->retry = 0;
    c->resource = r;
    if ((c->entry.scope.namespaces || c->entry.scope.divided) && !r->namespaced) {
        c->same = kl_caches_acquire(c->set, c->entry.kind,
            &(kl_want){.cut = true,
                .keep = c->entry.scope.keep,
                .what = c->what,
                .metadata = c->entry.scope.metadata,
                .labels = c->entry.scope.labels,
                .fields = c->entry.scope.fields});
        if (atomic_load(&c->use_mapper))
            kl_cache_use_mapper(c->same);
    } else {
        informer_create(c);
    }
    changed(c->set);
}

static void not_found(kl_cache *c, kl_status st, char **why)
{
    if (!c->entry.hidden)
        kl__kinds_begin(c->set);
    if (!c->problem || strcmp(c->problem, *why))
        kl_log(c->set->o.quiet && st == KL_ENOTFOUND ? KL_LOG_DEBUG : KL_LOG_WARN,
            st == KL_ENOTFOUND ? "a kind is missing; controllers that need it are parked until it appears"
                               : "a kind cannot be looked up; trying again",
            "kind=%s error=%s", c->entry.kind, kl_log_quoted(*why));
    problem_set(c, why);
    retry_later(c, st == KL_ENOTFOUND ? RETRY_MAX : RETRY_UNKNOWN_MAX);
    changed(c->set);
}

/* --- is it still there? ------------------------------------------------------------------- */

static bool is_doubtful(kl_cache *c)
{
    kl_informer_stats st;
    kl_informer_stats_get(c->informer, &st);
    bool doubtful = st.parked && st.failure == KL_ENOTFOUND;
    kl_informer_stats_fini(&st);
    return doubtful;
}

static void ask(kl_cache *c)
{
    c->set->origin.forget(c->set->origin.arg);
    kl__cache_resolve(c);
}

static void is_strange(void *arg)
{
    kl_cache *c = arg;
    c->unsure = true;
    if (c->entry.users && !c->outdated && !c->resolving)
        ask(c);
}

static void retry_end(kl_cache *c)
{
    kl_loop_timer_cancel(c->set->o.loop, c->timer);
    c->timer = 0;
    c->retry = 0;
}

void kl__cache_look(kl_cache *c)
{
    bool doubtful = is_doubtful(c);
    if (c->outdated)
        return;
    if (doubtful && !c->resolving && !c->timer) {
        ask(c);
    } else if (!doubtful && c->gone) {
        kl_info("the kind exists again", "kind=%s", c->entry.kind);
        retry_end(c);
        problem_set(c, NULL);
        c->gone = false;
        c->unsure = true;
        if (!c->resolving)
            ask(c);
    } else if (!doubtful && c->timer && !c->unsure) {
        retry_end(c);
    }
    kl__cache_tell(c);
}

/* Whether the kind's name now belongs to another kind: with another scope, or another plural. */
static bool is_another(const kl_resource *a, const kl_resource *b)
{
    return a->namespaced != b->namespaced || strcmp(a->plural, b->plural);
}

/* A 404 may come from a server that is still starting. Only if discovery lacks the kind, its objects are
 * gone. Repeated until a list succeeds. */
static void doubt_answered(kl_cache *c, kl_status st, const kl_resource *r, char **why)
{
    if (!st && is_another(r, c->resource)) {
        c->outdated = true;
        problem_set(c, NULL);
        changed(c->set);
        return;
    }
    if (!st && !atomic_load(&c->strange)) /* discovery may lag behind */
        c->unsure = false;
    bool doubtful = is_doubtful(c);
    if (doubtful && !st) {
        kl_informer_kick(c->informer);
    } else if (doubtful && st == KL_ENOTFOUND) {
        if (!c->gone)
            kl_warn("a kind is gone; controllers that need it are parked until it reappears",
                "kind=%s error=%s", c->entry.kind, kl_log_quoted(*why));
        c->gone = true;
        problem_set(c, why);
        kl_informer_clear(c->informer);
        changed(c->set);
    }
    if (doubtful || c->unsure)
        retry_later(c, RETRY_MAX);
}

/* --- the answer --------------------------------------------------------------------------- */

static void resolved_on_loop(void *arg)
{
    resolved *r = arg;
    kl_cache *c = r->c;
    c->holds--;
    c->resolving = false;
    if (!c->entry.users)
        cache_maybe_free(c);
    else if (c->informer)
        doubt_answered(c, r->st, r->r, &r->message);
    else if (!r->st)
        found(c, r->r);
    else if (c->entry.hidden && r->st == KL_ENOTFOUND)
        kl__kinds_give_up(c->set, r->message);
    else
        not_found(c, r->st, &r->message);
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
    c->set->origin.resolve(c->set->origin.arg, c->entry.kind, resolve_done, c);
}

/* --- users -------------------------------------------------------------------------------- */

static kl_cache *cache_of(const kl__entry *e) { return KL_CONTAINER(e, kl_cache, entry); }

static bool fits(const kl__entry *e, const kl__scope *scope)
{
    const kl_cache *c = cache_of(e);
    return !c->replaced && !kl_cache_outdated(c) && kl__scope_serves(&e->scope, scope);
}

kl_cache *kl__cache_new_locked(kl_caches *s, const char *kind, const char *label, kl__scope *scope)
{
    kl_cache *c = kl_new(kl_cache);
    c->set = s;
    atomic_init(&c->use_mapper, false);
    kl__registry_add_locked(&s->reg, &c->entry, kind, label, scope);
    return c;
}

kl_cache *kl_caches_acquire(kl_caches *s, const char *kind, const kl_want *want)
{
    kl__scope scope;
    kl__scope_init(&scope, s, want);
    kl_lock(&s->reg.mu);
    kl__entry *e = kl__registry_join_locked(&s->reg, kind, &scope, fits);
    kl_cache *c = e ? cache_of(e) : NULL;
    if (!c) {
        const char *what = want ? want->what : NULL;
        char *label = kl__scope_label(&scope, s, kind, what);
        for (kl__entry *old = s->reg.entries; old; old = old->next)
            if (!old->hidden && !strcmp(old->label, label))
                cache_of(old)->replaced = true;
        c = kl__cache_new_locked(s, kind, label, &scope);
        c->what = kl_strdup(what);
        kl_free(label);
    }
    kl_unlock(&s->reg.mu);
    kl__scope_fini(&scope);
    if (!e) {
        s->used++;
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

static void cache_stop(kl_cache *c)
{
    kl_loop_timer_cancel(c->set->o.loop, c->timer);
    c->timer = 0;
    if (c->same)
        kl_cache_release(c->same);
    c->same = NULL;
    if (c->informer) {
        c->holds++;
        if (c->set->o.ended && !c->entry.hidden)
            c->set->o.ended(c->set->o.begun_arg, c->informer);
        kl_informer_unsubscribe(c->sub);
        kl_informer_stop(c->informer, informer_stopped, c);
    }
    cache_maybe_free(c);
}

bool kl__cache_leave(kl_cache *c)
{
    kl_lock(&c->set->reg.mu);
    bool last = !--c->entry.users;
    kl_unlock(&c->set->reg.mu);
    if (last)
        cache_stop(c);
    return last;
}

void kl_cache_release(kl_cache *c)
{
    kl_caches *s = c->set;
    if (kl__cache_leave(c) && !--s->used)
        kl__kinds_end(s);
}

const char *kl_cache_kind(const kl_cache *c) { return c->entry.kind; }
kl_informer *kl_cache_informer(kl_cache *c) { return c->same ? c->same->informer : c->informer; }
const kl_resource *kl_cache_resource(kl_cache *c) { return c->resource; }
bool kl_cache_outdated(const kl_cache *c) { return c->same ? c->same->outdated : c->outdated; }

void kl_cache_use_mapper(kl_cache *c)
{
    atomic_store(&c->use_mapper, true);
    if (c->same)
        kl_cache_use_mapper(c->same);
}

void kl_caches_notify(kl_caches *s, void (**fn)(void *), void **arg)
{
    *fn = s->o.changed;
    *arg = s->o.changed_arg;
}

static bool behind(kl_cache *c, uint64_t rv)
{
    return c->resolving || (c->informer && !kl_informer_reached(c->informer, rv));
}

char *kl_caches_behind(kl_caches *s, uint64_t rv)
{
    const char *found = NULL;
    kl_lock(&s->reg.mu);
    for (kl__entry *e = s->reg.entries; e && !found; e = e->next)
        if (e->users && !cache_of(e)->replaced && behind(cache_of(e), rv))
            found = e->label;
    kl_unlock(&s->reg.mu);
    return kl_strdup(found);
}

static int by_label(const void *a, const void *b)
{
    return strcmp((*(kl_cache *const *)a)->entry.label, (*(kl_cache *const *)b)->entry.label);
}

kl_cache **kl__caches_all_locked(kl_caches *s, size_t *n)
{
    *n = 0;
    for (kl__entry *e = s->reg.entries; e; e = e->next)
        ++*n;
    kl_cache **all = kl_new_array(kl_cache *, *n + 1);
    *n = 0;
    for (kl__entry *e = s->reg.entries; e; e = e->next)
        if (e->users && !e->hidden && !cache_of(e)->replaced)
            all[(*n)++] = cache_of(e);
    qsort(all, *n, sizeof *all, by_label);
    return all;
}

void kl_caches_each(kl_caches *s, void (*fn)(void *arg, const char *kind, kl_informer *i), void *arg)
{
    size_t n;
    kl_lock(&s->reg.mu);
    kl_cache **all = kl__caches_all_locked(s, &n);
    for (size_t i = 0; i < n; i++)
        if (all[i]->informer)
            fn(arg, all[i]->entry.label, all[i]->informer);
    kl_free(all);
    kl_unlock(&s->reg.mu);
}
