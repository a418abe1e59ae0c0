/* workqueue.c - gives each key to at most one worker at a time.
 *
 *   absent --add--> queued --get--> running --done--> absent
 *   running --add--> running+dirty --done--> queued
 *
 * A key has one item (items.h) while it is not idle: queued, running, waiting or a count of failures. Queued
 * items are in `ready` (ready.h), running ones in a list by the time they started, waiting ones in a heap by
 * the time they are due. Every step is O(log n) at worst, and O(1) where no delay and few priorities are in
 * play.
 *
 * Most of the cost of an add to a queue of a million keys is one cache miss: the key's slot in the table. So
 * while no worker waits for keys, plain adds stay in a short line (`inbox`), their slots are prefetched, and
 * each is processed after some more adds. Every other call processes all of them first, with their original
 * times: the line is invisible.
 *
 * Wake-ups. The queue only wakes after a call has found nothing ready, and once for each such time:
 *
 *   fed --try_get or more finds nothing ready--> hungry --a key is ready, or due first: `wake`--> fed
 *
 * `wake` is called outside the lock. A controller answers it in three steps, each of which may only wake too
 * early, never too late:
 *
 *   1. In a batch of events the call is put off until the batch ends (controller/batch.h).
 *   2. One worker that is FREE becomes CALLED (kl_worker_call). A BUSY one sees its bell before it sleeps,
 *      and checks again.
 *   3. A worker that has taken a key may have been the only one woken, and is busy now: it calls
 *      kl_workqueue_more. While keys are ready it calls the next worker; else the queue is hungry again, so
 *      that the next add wakes.
 *
 *   worker: BUSY --round over, has room--> FREE --call--> CALLED --bell--> BUSY        FREE --bell, its time--> BUSY
 *
 * So n keys that arrive at once wake n workers in a chain, a busy queue wakes none, and a worker that finds
 * nothing always sets `hungry` under the lock that the next add takes. */
#include "queue/workqueue.h"

#include <limits.h>
#include <string.h>
#include "base/mem.h"
#include "queue/backoff.h"
#include "queue/workqueue_impl.h"

/* --- causes ------------------------------------------------------------------------------- */

void kl__queue_forget_locked(kl_workqueue *q, uint32_t what)
{
    if (!what || !q->forget)
        return;
    if (q->n_forgotten < KL__FORGOTTEN) {
        q->forgotten[q->n_forgotten++] = what;
        return;
    }
    q->spilt = kl_realloc(q->spilt, (q->n_spilt + 1) * sizeof *q->spilt);
    q->spilt[q->n_spilt++] = what;
}

void kl__queue_unlock(kl_workqueue *q)
{
    uint32_t forgotten[KL__FORGOTTEN], n = q->n_forgotten;
    if (n)
        memcpy(forgotten, q->forgotten, n * sizeof *forgotten);
    uint32_t *spilt = q->spilt, n_spilt = q->n_spilt;
    q->n_forgotten = q->n_spilt = 0;
    q->spilt = NULL;
    kl_spin_unlock(&q->mu);
    for (uint32_t i = 0; i < n; i++)
        q->forget(forgotten[i]);
    for (uint32_t i = 0; i < n_spilt; i++)
        q->forget(spilt[i]);
    kl_free(spilt);
}

/* Sets the cause of the entry that an add makes or joins; `counts`: the add is no retry. Called before the
 * add changes the item's flags. */
static void cause_locked(kl_workqueue *q, kl_item *it, kl_cause cause, bool routine, bool counts)
    KL_REQUIRES(q->mu)
{
    bool joins = it->running ? it->dirty || it->waiting : it->queued || it->waiting;
    uint32_t *what = it->running ? &it->again_cause : &it->cause;
    uint16_t *events = it->running ? &it->again_events : &it->events;
    if (joins && routine) {
        kl__queue_forget_locked(q, cause.what);
        return;
    }
    kl__queue_forget_locked(q, *what);
    *what = cause.what;
    *events = (uint16_t)((joins ? *events : 0) + (counts && !(joins && *events == UINT16_MAX)));
    if (it->running)
        it->again_why = cause.why & (KL_CAUSES - 1);
    else
        it->why = cause.why & (KL_CAUSES - 1);
}

void kl__queue_next_cause_locked(kl_workqueue *q, kl_item *it)
{
    kl__queue_forget_locked(q, it->cause);
    it->cause = it->again_cause;
    it->why = it->again_why;
    it->events = it->again_events;
    it->again_cause = 0;
    it->again_why = 0;
    it->again_events = 0;
}

