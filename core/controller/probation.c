/* probation.c - counts runs by generation, and calls the judge when a run or a timer requires it. */
#include "controller/probation.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "controller/breaker.h"

struct kl_probation {
    kl_probation_options o;
    kl_trial *trial;
    atomic_int generation;                     /* the present one */
    atomic_uint_fast64_t runs, errors, writes; /* of this generation, so far */
    atomic_int refs;                           /* the owner's, and one for a check posted to the loop */
    atomic_bool due;
    bool freed; /* loop only, like the next fields */
    kl_time since;
    uint64_t settle_timer, end_timer;
};

kl_probation *kl_probation_new(const kl_probation_options *o)
{
    kl_probation *p = kl_new(kl_probation);
    p->o = *o;
    p->o.window = o->window ? o->window : KL_PROBATION_DEFAULT;
    p->trial = kl_trial_new();
    atomic_init(&p->refs, 1);
    return p;
}

static void unref(kl_probation *p)
{
    if (atomic_fetch_sub(&p->refs, 1) > 1)
        return;
    kl_trial_free(p->trial);
    kl_free(p);
}

static void stop_timers(kl_probation *p)
{
    kl_loop_timer_cancel(p->o.loop, p->settle_timer);
    kl_loop_timer_cancel(p->o.loop, p->end_timer);
    p->settle_timer = p->end_timer = 0;
}

void kl_probation_free(kl_probation *p)
{
    stop_timers(p);
    p->freed = true;
    unref(p);
}

static void look(kl_probation *p)
{
    int generation;
    char *why = kl_trial_verdict(p->trial, kl_clock_now(p->o.clock), &generation);
    if (why) {
        stop_timers(p);
        p->o.broken(p->o.arg, generation, why);
    }
    kl_free(why);
}

static void look_due(void *arg)
{
    kl_probation *p = arg;
    atomic_store(&p->due, false);
    if (!p->freed)
        look(p);
    unref(p);
}

static void settled(void *arg)
{
    kl_probation *p = arg;
    p->settle_timer = 0;
    look(p);
}

static void over(void *arg)
{
    kl_probation *p = arg;
    p->end_timer = 0;
    look(p);
    kl_trial_end(p->trial);
}

void kl_probation_published(kl_probation *p, int generation, size_t failing)
{
    kl_time now = kl_clock_now(p->o.clock);
    kl_breaker_side before = {.runs = atomic_exchange(&p->runs, 0),
        .errors = atomic_exchange(&p->errors, 0),
        .writes = atomic_exchange(&p->writes, 0),
        .lasted = now - p->since};
    int known = atomic_exchange(&p->generation, generation);
    p->since = now;
    stop_timers(p);
    if (!known || p->o.window < 0)
        return;
    kl_trial_begin(p->trial, generation, &before, failing, now);
    if (p->o.window > KL_BREAKER_SETTLE)
        p->settle_timer = kl_loop_timer(p->o.loop, KL_BREAKER_SETTLE, settled, p);
    p->end_timer = kl_loop_timer(p->o.loop, p->o.window, over, p);
}

void kl_probation_ran(kl_probation *p, const kl_ran *r)
{
    bool failed = r->result == KL_RESULT_ERROR || r->result == KL_RESULT_FAIL;
    if (r->generation != atomic_load_explicit(&p->generation, memory_order_relaxed))
        return;
    if (!failed || !r->excused) {
        atomic_fetch_add_explicit(&p->runs, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&p->errors, failed, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&p->writes, r->wrote, memory_order_relaxed);
    kl_trial_run run = {.key = r->key,
        .generation = r->generation,
        .attempt = r->attempt,
        .failed = failed,
        .excused = r->excused,
        .wrote = r->wrote};
    if (!kl_trial_note(p->trial, &run, kl_clock_now(p->o.clock)) || atomic_exchange(&p->due, true))
        return;
    atomic_fetch_add(&p->refs, 1);
    kl_loop_post(p->o.loop, look_due, p);
}
