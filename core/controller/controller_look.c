/* controller_look.c - the state of a controller, for users, for `why`, and for virtual time. Loop only. */
#include "controller/controller_impl.h"

#include "base/mem.h"
#include "run/params.h"

size_t kl_controller_slowed(kl_controller *c) { return c->fights ? kl_fights_held(c->fights) : 0; }

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
        why = kl_sprintf("generation %d is not ready yet: %s", kl_wiring_logic(c->next)->generation,
            next ? next : "its indexes are being built");
        kl_free(next);
    }
    if (current && !why && q.held) {
        char *first = kl_own_writes_first(c->own_writes);
        why = first ? kl_sprintf("%zu waiting for the cache to show their writes; %s", q.held, first) : NULL;
        kl_free(first);
    }
    if (current && !why)
        why = kl_wiring_slow(current);
    if (!why)
        why = kl_office_say(c->office, c->name);
    *out = (kl_controller_state){.name = kl_strdup(c->name),
        .resource = kl_strdup(c->resource),
        .generation = current ? kl_wiring_logic(current)->generation : 0,
        .params = current ? kl_params_given(kl_wiring_logic(current)->spec, kl_wiring_logic(current)->params)
                          : NULL,
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

/* --- virtual time ------------------------------------------------------------------------- */

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
        busy(o, kl_sprintf("the caches to show the writes of %s", c->name));
    if (!n)
        return;
    if (due > now)
        soon(o, due);
    else
        o->ready |= !full;
}
