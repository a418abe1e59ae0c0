/* trigger.c - one timer, for whatever comes first. Intervals go by the monotonic clock, cron by the wall. */
#include "controller/trigger.h"

#include "base/cron.h"
#include "base/mem.h"

/* The wall clock may be adjusted, so it is checked again before a far time comes. */
#define LOOK_AGAIN KL_MINUTES(1)

struct kl_triggers {
    kl_loop *loop;
    kl_clock *clock;
    void (*due)(void *arg);
    void *arg;
    kl_time every, at; /* every 0: none; otherwise when it is due */
    kl_cron *crons;
    int64_t *next; /* the next time of each cron, in seconds since 1970 */
    size_t n;
    uint64_t timer;
};

kl_triggers *kl_triggers_new(kl_loop *loop, kl_clock *clock, void (*due)(void *arg), void *arg)
{
    kl_triggers *t = kl_new(kl_triggers);
    t->loop = loop;
    t->clock = clock;
    t->due = due;
    t->arg = arg;
    return t;
}

static void arm(kl_triggers *t);

static void look(void *arg)
{
    kl_triggers *t = arg;
    kl_time now = kl_clock_now(t->clock);
    int64_t wall = kl_clock_wall(t->clock) / KL_SECONDS(1);
    bool due = false;
    t->timer = 0;
    if (t->every && now >= t->at) {
        due = true;
        t->at += (now - t->at) / t->every * t->every + t->every;
    }
    for (size_t i = 0; i < t->n; i++)
        if (wall >= t->next[i]) {
            due = true;
            t->next[i] = kl_cron_next(&t->crons[i], wall);
        }
    arm(t);
    if (due)
        t->due(t->arg);
}

static void arm(kl_triggers *t)
{
    kl_time wait = t->every ? t->at - kl_clock_now(t->clock) : KL_NEVER, wall = kl_clock_wall(t->clock);
    for (size_t i = 0; i < t->n; i++) {
        int64_t seconds = t->next[i] - wall / KL_SECONDS(1);
        kl_time left = seconds > LOOK_AGAIN / KL_SECONDS(1) ? LOOK_AGAIN : t->next[i] * KL_SECONDS(1) - wall;
        if (left < wait)
            wait = left;
    }
    if (wait != KL_NEVER)
        t->timer = kl_loop_timer(t->loop, wait > 0 ? wait : 0, look, t);
}

void kl_triggers_set(kl_triggers *t, kl_time every, const char *const *cron)
{
    size_t n = 0;
    while (cron && cron[n])
        n++;
    kl_loop_timer_cancel(t->loop, t->timer);
    t->timer = 0;
    if (every != t->every)
        t->at = kl_clock_now(t->clock) + every;
    t->every = every;
    kl_free(t->crons);
    kl_free(t->next);
    t->crons = kl_new_array(kl_cron, n + 1);
    t->next = kl_new_array(int64_t, n + 1);
    t->n = 0;
    for (size_t i = 0; i < n; i++)
        if (!kl_cron_parse(cron[i], &t->crons[t->n], NULL)) {
            t->next[t->n] = kl_cron_next(&t->crons[t->n], kl_clock_wall(t->clock) / KL_SECONDS(1));
            t->n++;
        }
    arm(t);
}

void kl_triggers_free(kl_triggers *t)
{
    if (!t)
        return;
    kl_loop_timer_cancel(t->loop, t->timer);
    kl_free(t->crons);
    kl_free(t->next);
    kl_free(t);
}
