/* wiring.c - the life of a wiring: acquire, connect as things appear, activate, retire, free. */
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"
#include "run/params.h"
#include "client/catalog.h"
#include "controller/wiring_impl.h"

static bool has_functions(const kl_controller_spec *s)
{
    bool any = s->when.fn || s->priority_of.fn;
    for (size_t i = 0; i < s->n_watches; i++)
        any |= s->watches[i].how == KL_MAP_FN || s->watches[i].when.fn;
    for (size_t i = 0; i < s->n_owns; i++)
        any |= s->owns[i].when.fn != KL_NO_FN;
    for (size_t i = 0; i < s->n_indexes; i++)
        any |= !s->indexes[i].path;
    return any;
}

/* --- birth -------------------------------------------------------------------------------- */

kl_need *kl__wiring_need(kl_wiring *w, const char *kind)
{
    for (size_t i = 0; i < w->n_needs; i++)
        if (!strcmp(kl_cache_kind(w->needs[i].cache), kind))
            return &w->needs[i];
    return NULL;
}

size_t kl__wiring_named(kl_wiring *w, const char *word, kl_need **out)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_needs; i++)
        if (w->needs[i].resource && kl__resource_has_name(w->needs[i].resource, word) && !n++)
            *out = &w->needs[i];
    return n;
}

static char *joined(char **paths)
{
    kl_buf b = KL_BUF_INIT;
    for (char **p = paths; *p; p++)
        kl_buf_printf(&b, "%s%s", p == paths ? "" : ", ", *p);
    return kl_buf_take(&b);
}

static kl_cache *acquire(kl_wiring *w, const char *kind)
{
    const kl_controller_spec *s = w->logic.spec;
    const kl_fields_spec *fields = kl_controller_spec_fields(s, kind);
    const char *labels, *selected;
    kl_controller_spec_select(s, kind, &labels, &selected);
    kl_want want = {.cut = fields || s->managed_fields != KL_MANAGED_DEFAULT,
        .metadata = kl_controller_spec_metadata(s, kind),
        .namespaces = kl_controller_spec_namespaces(s, kind),
        .divided = w->o.divided,
        .labels = labels,
        .fields = selected};
    kl_projection *without = kl_projection_without_managed_fields();
    char *what = fields && !want.metadata ? joined(fields->paths) : NULL;
    if (fields) {
        want.keep = fields->keep;
        want.what = what;
    } else if (s->managed_fields == KL_MANAGED_DROPPED) {
        want.keep = without;
        want.what = "without managedFields";
    } else if (s->managed_fields == KL_MANAGED_KEPT) {
        want.what = "with managedFields";
    }
    kl_cache *c = kl_caches_acquire(w->o.caches, kind, &want);
    kl_projection_unref(without);
    kl_free(what);
    return c;
}

static void need(kl_wiring *w, const char *kind)
{
    if (!kl__wiring_need(w, kind))
        w->needs[w->n_needs++].cache = acquire(w, kind);
}

static void feed(
    kl_wiring *w, kl_role role, const char *kind, const kl_when *when, const kl_watch_spec *watch)
{
    kl_feed *f = &w->feeds[w->n_feeds++];
    *f = (kl_feed){.w = w, .role = role, .when = when, .watch = watch, .need = kl__wiring_need(w, kind)};
    atomic_init(&f->told, false);
}

static size_t count(char **v)
{
    size_t n = 0;
    while (v && v[n])
        n++;
    return n;
}

