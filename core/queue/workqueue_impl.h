/* workqueue_impl.h - the inside of a queue, for workqueue.c (adds, gets, dones), workqueue_back.c (keys that
 * were handed out go back, or are given up) and workqueue_look.c (views for people and metrics).
 *
 * Every call is one step: lock; catch up, or empty the line; change items; leave, or unlock. */
#ifndef KL_QUEUE_WORKQUEUE_IMPL_H
#define KL_QUEUE_WORKQUEUE_IMPL_H

#include "base/locks.h"
#include "base/random.h"
#include "base/sync.h"
#include "queue/agenda.h"
#include "queue/groups.h"
#include "queue/items.h"
#include "queue/ready.h"
#include "queue/workqueue.h"

#define KL__INBOX 8u       /* the approximate number of concurrent cache misses of a processor */
#define KL__INBOX_KEY 223u /* longer keys, which are rare, skip the line */
/* causes that a step on one key may drop: one for each line entry, and its own */
#define KL__FORGOTTEN (KL__INBOX + 2u)
/* One add in the line. */
typedef struct kl__queue_letter {
    kl_time at;
    uint32_t hash, len;
    int priority;
    kl_cause cause;
    bool routine;
    char key[KL__INBOX_KEY];
} kl__queue_letter;

struct kl_workqueue {
    kl_spin mu;           /* never held for longer than a step */
    kl_queue_order order; /* set once, as are the next three */
    void (*wake)(void *arg);
    void *wake_arg;
    void (*forget)(uint32_t what);
    /* under mu: */
    kl_backoff_policy backoff;
    bool hungry; /* a call has found nothing since the last wake */
    bool shutting_down;
    kl_random random;
    kl_items items;
    kl_ready ready;
    kl_agenda waiting;
    kl_groups groups;
    kl_handle running_first, running_last;
    size_t n_running;
    size_t failing;       /* items with failures */
    size_t held, resting; /* items in these states */
    /* sum of started_at - started_base over running: unfinished work without a walk */
    kl_time started_base, started_sum;
    uint64_t entries; /* ever made */
    uint64_t adds, retries;
    uint32_t inbox_first, inbox_len;
    kl__queue_letter inbox[KL__INBOX]; /* a ring; empty while `hungry` */
    uint32_t forgotten[KL__FORGOTTEN]; /* causes to drop after the lock is released */
    uint32_t n_forgotten, n_spilt;
    uint32_t *spilt; /* more of them */
};

/* --- begin and end of a step --- */

/* Processes the adds of the line, for a step that needs no time. */
void kl__queue_empty_inbox_locked(kl_workqueue *q) KL_REQUIRES(q->mu);
/* Brings the queue up to date: processes the line and due items, before every other call. True when a key
 * became ready that a worker may wait for. */
bool kl__queue_catch_up_locked(kl_workqueue *q, kl_time now) KL_REQUIRES(q->mu);
/* Releases the lock, then drops causes, which may take longer than a step. */
void kl__queue_unlock(kl_workqueue *q) KL_RELEASE(q->mu);
/* Ends a step that may have made a key ready: wakes waiting workers outside the lock, unless that was done
 * already. */
void kl__queue_leave(kl_workqueue *q, bool news) KL_RELEASE(q->mu);

/* --- one item --- */

/* Empties the line first; NULL when absent. */
kl_item *kl__queue_find_locked(kl_workqueue *q, const char *key) KL_REQUIRES(q->mu);
/* Drops an idle item; any other stays. */
void kl__queue_drop_locked(kl_workqueue *q, kl_item *it) KL_REQUIRES(q->mu);
/* Adds without a delay. True when the key became ready. */
bool kl__queue_add_now_locked(
    kl_workqueue *q, kl_item *it, int priority, kl_cause cause, bool routine, kl_time now) KL_REQUIRES(q->mu);
/* True when the key became ready. */
bool kl__queue_make_ready_locked(kl_workqueue *q, kl_item *it, kl_time at) KL_REQUIRES(q->mu);
void kl__queue_unwait_locked(kl_workqueue *q, kl_item *it) KL_REQUIRES(q->mu);
/* The key is not given up any more. */
void kl__queue_wake_up_locked(kl_workqueue *q, kl_item *it) KL_REQUIRES(q->mu);
/* The item's run ended, or never started. */
void kl__queue_ran_locked(kl_workqueue *q, kl_item *it) KL_REQUIRES(q->mu);
/* Takes an item out of its group. True: another key of the group is ready now. In rank order items have no
 * groups. */
bool kl__queue_leave_group_locked(kl_workqueue *q, kl_item *it) KL_REQUIRES(q->mu);

/* --- its causes --- */

/* Drops a cause once the lock is released. */
void kl__queue_forget_locked(kl_workqueue *q, uint32_t what) KL_REQUIRES(q->mu);
/* The run has ended: later adds become the item's next entry. */
void kl__queue_next_cause_locked(kl_workqueue *q, kl_item *it) KL_REQUIRES(q->mu);
/* An item goes back: the causes of later adds join its own. */
void kl__queue_rejoin_cause_locked(kl_workqueue *q, kl_item *it) KL_REQUIRES(q->mu);

#endif