void kl__queue_rejoin_cause_locked(kl_workqueue *q, kl_item *it)
{
    unsigned events = (unsigned)it->events + it->again_events;
    if (it->again_why || it->again_cause)
        kl__queue_next_cause_locked(q, it);
    it->events = events > UINT16_MAX ? UINT16_MAX : (uint16_t)events;
}

/* Drops all causes. No thread uses the queue any more. */
static void forget_all(kl_workqueue *q)
{
    for (uint32_t i = 0; q->forget && i < q->inbox_len; i++)
        if (q->inbox[(q->inbox_first + i) % KL__INBOX].cause.what)
            q->forget(q->inbox[(q->inbox_first + i) % KL__INBOX].cause.what);
    for (size_t i = 0; q->forget && i < q->items.cap; i++) {
        const kl_item *it = q->items.slots[i].item ? kl_items_at(&q->items, q->items.slots[i].item) : NULL;
        if (it && it->cause)
            q->forget(it->cause);
        if (it && it->again_cause)
            q->forget(it->again_cause);
    }
}

kl_workqueue *kl_workqueue_new(const kl_workqueue_options *o)
{
    static const kl_workqueue_options none;
    kl_workqueue *q = kl_new(kl_workqueue);
    q->mu = (kl_spin)KL_SPIN_INIT_AS(KL_LOCK_QUEUE);
    o = o ? o : &none;
    q->backoff = kl_backoff_defaults(o->backoff);
    q->order = o->order;
    q->wake = o->wake;
    q->wake_arg = o->wake_arg;
    q->forget = o->forget;
    q->hungry = true;
    q->random.state = o->seed;
    kl_items_init(&q->items);
    kl_ready_init(&q->ready, &q->items);
    q->ready.turns = o->order == KL_QUEUE_FAIR;
    q->ready.by_rank = o->order == KL_QUEUE_RANK;
    q->ready.by_name = o->order == KL_QUEUE_NAME;
    q->ready.ageing = o->order != KL_QUEUE_FAIR ? 0 : o->ageing > 0 ? o->ageing : KL_QUEUE_AGEING;
    kl_agenda_init(&q->waiting);
    kl_groups_init(&q->groups, &q->ready);
    return q;
}

void kl_workqueue_free(kl_workqueue *q)
{
    if (!q)
        return;
    forget_all(q);
    kl_agenda_fini(&q->waiting);
    kl_groups_fini(&q->groups);
    kl_ready_fini(&q->ready);
    kl_items_fini(&q->items);
    kl_free(q);
}

void kl__queue_leave(kl_workqueue *q, bool news)
{
    bool tell = news && q->hungry;
    if (tell)
        q->hungry = false;
    kl__queue_unlock(q);
    if (tell && q->wake)
        q->wake(q->wake_arg);
}

/* --- one key ------------------------------------------------------------------------------ */

kl_item *kl__queue_find_locked(kl_workqueue *q, const char *key)
{
    kl__queue_empty_inbox_locked(q);
    size_t n = strlen(key);
    return kl_items_find(&q->items, key, n, kl_items_hash(key, n));
}

void kl__queue_drop_locked(kl_workqueue *q, kl_item *it)
{
    if (kl_item_idle(it))
        kl_items_drop(&q->items, it);
}

static void queue_locked(kl_workqueue *q, kl_item *it) KL_REQUIRES(q->mu)
{
    it->queued = true;
    kl_ready_put(&q->ready, it);
}

void kl__queue_unwait_locked(kl_workqueue *q, kl_item *it)
{
    if (!it->waiting)
        return;
    kl_agenda_remove(&q->waiting, &q->items, it);
    it->waiting = false;
}

/* Makes an entry for the key, or raises the priority of the one that it has. */
static void entry_locked(kl_workqueue *q, kl_item *it, int priority) KL_REQUIRES(q->mu)
{
    if (!it->queued && !it->dirty && !it->waiting) {
        it->priority = priority;
        it->delayed = false;
        if (q->order == KL_QUEUE_RANK)
            it->first_add = q->entries++;
        return;
    }
    if (priority <= it->priority)
        return;
    kl_ready *in = !it->queued ? NULL : it->parked ? &it->group->parked : &q->ready;
    if (in)
        kl_ready_remove(in, it);
    it->priority = priority;
    if (in)
        kl_ready_put(in, it);
}

