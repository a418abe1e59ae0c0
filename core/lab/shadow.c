/* shadow.c - follows live runs with a candidate.
 *
 *   live worker: began, saw, asked, answered, ended -> a kl_shadow_run -> actor's queue -> candidate's
 *   worker: the same key in the same world -> judge -> tally
 *
 * A trial is one candidate, with an actor for each of its existing controllers. Live runs hold the trial
 * while they are recorded; it is freed when its workers have ended, its wirings are freed and the last such
 * run has ended. */
#include "lab/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "base/locks.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "controller/dry_writes.h"
#include "run/run_impl.h"
#include "lab/shadow_verdicts.h"
#include "run/shared.h"

/* The maximum number of runs that the candidate may lag behind, per controller and per key. Further runs are
 * skipped until it has caught up. */
#define BACKLOG_MAX 1024
#define OF_ONE_KEY_MAX 16
#define SUMMARY_EVERY KL_SECONDS(60)

typedef struct trial trial;

typedef struct actor {
    trial *t;
    char *name, *label; /* label: "shadow:NAME", in logs */
    size_t index;
    kl_wiring *wiring; /* until it is retired */
    const kl_resource *resource;
    kl_workqueue *queue;
    kl_worker *worker; /* NULL until its caches are there */
    atomic_bool ready;
    kl_witnesses witnesses;
    kl_imagination how;
    atomic_size_t backlog; /* live runs that are not judged yet */
    kl_mutex mu;
    /* key -> kl_shadow_run, in order */
    kl_map *waiting KL_GUARDED_BY(mu), *running KL_GUARDED_BY(mu);
    bool closed KL_GUARDED_BY(mu);
} actor;

struct trial {
    atomic_int refs;
    kl_shadow *shadow;
    kl_program *program;
    char *path, *script, *beside, *fresh;
    char *why; /* why it does not follow yet; under the shadow's mu */
    kl_shadow_options o;
    actor *actors;
    size_t n;
    uint64_t timer;  /* loop only */
    uint64_t summed; /* runs at the last summary; loop only */
    kl_verdicts *verdicts;
    atomic_bool clean;
};

struct kl_shadow {
    const kl_controller_env *env;
    kl_mutex mu;
    trial *now KL_GUARDED_BY(mu); /* written on the loop */
    atomic_bool on;
    trial **leaving; /* loop only; at the end, the thread that waits for the workers */
    size_t n_leaving;
};

/* --- a trial's life ----------------------------------------------------------------------- */

static void runs_free(void *first)
{
    for (kl_shadow_run *s = first, *next; s; s = next) {
        next = s->next;
        kl_shadow_run_free(s);
    }
}

static void trial_unref(trial *t)
{
    if (atomic_fetch_sub(&t->refs, 1) != 1)
        return;
    for (size_t i = 0; i < t->n; i++) {
        actor *a = &t->actors[i];
        kl_map_free(a->waiting, runs_free);
        kl_map_free(a->running, runs_free);
        kl_workqueue_free(a->queue);
        kl_mutex_fini(&a->mu);
        kl_free(a->name);
        kl_free(a->label);
    }
    kl_verdicts_free(t->verdicts);
    kl_program_unref(t->program);
    kl_free(t->actors);
    kl_free(t->path);
    kl_free(t->script);
    kl_free(t->beside);
    kl_free(t->fresh);
    kl_free(t->why);
    kl_free(t);
}

static void wiring_gone(void *arg) { trial_unref(arg); }

/* --- what runs came to -------------------------------------------------------------------- */

