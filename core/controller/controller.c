/* controller.c - publishes generations and owns the workers that run them. */
#include "controller/controller.h"
#include "controller/batch.h"
#include "controller/probation.h"
#include "controller/holding.h"
#include "controller/leftover.h"

#include <stdatomic.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "controller/rehearse.h"
#include "controller/trigger.h"

#define WORKERS_DEFAULT 1
/* Dry runs of single keys: so many at once, and how long one may take where the script does not say. */
#define REHEARSALS_MOST 8
#define REHEARSAL_MOST KL_SECONDS(60)

struct kl_controller {
    kl_controller_env env;
    char *name, *resource;
    kl_workqueue *queue;
    kl_controller_metrics *metrics;
    kl_elide *elide;
    kl_own_writes *own_writes;
    kl_shared *memos;
    kl_mutex mu;
    kl_wiring *current KL_GUARDED_BY(mu);  /* workers take it from any thread */
    _Atomic(const kl_logic *) present;     /* its logic, to compare with */
    kl_worker **workers KL_GUARDED_BY(mu); /* changed on the loop, poked from any thread */
    size_t n_workers KL_GUARDED_BY(mu);
    atomic_size_t crew;  /* n_workers, for a glance without the lock */
    kl_worker **leaving; /* draining, too many after a reload */
    size_t n_leaving;
    kl_wiring *next;
    /* not freed yet, retired ones included: they know our queue */
    size_t wirings;
    kl_batch batch;          /* of wake-ups */
    _Atomic(kl_gate *) gate; /* of that office; NULL: all keys are ours */
    /* where it works; where it goes when its workers have ended, or NULL */
    kl_office *office, *moving;
    uint64_t terms; /* how often it began to work */
    bool working;   /* it has workers, leaving ones included */
    bool drained, stopped;
    uint64_t resync_timer;
    kl_time resync;
    uint64_t resync_count;
    /* NULL: nobody looks; with turns time stands, and a key that waits would for ever */
    kl_fights *fights;
    kl_probation *probation;   /* NULL: its generations are not compared */
    kl_triggers *triggers;     /* `every` and `cron` of the current generation */
    kl_rehearsal **rehearsals; /* loop only */
    size_t n_rehearsals;
    const kl_value *params; /* that somebody set for a generation, or NULL */
    int params_of;
    char *told;         /* why the next generation waits, as last logged */
    atomic_bool paused; /* somebody said so */
    atomic_bool turn;   /* with turns: a key may be taken */
};

/* One sleeper is enough: it calls the next one when there is more than it takes (owner_more). */
static void wake_now(kl_controller *c)
{
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n_workers; i++)
        if (kl_worker_call(c->workers[i]))
            break;
    kl_unlock(&c->mu);
}

static void wake(void *arg)
{
    kl_controller *c = arg;
    if (kl_batch_wakes(&c->batch))
        wake_now(c);
}

static void hold(void *arg) { kl_batch_begin(&((kl_controller *)arg)->batch); }

static void release(void *arg)
{
    kl_controller *c = arg;
    if (kl_batch_end(&c->batch))
        wake_now(c);
}

static void enqueue_all(kl_controller *c, kl_why why)
{
    kl_lock(&c->mu);
    kl_wiring *w = c->current ? kl_wiring_ref(c->current) : NULL;
    kl_unlock(&c->mu);
    if (w)
        kl_wiring_enqueue_all(w, why);
    kl_wiring_unref(w);
}

static void triggered(void *arg) { enqueue_all(arg, KL_WHY_TRIGGER); }

static void broken(void *arg, int generation, const char *why)
{
    kl_controller *c = arg;
    c->env.broken(c->env.broken_arg, c->name, generation, why);
}

