/* workqueue.h - gives each key to at most one worker at a time.
 *
 *   absent --add--> queued --get--> running --done--> absent
 *   running --add--> running+dirty --done--> queued
 *
 * A key is stored once, however often it is added: its queued, delayed and repeated adds are one entry, which
 * has the highest requested priority and the earliest requested time. Any thread; never waits; time is passed
 * in. */
#ifndef KL_QUEUE_WORKQUEUE_H
#define KL_QUEUE_WORKQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/clock.h"

typedef struct kl_workqueue kl_workqueue;

typedef struct kl_backoff_policy {
    kl_time base, max; /* 5 ms and 1000 s (default_rate_limiters.go) */
    double jitter;     /* 0..1: the delay is drawn from [d*(1-jitter), d]; 0 is client-go's ladder */
} kl_backoff_policy;

/* Which ready key is next, and whether an add without a delay ends the present delay. */
typedef enum kl_queue_order {
    /* The default. The highest priority first; a step of priority is worth KL_QUEUE_AGEING of waiting, so
     * that no key starves. Namespaces of one priority take turns. An add ends the delay: the run that follows
     * decides what comes next. */
    KL_QUEUE_FAIR,
    /* client-go's util/workqueue: first in, first out, within a priority. An add does not end the delay. */
    KL_QUEUE_FIFO,
    /* controller-runtime's priorityqueue (0.22): the highest priority first, then by the time of the first
     * add, those that had been delayed last; an add ends the delay. A key that is added while it runs
     * keeps the place of that add. */
    KL_QUEUE_RANK,
    /* A reproducible order: the highest priority first, then by name, whatever the time of the add. An add
     * ends the delay. Taking costs O(ready keys of that priority). */
    KL_QUEUE_NAME,
} kl_queue_order;

/* The value of one step of priority: others overtake a key of KL_PRIORITY_LOW for at most ten seconds. */
#define KL_QUEUE_AGEING KL_MILLISECONDS(100)

/* controller-runtime's LowPriority (handler/eventhandler.go): for adds without urgency - initial lists,
 * resyncs. */
#define KL_PRIORITY_LOW (-100)
/* Keys that run again on new logic: after those of KL_PRIORITY_LOW, since all of them have run before. */
#define KL_PRIORITY_RELOAD (2 * KL_PRIORITY_LOW)

/* The cause of an add, opaque to the queue. The holder of a cause owns `what`. */
typedef struct kl_cause {
    uint32_t what; /* 0: nothing to own */
    uint8_t why;   /* below KL_CAUSES; 0: none given */
} kl_cause;
#define KL_CAUSES 16

typedef struct kl_workqueue_options {
    kl_backoff_policy backoff; /* zero: the defaults, jitter 0.1 */
    uint64_t seed;
    kl_queue_order order;
    kl_time ageing; /* KL_QUEUE_FAIR: 0 is KL_QUEUE_AGEING */
    /* Called when a key is ready or due sooner and a worker has found nothing since the last call. It wakes
     * all waiting workers, or one that then calls kl_workqueue_more; one call stands for any number of keys.
     * Called without the lock, on the thread that caused it. May be NULL. */
    void (*wake)(void *arg);
    void *wake_arg;
    /* frees the `what` of a cause. Called without the lock, on any thread. NULL: causes own nothing */
    void (*forget)(uint32_t what);
} kl_workqueue_options;

/* o NULL: the defaults. Free it when no thread uses it any more; keys still in it are forgotten. */
kl_workqueue *kl_workqueue_new(const kl_workqueue_options *o);
void kl_workqueue_free(kl_workqueue *q);

typedef struct kl_add { /* how a key is added */
    int priority;       /* higher goes first; 0 is normal */
    kl_time after;      /* not before; 0 or less: at once */
    bool routine;       /* nothing has changed: a key that was given up stays given up */
    /* counts a failure, and waits for the backoff of the key's failures; with `after`, for the shorter of
     * both */
    bool rate_limited;
    bool blameless; /* rate_limited: it was not a failure (a conflict), though it waits like one */
    /* moved in. The last add's cause stays; a routine add's only if it creates the entry, a delayed add's
     * only if it changes its time */
    kl_cause cause;
} kl_add;

/* Adds a key; returns the resulting delay, or 0. After shut down the add is dropped. */
kl_time kl_workqueue_add_with(kl_workqueue *q, const char *key, const kl_add *how, kl_time now);
void kl_workqueue_add(kl_workqueue *q, const char *key, kl_time now);
void kl_workqueue_add_after(kl_workqueue *q, const char *key, kl_time delay, kl_time now);
kl_time kl_workqueue_add_rate_limited(kl_workqueue *q, const char *key, kl_time now);
void kl_workqueue_forget(kl_workqueue *q, const char *key);
/* failures since forget */
int kl_workqueue_requeues(kl_workqueue *q, const char *key);
/* the same without the blameless */
int kl_workqueue_faults(kl_workqueue *q, const char *key);