static void note(actor *a, const kl_shadow_run *s, const kl_judgement *j)
{
    trial *t = a->t;
    size_t keys[3];
    if (kl_verdicts_add(t->verdicts, a->name, s->key, j, s->ended_wall, keys)) {
        size_t room = 4 * strlen(j->diff) + 3;
        char *text = kl_alloc(room);
        kl_log_quote(j->diff, text, room);
        kl_warn("the candidate's result differs", "controller=%s key=%s candidate=%s verdict=%s diff=%s",
            a->name, s->key, kl_log_quoted(t->path), kl_verdict_name(j->verdict), text);
        kl_free(text);
    }
    bool clean = t->o.promote_after && !keys[KL_DIFFERS] && !keys[KL_FAILS]
        && keys[KL_SAME] >= t->o.promote_after;
    if (clean && !atomic_exchange(&t->clean, true) && t->o.clean)
        t->o.clean(t->o.arg);
}

/* --- the candidate's worker --------------------------------------------------------------- */

static kl_logic *owner_logic(void *arg) { return kl_wiring_logic(kl_wiring_ref(((actor *)arg)->wiring)); }
static void owner_logic_unref(void *arg, kl_logic *l)
{
    (void)arg;
    kl_wiring_unref(kl_wiring_of(l));
}
static bool owner_is_current(void *arg, const kl_logic *l)
{
    (void)arg, (void)l;
    return true;
}
static void owner_event(void *arg, const kl_news *n) { (void)arg, (void)n; }

static void owner_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    kl_client_resolve(((actor *)arg)->t->shadow->env->client, kind, done, done_arg);
}

static const kl_resource *owner_resource(void *arg, const char *kind)
{
    return kl_client_resolve_cached(((actor *)arg)->t->shadow->env->client, kind);
}

static void owner_ended(void *arg)
{
    const kl_controller_env *env = ((actor *)arg)->t->shadow->env;
    if (env->changed)
        kl_loop_post(env->loop, env->changed, env->changed_arg);
}

/* Moves the key's first waiting run to `running`: the candidate repeats it. */
static kl_shadow_run *next_locked(actor *a, const char *key) KL_REQUIRES(a->mu);
static kl_shadow_run *next_locked(actor *a, const char *key)
{
    kl_shadow_run *s = kl_map_take(a->waiting, key);
    if (!s)
        return NULL;
    if (s->next)
        kl_map_set(a->waiting, key, s->next);
    s->next = NULL;
    kl_map_set(a->running, key, s);
    return s;
}

static const kl_value *owner_object(void *arg, kl_logic *l, const char *key)
{
    actor *a = arg;
    (void)l;
    kl_lock(&a->mu);
    /* in `running` already: the key had to wait for others of its group */
    kl_shadow_run *s = kl_map_get(a->running, key);
    if (!s)
        s = next_locked(a, key);
    const kl_value *o = s ? kl_value_ref(s->object) : NULL;
    kl_unlock(&a->mu);
    return o;
}

static kl_time owner_wall(void *arg, kl_run *r)
{
    (void)arg;
    return ((kl_shadow_run *)r->observed.shadow)->wall;
}

static void add(actor *a, const kl_shadow_run *s, kl_time now)
{
    (void)kl_workqueue_add_with(a->queue, s->key,
        &(kl_add){.cause = kl_cause_of((kl_why)s->cause.why, kl_cause_object(&s->cause))}, now);
}

/* The candidate starts with the memo of the live run. */
static void set_memo(kl_run *r, const kl_value *memo)
{
    const char *field;
    const kl_value *had = kl_run_memo(r);
    kl_err err = KL_ERR_INIT;
    for (size_t i = 0; i < kl_value_len(had); i++) {
        (void)kl_value_member(had, i, &field, NULL);
        if (!kl_value_get(memo, field) && kl_run_memo_set(r, field, NULL, &err))
            kl_err_fini(&err);
    }
    for (size_t i = 0; i < kl_value_len(memo); i++) {
        const kl_value *v = kl_value_member(memo, i, &field, NULL);
        if (kl_run_memo_set(r, field, v, &err))
            kl_err_fini(&err);
    }
    kl_value_unref(had);
}