kl_controller *kl_controller_new(const kl_controller_env *env, const kl_controller_spec *spec)
{
    kl_controller *c = kl_new(kl_controller);
    c->env = *env;
    c->name = kl_strdup(spec->name);
    c->resource = kl_strdup(spec->resource);
    kl_mutex_init(&c->mu);
    c->queue = kl_workqueue_new(&(kl_workqueue_options){.backoff = spec->backoff,
        .seed = kl_hash(spec->name, strlen(spec->name)),
        .order = env->turns ? KL_QUEUE_NAME : KL_QUEUE_FAIR,
        .wake = wake,
        .wake_arg = c,
        .forget = kl_cause_forget});
    c->metrics = kl_metrics_controller(env->metrics, spec->name, WORKERS_DEFAULT);
    c->office = kl_office_enter(env->offices, spec->name, spec);
    c->elide = kl_elide_new(0);
    c->memos = kl_memos_new(c->name);
    c->own_writes = kl_own_writes_new(c->name, c->queue, env->clock, c->metrics);
    if (!env->turns && !env->object && !env->never_slow_down)
        c->fights = kl_fights_new(kl_controller_spec_manager(spec));
    if (env->broken)
        c->probation = kl_probation_new(&(kl_probation_options){.loop = env->loop,
            .clock = env->clock,
            .window = env->rollback_window,
            .broken = broken,
            .arg = c});
    c->triggers = kl_triggers_new(env->loop, env->clock, triggered, c);
    return c;
}

const char *kl_controller_name(const kl_controller *c) { return c->name; }
const char *kl_controller_resource(const kl_controller *c) { return c->resource; }
kl_workqueue *kl_controller_queue(kl_controller *c) { return c->queue; }

static void destroy(kl_controller *c)
{
    kl_own_writes_free(c->own_writes);
    kl_fights_free(c->fights);
    kl_workqueue_free(c->queue);
    kl_elide_free(c->elide);
    kl_shared_free(c->memos);
    kl_free(c->workers);
    kl_free(c->leaving);
    kl_mutex_fini(&c->mu);
    kl_value_unref(c->params);
    kl_free(c->rehearsals);
    kl_free(c->told);
    kl_free(c->name);
    kl_free(c->resource);
    kl_free(c);
}

/* --- keys that are shared with other replicas --------------------------------------------- */

static bool is_ours(void *arg, const char *key)
{
    kl_gate *g = atomic_load(&((kl_controller *)arg)->gate);
    return !g || kl_gate_owns(g, key);
}

typedef struct exchange {
    kl_gate *gate;
    const char *controller;
    kl_claims *before, *now;
    uint64_t moves;
} exchange;

static bool has_come(void *arg, const char *key)
{
    exchange *e = arg;
    bool was = kl_claims_own(e->before, e->controller, key), is = kl_claims_own(e->now, e->controller, key);
    if (was == is || !kl_gate_covers_key(e->gate, key)) /* of what comes to be covered holding.c tells */
        return false;
    e->moves++;
    return is;
}

/* What was lost is forgotten when its turn comes; what came is looked at, since who had it may have died
 * over it. */
static void moved(void *arg, kl_claims *before)
{
    kl_controller *c = arg;
    kl_gate *g = atomic_load(&c->gate);
    kl_wiring *w = c->current; /* written on the loop, where this runs */
    if (c->env.changed)        /* people are told of our part */
        kl_loop_post(c->env.loop, c->env.changed, c->env.changed_arg);
    if (!g || !w)
        return;
    exchange e = {.gate = g, .controller = c->name, .before = before, .now = kl_gate_claims(g)};
    if (e.now != before) /* else a last run has ended, and `changed` will do */
        kl_wiring_enqueue_where(w, KL_WHY_LEADING, has_come, &e);
    kl_claims_unref(e.now);
    kl_gate_moved(g, e.moves);
}

static void take_part(kl_controller *c, const kl_controller_spec *s)
{
    kl_gate *had = atomic_load(&c->gate), *g = kl_office_gate(c->office, had, s, moved, c);
    if (g && !had)
        kl_holding_begin(c->current, g);
    atomic_store(&c->gate, g);
}

static void part(kl_controller *c)
{
    kl_gate *g = atomic_exchange(&c->gate, NULL);
    kl_office_gate_close(c->office, g);
}

static void reap_rehearsals(kl_controller *c, bool all);

static void wiring_gone(void *arg)
{
    kl_controller *c = arg;
    if (!--c->wirings && c->stopped)
        destroy(c);
}

static void forget_memo(void *arg, const char *key) { kl_shared_forget(((kl_controller *)arg)->memos, key); }

