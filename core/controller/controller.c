/* controller.c - one controller: publishes generations, and works while its office is open. Its workers are
 * in crew.c, its views for people in controller_look.c.
 *
 *   staged --its caches are synced--> published --office open--> working --office closed, or moving--> resting
 *
 * kl_controller_advance is the only step, in this order: it joins ended workers, renews an outdated wiring,
 * publishes, stops workers without permission, leaves the office when the last of them has ended, and only
 * then starts workers. */
#include "controller/controller_impl.h"

#include <string.h>

#include "base/buf.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "controller/holding.h"
#include "controller/leftover.h"
#include "run/params.h"

/* One sleeper is enough: it wakes the next one when there are more keys than it takes (owner_more). */
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
    kl_mutex_init_as(&c->mu, KL_LOCK_CONTROLLER);
    c->queue = kl_workqueue_new(&(kl_workqueue_options){.backoff = spec->backoff,
        .seed = kl_hash(spec->name, strlen(spec->name)),
        .order = env->turns ? KL_QUEUE_NAME : KL_QUEUE_FAIR,
        .wake = wake,
        .wake_arg = c,
        .forget = kl_cause_forget});
    c->metrics = kl_metrics_enter(env->metrics, spec->name, KL_WORKERS_DEFAULT);
    c->office = kl_office_enter(env->offices, spec->name, spec);
    c->elide = kl_elide_new(0);
    c->memos = kl_memos_new(c->name);
    c->own_writes = kl_own_writes_new(c->name, c->queue, env->clock, c->metrics);
    if (!env->object && !env->never_slow_down)
        c->fights = kl_fights_new(kl_controller_spec_manager(spec), env->turns);
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
    kl_metrics_leave(c->env.metrics, c->metrics);
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
    if (was == is || !kl_gate_covers_key(e->gate, key)) /* holding.c reports newly covered keys */
        return false;
    e->moves++;
    return is;
}

/* A lost key is dropped when it is taken; a gained key runs, since its previous replica may have died during
 * its run. */
static void moved(void *arg, kl_claims *before)
{
    kl_controller *c = arg;
    kl_gate *g = atomic_load(&c->gate);
    kl_wiring *w = c->current; /* written on the loop, where this runs */
    if (c->env.changed)        /* logs our share */
        kl_loop_post(c->env.loop, c->env.changed, c->env.changed_arg);
    if (!g || !w)
        return;
    exchange e = {.gate = g, .controller = c->name, .before = before, .now = kl_gate_claims(g)};
    if (e.now != before) /* otherwise only a last run has ended, and `changed` is enough */
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

/* --- resync ------------------------------------------------------------------------------- */

static void resync_arm(kl_controller *c);

static void resync_due(void *arg)
{
    kl_controller *c = arg;
    c->resync_timer = 0;
    enqueue_all(c, KL_WHY_RESYNC);
    resync_arm(c);
}

/* Spread by up to a tenth either way, so that controllers with the same interval do not run at once. */
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

/* On the first logic all keys run; on a reload those selected by on_reload, and failed keys are retried at
 * once. */
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

static kl_log_level news_level(const kl_controller *c) { return c->env.quiet ? KL_LOG_DEBUG : KL_LOG_INFO; }

/* Warns of hosts that cannot be reached: the script would fail only at its request, perhaps days later. */
static void tell_unreachable(const kl_controller *c, const kl_controller_spec *spec)
{
    if (!spec->http || !*spec->http || kl_client_reaches(c->env.client))
        return;
    kl_buf hosts = KL_BUF_INIT;
    for (char **rule = spec->http; *rule; rule++)
        kl_buf_printf(&hosts, "%s%s", hosts.len ? ", " : "", *rule);
    kl_warn("ctx.http is disabled: the script lists servers, but --allow-http was not given",
        "controller=%s servers=%s", c->name, kl_log_quoted(kl_buf_str(&hosts)));
    kl_buf_fini(&hosts);
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
        kl__controller_fit(c, kl__controller_wanted(c, l->spec));
    kl_log(news_level(c), old ? "a new generation took over" : "caches are synced",
        "controller=%s generation=%d script=%s", c->name, l->generation, l->program->name);
    if (!old || reloaded)
        tell_unreachable(c, l->spec);
    kl_leftover_tell(fresh, finalizer);
    kl_free(finalizer);
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n_workers; i++) /* each worker has to release the old generation */
        kl_worker_poke(c->workers[i]);
    kl_unlock(&c->mu);
}