kl_wiring *kl_wiring_new(const kl_wiring_options *o)
{
    kl_wiring *w = kl_new(kl_wiring);
    const kl_controller_spec *s = kl_program_spec(o->program, o->index);
    w->o = *o;
    w->o.params = kl_value_ref(o->params);
    w->reader.w = w;
    w->logic = (kl_logic){.program = kl_program_ref(o->program),
        .index = o->index,
        .spec = s,
        .reader = &w->reader,
        .params = o->params ? o->params : kl_params_of(s),
        .generation = o->generation};
    atomic_init(&w->refs, 1);
    atomic_init(&w->active, false);
    atomic_init(&w->followed, false);
    kl_mutex_init(&w->mu);
    w->pending = kl_map_new();
    size_t owns = s->n_owns, reads = count(s->reads);
    w->needs = kl_new_array(kl_need, 1 + owns + reads + s->n_watches + s->n_indexes);
    w->feeds = kl_new_array(kl_feed, 1 + owns + s->n_watches);
    w->indexes = kl_new_array(kl_wired_index, s->n_indexes + 1);
    kl__holding_begin(w);
    if (s->resource) /* a webhook has none */
        need(w, s->resource);
    for (size_t i = 0; i < owns; i++)
        need(w, s->owns[i].kind);
    for (size_t i = 0; i < s->n_watches; i++)
        need(w, s->watches[i].kind);
    for (size_t i = 0; i < reads; i++)
        need(w, s->reads[i]);
    for (size_t i = 0; i < s->n_indexes; i++)
        need(w, s->indexes[i].kind);
    if (s->resource)
        feed(w, KL_ROLE_PRIMARY, s->resource, &s->when, NULL);
    for (size_t i = 0; i < owns; i++)
        feed(w, KL_ROLE_OWNS, s->owns[i].kind, &s->owns[i].when, NULL);
    for (size_t i = 0; i < s->n_watches; i++)
        feed(w, KL_ROLE_WATCH, s->watches[i].kind, &s->watches[i].when, &s->watches[i]);
    if (has_functions(s)) {
        w->mapper = kl_new(kl_mapper_state);
        *w->mapper = (kl_mapper_state){.mapper = o->mapper,
            .program = kl_program_ref(o->program),
            .line = kl_loop_line_new(),
            .clock = o->clock,
            .since = kl_clock_now(o->clock),
            .index = o->index,
            .controller = kl_strdup(s->name),
            .metrics = o->metrics,
            .caches = o->caches,
            .loop = o->loop};
        atomic_init(&w->mapper->refs, 1);
        atomic_init(&w->mapper->stopped, false);
    }
    for (size_t i = 0; i < s->n_indexes; i++) {
        kl_wired_index *ix = &w->indexes[w->n_indexes++];
        ix->spec = &s->indexes[i];
        ix->need = kl__wiring_need(w, s->indexes[i].kind);
        ix->name = s->indexes[i].path
            ? kl_sprintf("path:%s", s->indexes[i].path)
            : kl_sprintf("fn:%s:%d:%p:%s", s->name, o->generation, (void *)w, s->indexes[i].name);
        atomic_init(&ix->ready, false);
    }
    return w;
}

/* --- connecting --------------------------------------------------------------------------- */

typedef struct index_call {
    kl_mapper_state *m;
    const kl_index_spec *spec;   /* the program's, held by m */
    const kl_informer *informer; /* borrowed: it owns the index */
    char *controller;
    unsigned complaints;
} index_call;

/* A failing index function would fail for every object: the first few messages are enough. */
#define COMPLAINTS_MAX 5

static void index_fn(void *arg, const kl_value *o, kl_index_emit *emit, void *emit_arg)
{
    index_call *c = arg;
    void *state = kl__mapper_state_open(c->m);
    kl_err err = KL_ERR_INIT;
    kl_time begun = kl_clock_now(c->m->clock);
    kl_status st = state ? c->m->program->ops->index(state, c->spec->fn, o, emit, emit_arg, &err) : KL_OK;
    kl_time took = kl_clock_now(c->m->clock) - begun;
    kl__mapper_state_took(c->m, took);
    if (!st && state && !kl_informer_filling(c->informer))
        st = kl__mapper_state_held_up(c->m, took, &err);
    char *which = st ? kl_sprintf("function of index %s", c->spec->name) : NULL;
    if (st && !kl__mapper_state_spent(c->m, st, which, o, &err) && c->complaints++ < COMPLAINTS_MAX) {
        char *key = kl_object_key(o);
        kl_error("an index function failed; the object is not in this index",
            "controller=%s index=%s kind=%s key=%s error=%s", c->controller, c->spec->name, c->spec->kind,
            key, kl_log_quoted(kl_err_message(&err)));
        kl_free(key);
    }
    kl_free(which);
    kl_err_fini(&err);
}