void kl_controller_stage(kl_controller *c, kl_program *p, size_t index, int generation)
{
    if (c->next)
        kl_wiring_retire(c->next);
    if (c->params_of != generation) {
        kl_value_unref(c->params);
        c->params = NULL;
    }
    c->next = kl_wiring_new(&(kl_wiring_options){.caches = c->env.caches,
        .loop = c->env.loop,
        .mapper = c->env.mapper,
        .clock = c->env.clock,
        .queue = c->queue,
        .own_writes = c->own_writes,
        .metrics = c->metrics,
        .program = p,
        .index = index,
        .generation = generation,
        .divided = kl_offices_divide(c->env.offices, kl_program_spec(p, index)),
        .gone = wiring_gone,
        .gone_arg = c,
        .hold = hold,
        .release = release,
        .hold_arg = c,
        .ours = is_ours,
        .ours_arg = c,
        .params = c->params,
        .flight = c->env.flight,
        .deleted = forget_memo,
        .deleted_arg = c});
    c->wirings++;
}

/* --- what a worker asks its controller: any thread ---------------------------------------- */

static kl_logic *owner_logic(void *arg)
{
    kl_controller *c = arg;
    kl_lock(&c->mu);
    kl_logic *l = kl_wiring_logic(kl_wiring_ref(c->current));
    kl_unlock(&c->mu);
    return l;
}

static bool owner_is_current(void *arg, const kl_logic *l)
{
    return atomic_load(&((kl_controller *)arg)->present) == l;
}

static void owner_logic_unref(void *arg, kl_logic *l)
{
    (void)arg;
    kl_wiring_unref(kl_wiring_of(l));
}

static const kl_value *owner_object(void *arg, kl_logic *l, const char *key)
{
    kl_controller *c = arg;
    return c->env.object ? c->env.object(c->env.hook_arg, key) : kl_wiring_object(kl_wiring_of(l), key);
}

static void owner_answer(void *arg, const char *key, const kl_value *decision)
{
    kl_controller *c = arg;
    if (c->env.answer)
        c->env.answer(c->env.hook_arg, key, decision);
}

static bool owner_trace(void *arg, const char *key, kl_trace *out)
{
    kl_controller *c = arg;
    return c->env.trace && c->env.trace(c->env.hook_arg, key, out);
}

static void owner_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    kl_client_resolve(((kl_controller *)arg)->env.client, kind, done, done_arg);
}

static const kl_resource *owner_resource(void *arg, const char *kind)
{
    return kl_client_resolve_cached(((kl_controller *)arg)->env.client, kind);
}

/* One was called, and is about to be busy: is there something for another, or a moment that nobody waits
 * for? */
static void owner_more(void *arg)
{
    kl_controller *c = arg;
    if (atomic_load(&c->crew) < 2)
        return;
    kl_time due = kl_workqueue_more(c->queue);
    if (due == KL_NEVER)
        return;
    kl_lock(&c->mu);
    bool awaited = false;
    for (size_t i = 0; i < c->n_workers && !awaited; i++)
        awaited = due && kl_worker_awaits(c->workers[i], due);
    for (size_t i = 0; i < c->n_workers && !awaited; i++)
        awaited = kl_worker_call(c->workers[i]);
    kl_unlock(&c->mu);
}

static void owner_ended(void *arg)
{
    kl_controller *c = arg;
    if (c->env.changed)
        kl_loop_post(c->env.loop, c->env.changed, c->env.changed_arg);
}

static void owner_event(void *arg, const kl_news *n)
{
    kl_controller *c = arg;
    kl_news named = *n;
    named.component = c->name;
    /* of no term: what was seen may be told later, too */
    named.mandate = (kl_mandate){kl_office_tenure(c->office), 0};
    c->env.event(c->env.event_arg, &named);
}

static void owner_ran(void *arg, const kl_ran *r)
{
    kl_controller *c = arg;
    if (c->probation)
        kl_probation_ran(c->probation, r);
    if (c->env.ran)
        c->env.ran(c->env.ran_arg, r);
}

static bool owner_turn(void *arg) { return atomic_load(&((kl_controller *)arg)->turn); }
static void owner_turn_over(void *arg) { atomic_store(&((kl_controller *)arg)->turn, false); }

/* --- workers ------------------------------------------------------------------------------ */

static size_t wanted_workers(kl_controller *c, const kl_controller_spec *s)
{
    int n = c->env.workers > 0 ? c->env.workers : WORKERS_DEFAULT;
    if (s->workers > 0 && !c->env.workers_forced)
        n = s->workers;
    return (size_t)n;
}