bool kl__queue_make_ready_locked(kl_workqueue *q, kl_item *it, kl_time at)
{
    if (it->queued || it->dirty)
        return false;
    if (it->held) { /* it was added before, and keeps its place */
        it->held = false;
        q->held--;
        it->queued = true;
        kl_ready_put_back(&q->ready, it);
        return true;
    }
    q->adds++;
    if (it->running) {
        it->dirty = true;
        it->again_at = at;
        return false;
    }
    it->at = at;
    queue_locked(q, it);
    return true;
}

void kl__queue_wake_up_locked(kl_workqueue *q, kl_item *it)
{
    q->resting -= it->resting;
    it->resting = false;
}

bool kl__queue_add_now_locked(
    kl_workqueue *q, kl_item *it, int priority, kl_cause cause, bool routine, kl_time now)
{
    it->earnest |= it->running && !routine;
    kl__queue_wake_up_locked(q, it);
    cause_locked(q, it, cause, routine, true);
    entry_locked(q, it, priority);
    if (it->parked) { /* whatever changed: its group may be another one now */
        kl_groups_unpark(&q->groups, it);
        return true;
    }
    if (q->order != KL_QUEUE_FIFO)
        kl__queue_unwait_locked(q, it);
    if (it->delayed) {
        if (it->queued)
            kl_ready_remove(&q->ready, it);
        it->delayed = false;
        if (it->queued)
            kl_ready_put(&q->ready, it);
    }
    return kl__queue_make_ready_locked(q, it, now);
}

/* True when a worker that waits for next_due should check again. */
static bool add_later_locked(
    kl_workqueue *q, kl_item *it, int priority, kl_cause cause, kl_time delay, kl_time now) KL_REQUIRES(q->mu)
{
    kl__queue_wake_up_locked(q, it);
    entry_locked(q, it, priority);
    kl_time when = delay > KL_NEVER - 1 - now ? KL_NEVER - 1 : now + delay;
    if (((it->queued || it->dirty) && q->order != KL_QUEUE_FIFO)
        || (it->waiting && when >= q->waiting.v[it->place - 1].number)) {
        kl__queue_forget_locked(q, cause.what);
        return false;
    }
    cause_locked(q, it, cause, it->queued || it->dirty, false);
    it->waiting = true;
    kl_agenda_put(&q->waiting, &q->items, it, when);
    return it->place == 1;
}

/* Queues due items, in the order of their times. True when one became ready. */
static bool promote_locked(kl_workqueue *q, kl_time now) KL_REQUIRES(q->mu)
{
    bool news = false;
    for (const kl_agenda_entry *e; (e = kl_agenda_peek(&q->waiting)) && e->number <= now;) {
        kl_item *it = kl_items_at(&q->items, e->item);
        kl_time when = e->number;
        kl__queue_unwait_locked(q, it);
        it->delayed = q->order == KL_QUEUE_RANK;
        it->earnest |= it->running;
        news |= kl__queue_make_ready_locked(q, it, when);
    }
    return news;
}

/* Processes the oldest add of the line. No worker waits while the line has adds, so none must be woken. */
static void deliver_locked(kl_workqueue *q) KL_REQUIRES(q->mu)
{
    kl__queue_letter *l = &q->inbox[q->inbox_first++ % KL__INBOX];
    q->inbox_len--;
    promote_locked(q, l->at);
    kl__queue_add_now_locked(
        q, kl_items_use(&q->items, l->key, l->len, l->hash), l->priority, l->cause, l->routine, l->at);
}

void kl__queue_empty_inbox_locked(kl_workqueue *q)
{
    while (q->inbox_len)
        deliver_locked(q);
}

static void post_locked(kl_workqueue *q, const char *key, size_t n, uint32_t hash, const kl_add *how,
    kl_time now) KL_REQUIRES(q->mu)
{
    if (q->inbox_len == KL__INBOX)
        deliver_locked(q);
    kl__queue_letter *l = &q->inbox[(q->inbox_first + q->inbox_len++) % KL__INBOX];
    l->at = now;
    l->hash = hash;
    l->len = (uint32_t)n;
    l->priority = how->priority;
    l->cause = how->cause;
    l->routine = how->routine;
    memcpy(l->key, key, n);
    kl_items_expect(&q->items, hash);
}

bool kl__queue_catch_up_locked(kl_workqueue *q, kl_time now)
{
    kl__queue_empty_inbox_locked(q);
    return promote_locked(q, now);
}

