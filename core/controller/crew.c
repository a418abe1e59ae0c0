/* crew.c - the workers of a controller: their callbacks, their number, and their end; and dry runs of single
 * keys, which have their own workers.
 *
 *   new --start--> in `workers` --too many, or no leadership--> `leaving` --ended--> joined
 *
 * Callbacks come on the workers' threads; everything else is on the loop. */
#include "controller/controller_impl.h"

#include "base/mem.h"
#include "controller/rehearse.h"

/* Dry runs of single keys: the maximum at once, and the default timeout. */
#define REHEARSALS_MOST 8
#define REHEARSAL_MOST KL_SECONDS(60)

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

/* A worker was woken, and is about to be busy: wakes another if there are more keys, or a due time that none
 * waits for. */
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
    /* without a term: an observation may also be reported later */
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

size_t kl__controller_wanted(kl_controller *c, const kl_controller_spec *s)
{
    int n = c->env.workers > 0 ? c->env.workers : KL_WORKERS_DEFAULT;
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

/* Joins workers that were dropped by a reload and have ended. */
void kl__controller_reap(kl_controller *c, bool all)
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
void kl__controller_fit(kl_controller *c, size_t want)
{
    kl__controller_reap(c, false);
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

/* --- their end ---------------------------------------------------------------------------- */

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
    /* only the loop changes them, and not while we wait */
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
    kl__controller_reap_rehearsals(c, true);
    kl_lock(&c->mu);
    kl_worker **gone = c->workers;
    size_t n = c->n_workers;
    c->workers = NULL;
    c->n_workers = 0;
    kl_unlock(&c->mu);
    for (size_t i = 0; i < n; i++)
        kl_worker_join(gone[i]);
    kl_free(gone);
    kl__controller_reap(c, true);
    kl__controller_rest(c);
}

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

/* --- dry runs of keys --------------------------------------------------------------------- */

/* Frees finished ones, or all. */
void kl__controller_reap_rehearsals(kl_controller *c, bool all)
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
    kl__controller_reap_rehearsals(c, false);
    if (!c->current)
        return kl_fail(err, KL_EAGAIN, "%s has not started: its caches are not synced yet", c->name);
    if (c->n_rehearsals == REHEARSALS_MOST)
        return kl_fail(err, KL_EAGAIN, "%d dry runs of %s are under way: wait until one of them ends",
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

/* --- turns -------------------------------------------------------------------------------- */

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