static void own_began(void *arg, kl_run *r)
{
    actor *a = arg;
    kl_lock(&a->mu);
    kl_shadow_run *s = kl_map_get(a->running, r->key);
    kl_unlock(&a->mu);
    r->observed.shadow = s;
    r->attempt = s->attempt;
    set_memo(r, s->memo);
    kl_shadow_run_show(s, a->resource, kl_run_overlay(r));
}

static void own_ended(void *arg, kl_run *r, const kl_ran *x)
{
    actor *a = arg;
    kl_lock(&a->mu);
    kl_shadow_run *s = kl_map_take(a->running, r->key), *next = kl_map_get(a->waiting, r->key);
    kl_unlock(&a->mu);
    if (next && !x->put_back)
        add(a, next, x->ended);
    if (!x->put_back) {
        kl_judgement j = kl_shadow_judge(
            s, a->resource, &(kl_ending){r->outcome.kind, r->outcome.after, r->outcome.message});
        note(a, s, &j);
        kl_free(j.diff);
        kl_free(j.kind);
    }
    kl_shadow_run_free(s);
    atomic_fetch_sub(&a->backlog, 1);
}

static bool recall(void *arg, kl_run *r, const kl_op *op, kl_recalled *out)
{
    (void)arg;
    return kl_shadow_run_recall(r->observed.shadow, r, op, out);
}

static bool recall_list(void *run, const char *kind, const kl_read_query *q, kl_objects *out)
{
    return kl_shadow_run_recall_list(((kl_run *)run)->observed.shadow, kind, q, out);
}

static void wrote(void *arg, const kl_imagined *x)
{
    actor *a = arg;
    kl_lock(&a->mu);
    kl_shadow_run *s = kl_map_get(a->running, x->key);
    if (s)
        kl_shadow_run_wrote(s, x);
    kl_unlock(&a->mu);
}

static void wake(void *arg)
{
    actor *a = arg;
    if (atomic_load(&a->ready))
        (void)kl_worker_call(a->worker);
}

static void actor_start(actor *a)
{
    const kl_controller_env *env = a->t->shadow->env;
    a->how = (kl_imagination){
        .ops = &kl_dry_writes, .wrote = wrote, .recall = recall, .recall_list = recall_list, .arg = a};
    kl_witnesses_add(&a->witnesses, &(kl_witness){.began = own_began, .ended = own_ended, .arg = a});
    a->resource = kl_reader_resource(
        kl_wiring_logic(a->wiring)->reader, kl_wiring_logic(a->wiring)->spec->resource);
    a->worker = kl_worker_new(&(kl_worker_owner){.logic = owner_logic,
                                  .logic_unref = owner_logic_unref,
                                  .is_current = owner_is_current,
                                  .object = owner_object,
                                  .resolve = owner_resolve,
                                  .resource = owner_resource,
                                  .event = owner_event,
                                  .ended = owner_ended,
                                  .wall = owner_wall,
                                  .arg = a,
                                  .name = a->label,
                                  .queue = a->queue,
                                  .door = env->door,
                                  .clock = env->clock,
                                  .imagine = &a->how,
                                  .witnesses = &a->witnesses,
                                  .fleet = env->fleet,
                                  .cluster = env->cluster,
                                  .shadow = true},
        1);
    kl_worker_start(a->worker);
    atomic_store(&a->ready, true);
}

/* --- live runs: their workers' threads ---------------------------------------------------- */

/* The actor that follows a controller, with a reference to its trial; NULL: none, or its queue is full. Runs
 * from before the candidate's caches are there wait in its queue. */
static actor *actor_for(kl_shadow *s, const char *controller)
{
    actor *found = NULL;
    kl_lock(&s->mu);
    trial *t = s->now;
    for (size_t i = 0; t && i < t->n; i++)
        if (!strcmp(t->actors[i].name, controller))
            found = &t->actors[i];
    if (found)
        atomic_fetch_add(&t->refs, 1);
    kl_unlock(&s->mu);
    if (found && atomic_load(&found->backlog) >= BACKLOG_MAX) {
        kl_verdicts_skip(found->t->verdicts);
        trial_unref(found->t);
        found = NULL;
    }
    return found;
}