/* --- adding ------------------------------------------------------------------------------- */

static kl_time failed_locked(kl_workqueue *q, kl_item *it, bool blameless) KL_REQUIRES(q->mu)
{
    kl_time delay = kl_backoff_delay(&q->backoff, it->failures, &q->random);
    q->failing += !it->failures;
    if (it->failures < INT_MAX) {
        it->failures++;
        it->blameless += blameless;
    }
    return delay;
}

static kl_time add(kl_workqueue *q, const char *key, const kl_add *how, bool retry, kl_time now)
{
    size_t n = strlen(key);
    uint32_t hash = kl_items_hash(key, n);
    kl_time delay = how->after > 0 ? how->after : 0;
    kl_spin_lock(&q->mu);
    if (!q->hungry && !delay && !how->rate_limited && !retry && n <= KL__INBOX_KEY && !q->shutting_down
        && !(how->routine && q->resting)) {
        post_locked(q, key, n, hash, how, now);
        kl__queue_unlock(q);
        return 0;
    }
    bool news = kl__queue_catch_up_locked(q, now);
    /* A failure counts even if the queue takes no more work: only forget clears it. */
    kl_item *it = q->shutting_down && !how->rate_limited ? NULL : kl_items_use(&q->items, key, n, hash);
    if (how->rate_limited) {
        kl_time limit = failed_locked(q, it, how->blameless);
        delay = delay && delay < limit ? delay : limit;
    }
    if (!q->shutting_down && !(how->routine && it->resting)) {
        q->retries += retry;
        news |= delay ? add_later_locked(q, it, how->priority, how->cause, delay, now)
                      : kl__queue_add_now_locked(q, it, how->priority, how->cause, how->routine, now);
    } else {
        kl__queue_forget_locked(q, how->cause.what);
    }
    kl__queue_leave(q, news);
    return delay;
}

kl_time kl_workqueue_add_with(kl_workqueue *q, const char *key, const kl_add *how, kl_time now)
{
    return add(q, key, how, how->after > 0 || how->rate_limited, now);
}

void kl_workqueue_add(kl_workqueue *q, const char *key, kl_time now)
{
    add(q, key, &(kl_add){0}, false, now);
}

void kl_workqueue_add_after(kl_workqueue *q, const char *key, kl_time delay, kl_time now)
{
    add(q, key, &(kl_add){.after = delay}, true, now);
}

kl_time kl_workqueue_add_rate_limited(kl_workqueue *q, const char *key, kl_time now)
{
    return add(q, key, &(kl_add){.rate_limited = true}, true, now);
}

void kl_workqueue_forget(kl_workqueue *q, const char *key)
{
    kl_spin_lock(&q->mu);
    kl_item *it = q->failing ? kl__queue_find_locked(q, key) : NULL;
    if (it && it->failures) {
        q->failing--;
        it->failures = it->blameless = 0;
        kl__queue_drop_locked(q, it);
    }
    kl__queue_unlock(q);
}

static int failures(kl_workqueue *q, const char *key, bool all)
{
    kl_spin_lock(&q->mu);
    kl_item *it = q->failing ? kl__queue_find_locked(q, key) : NULL;
    int n = !it ? 0 : it->failures - (all ? 0 : it->blameless);
    kl__queue_unlock(q);
    return n;
}

int kl_workqueue_requeues(kl_workqueue *q, const char *key) { return failures(q, key, true); }
int kl_workqueue_faults(kl_workqueue *q, const char *key) { return failures(q, key, false); }

/* --- handing out -------------------------------------------------------------------------- */

/* Marks an item as running. Its `at`, which has been reported, becomes the time of its start. */
static void run_locked(kl_workqueue *q, kl_item *it, kl_time now) KL_REQUIRES(q->mu)
{
    if (!q->n_running++)
        q->started_base = now;
    it->queued = false;
    it->running = true;
    it->released = it->earnest = false;
    it->at = now;
    it->next = KL_NO_ITEM;
    it->prev = q->running_last;
    if (q->running_last)
        kl_items_at(&q->items, q->running_last)->next = it->self;
    else
        q->running_first = it->self;
    q->running_last = it->self;
    q->started_sum += now - q->started_base;
}

void kl__queue_ran_locked(kl_workqueue *q, kl_item *it)
{
    if (it->prev)
        kl_items_at(&q->items, it->prev)->next = it->next;
    else
        q->running_first = it->next;
    if (it->next)
        kl_items_at(&q->items, it->next)->prev = it->prev;
    else
        q->running_last = it->prev;
    it->running = false;
    q->n_running--;
    q->started_sum -= it->at - q->started_base;
}

