/* informer.c - one resource kept in sync: reflector + indexer + handlers.
 *
 *   watch thread:  source callback -> reflector step -> do what it says (list, watch, wait)
 *        | apply: at once, or on the executor, in order
 *   apply context: indexer put -> handlers
 *
 * Everything that changes the store or calls a handler runs in the apply context, one thing after the other:
 * so a late handler gets a snapshot and then the events, none lost and none twice. Between start and stop the
 * informer holds a reference to itself, and every posted job holds one.
 *
 * An informer of some namespaces has a reflector for each; all share one store. */
#include "cache/informer_impl.h"

#include <stdlib.h>
#include <string.h>
#include "base/mem.h"

/* --- life --------------------------------------------------------------------------------- */

static void parts_init(kl_informer *i, const kl_informer_options *o)
{
    kl_informer_part whole = {o->source, o->namespace_};
    const kl_informer_part *parts = o->n_parts ? o->parts : &whole;
    i->n_parts = o->changing ? 0 : o->n_parts ? o->n_parts : 1;
    i->parts = kl_new_array(kl__follower *, i->n_parts + 1);
    for (size_t k = 0; k < i->n_parts; k++)
        i->parts[k] = kl__follower_new(i, &parts[k], o->seed + k);
    i->home = o->changing ? o->source : i->parts[0]->source;
    i->by_ns = o->changing ? kl_map_new() : NULL;
}

kl_informer *kl_informer_new(const kl_informer_options *o)
{
    kl_informer *i = kl_new(kl_informer);
    atomic_init(&i->refs, 1);
    i->clock = o->clock;
    i->resource = kl_strdup(o->resource ? o->resource : "objects");
    i->api_version = kl_strdup(o->api_version);
    i->kind = kl_strdup(o->kind);
    i->execute = o->execute;
    i->execute_arg = o->execute_arg;
    i->on_trouble = o->on_trouble;
    i->trouble_arg = o->trouble_arg;
    i->indexer = kl_indexer_new();
    i->changing = o->changing;
    i->on_part = o->on_part;
    i->part_arg = o->part_arg;
    i->seed = o->seed;
    i->page_size = o->page_size;
    i->stream = o->stream;
    parts_init(i, o);
    kl_mutex_init(&i->mu);
    kl_cond_init(&i->idle);
    return i;
}

kl_informer *kl_informer_ref(kl_informer *i)
{
    atomic_fetch_add_explicit(&i->refs, 1, memory_order_relaxed);
    return i;
}

