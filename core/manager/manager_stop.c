/* manager_stop.c - how a manager stops: no new keys, a grace period for the runs, leases released, endpoints
 * closed. */
#include "manager/manager_impl.h"

#include "base/log.h"
#include "lab/shadow.h"
#include "manager/endpoints.h"

#define GRACE_DEFAULT KL_SECONDS(30) /* controller-runtime manager/internal.go:57 */
/* Events are flushed at the end for at most this long. */
#define FLUSH_MAX KL_SECONDS(2)
/* How long requests to webhooks may take to end; each has its own deadline, of at most 30 s. */
#define WEBHOOKS_MAX KL_SECONDS(30)

static void begin_stop(void *arg)
{
    kl_manager *m = arg;
    kl_lock(&m->mu);
    m->stopping = true;
    kl_unlock(&m->mu);
    kl__manager_each(m, kl_controller_drain);
    kl_shadow_end(m->shadow);
}

static void end_runs(void *arg)
{
    kl_manager *m = arg;
    kl__manager_each(m, kl_controller_abort);
}

static void abort_all(void *arg)
{
    kl_manager *m = arg;
    if (!m->hurried)
        kl_warn("the grace period is over; ending remaining runs", "grace_seconds=%lld",
            (long long)((m->o.grace ? m->o.grace : GRACE_DEFAULT) / KL_SECONDS(1)));
    end_runs(m);
}

/* How much longer a run may take to notice that it was aborted. */
#define NOTICE KL_SECONDS(5)

static void tell_stuck(void *arg)
{
    kl_manager *m = arg;
    m->stop_timer = 0;
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++) {
            kl_workqueue_stats q;
            kl_workqueue_stats_get(
                kl_controller_queue(m->slots[i]->controllers[k]), kl_clock_now(m->clock), &q);
            if (q.running)
                kl_error("a run is stuck: its code neither returns nor makes a call",
                    "controller=%s running=%zu", kl_controller_name(m->slots[i]->controllers[k]), q.running);
        }
    if (m->o.stuck)
        m->o.stuck(m->o.changed_arg);
}

static void grace_over(void *arg)
{
    kl_manager *m = arg;
    abort_all(m);
    m->stop_timer = kl_loop_timer(m->loop, NOTICE, tell_stuck, m);
}

static void arm_grace(void *arg)
{
    kl_manager *m = arg;
    if (m->hurried)
        grace_over(m);
    else
        m->stop_timer = kl_loop_timer(m->loop, m->o.grace ? m->o.grace : GRACE_DEFAULT, grace_over, m);
}

static void hurry(void *arg)
{
    kl_manager *m = arg;
    m->hurried = true;
    if (m->stop_timer) {
        kl_loop_timer_cancel(m->loop, m->stop_timer);
        grace_over(m);
    }
}

void kl_manager_hurry(kl_manager *m) { kl_loop_call(m->loop, hurry, m); }

static void disarm_grace(void *arg)
{
    kl_manager *m = arg;
    kl_loop_timer_cancel(m->loop, m->stop_timer);
    m->stop_timer = 0;
}

void kl_manager_stop(kl_manager *m)
{
    if (m->stopping)
        return;
    kl_loop_call(m->loop, begin_stop, m);
    if (m->o.turns)
        kl_loop_call(m->loop, end_runs, m); /* the clock stands still: a sleeping run would not wake */
    kl_loop_call(m->loop, arm_grace, m);
    for (size_t i = 0; i < m->n_slots; i++) /* the slots do not change while stopping */
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_controller_wait(m->slots[i]->controllers[k]);
    for (size_t i = 0; i < m->n_retired; i++)
        kl_controller_wait(m->retired[i].c);
    kl_shadow_wait(m->shadow);
    kl_loop_call(m->loop, disarm_grace, m);
    if (!kl_recorder_flush(m->recorder, kl_clock_now(kl_clock_real()) + FLUSH_MAX))
        kl_warn("some events were not recorded before shutdown", "dropped=%llu",
            (unsigned long long)kl_recorder_dropped(m->recorder));
    kl_offices_close(m->offices);
    kl_webhooks_stop(m->webhooks, kl_clock_now(kl_clock_real()) + WEBHOOKS_MAX);
    kl_endpoints_stop(m->endpoints);
    m->endpoints = NULL;
}