bool kl__queue_leave_group_locked(kl_workqueue *q, kl_item *it)
{
    return q->order != KL_QUEUE_RANK && kl_groups_leave(&q->groups, it);
}

bool kl_workqueue_try_get(kl_workqueue *q, kl_time now, kl_queue_item *out)
{
    kl_spin_lock(&q->mu);
    kl__queue_catch_up_locked(q, now);
    kl_item *it = kl_ready_take(&q->ready);
    if (it) {
        *out = (kl_queue_item){
            it->key, it->at, it->priority, it->self, {it->cause, (uint8_t)it->why}, it->events};
        run_locked(q, it, now);
    } else {
        q->hungry = true;
    }
    kl__queue_unlock(q);
    return it;
}

static bool done_locked(kl_workqueue *q, kl_item *it) KL_REQUIRES(q->mu)
{
    bool again = it->dirty, news = kl__queue_leave_group_locked(q, it);
    kl__queue_ran_locked(q, it);
    kl__queue_next_cause_locked(q, it);
    it->called = false;
    it->earnest = false;
    if (again) {
        it->dirty = false;
        it->at = it->again_at;
        queue_locked(q, it);
    }
    kl__queue_drop_locked(q, it);
    if (q->shutting_down && !q->n_running) /* drained: a thread may wait for this */
        again = q->hungry = true;
    return again || news;
}

void kl_workqueue_done(kl_workqueue *q, const char *key, kl_time now)
{
    kl_spin_lock(&q->mu);
    bool news = kl__queue_catch_up_locked(q, now);
    kl_item *it = kl__queue_find_locked(q, key);
    if (it && it->running)
        news |= done_locked(q, it);
    kl__queue_leave(q, news);
}

void kl_workqueue_finish(kl_workqueue *q, const kl_queue_item *item, kl_time now)
{
    kl_spin_lock(&q->mu);
    bool news = kl__queue_catch_up_locked(q, now);
    news |= done_locked(q, kl_items_at(&q->items, item->id));
    kl__queue_leave(q, news);
}

kl_time kl_workqueue_next_due(kl_workqueue *q)
{
    kl_spin_lock(&q->mu);
    kl__queue_empty_inbox_locked(q);
    const kl_agenda_entry *e = kl_agenda_peek(&q->waiting);
    kl_time t = q->ready.len ? 0 : e ? e->number : KL_NEVER;
    kl__queue_unlock(q);
    return t;
}

kl_time kl_workqueue_more(kl_workqueue *q)
{
    kl_spin_lock(&q->mu);
    kl__queue_empty_inbox_locked(q);
    const kl_agenda_entry *e = kl_agenda_peek(&q->waiting);
    kl_time t = q->ready.len ? 0 : e ? e->number : KL_NEVER;
    if (t)
        q->hungry = true;
    kl__queue_unlock(q);
    return t;
}

/* --- the end ------------------------------------------------------------------------------ */

void kl_workqueue_shut_down(kl_workqueue *q)
{
    kl_spin_lock(&q->mu);
    kl__queue_empty_inbox_locked(q);
    q->shutting_down = true;
    for (const kl_agenda_entry *e; (e = kl_agenda_peek(&q->waiting));) {
        kl_item *it = kl_items_at(&q->items, e->item);
        kl__queue_unwait_locked(q, it);
        if (it->held) {
            q->held--;
            it->held = false;
            kl__queue_leave_group_locked(q, it);
        }
        uint32_t *cause = it->queued || it->dirty ? NULL : it->running ? &it->again_cause : &it->cause;
        if (cause && *cause) {
            kl__queue_forget_locked(q, *cause);
            *cause = 0;
        }
        kl__queue_drop_locked(q, it);
    }
    q->hungry = true;
    kl__queue_leave(q, true);
}

bool kl_workqueue_shutting_down(kl_workqueue *q)
{
    kl_spin_lock(&q->mu);
    bool yes = q->shutting_down;
    kl__queue_unlock(q);
    return yes;
}

bool kl_workqueue_drained(kl_workqueue *q)
{
    kl_spin_lock(&q->mu);
    bool yes = q->shutting_down && !q->ready.len && !q->groups.n_parked && !q->n_running;
    kl__queue_unlock(q);
    return yes;
}
