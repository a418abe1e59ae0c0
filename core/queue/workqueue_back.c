/* workqueue_back.c - keys that were handed out and do not run now: parked until their group is free, held
 * until a time or an event, given up until a real add, and pardoned.
 *
 *   running --enter, its group is busy--> parked
 *   running --hold--> held --its time, add, release--> queued
 *   running --rest, done--> given up --real add, pardon, other backoff--> absent or queued */
#include "queue/workqueue.h"

#include "base/mem.h"
#include "queue/backoff.h"
#include "queue/workqueue_impl.h"

/* Ends the run of an item, which goes back to ready or waiting. Later adds join it. */
static void unrun_locked(kl_workqueue *q, kl_item *it, const kl_queue_item *item) KL_REQUIRES(q->mu)
{
    kl__queue_ran_locked(q, it);
    it->dirty = it->earnest = false;
    kl__queue_unwait_locked(q, it);
    kl__queue_rejoin_cause_locked(q, it);
    it->at = item->queued_at;
    if (it->priority < item->priority)
        it->priority = item->priority;
}

bool kl_workqueue_enter(kl_workqueue *q, const kl_queue_item *item, const char *group, kl_time now)
{
    kl_spin_lock(&q->mu);
    bool news = kl__queue_catch_up_locked(q, now);
    kl_item *it = kl_items_at(&q->items, item->id);
    bool in = kl_groups_enter(&q->groups, group, it, &news);
    if (!in) {
        unrun_locked(q, it, item);
        it->queued = true;
        kl_groups_park(&q->groups, it);
    }
    kl__queue_leave(q, news);
    return in;
}

void kl_workqueue_hold(kl_workqueue *q, const kl_queue_item *item, kl_time until, kl_time now)
{
    kl_spin_lock(&q->mu);
    bool news = kl__queue_catch_up_locked(q, now);
    kl_item *it = kl_items_at(&q->items, item->id);
    bool ready = it->dirty || it->released || until <= now;
    news |= ready;
    if (q->shutting_down || q->order == KL_QUEUE_RANK || !kl_groups_runs(it))
        news |= kl__queue_leave_group_locked(q, it); /* another key of its group may run first */
    unrun_locked(q, it, item);
    if (ready) {
        it->queued = true;
        kl_ready_put_back(&q->ready, it);
    } else if (!q->shutting_down) {
        it->held = it->waiting = true;
        q->held++;
        kl_agenda_put(&q->waiting, &q->items, it, until);
        news |= it->place == 1;
    } else {
        kl__queue_next_cause_locked(q, it);
        kl__queue_drop_locked(q, it);
    }
    if (q->shutting_down && !q->n_running)
        news = q->hungry = true;
    kl__queue_leave(q, news);
}

void kl_workqueue_release(kl_workqueue *q, const char *key, kl_time now)
{
    kl_spin_lock(&q->mu);
    bool news = kl__queue_catch_up_locked(q, now);
    kl_item *it = kl__queue_find_locked(q, key);
    if (it && it->held) {
        kl__queue_unwait_locked(q, it);
        news |= kl__queue_make_ready_locked(q, it, now);
    } else if (it && it->running) {
        it->released = true;
    }
    kl__queue_leave(q, news);
}

void kl_workqueue_rest(kl_workqueue *q, const kl_queue_item *item)
{
    kl_spin_lock(&q->mu);
    kl__queue_empty_inbox_locked(q);
    kl_item *it = kl_items_at(&q->items, item->id);
    it->dirty &= it->earnest;
    if (!it->dirty && !it->waiting) {
        kl__queue_forget_locked(q, it->again_cause);
        it->again_cause = 0;
        it->again_why = 0;
        it->again_events = 0;
    }
    if (!it->dirty && !it->resting) {
        it->resting = true;
        q->resting++;
    }
    q->failing -= it->failures > 0;
    it->failures = it->blameless = 0;
    kl__queue_unlock(q);
}

/* The items that are given up and, without `given_up_alone`, those with failures. The caller frees the list,
 * which is a copy since each drop may rebuild the table. */
static kl_handle *troubled_locked(kl_workqueue *q, bool given_up_alone, size_t *n) KL_REQUIRES(q->mu)
{
    size_t most = q->resting + (given_up_alone ? 0 : q->failing);
    kl_handle *found = kl_new_array(kl_handle, most + 1);
    *n = 0;
    for (size_t i = 0; i < q->items.cap && *n < most; i++) {
        kl_handle h = q->items.slots[i].item;
        kl_item *it = h ? kl_items_at(&q->items, h) : NULL;
        if (it && (it->resting || (!given_up_alone && it->failures)))
            found[(*n)++] = h;
    }
    return found;
}

size_t kl_workqueue_pardon(kl_workqueue *q, const kl_add *again, kl_time now)
{
    size_t n;
    kl_spin_lock(&q->mu);
    bool news = kl__queue_catch_up_locked(q, now);
    kl_handle *found = troubled_locked(q, false, &n);
    for (size_t i = n; i > 0; i--) {
        kl_item *it = kl_items_at(&q->items, found[i - 1]);
        kl__queue_wake_up_locked(q, it);
        q->failing -= it->failures > 0;
        it->failures = it->blameless = 0;
        if (again && !q->shutting_down)
            news |= kl__queue_add_now_locked(q, it, again->priority, again->cause, false, now);
        kl__queue_drop_locked(q, it);
    }
    kl__queue_leave(q, news);
    kl_free(found);
    return n;
}

void kl_workqueue_set_backoff(kl_workqueue *q, const kl_backoff_policy *p)
{
    size_t n;
    kl_spin_lock(&q->mu);
    kl__queue_empty_inbox_locked(q);
    q->backoff = kl_backoff_defaults(*p);
    kl_handle *found = troubled_locked(q, true, &n);
    while (n) { /* each drop may rebuild the table */
        kl_item *it = kl_items_at(&q->items, found[--n]);
        kl__queue_wake_up_locked(q, it);
        kl__queue_drop_locked(q, it);
    }
    kl__queue_unlock(q);
    kl_free(found);
}