static void index_call_free(void *arg)
{
    index_call *c = arg;
    kl__mapper_state_unref(c->m);
    kl_free(c->controller);
    kl_free(c);
}

typedef struct index_ready_call {
    kl_wiring *w;
    kl_wired_index *ix;
    void (*changed)(void *);
    void *changed_arg;
} index_ready_call;

static void index_ready(void *arg)
{
    index_ready_call *c = arg;
    atomic_store(&c->ix->ready, true);
    if (c->changed)
        kl_loop_post(c->w->o.loop, c->changed, c->changed_arg);
    kl_wiring_unref(c->w);
    kl_free(c);
}

static void index_add(kl_wiring *w, kl_wired_index *ix)
{
    kl_err err = KL_ERR_INIT;
    kl_status st;
    if (ix->spec->path) {
        st = kl_informer_add_index_path(ix->need->informer, ix->name, ix->spec->path, &err);
        atomic_store(&ix->ready, true);
    } else {
        index_call *c = kl_new(index_call);
        *c = (index_call){.m = kl__mapper_state_ref(w->mapper),
            .spec = ix->spec,
            .informer = ix->need->informer,
            .controller = kl_strdup(w->logic.spec->name)};
        index_ready_call *r = kl_new(index_ready_call);
        *r = (index_ready_call){.w = kl_wiring_ref(w), .ix = ix};
        kl_caches_notify(w->o.caches, &r->changed, &r->changed_arg);
        kl_cache_use_mapper(ix->need->cache);
        st = kl_informer_add_index_fn(
            ix->need->informer, ix->name, index_fn, c, index_call_free, index_ready, r, &err);
    }
    ix->added = !st;
    if (st && !w->problem) {
        w->problem = kl_sprintf("index %s of %s: %s", ix->spec->name, ix->spec->kind, kl_err_message(&err));
        kl_error(
            "cannot add an index", "controller=%s error=%s", w->logic.spec->name, kl_log_quoted(w->problem));
    }
    kl_err_fini(&err);
}

bool kl_wiring_advance(kl_wiring *w)
{
    bool ready = true;
    for (size_t i = 0; i < w->n_needs; i++) {
        kl_need *n = &w->needs[i];
        if (!n->informer && kl_cache_informer(n->cache)) {
            n->informer = kl_informer_ref(kl_cache_informer(n->cache));
            n->resource = kl_cache_resource(n->cache);
        }
        ready &= n->informer && kl_informer_synced(n->informer);
    }
    for (size_t i = 0; i < w->n_indexes; i++) {
        kl_wired_index *ix = &w->indexes[i];
        if (ix->need->informer && !ix->added && !w->problem)
            index_add(w, ix);
        ready &= ix->added && atomic_load(&ix->ready);
    }
    ready &= kl__holding_advance(w);
    for (size_t i = 0; i < w->n_feeds; i++) {
        kl_feed *f = &w->feeds[i];
        if (f->need->informer && !f->sub)
            f->sub = kl_informer_subscribe(f->need->informer,
                &(kl_handler){.on_event = kl__feed_event,
                    .on_lull = kl__feed_lull,
                    .on_synced = kl__feed_synced,
                    .arg = f});
        /* otherwise the first events would repeat what kl_wiring_activate enqueues */
        ready &= f->sub && atomic_load(&f->told);
    }
    return ready && !w->problem && !kl_wiring_spent(w);
}

bool kl_wiring_spent(const kl_wiring *w) { return w->mapper && atomic_load(&w->mapper->spent); }

bool kl_wiring_outdated(const kl_wiring *w)
{
    for (size_t i = 0; i < w->n_needs; i++)
        if (kl_cache_outdated(w->needs[i].cache))
            return true;
    return false;
}