static kl_worker *worker_new(kl_controller *c, int number)
{
    return kl_worker_new(&(kl_worker_owner){.paused = &c->paused,
                             .ran = c->env.ran || c->probation ? owner_ran : NULL,
                             .turn = c->env.turns ? owner_turn : NULL,
                             .turn_over = c->env.turns ? owner_turn_over : NULL,
                             .logic = owner_logic,
                             .logic_unref = owner_logic_unref,
                             .is_current = owner_is_current,
                             .object = owner_object,
                             .resolve = owner_resolve,
                             .resource = owner_resource,
                             .event = owner_event,
                             .ended = owner_ended,
                             .answer = owner_answer,
                             .trace = owner_trace,
                             .more = owner_more,
                             .arg = c,
                             .name = c->name,
                             .queue = c->queue,
                             .own_writes = c->env.imagine ? NULL : c->own_writes,
                             .door = c->env.door,
                             .fleet = c->env.fleet,
                             .cluster = c->env.cluster,
                             .gate = atomic_load(&c->gate),
                             .clock = c->env.clock,
                             .metrics = c->metrics,
                             .elide = c->env.imagine ? NULL : c->elide,
                             .commons = c->env.commons,
                             .memos = c->memos,
                             .imagine = c->env.imagine,
                             .fights = c->fights,
                             .witnesses = c->env.witnesses,
                             .tenure = kl_office_tenure(c->office),
                             .trace_requests = c->env.trace_requests,
                             .reload_deadline = c->env.reload_deadline},
        number);
}

/* Joins those who left after a reload and have come to their end. */
static void reap(kl_controller *c, bool all)
{
    for (size_t i = 0; i < c->n_leaving;) {
        if (all || kl_worker_ended(c->leaving[i])) {
            kl_worker_join(c->leaving[i]);
            c->leaving[i] = c->leaving[--c->n_leaving];
        } else {
            i++;
        }
    }
}

/* current is only written on the loop, where this runs, so reading its spec needs no lock. */
static void workers_fit(kl_controller *c, size_t want)
{
    reap(c, false);
    kl_lock(&c->mu);
    size_t have = c->n_workers;
    c->workers = kl_realloc(c->workers, (want > have ? want : have) * sizeof *c->workers);
    for (; have < want; have++) {
        c->workers[have] = worker_new(c, (int)have + 1);
        kl_worker_start(c->workers[have]);
    }
    size_t surplus = have > want ? have - want : 0;
    c->leaving = kl_realloc(c->leaving, (c->n_leaving + surplus + 1) * sizeof *c->leaving);
    for (; have > want; have--) {
        kl_worker_drain(c->workers[have - 1]);
        c->leaving[c->n_leaving++] = c->workers[have - 1];
    }
    c->n_workers = want;
    atomic_store(&c->crew, want);
    kl_unlock(&c->mu);
    if (want)
        kl_metrics_controller(c->env.metrics, c->name, (int)want);
}

/* --- resync ------------------------------------------------------------------------------- */

static void resync_arm(kl_controller *c);

static void resync_due(void *arg)
{
    kl_controller *c = arg;
    c->resync_timer = 0;
    enqueue_all(c, KL_WHY_RESYNC);
    resync_arm(c);
}

/* Spread by up to a tenth either way, so that controllers of one interval do not march in step. */
static void resync_arm(kl_controller *c)
{
    if (c->resync_timer || c->resync <= 0 || c->stopped)
        return;
    struct {
        const void *c;
        uint64_t n;
    } seed = {c, ++c->resync_count};
    kl_time tenth = c->resync / 10,
            spread = tenth ? (kl_time)(kl_hash(&seed, sizeof seed) % (uint64_t)(2 * tenth + 1)) - tenth : 0;
    c->resync_timer = kl_loop_timer(c->env.loop, c->resync + spread, resync_due, c);
}

/* --- generations -------------------------------------------------------------------------- */

/* On the first logic everything runs; on another, what was asked for, and what failed gets another chance
 * at once. */
static void run_again(kl_controller *c, kl_wiring *w, bool reloaded)
{
    if (reloaded && c->fights)
        kl_fights_clear(c->fights);
    const kl_add again = {.priority = KL_PRIORITY_RELOAD, .cause = {.why = KL_WHY_RELOAD}};
    kl_reload_keys said = kl_wiring_logic(w)->spec->on_reload, keys = said ? said : c->env.reload_keys;
    if (reloaded && keys == KL_RELOAD_KEYS_NONE)
        return;
    if (reloaded)
        kl_workqueue_pardon(
            c->queue, keys == KL_RELOAD_KEYS_FAILING ? &again : NULL, kl_clock_now(c->env.clock));
    if (!reloaded)
        kl_wiring_activate(w);
    else if (keys != KL_RELOAD_KEYS_FAILING)
        kl_wiring_enqueue_again(w);
}