/* Logs why the next generation cannot take over yet: that is no failure, but its author waits for it. */
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

/* Ends the workers' runs when the lease is lost: none of their writes would be allowed. */
static void hurry(kl_controller *c)
{
    for (size_t i = 0; i < c->n_leaving; i++)
        kl_worker_abort(c->leaving[i]);
}

void kl__controller_rest(kl_controller *c)
{
    if (c->working)
        kl_office_rest(c->office);
    c->working = false;
}

/* Moves to the office of the new generation, once the workers of the old one have ended. */
static void move(kl_controller *c)
{
    kl__controller_rest(c);
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
    kl__controller_fit(c, kl__controller_wanted(c, spec));
    kl_log(news_level(c), "controller is running", "controller=%s workers=%zu", c->name,
        kl__controller_wanted(c, spec));
    if (t && c->terms++) /* another leader in between may have requeued keys */
        enqueue_all(c, KL_WHY_LEADING);
}

/* Rewires the present generation when one of its kinds has changed. */
static void rewire(kl_controller *c)
{
    kl_wiring *w = c->next ? c->next : c->current;
    if (!w || !kl_wiring_outdated(w))
        return;
    kl_logic *l = kl_wiring_logic(w);
    kl_program *p = kl_program_ref(l->program);
    kl_info("a kind returned with other names or another scope: wiring it again",
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
    kl__controller_reap(c, false);
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
        kl__controller_fit(c, 0);
        have = false;
    }
    if (!kl_office_open(c->office))
        hurry(c);
    if (!have && !c->n_leaving) {
        kl__controller_rest(c);
        if (c->moving)
            move(c);
    }
    if (spec && !have && !c->working && may_work(c))
        begin_work(c, spec);
}

/* --- stopping ----------------------------------------------------------------------------- */

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

/* --- users' reads and commands ------------------------------------------------------------ */

void kl_controller_pause(kl_controller *c, bool pause)
{
    atomic_store(&c->paused, pause);
    kl_controller_wake(c);
    if (c->env.changed) /* users are told */
        kl_loop_post(c->env.loop, c->env.changed, c->env.changed_arg);
}

bool kl_controller_paused(const kl_controller *c) { return atomic_load(&c->paused); }

/* Lists names only, as in "image,token": values may be secrets, and are not logged. */
static void name_all(const kl_value *params, kl_buf *out)
{
    for (size_t i = 0; i < kl_value_len(params); i++) {
        const char *key;
        (void)kl_value_member(params, i, &key, NULL);
        kl_buf_printf(out, "%s%s", i ? "," : "", key);
    }
}

/* Rewires the present generation with the new params: each worker adopts them between two keys. */
kl_status kl_controller_set_params(kl_controller *c, const kl_value *wish, const kl_value **out, kl_err *err)
{
    if (!c->current || c->next)
        return kl_fail(err, KL_EAGAIN,
            "a new generation of %s is loading: set its params when it has taken over", c->name);
    kl_logic *l = kl_wiring_logic(c->current);
    const kl_value *all = NULL;
    kl_status st = kl_params_over(l->spec, l->params, wish, &all, err);
    if (st)
        return st;
    kl_program *p = kl_program_ref(l->program);
    kl_value_unref(c->params);
    c->params = all;
    c->params_of = l->generation;
    *out = kl_params_shown(l->spec, all);
    kl_buf names = {0};
    name_all(wish, &names);
    kl_info("params were set manually; they last until the next generation",
        "controller=%s generation=%d params=%s", c->name, l->generation, kl_log_quoted(kl_buf_str(&names)));
    kl_buf_fini(&names);
    kl_controller_stage(c, p, l->index, l->generation);
    kl_program_unref(p);
    kl_controller_advance(c);
    return KL_OK;
}