void kl_informer_unref(kl_informer *i)
{
    if (!i || atomic_fetch_sub_explicit(&i->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t k = 0; k < i->n_parts; k++)
        kl__follower_free(i->parts[k]);
    kl_free(i->parts);
    kl_map_free(i->by_ns, NULL);
    if (i->changing && i->home.free)
        i->home.free(i->home.self);
    for (size_t k = 0; k < i->n_active; k++)
        kl__subscription_unref(i->active[k]);
    kl_free(i->active);
    kl_free(i->subs);
    kl_indexer_free(i->indexer);
    kl_cond_fini(&i->idle);
    kl_mutex_fini(&i->mu);
    kl_free(i->resource);
    kl_free(i->api_version);
    kl_free(i->kind);
    kl_free(i);
}

/* --- jobs: from any thread to the watch thread, from there to the apply context ----------- */

kl__job *kl__job_new(kl_informer *i, void (*fn)(kl_informer *, kl__job *))
{
    kl__job *j = kl_new(kl__job);
    j->i = kl_informer_ref(i);
    j->fn = fn;
    return j;
}

kl__job *kl__job_of(kl__follower *f, void (*fn)(kl_informer *, kl__job *))
{
    kl__job *j = kl__job_new(f->i, fn);
    j->from = f;
    return j;
}

static void job_free(kl__job *j)
{
    kl_informer *i = j->i;
    kl_free(j->rv);
    kl_free(j);
    kl_informer_unref(i);
}

/* In the apply context. */
static void job_run(void *arg)
{
    kl__job *j = arg;
    kl_informer *i = j->i;
    j->fn(i, j);
    if (atomic_load(&i->bringing) == kl_thread_self())
        i->owes_lull = true;
    else
        kl__handlers_lull(i);
    job_free(j);
}

/* On the watch thread, which is the apply context only where there is no executor: handlers are the
 * executor's alone. */
static void job_run_on_watch(void *arg)
{
    kl__job *j = arg;
    if (!j->i->execute) {
        job_run(j);
        return;
    }
    j->fn(j->i, j);
    job_free(j);
}

/* On the watch thread: into the apply context. */
void kl__job_apply(kl_informer *i, kl__job *j)
{
    if (i->execute && !i->ended)
        i->execute(i->execute_arg, job_run, j);
    else
        job_run(j);
}

static void job_forward(void *arg)
{
    kl__job *j = arg;
    kl__job_apply(j->i, j);
}

static void job_nothing(kl_informer *i, kl__job *j) { (void)i, (void)j; }

/* An empty job: every job ends with a lull, unless others wait behind it. */
void kl__job_lull(kl_informer *i) { kl__job_apply(i, kl__job_new(i, job_nothing)); }

void kl__job_post_watch(kl_informer *i, kl__job *j) { i->home.post(i->home.self, job_run_on_watch, j); }
void kl__job_post(kl_informer *i, kl__job *j) { i->home.post(i->home.self, job_forward, j); }

/* --- start, stop, kick -------------------------------------------------------------------- */

static void step_all(kl_informer *i, kl_reflector_input_kind kind)
{
    size_t n;
    kl__follower **parts = kl__parts_copy(i, &n);
    for (size_t k = 0; k < n; k++)
        kl__follow_step(parts[k], &(kl_reflector_input){.kind = kind});
    kl_free(parts);
}

static void on_answered(void *arg) { step_all(arg, KL_REFLECTOR_ANSWERED); }

static void job_start(kl_informer *i, kl__job *j)
{
    (void)j;
    if (i->started)
        return;
    i->started = i->running = true;
    kl_informer_ref(i);
    if (i->home.heed)
        i->heed = i->home.heed(i->home.self, on_answered, i);
    step_all(i, KL_REFLECTOR_START);
    if (i->changing)
        kl__parts_started(i);
}

static void job_kick(kl_informer *i, kl__job *j)
{
    (void)j;
    step_all(i, KL_REFLECTOR_KICK);
}

static void job_stopped(kl_informer *i, kl__job *j)
{
    i->ended = true;
    if (j->call)
        j->call(j->call_arg);
}

/* The last effective job of the apply context: earlier jobs have run, later ones find `stopped`. */
static void job_last(kl_informer *i, kl__job *j)
{
    i->stopped = true;
    kl__job *k = kl__job_new(i, job_stopped);
    k->call = j->call;
    k->call_arg = j->call_arg;
    if (i->execute)
        kl__job_post_watch(i, k);
    else
        job_run(k);
}

static void job_stop(kl_informer *i, kl__job *j)
{
    bool was = i->running;
    size_t n;
    if (i->heed)
        i->home.heed_not(i->home.self, i->heed);
    i->heed = 0;
    kl__follower **parts = kl__parts_copy(i, &n);
    for (size_t k = 0; k < n; k++)
        kl__follow_stop(parts[k]);
    i->started = true; /* so that a later start does nothing */
    i->running = false;
    for (size_t k = 0; k < n; k++)
        kl__follow_publish(parts[k]);
    kl_free(parts);
    kl__job *k = kl__job_new(i, job_last);
    k->call = j->call;
    k->call_arg = j->call_arg;
    kl__job_apply(i, k);
    if (was)
        kl_informer_unref(i); /* taken by job_start */
}

void kl_informer_start(kl_informer *i) { kl__job_post_watch(i, kl__job_new(i, job_start)); }
/* Clears parts whose kind is gone. The server's next message will be a list, which is applied after this. */
static void job_clear(kl_informer *i, kl__job *j)
{
    (void)j;
    size_t n;
    kl__follower **parts = kl__parts_copy(i, &n);
    for (size_t k = 0; i->running && k < n; k++)
        if (kl_reflector_failure(parts[k]->reflector) == KL_ENOTFOUND
            && kl_reflector_parked(parts[k]->reflector))
            kl__job_apply(i, kl__job_of(parts[k], kl__apply_nothing));
    kl_free(parts);
}

void kl_informer_clear(kl_informer *i) { kl__job_post_watch(i, kl__job_new(i, job_clear)); }
void kl_informer_kick(kl_informer *i) { kl__job_post_watch(i, kl__job_new(i, job_kick)); }

void kl_informer_stop(kl_informer *i, void (*stopped)(void *arg), void *arg)
{
    kl__job *j = kl__job_new(i, job_stop);
    j->call = stopped;
    j->call_arg = arg;
    kl__job_post_watch(i, j);
}

/* --- reading and indexes ------------------------------------------------------------------ */

bool kl_informer_synced(const kl_informer *i) { return atomic_load(&i->synced); }
const kl_value *kl_informer_lookup(kl_informer *i, const char *key)
{
    return kl_indexer_lookup(i->indexer, key);
}
size_t kl_informer_count(kl_informer *i) { return kl_indexer_count(i->indexer); }
kl_status kl_informer_list(kl_informer *i, const kl_query *q, kl_objects *out, kl_err *err)
{
    kl_status st = kl_indexer_list(i->indexer, q, out, err);
    if (st)
        kl_err_prefix(err, "%s", i->resource);
    return st;
}

kl_status kl_informer_add_index_path(kl_informer *i, const char *name, const char *path, kl_err *err)
{
    return kl_indexer_add_path(i->indexer, name, path, err);
}

/* How long changes wait for an index that is being filled, or for one call of its function. */
#define FILL_FOR KL_MILLISECONDS(20)

typedef struct piece {
    kl_clock *clock;
    kl_time until;
} piece;

static bool piece_over(void *arg)
{
    const piece *p = arg;
    return kl_clock_now(p->clock) >= p->until;
}

static void job_fill(kl_informer *i, kl__job *j)
{
    piece p = {i->clock, kl_clock_now(i->clock) + FILL_FOR};
    i->filling = true;
    bool all = i->stopped || kl_indexer_fill(i->indexer, piece_over, &p);
    i->filling = false;
    if (!all) {
        kl__job *rest = kl__job_new(i, job_fill);
        rest->call = j->call;
        rest->call_arg = j->call_arg;
        kl__job_post(i, rest);
    } else if (j->call) { /* also when stopped: the function may free its argument */
        j->call(j->call_arg);
    }
}

bool kl_informer_filling(const kl_informer *i) { return i->filling; }

static void job_sweep(kl_informer *i, kl__job *j)
{
    (void)j;
    kl_indexer_sweep(i->indexer);
}

kl_status kl_informer_add_index_fn(kl_informer *i, const char *name, kl_index_fn *fn, void *arg,
    void (*free_arg)(void *), void (*ready)(void *), void *ready_arg, kl_err *err)
{
    bool fresh;
    kl_status st = kl_indexer_reserve_fn(i->indexer, name, fn, arg, free_arg, &fresh, err);
    if (st)
        return st;
    /* If another caller reserved the index first, its job runs before ours. */
    kl__job *j = kl__job_new(i, job_fill);
    j->call = ready;
    j->call_arg = ready_arg;
    kl__job_post(i, j);
    return KL_OK;
}

void kl_informer_drop_index(kl_informer *i, const char *name)
{
    if (kl_indexer_drop(i->indexer, name))
        kl__job_post(i, kl__job_new(i, job_sweep));
}

/* --- state -------------------------------------------------------------------------------- */

/* With several parts, the report is that of the part in the greatest trouble. */
static int trouble(const kl__follower *f)
{
    return f->parked ? 3 : f->message ? 2 : strcmp(f->state, "watching") != 0;
}

/* The part in the greatest trouble; NULL: there are no parts. */
static const kl__follower *worst(const kl_informer *i)
{
    const kl__follower *f = i->n_parts ? i->parts[0] : NULL;
    for (size_t k = 1; k < i->n_parts; k++)
        if (trouble(i->parts[k]) > trouble(f))
            f = i->parts[k];
    return f;
}

void kl__sums_add(kl__sums *s, const kl_reflector_counts *c)
{
    s->counts.lists += c->lists;
    s->counts.watches += c->watches;
    s->counts.errors += c->errors;
    s->counts.short_watches += c->short_watches;
    s->counts.stalls += c->stalls;
    s->counts.streams += c->streams;
    s->counts.fallbacks += c->fallbacks;
    s->counts.relists += c->relists;
    s->restarts += c->watches ? c->watches - 1 : 0;
}

void kl_informer_stats_get(kl_informer *i, kl_informer_stats *out)
{
    *out = (kl_informer_stats){
        .synced = kl_informer_synced(i),
        .objects = kl_indexer_count(i->indexer),
        .bytes = kl_indexer_bytes(i->indexer),
        .events = atomic_load(&i->events),
        .skipped = atomic_load(&i->skipped),
        .last_event = atomic_load(&i->last_event),
        .last_change = atomic_load(&i->last_change),
        .rv = kl_indexer_rv(i->indexer),
    };
    kl_lock(&i->mu);
    const kl__follower *f = worst(i);
    kl__sums sums = i->gone;
    for (size_t k = 0; k < i->n_parts; k++) {
        kl__sums_add(&sums, &i->parts[k]->counts);
        out->coming += atomic_load_explicit(&i->parts[k]->coming, memory_order_relaxed);
    }
    out->state = kl_strdup(f ? f->state : "idle");
    if (f) {
        out->parked = f->parked;
        out->message = kl_strdup(f->message);
        out->namespace_ = kl_strdup(f->ns);
        out->failure = f->failure;
    } else {
        out->last_event = 0; /* without parts no source calls back */
    }
    kl_unlock(&i->mu);
    out->lists = sums.counts.lists;
    out->watches = sums.counts.watches;
    out->errors = sums.counts.errors;
    out->short_watches = sums.counts.short_watches;
    out->stalls = sums.counts.stalls;
    out->streams = sums.counts.streams;
    out->fallbacks = sums.counts.fallbacks;
    out->relists = sums.counts.relists;
    out->restarts = sums.restarts;
}

void kl_informer_stats_fini(kl_informer_stats *s)
{
    kl_free(s->rv);
    kl_free(s->state);
    kl_free(s->message);
    kl_free(s->namespace_);
    *s = (kl_informer_stats){0};
}

bool kl_informer_reached(kl_informer *i, uint64_t rv)
{
    bool parked;
    kl_lock(&i->mu);
    const kl__follower *f = worst(i);
    parked = f && f->parked;
    kl_unlock(&i->mu);
    if (parked)
        return true;
    char *at = kl_indexer_rv(i->indexer);
    bool there = kl_informer_synced(i) && at && strtoull(at, NULL, 10) >= rv;
    kl_free(at);
    return there;
}