static void publish(kl_controller *c)
{
    kl_wiring *fresh = c->next, *old;
    kl_logic *l = kl_wiring_logic(fresh);
    c->next = NULL;
    kl_holding_handover(fresh, atomic_load(&c->gate));
    kl_lock(&c->mu);
    old = c->current;
    c->current = fresh;
    atomic_store(&c->present, l);
    bool running = c->n_workers;
    kl_unlock(&c->mu);
    kl_wiring_attend(fresh);
    kl_wiring_listen(fresh);
    char *finalizer = old ? kl_strdup(kl_wiring_logic(old)->spec->finalizer) : NULL;
    bool reloaded = old && kl_wiring_logic(old)->program != l->program;
    if (old)
        kl_wiring_hand_over(old);
    kl_loop_timer_cancel(c->env.loop, c->resync_timer);
    c->resync_timer = 0;
    c->resync = l->spec->resync;
    if (!kl_office_suits(c->office, l->spec) && !c->moving)
        c->moving = kl_office_enter(c->env.offices, c->name, l->spec);
    if (!c->moving)
        take_part(c, l->spec);
    kl_holding_fit(fresh, NULL, atomic_load(&c->gate));
    if (c->probation && (!old || reloaded)) {
        kl_workqueue_stats q;
        kl_workqueue_stats_get(c->queue, kl_clock_now(c->env.clock), &q);
        kl_probation_published(c->probation, l->generation, q.failing + q.resting);
    }
    run_again(c, fresh, reloaded);
    kl_workqueue_set_backoff(c->queue, &l->spec->backoff);
    resync_arm(c);
    kl_triggers_set(c->triggers, l->spec->every, (const char *const *)l->spec->cron);
    if (running)
        workers_fit(c, wanted_workers(c, l->spec));
    kl_info(old ? "a new generation took over" : "caches are synced", "controller=%s generation=%d script=%s",
        c->name, l->generation, l->program->name);
    kl_leftover_tell(fresh, finalizer);
    kl_free(finalizer);
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n_workers; i++) /* each of them has something of the old one to let go */
        kl_worker_poke(c->workers[i]);
    kl_unlock(&c->mu);
}

/* A next generation that cannot take over is no failure, but its author waits for it. */
static void tell_why(kl_controller *c)
{
    bool parked = false;
    char *why = c->next && c->current ? kl_wiring_why(c->next, &parked) : NULL;
    if (parked && (!c->told || strcmp(c->told, why)))
        kl_warn("the new generation waits; the old one keeps running", "controller=%s generation=%d why=%s",
            c->name, kl_wiring_logic(c->next)->generation, kl_log_quoted(why));
    kl_free(c->told);
    c->told = parked ? why : NULL;
    if (!parked)
        kl_free(why);
}

/* --- leadership --------------------------------------------------------------------------- */

/* Whether the present generation's workers may take keys: its office is open, and none of its functions
 * was a runaway. */
static bool may_work(const kl_controller *c)
{
    return kl_office_open(c->office) && !(c->current && kl_wiring_spent(c->current));
}

/* Without a lease workers end what they run, too: nothing of it would be let through. */
static void hurry(kl_controller *c)
{
    for (size_t i = 0; i < c->n_leaving; i++)
        kl_worker_abort(c->leaving[i]);
}

static void rest(kl_controller *c)
{
    if (c->working)
        kl_office_rest(c->office);
    c->working = false;
}

/* To the office that the new generation wants, once the workers of the old one have ended. */
static void move(kl_controller *c)
{
    rest(c);
    part(c);
    kl_office_leave(c->office);
    c->office = c->moving;
    c->moving = NULL;
    take_part(c, kl_wiring_logic(c->current)->spec);
}

static void begin_work(kl_controller *c, const kl_controller_spec *spec)
{
    const kl_tenure *t = kl_office_tenure(c->office);
    c->working = true;
    kl_office_work(c->office);
    workers_fit(c, wanted_workers(c, spec));
    kl_info("controller is running", "controller=%s workers=%zu", c->name, wanted_workers(c, spec));
    if (t && c->terms++) /* who led meanwhile may have known of keys to be looked at again */
        enqueue_all(c, KL_WHY_LEADING);
}