static void live_began(void *arg, kl_run *r)
{
    kl_shadow *s = arg;
    actor *a = atomic_load_explicit(&s->on, memory_order_relaxed) ? actor_for(s, r->w->o.name) : NULL;
    if (a)
        r->observed.shadow = kl_shadow_run_new(r, a);
}

static void live_saw(void *arg, kl_run *r, const kl_saw *x)
{
    (void)arg;
    if (r->observed.shadow)
        kl_shadow_run_saw(r->observed.shadow, r, x);
}

static void live_asked(void *arg, kl_run *r, const kl_asked *x)
{
    (void)arg;
    if (r->observed.shadow)
        kl_shadow_run_asked(r->observed.shadow, r, x);
}

static void live_answered(void *arg, kl_run *r, const kl_answered *x)
{
    (void)arg;
    if (r->observed.shadow)
        kl_shadow_run_answered(r->observed.shadow, r, x);
}

/* Appends s to the waiting runs of its key. False: too many wait, or the actor is closed. */
static bool append_locked(actor *a, kl_shadow_run *s) KL_REQUIRES(a->mu);
static bool append_locked(actor *a, kl_shadow_run *s)
{
    size_t n = 0;
    kl_shadow_run *last = kl_map_get(a->waiting, s->key);
    for (; last && last->next; last = last->next)
        n++;
    if (a->closed || n >= OF_ONE_KEY_MAX)
        return false;
    if (last)
        last->next = s;
    else
        kl_map_set(a->waiting, s->key, s);
    atomic_fetch_add(&a->backlog, 1);
    return true;
}

static bool submit(actor *a, kl_shadow_run *s, kl_time now)
{
    kl_lock(&a->mu);
    bool taken = append_locked(a, s);
    if (taken) /* under the lock: the candidate may be done with it at once */
        add(a, s, now);
    kl_unlock(&a->mu);
    return taken;
}

static void live_ended(void *arg, kl_run *r, const kl_ran *x)
{
    (void)arg;
    kl_shadow_run *s = r->observed.shadow;
    if (!s)
        return;
    actor *a = s->owner;
    trial *t = a->t;
    r->observed.shadow = NULL;
    kl_shadow_run_ended(s, r);
    if (s->unfit || x->put_back || !submit(a, s, kl_clock_now(r->w->o.clock))) {
        kl_verdicts_skip(t->verdicts);
        kl_shadow_run_free(s);
    }
    trial_unref(t);
}

kl_witness kl_shadow_witness(kl_shadow *s)
{
    return (kl_witness){.began = live_began,
        .saw = live_saw,
        .asked = live_asked,
        .answered = live_answered,
        .ended = live_ended,
        .arg = s};
}

/* --- begin and end ------------------------------------------------------------------------ */

kl_shadow *kl_shadow_new(const kl_controller_env *env)
{
    kl_shadow *s = kl_new(kl_shadow);
    s->env = env;
    kl_mutex_init(&s->mu);
    return s;
}

static void summary_arm(trial *t);

static void summarise(void *arg)
{
    trial *t = arg;
    t->timer = 0;
    kl_verdict_counts n;
    kl_verdicts_count(t->verdicts, &n);
    if (n.runs != t->summed)
        kl_info("in the shadow", "candidate=%s same=%zu differs=%zu fails=%zu runs=%llu skipped=%llu",
            kl_log_quoted(t->path), n.keys[KL_SAME], n.keys[KL_DIFFERS], n.keys[KL_FAILS],
            (unsigned long long)n.runs, (unsigned long long)n.skipped);
    t->summed = n.runs;
    summary_arm(t);
}

static void summary_arm(trial *t)
{
    t->timer = kl_loop_timer(t->shadow->env->loop, SUMMARY_EVERY, summarise, t);
}