/* Appends a problem and frees it; NULL: there is none. */
static void say(kl_buf *why, const kl_cache *c, char *problem)
{
    if (problem)
        kl_buf_printf(why, "%s%s: %s", why->len ? "; " : "", kl_cache_kind(c), problem);
    kl_free(problem);
}

char *kl_wiring_why(kl_wiring *w, bool *parked)
{
    *parked = false;
    if (w->problem || kl_wiring_spent(w)) {
        *parked = true;
        return kl_strdup(w->problem ? w->problem : atomic_load(&w->mapper->spent));
    }
    kl_buf why = KL_BUF_INIT;
    for (size_t i = 0; i < w->n_needs; i++)
        say(&why, w->needs[i].cache, kl_cache_problem(w->needs[i].cache));
    if (w->spaces.cache)
        say(&why, w->spaces.cache, kl_cache_problem(w->spaces.cache));
    *parked = why.len;
    if (why.len)
        return kl_buf_take(&why);
    kl_buf_fini(&why);
    for (size_t i = 0; i < w->n_needs; i++)
        if (!w->needs[i].informer || !kl_informer_synced(w->needs[i].informer))
            return kl_sprintf("waiting for %s", kl_cache_kind(w->needs[i].cache));
    for (size_t i = 0; i < w->n_feeds; i++)
        if (!atomic_load(&w->feeds[i].told))
            return kl_sprintf("waiting for %s", kl_cache_kind(w->feeds[i].need->cache));
    return kl__holding_why(w);
}

char *kl_wiring_slow(kl_wiring *w)
{
    kl_mapper_state *m = w->mapper;
    size_t waiting = m ? kl_loop_line_waiting(m->mapper, m->line) : 0;
    if (!waiting || atomic_load(&m->share) <= KL__SHARE_FAIR)
        return NULL;
    return kl_sprintf("its mapping, index and `when` functions take %d %% of a thread that all controllers "
                      "share, and %zu events wait for them",
        atomic_load(&m->share), waiting);
}

/* --- activity ----------------------------------------------------------------------------- */

/* ns NULL: of all namespaces. */
static void enqueue(
    kl_wiring *w, const char *ns, bool (*which)(void *arg, const char *key), void *arg, const kl_add *how)
{
    kl_objects all = {0};
    if (!w->logic.spec->resource || !w->needs[0].informer
        || kl_informer_list(w->needs[0].informer, &(kl_query){.ns = ns}, &all, NULL))
        return;
    kl_time now = kl_clock_now(w->o.clock);
    if (w->o.hold)
        w->o.hold(w->o.hold_arg);
    for (size_t i = 0; i < all.len; i++) {
        char *key = kl_object_key(all.v[i]);
        if (!which || which(arg, key)) {
            kl_add add = *how;
            add.priority += kl__own_priority(w, NULL, all.v[i]);
            kl_workqueue_add_with(w->o.queue, key, &add, now);
        }
        kl_free(key);
    }
    if (w->o.release)
        w->o.release(w->o.hold_arg);
    kl_objects_fini(&all);
}

void kl_wiring_enqueue_where(kl_wiring *w, kl_why why, bool (*which)(void *arg, const char *key), void *arg)
{
    enqueue(w, NULL, which, arg,
        &(kl_add){.priority = KL_PRIORITY_LOW, .routine = true, .cause = {.why = (uint8_t)why}});
}

void kl_wiring_enqueue_namespace(
    kl_wiring *w, const char *ns, kl_why why, bool (*which)(void *arg, const char *key), void *arg)
{
    enqueue(w, ns, which, arg,
        &(kl_add){.priority = KL_PRIORITY_LOW, .routine = true, .cause = {.why = (uint8_t)why}});
}

void kl_wiring_enqueue_all(kl_wiring *w, kl_why why)
{
    kl_wiring_enqueue_where(w, why, w->o.ours, w->o.ours_arg);
}

void kl_wiring_enqueue_again(kl_wiring *w)
{
    /* also caches that the previous generation is about to release */
    enqueue(w, NULL, w->o.ours, w->o.ours_arg,
        &(kl_add){.priority = KL_PRIORITY_RELOAD, .cause = {.why = KL_WHY_RELOAD}});
}