/* The present generation once more, where a kind of it came back as another. */
static void rewire(kl_controller *c)
{
    kl_wiring *w = c->next ? c->next : c->current;
    if (!w || !kl_wiring_outdated(w))
        return;
    kl_logic *l = kl_wiring_logic(w);
    kl_program *p = kl_program_ref(l->program);
    kl_info("a kind came back as another, with other names or namespaces: wiring it again",
        "controller=%s generation=%d", c->name, l->generation);
    kl_controller_stage(c, p, l->index, l->generation);
    kl_program_unref(p);
}

void kl_controller_advance(kl_controller *c)
{
    if (c->stopped)
        return;
    if (c->drained) {
        if (!kl_office_open(c->office))
            kl_controller_abort(c);
        return;
    }
    reap(c, false);
    rewire(c);
    kl_holding_fit(c->current, c->next, atomic_load(&c->gate));
    if (c->next && kl_wiring_advance(c->next))
        publish(c);
    tell_why(c);
    kl_lock(&c->mu);
    const kl_controller_spec *spec = c->current ? kl_wiring_logic(c->current)->spec : NULL;
    bool have = c->n_workers;
    kl_unlock(&c->mu);
    if (have && (c->moving || !may_work(c))) {
        workers_fit(c, 0);
        have = false;
    }
    if (!kl_office_open(c->office))
        hurry(c);
    if (!have && !c->n_leaving) {
        rest(c);
        if (c->moving)
            move(c);
    }
    if (spec && !have && !c->working && may_work(c))
        begin_work(c, spec);
}

/* --- stopping ----------------------------------------------------------------------------- */

void kl_controller_drain(kl_controller *c)
{
    c->drained = true;
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n_workers; i++)
        kl_worker_drain(c->workers[i]);
    kl_unlock(&c->mu);
}

void kl_controller_wait(kl_controller *c)
{
    kl_lock(&c->mu);
    size_t n = c->n_workers;
    /* only the loop changes them, and it does not while we are asked to wait */
    kl_worker **workers = c->workers;
    kl_unlock(&c->mu);
    for (size_t i = 0; i < n; i++)
        kl_worker_wait(workers[i]);
    for (size_t i = 0; i < c->n_leaving; i++)
        kl_worker_wait(c->leaving[i]);
}

void kl_controller_abort(kl_controller *c)
{
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n_workers; i++)
        kl_worker_abort(c->workers[i]);
    kl_unlock(&c->mu);
    for (size_t i = 0; i < c->n_leaving; i++)
        kl_worker_abort(c->leaving[i]);
}

void kl_controller_join(kl_controller *c)
{
    reap_rehearsals(c, true);
    kl_lock(&c->mu);
    kl_worker **gone = c->workers;
    size_t n = c->n_workers;
    c->workers = NULL;
    c->n_workers = 0;
    kl_unlock(&c->mu);
    for (size_t i = 0; i < n; i++)
        kl_worker_join(gone[i]);
    kl_free(gone);
    reap(c, true);
    rest(c);
}

void kl_controller_free(kl_controller *c)
{
    c->stopped = true;
    kl_loop_timer_cancel(c->env.loop, c->resync_timer);
    kl_triggers_free(c->triggers);
    if (c->probation)
        kl_probation_free(c->probation);
    part(c);
    kl_office_leave(c->office);
    if (c->moving)
        kl_office_leave(c->moving);
    if (c->next)
        kl_wiring_retire(c->next);
    kl_lock(&c->mu);
    kl_wiring *current = c->current;
    c->current = NULL;
    atomic_store(&c->present, NULL);
    kl_unlock(&c->mu);
    if (current)
        kl_wiring_retire(current);
    if (!c->wirings)
        destroy(c);
}

bool kl_controller_published(kl_controller *c)
{
    return c->current; /* written on the loop, where this runs */
}

int kl_controller_generation(kl_controller *c)
{
    return c->current ? kl_wiring_logic(c->current)->generation : 0;
}

size_t kl_controller_slowed(kl_controller *c) { return c->fights ? kl_fights_held(c->fights) : 0; }

bool kl_controller_ended(kl_controller *c)
{
    bool all = true;
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n_workers; i++)
        all &= kl_worker_ended(c->workers[i]);
    kl_unlock(&c->mu);
    for (size_t i = 0; i < c->n_leaving; i++)
        all &= kl_worker_ended(c->leaving[i]);
    return all;
}