static void actor_init(actor *a, trial *t, const char *name, size_t index)
{
    const kl_controller_env *env = t->shadow->env;
    a->t = t;
    a->name = kl_strdup(name);
    a->label = kl_sprintf("shadow:%s", name);
    a->index = index;
    kl_mutex_init_as(&a->mu, KL_LOCK_SHADOW);
    a->waiting = kl_map_new();
    a->running = kl_map_new();
    a->queue = kl_workqueue_new(&(kl_workqueue_options){
        .order = KL_QUEUE_FIFO, .wake = wake, .wake_arg = a, .forget = kl_cause_forget});
    atomic_fetch_add(&t->refs, 1); /* until its wiring is gone */
    a->wiring = kl_wiring_new(&(kl_wiring_options){.caches = env->caches,
        .loop = env->loop,
        .mapper = env->mapper,
        .clock = env->clock,
        .queue = a->queue,
        .program = t->program,
        .index = index,
        .generation = t->program->generation,
        .gone = wiring_gone,
        .gone_arg = t});
}

static bool names(const char *const *list, const char *name)
{
    for (; list && *list; list++)
        if (!strcmp(*list, name))
            return true;
    return false;
}

static void join_name(char **list, const char *name)
{
    char *longer = kl_sprintf("%s%s%s", *list ? *list : "", *list ? " " : "", name);
    kl_free(*list);
    *list = longer;
}

void kl_shadow_begin(kl_shadow *s, kl_program *p, const kl_shadow_options *o)
{
    kl_shadow_end(s);
    trial *t = kl_new(trial);
    atomic_init(&t->refs, 1);
    t->shadow = s;
    t->program = kl_program_ref(p);
    t->path = kl_strdup(o->path);
    t->script = kl_strdup(o->script);
    t->o = *o;
    t->verdicts = kl_verdicts_new();
    t->actors = kl_new_array(actor, p->n_specs + 1);
    for (size_t i = 0; i < p->n_specs; i++) {
        bool live = names(o->live, p->specs[i].name);
        join_name(live ? &t->beside : &t->fresh, p->specs[i].name);
        if (live)
            actor_init(&t->actors[t->n++], t, p->specs[i].name, i);
    }
    summary_arm(t);
    kl_lock(&s->mu);
    s->now = t;
    kl_unlock(&s->mu);
    atomic_store(&s->on, true);
    kl_info("a candidate runs in the shadow", "candidate=%s script=%s controllers=%s", kl_log_quoted(t->path),
        kl_log_quoted(t->script ? t->script : ""), kl_log_quoted(t->beside));
}

void kl_shadow_end(kl_shadow *s)
{
    atomic_store(&s->on, false);
    kl_lock(&s->mu);
    trial *t = s->now;
    s->now = NULL;
    kl_unlock(&s->mu);
    if (!t)
        return;
    kl_loop_timer_cancel(s->env->loop, t->timer);
    for (size_t i = 0; i < t->n; i++) {
        actor *a = &t->actors[i];
        kl_lock(&a->mu);
        a->closed = true;
        kl_unlock(&a->mu);
        if (!a->worker)
            continue;
        kl_worker_drain(a->worker);
        kl_worker_abort(a->worker);
    }
    s->leaving = kl_realloc(s->leaving, (s->n_leaving + 1) * sizeof *s->leaving);
    s->leaving[s->n_leaving++] = t;
    kl_shadow_advance(s);
}

/* True when its threads have ended, and its caches are released. */
static bool leave(trial *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->actors[i].worker && !kl_worker_ended(t->actors[i].worker))
            return false;
    for (size_t i = 0; i < t->n; i++) {
        actor *a = &t->actors[i];
        atomic_store(&a->ready, false);
        kl_worker_join(a->worker);
        a->worker = NULL;
        kl_wiring_retire(a->wiring);
    }
    trial_unref(t);
    return true;
}