void kl_wiring_attend(kl_wiring *w)
{
    const kl_controller_spec *s = w->logic.spec;
    w->attends = w->o.own_writes && s->own_writes >= 0;
    for (size_t i = 0; w->attends && i < w->n_needs; i++) {
        kl_need *n = &w->needs[i];
        const char *labels, *fields;
        kl_controller_spec_select(s, kl_cache_kind(n->cache), &labels, &fields);
        kl_own_writes_watch(w->o.own_writes, n->informer, n->resource, labels, fields);
    }
}

void kl_wiring_listen(kl_wiring *w) { atomic_store(&w->active, true); }

void kl_wiring_activate(kl_wiring *w)
{
    kl_wiring_listen(w);
    /* also caches that the previous generation is about to release */
    enqueue(w, NULL, w->o.ours, w->o.ours_arg,
        &(kl_add){.priority = KL_PRIORITY_LOW, .cause = {.why = KL_WHY_START}});
}

void kl_wiring_retire(kl_wiring *w)
{
    atomic_store(&w->active, false);
    if (w->mapper && !atomic_load(&w->followed)) /* else its unfinished events go on for the next wiring */
        atomic_store(&w->mapper->stopped, true);
    for (size_t i = 0; i < w->n_feeds; i++)
        if (w->feeds[i].sub)
            kl_informer_unsubscribe(w->feeds[i].sub);
    if (w->n_feeds && w->o.release) /* a feed dropped within a batch does not get the batch's end */
        w->o.release(w->o.hold_arg);
    w->n_feeds = 0;
    kl__holding_retire(w);
    for (size_t i = 0; w->attends && i < w->n_needs; i++)
        kl_own_writes_unwatch(w->o.own_writes, w->needs[i].informer);
    kl_wiring_unref(w);
}

void kl_wiring_hand_over(kl_wiring *w)
{
    atomic_store(&w->followed, true);
    kl_wiring_retire(w);
}

kl_logic *kl_wiring_logic(kl_wiring *w) { return &w->logic; }
const kl_value *kl_wiring_params(kl_wiring *w) { return kl_params_shown(w->logic.spec, w->logic.params); }
kl_wiring *kl_wiring_of(kl_logic *l) { return (kl_wiring *)l; }

const kl_value *kl_wiring_object(kl_wiring *w, const char *key)
{
    return kl_informer_lookup(w->needs[0].informer, key);
}

/* --- the end ------------------------------------------------------------------------------ */

static void wiring_free(void *arg)
{
    kl_wiring *w = arg;
    void (*gone)(void *) = w->o.gone;
    void *gone_arg = w->o.gone_arg;
    for (size_t i = 0; i < w->n_indexes; i++) {
        if (w->indexes[i].added)
            kl_informer_drop_index(w->indexes[i].need->informer, w->indexes[i].name);
        kl_free(w->indexes[i].name);
    }
    kl__holding_end(w);
    for (size_t i = 0; i < w->n_needs; i++) {
        kl_informer_unref(w->needs[i].informer);
        kl_cache_release(w->needs[i].cache);
    }
    kl__mapper_state_unref(w->mapper);
    kl_map_free(w->pending, NULL); /* empty: a pending event holds a reference to us */
    kl_mutex_fini(&w->mu);
    kl_program_unref(w->logic.program);
    kl_value_unref(w->o.params);
    kl_free(w->problem);
    kl_free(w->indexes);
    kl_free(w->feeds);
    kl_free(w->needs);
    kl_free(w);
    if (gone)
        gone(gone_arg);
}

kl_wiring *kl_wiring_ref(kl_wiring *w)
{
    atomic_fetch_add_explicit(&w->refs, 1, memory_order_relaxed);
    return w;
}

void kl_wiring_unref(kl_wiring *w)
{
    if (w && atomic_fetch_sub_explicit(&w->refs, 1, memory_order_acq_rel) == 1)
        kl_loop_post(w->o.loop, wiring_free, w);
}