/* --- for people, and by their hand -------------------------------------------------------- */

void kl_controller_pause(kl_controller *c, bool pause)
{
    atomic_store(&c->paused, pause);
    kl_controller_wake(c);
    if (c->env.changed) /* people are told */
        kl_loop_post(c->env.loop, c->env.changed, c->env.changed_arg);
}

bool kl_controller_paused(const kl_controller *c) { return atomic_load(&c->paused); }

/* Ends those that are over, or all. */
static void reap_rehearsals(kl_controller *c, bool all)
{
    for (size_t i = 0; i < c->n_rehearsals;) {
        if (all || kl_rehearsal_over(c->rehearsals[i])) {
            kl_rehearsal_end(c->rehearsals[i]);
            c->rehearsals[i] = c->rehearsals[--c->n_rehearsals];
        } else {
            i++;
        }
    }
}

kl_status kl_controller_rehearse(kl_controller *c, const char *key,
    void (*done)(void *arg, const kl_value *report), void *arg, kl_err *err)
{
    reap_rehearsals(c, false);
    if (!c->current)
        return kl_fail(err, KL_EAGAIN, "%s has not begun: its caches are not there yet", c->name);
    if (c->n_rehearsals == REHEARSALS_MOST)
        return kl_fail(err, KL_EAGAIN, "%d dry runs of %s are under way: wait until one of them has ended",
            REHEARSALS_MOST, c->name);
    kl_time timeout = kl_wiring_logic(c->current)->spec->timeout;
    c->rehearsals = kl_realloc(c->rehearsals, (c->n_rehearsals + 1) * sizeof *c->rehearsals);
    c->rehearsals[c->n_rehearsals++] = kl_rehearse(&(kl_worker_owner){.logic = owner_logic,
                                                       .logic_unref = owner_logic_unref,
                                                       .is_current = owner_is_current,
                                                       .object = owner_object,
                                                       .resolve = owner_resolve,
                                                       .resource = owner_resource,
                                                       .arg = c,
                                                       .name = c->name,
                                                       .door = c->env.door,
                                                       .clock = c->env.clock,
                                                       .fleet = c->env.fleet,
                                                       .cluster = c->env.cluster},
        key, timeout > 0 ? timeout + KL_SECONDS(1) : REHEARSAL_MOST, done, arg);
    return KL_OK;
}

/* "image,token": values may be secrets, and stay out of the log. */
static void name_all(const kl_value *params, kl_buf *out)
{
    for (size_t i = 0; i < kl_value_len(params); i++) {
        const char *key;
        (void)kl_value_member(params, i, &key, NULL);
        kl_buf_printf(out, "%s%s", i ? "," : "", key);
    }
}

/* The present generation is wired once more, with them: each worker takes them up between two keys. */
kl_status kl_controller_set_params(kl_controller *c, const kl_value *params, kl_err *err)
{
    if (!c->current || c->next)
        return kl_fail(err, KL_EAGAIN,
            "a generation of %s is on its way: set its params when it has taken over", c->name);
    kl_logic *l = kl_wiring_logic(c->current);
    kl_program *p = kl_program_ref(l->program);
    kl_value_ref(params);
    kl_value_unref(c->params);
    c->params = params;
    c->params_of = l->generation;
    kl_buf names = {0};
    name_all(params, &names);
    kl_info("params were set by hand, until the next generation", "controller=%s generation=%d params=%s",
        c->name, l->generation, kl_log_quoted(kl_buf_str(&names)));
    kl_buf_fini(&names);
    kl_controller_stage(c, p, l->index, l->generation);
    kl_program_unref(p);
    kl_controller_advance(c);
    return KL_OK;
}

void kl_controller_look_at(kl_controller *c, kl_controller_look *out)
{
    kl_lock(&c->mu);
    kl_wiring *current = c->current ? kl_wiring_ref(c->current) : NULL;
    bool working = c->n_workers;
    kl_unlock(&c->mu);
    bool published = current;
    if (!current && c->next)
        current = kl_wiring_ref(c->next);
    *out = (kl_controller_look){.published = published,
        .name = c->name,
        .resource = c->resource,
        .queue = c->queue,
        .own_writes = c->own_writes,
        .wiring = current,
        .gate = atomic_load(&c->gate),
        .office = c->office,
        .flight = c->env.flight,
        .clock = c->env.clock,
        .working = working,
        .paused = atomic_load(&c->paused)};
}