void kl_shadow_advance(kl_shadow *s)
{
    trial *t = s->now; /* only the loop writes it */
    char *why = NULL;
    for (size_t i = 0; t && i < t->n; i++) {
        actor *a = &t->actors[i];
        bool parked;
        if (!a->worker && kl_wiring_advance(a->wiring))
            actor_start(a);
        else if (!a->worker && !why)
            why = kl_wiring_why(a->wiring, &parked);
    }
    kl_lock(&s->mu);
    char *old = t ? t->why : NULL;
    if (t)
        t->why = why;
    kl_unlock(&s->mu);
    kl_free(old);
    for (size_t i = 0; i < s->n_leaving;)
        if (leave(s->leaving[i]))
            s->leaving[i] = s->leaving[--s->n_leaving];
        else
            i++;
}

void kl_shadow_wait(kl_shadow *s)
{
    for (size_t i = 0; i < s->n_leaving; i++)
        for (size_t k = 0; k < s->leaving[i]->n; k++)
            if (s->leaving[i]->actors[k].worker)
                kl_worker_wait(s->leaving[i]->actors[k].worker);
}

void kl_shadow_free(kl_shadow *s)
{
    if (!s)
        return;
    kl_shadow_end(s);
    kl_shadow_wait(s);
    kl_shadow_advance(s);
    kl_free(s->leaving);
    kl_mutex_fini(&s->mu);
    kl_free(s);
}

/* --- the report --------------------------------------------------------------------------- */

static trial *trial_now(kl_shadow *s)
{
    kl_lock(&s->mu);
    trial *t = s->now;
    if (t)
        atomic_fetch_add(&t->refs, 1);
    kl_unlock(&s->mu);
    return t;
}

kl_program *kl_shadow_program(kl_shadow *s)
{
    trial *t = trial_now(s);
    kl_program *p = t ? kl_program_ref(t->program) : NULL;
    if (t)
        trial_unref(t);
    return p;
}

bool kl_shadow_clean(kl_shadow *s)
{
    trial *t = trial_now(s);
    if (!t)
        return false;
    bool clean = atomic_load(&t->clean);
    trial_unref(t);
    return clean;
}

static void build_names(kl_builder *b, const char *key, const char *list)
{
    kl_build_key(b, key);
    kl_build_array(b);
    for (const char *p = list; p && *p;) {
        size_t n = strcspn(p, " ");
        kl_build_strn(b, p, n);
        p += n + (p[n] == ' ');
    }
    kl_build_end(b);
}

const kl_value *kl_shadow_report(kl_shadow *s)
{
    trial *t = trial_now(s);
    if (!t)
        return NULL;
    bool ready = true;
    size_t waiting = 0; /* read before the verdicts, so that a run is in at least one of the two */
    for (size_t i = 0; i < t->n; i++) {
        ready &= atomic_load(&t->actors[i].ready);
        waiting += atomic_load(&t->actors[i].backlog);
    }
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "candidate", t->path);
    kl_build_kstr(b, "script", t->script);
    kl_build_kstr(b, "state", ready ? "following" : "waiting for caches");
    kl_lock(&s->mu);
    kl_build_kstr(b, "why", ready ? NULL : t->why);
    kl_unlock(&s->mu);
    if (t->o.promote_after)
        kl_build_kint(b, "promote_after", (int64_t)t->o.promote_after);
    kl_build_kint(b, "waiting", (int64_t)waiting);
    kl_verdicts_build(t->verdicts, b);
    kl_build_key(b, "controllers");
    kl_build_array(b);
    for (size_t i = 0; i < t->n; i++)
        kl_build_str(b, t->actors[i].name);
    kl_build_end(b);
    build_names(b, "beside", t->beside);
    build_names(b, "new", t->fresh);
    kl_build_end(b);
    trial_unref(t);
    return kl_builder_done(b);
}
