/* workqueue.h - gives each key to at most one worker at a time.
 *   absent --add--> queued --get--> running --done--> absent
 *   running --add--> running+dirty --done--> queued
 * Only queued keys are in the fifo. An add while running is remembered once, not counted. Delayed keys wait in a heap and the
 * earliest time wins; a direct add does not cancel a waiting one (client-go.md 2.3). Any thread; never waits; time is passed in. */
#ifndef KL_QUEUE_WORKQUEUE_H
#define KL_QUEUE_WORKQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include "base/clock.h"

typedef struct kl_workqueue kl_workqueue;

typedef struct kl_backoff_policy {
    kl_time base, max;         /* 5 ms and 1000 s (default_rate_limiters.go) */
    double jitter;             /* 0..1: the delay is drawn from [d*(1-jitter), d]; 0 is client-go's ladder */
} kl_backoff_policy;

typedef struct kl_workqueue_options {
    kl_backoff_policy backoff; /* zero: the defaults, jitter 0.1 */
    uint64_t seed;
    /* Something is ready, or the next due time came nearer. Called without the lock, on the thread that caused it. May be NULL. */
    void (*wake)(void *arg);
    void *wake_arg;
} kl_workqueue_options;

/* o NULL: the defaults. Freed when no thread uses it any more; keys still in it are forgotten. */
kl_workqueue *kl_workqueue_new(const kl_workqueue_options *o);
void kl_workqueue_free(kl_workqueue *q);

/* Dropped once the queue is shut down. A delay of 0 or less is an add; a rate-limited add waits by the key's failures. */
void kl_workqueue_add(kl_workqueue *q, const char *key, kl_time now);
void kl_workqueue_add_after(kl_workqueue *q, const char *key, kl_time delay, kl_time now);
kl_time kl_workqueue_add_rate_limited(kl_workqueue *q, const char *key, kl_time now);     /* the delay it drew */
void kl_workqueue_forget(kl_workqueue *q, const char *key);
int kl_workqueue_requeues(kl_workqueue *q, const char *key);                              /* failures since forget */

typedef struct kl_queue_item { char *key; kl_time queued_at; } kl_queue_item;             /* key owned by the caller */
/* True with *out when a key is ready (delayed ones whose time has come are promoted first). */
bool kl_workqueue_try_get(kl_workqueue *q, kl_time now, kl_queue_item *out);
void kl_workqueue_done(kl_workqueue *q, const char *key, kl_time now);
kl_time kl_workqueue_next_due(kl_workqueue *q);      /* `now` or earlier when something is ready (0), the heap's next, or KL_NEVER */

void kl_workqueue_shut_down(kl_workqueue *q);        /* adds are dropped, queued keys are still handed out, waiting ones are dropped */
bool kl_workqueue_shutting_down(kl_workqueue *q);
bool kl_workqueue_drained(kl_workqueue *q);          /* shut down, nothing queued, nothing running */

typedef struct kl_workqueue_stats {
    size_t ready, delayed, running, failing;         /* failing: keys with failures since forget */
    uint64_t adds, retries;
    kl_time longest_running, unfinished;             /* at `now` */
} kl_workqueue_stats;
void kl_workqueue_stats_get(kl_workqueue *q, kl_time now, kl_workqueue_stats *out);
/* What a key is doing, for people: "queued", "running", "running, queued again", "waiting" (with *due), "absent". Static. */
const char *kl_workqueue_state(kl_workqueue *q, const char *key, kl_time *due);

#endif