void kl_controller_state_get(kl_controller *c, kl_controller_state *out)
{
    kl_workqueue_stats q;
    kl_workqueue_stats_get(c->queue, kl_clock_now(c->env.clock), &q);
    kl_lock(&c->mu);
    kl_wiring *current = c->current ? kl_wiring_ref(c->current) : NULL;
    bool working = c->n_workers;
    kl_unlock(&c->mu);
    bool parked = false;
    char *why = current ? kl_wiring_why(current, &parked) : c->next ? kl_wiring_why(c->next, &parked) : NULL;
    if (current && !why && c->next) {
        bool waits;
        char *next = kl_wiring_why(c->next, &waits);
        why = kl_sprintf("generation %d is not there yet: %s", kl_wiring_logic(c->next)->generation,
            next ? next : "its indexes are being built");
        kl_free(next);
    }
    if (current && !why && q.held) {
        char *first = kl_own_writes_first(c->own_writes);
        why = first ? kl_sprintf("%zu waiting for the cache to show what they wrote; %s", q.held, first)
                    : NULL;
        kl_free(first);
    }
    if (!why)
        why = kl_office_say(c->office, c->name);
    *out = (kl_controller_state){.name = kl_strdup(c->name),
        .resource = kl_strdup(c->resource),
        .generation = current ? kl_wiring_logic(current)->generation : 0,
        .message = why,
        .ready = q.ready,
        .delayed = q.delayed,
        .running = q.running,
        .failing = q.failing,
        .runs = kl_metrics_runs(c->metrics),
        .errors = kl_metrics_errors(c->metrics)};
    out->state = kl_strdup(parked                ? "parked"
            : !current                           ? "waiting for caches"
            : working && atomic_load(&c->paused) ? "paused"
            : working                            ? "running"
            : kl_office_open(c->office)          ? "starting"
                                                 : "waiting for leadership");
    kl_wiring_unref(current);
}

bool kl_controller_idle(kl_controller *c)
{
    kl_workqueue_stats q;
    kl_workqueue_stats_get(c->queue, kl_clock_now(c->env.clock), &q);
    return !c->next && c->current && !q.ready && !q.running && !q.failing && !q.parked && !q.held;
}

/* --- turns -------------------------------------------------------------------------------- */

static void busy(kl_outlook *o, char *what)
{
    o->busy = true;
    if (o->what)
        kl_free(what);
    else
        o->what = what;
}

static void soon(kl_outlook *o, kl_time when)
{
    o->next = when < o->next ? when : o->next;
    o->next_key = when < o->next_key ? when : o->next_key;
}

void kl_controller_outlook(kl_controller *c, kl_outlook *o)
{
    kl_time now = kl_clock_now(c->env.clock), due = kl_workqueue_next_due(c->queue), next;
    kl_workqueue_stats q;
    size_t asleep = 0, n;
    bool full = false;
    kl_lock(&c->mu);
    n = c->n_workers;
    for (size_t i = 0; i < n; i++) {
        size_t sleeping;
        kl_worker_outlook(c->workers[i], &sleeping, &full, &next);
        asleep += sleeping;
        soon(o, next);
        if (next <= now)
            busy(o, kl_sprintf("a timer of %s", c->name));
    }
    kl_unlock(&c->mu);
    kl_workqueue_stats_get(c->queue, now, &q);
    bool parked = false;
    char *why = c->next ? kl_wiring_why(c->next, &parked) : NULL;
    if (c->next && !parked)
        busy(o,
            why ? kl_sprintf("the start of %s: %s", c->name, why) : kl_sprintf("the start of %s", c->name));
    kl_free(why);
    o->parked += parked;
    o->failing += q.failing;
    o->asleep += asleep;
    if (atomic_load(&c->turn) || q.running > asleep)
        busy(o, kl_sprintf("a reconcile of %s", c->name));
    if (q.held)
        busy(o, kl_sprintf("the caches to show what %s wrote", c->name));
    if (!n)
        return;
    if (due > now)
        soon(o, due);
    else
        o->ready |= !full;
}

void kl_controller_turn(kl_controller *c)
{
    atomic_store(&c->turn, true);
    kl_controller_wake(c);
}

void kl_controller_wake(kl_controller *c)
{
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n_workers; i++)
        kl_worker_poke(c->workers[i]);
    kl_unlock(&c->mu);
}