typedef struct kl_queue_item {
    const char *key; /* the queue's, until done */
    kl_time queued_at;
    int priority;    /* for adding it again */
    uint32_t id;     /* the queue's */
    kl_cause cause;  /* `what` is the queue's, until done or put back */
    unsigned events; /* adds that joined this entry, without retries; at most 65535 */
} kl_queue_item;
/* True with *out when a key is ready (delayed ones whose time has come are promoted first). */
bool kl_workqueue_try_get(kl_workqueue *q, kl_time now, kl_queue_item *out);
/* does nothing when the key does not run */
void kl_workqueue_done(kl_workqueue *q, const char *key, kl_time now);
/* as kl_workqueue_done, for a caller that kept the item of a running key */
void kl_workqueue_finish(kl_workqueue *q, const kl_queue_item *item, kl_time now);
/* For one worker of several that wait, after it was woken and took a key. Returns kl_workqueue_next_due;
 * unless that is 0, `wake` will be called again. */
kl_time kl_workqueue_more(kl_workqueue *q);
/* 0 when a key is ready, else the time of the next delayed key, or KL_NEVER */
kl_time kl_workqueue_next_due(kl_workqueue *q);

/* --- keys that were handed out and do not run yet; KL_QUEUE_FAIR and _NAME. A key keeps its age and place;
 * adds join its entry. --- */

/* Keys of one group do not run at the same time. True: the key may run, and is in the group until done.
 * False: it was put back and parked until the group is free, or the key is added again (its group may have
 * changed); then it is handed out again in order. Call it once each time the key is handed out. */
bool kl_workqueue_enter(kl_workqueue *q, const kl_queue_item *item, const char *group, kl_time now);
/* Puts it back; it is handed out again at `until`, or when it is added or released, whichever is sooner. It
 * stays in the group that it has entered. */
void kl_workqueue_hold(kl_workqueue *q, const kl_queue_item *item, kl_time until, kl_time now);
/* Ends the hold of a key, also one that is about to begin; does nothing for a key that is neither held nor
 * just handed out. */
void kl_workqueue_release(kl_workqueue *q, const char *key, kl_time now);
/* Gives up the running item when it is done, unless an add came meanwhile that is not routine. Routine adds
 * are then dropped, even those during the run, until another add comes. Its failures are forgotten. */
void kl_workqueue_rest(kl_workqueue *q, const kl_queue_item *item);
/* Forgets all failures; given up keys may be added again. With `again` (NULL: not) these keys are added with
 * its priority and cause, whose `what` is 0. Returns their number. */
size_t kl_workqueue_pardon(kl_workqueue *q, const kl_add *again, kl_time now);
/* Sets the backoff of later failures; given up keys may be added again. */
void kl_workqueue_set_backoff(kl_workqueue *q, const kl_backoff_policy *p);

/* adds are dropped, queued keys are still handed out, waiting ones are dropped */
void kl_workqueue_shut_down(kl_workqueue *q);
bool kl_workqueue_shutting_down(kl_workqueue *q);
/* whether the queue is shut down with no key queued or running; `wake` is called when that becomes true */
bool kl_workqueue_drained(kl_workqueue *q);

typedef struct kl_workqueue_stats {
    size_t ready, delayed, running, failing; /* failing: keys with failures since forget */
    /* parked: not counted in ready; held: counted in delayed, too; resting: given up */
    size_t parked, held, resting;
    uint64_t adds, retries;
    kl_time longest_running, unfinished; /* at `now` */
} kl_workqueue_stats;
void kl_workqueue_stats_get(kl_workqueue *q, kl_time now, kl_workqueue_stats *out);

/* Ready keys by priority, highest first, recently used priorities included: at most KL_QUEUE_DEPTHS of them,
 * and the rest as one sum (controller-runtime's metric stops at 25 priorities, to limit its size). */
#define KL_QUEUE_DEPTHS 25
typedef struct kl_workqueue_depths {
    size_t n;
    struct {
        int priority;
        size_t ready;
    } of[KL_QUEUE_DEPTHS];
    size_t others;
    bool more; /* there are others, `others` keys in all */
} kl_workqueue_depths;
void kl_workqueue_depths_get(kl_workqueue *q, kl_workqueue_depths *out);

/* What a key is doing, for messages: "queued", "running", "running, queued again", "waiting" and "held"
 * (with *due), "waiting for its group", "given up", "absent". Static. */
const char *kl_workqueue_state(kl_workqueue *q, const char *key, kl_time *due);
/* the priority of its present or latest entry; 0 when absent */
int kl_workqueue_priority(kl_workqueue *q, const char *key);

#endif
