/* workqueue.c - gives each key to at most one worker at a time.
 *
 *   absent --add--> queued --get--> running --done--> absent
 *   running --add--> running+dirty --done--> queued
 *
 * A key has one item while anything is known about it: queued, running, waiting or a count of failures. Queued items are in
 * `fifo`, running ones in `running` by the time they started, waiting ones in `waiting` by the time they are due; an item may
 * be waiting and queued or running at once. Every step is O(log n). */
#include "queue/workqueue.h"

#include <limits.h>
#include <string.h>
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"
#include "queue/backoff.h"

typedef struct item {
    kl_list link;             /* in fifo (queued) or running */
    kl_heap_node due;         /* in waiting while due.pos is not 0 */
    bool queued, running;
    bool dirty;               /* running, and added since: queued again when done */
    int failures;             /* rate-limited adds since forget */
    kl_time queued_at;        /* when it was added: the start of what it waits for a worker */
    kl_time started_at;       /* when it was handed out */
    char key[];
} item;

struct kl_workqueue {
    kl_mutex mu;
    kl_backoff_policy backoff;      /* set once */
    void (*wake)(void *arg);
    void *wake_arg;
    /* under mu: */
    kl_random random;
    kl_map *items;                  /* key -> item */
    kl_list fifo, running;
    kl_heap waiting;
    size_t ready, n_running;        /* their lengths */
    size_t failing;                 /* items with failures */
    kl_time epoch, started_sum;     /* sum of started_at - epoch over running: unfinished work without a walk */
    bool shutting_down;
    uint64_t adds, retries;
};

kl_workqueue *kl_workqueue_new(const kl_workqueue_options *o)
{
    static const kl_workqueue_options none;
    kl_workqueue *q = kl_new(kl_workqueue);
    o = o ? o : &none;
    kl_mutex_init(&q->mu);
    q->backoff = kl_backoff_defaults(o->backoff);
    q->wake = o->wake;
    q->wake_arg = o->wake_arg;
    q->random.state = o->seed;
    q->items = kl_map_new();
    kl_list_init(&q->fifo);
    kl_list_init(&q->running);
    kl_heap_init(&q->waiting);
    return q;
}

void kl_workqueue_free(kl_workqueue *q)
{
    if (!q)
        return;
    kl_heap_fini(&q->waiting);
    kl_map_free(q->items, kl_free);
    kl_mutex_fini(&q->mu);
    kl_free(q);
}

static void wake(kl_workqueue *q, bool news)
{
    if (news && q->wake)
        q->wake(q->wake_arg);
}

static item *item_make_locked(kl_workqueue *q, const char *key) KL_REQUIRES(q->mu)
{
    item *it = kl_map_get(q->items, key);
    if (it)
        return it;
    size_t n = strlen(key);
    it = kl_zalloc(sizeof *it + n + 1);
    memcpy(it->key, key, n + 1);
    kl_list_init(&it->link);
    kl_map_set(q->items, key, it);
    return it;
}

/* Forgets an item about which nothing is left to know. */
static void item_drop_locked(kl_workqueue *q, item *it) KL_REQUIRES(q->mu)
{
    if (it->queued || it->running || it->due.pos || it->failures)
        return;
    kl_map_take(q->items, it->key);
    kl_free(it);
}

static void fifo_push_locked(kl_workqueue *q, item *it) KL_REQUIRES(q->mu)
{
    it->queued = true;
    kl_list_push(&q->fifo, &it->link);
    q->ready++;
}

/* True when the key became ready. */
static bool add_locked(kl_workqueue *q, item *it, kl_time now) KL_REQUIRES(q->mu)
{
    if (it->queued || it->dirty)
        return false;
    q->adds++;
    it->queued_at = now;
    if (it->running) {
        it->dirty = true;
        return false;
    }
    fifo_push_locked(q, it);
    return true;
}

/* Queues what is due, in the order of its times: whoever looks at the queue or adds to it finds it there. True when
 * something became ready. */
static bool promote_locked(kl_workqueue *q, kl_time now) KL_REQUIRES(q->mu)
{
    bool news = false;
    for (kl_heap_node *n; (n = kl_heap_pop_due(&q->waiting, now));)
        news |= add_locked(q, KL_CONTAINER(n, item, due), n->when);
    return news;
}

void kl_workqueue_add(kl_workqueue *q, const char *key, kl_time now)
{
    kl_lock(&q->mu);
    bool news = promote_locked(q, now);
    if (!q->shutting_down)
        news |= add_locked(q, item_make_locked(q, key), now);
    kl_unlock(&q->mu);
    wake(q, news);
}

/* True when somebody who waits for next_due should look again. */
static bool add_after_locked(kl_workqueue *q, const char *key, kl_time delay, kl_time now) KL_REQUIRES(q->mu)
{
    if (q->shutting_down)
        return false;
    q->retries++;
    item *it = item_make_locked(q, key);
    if (delay <= 0)
        return add_locked(q, it, now);
    kl_time when = delay > KL_NEVER - 1 - now ? KL_NEVER - 1 : now + delay;
    if (!it->due.pos)
        kl_heap_push(&q->waiting, &it->due, when);
    else if (when < it->due.when)
        kl_heap_move(&q->waiting, &it->due, when);
    else
        return false;
    return kl_heap_peek(&q->waiting) == &it->due;
}

void kl_workqueue_add_after(kl_workqueue *q, const char *key, kl_time delay, kl_time now)
{
    kl_lock(&q->mu);
    bool news = promote_locked(q, now);
    news |= add_after_locked(q, key, delay, now);
    kl_unlock(&q->mu);
    wake(q, news);
}

kl_time kl_workqueue_add_rate_limited(kl_workqueue *q, const char *key, kl_time now)
{
    kl_lock(&q->mu);
    bool news = promote_locked(q, now);
    /* The failure counts even when the queue takes no more work: forget is what clears it. */
    item *it = item_make_locked(q, key);
    kl_time delay = kl_backoff_delay(&q->backoff, it->failures, &q->random);
    q->failing += !it->failures;
    if (it->failures < INT_MAX)
        it->failures++;
    news |= add_after_locked(q, key, delay, now);
    kl_unlock(&q->mu);
    wake(q, news);
    return delay;
}

void kl_workqueue_forget(kl_workqueue *q, const char *key)
{
    kl_lock(&q->mu);
    item *it = kl_map_get(q->items, key);
    if (it) {
        q->failing -= it->failures > 0;
        it->failures = 0;
        item_drop_locked(q, it);
    }
    kl_unlock(&q->mu);
}

int kl_workqueue_requeues(kl_workqueue *q, const char *key)
{
    kl_lock(&q->mu);
    item *it = kl_map_get(q->items, key);
    int n = it ? it->failures : 0;
    kl_unlock(&q->mu);
    return n;
}

bool kl_workqueue_try_get(kl_workqueue *q, kl_time now, kl_queue_item *out)
{
    kl_lock(&q->mu);
    promote_locked(q, now);
    kl_list *first = kl_list_shift(&q->fifo);
    if (first) {
        item *it = KL_CONTAINER(first, item, link);
        if (!q->n_running)
            q->epoch = now;
        it->queued = false;
        it->running = true;
        it->started_at = now;
        kl_list_push(&q->running, &it->link);
        q->ready--;
        q->n_running++;
        q->started_sum += now - q->epoch;
        out->key = kl_strdup(it->key);
        out->queued_at = it->queued_at;
    }
    kl_unlock(&q->mu);
    return first != NULL;
}

void kl_workqueue_done(kl_workqueue *q, const char *key, kl_time now)
{
    kl_lock(&q->mu);
    bool news = promote_locked(q, now);
    item *it = kl_map_get(q->items, key);
    if (it && it->running) {
        kl_list_remove(&it->link);
        it->running = false;
        q->n_running--;
        q->started_sum -= it->started_at - q->epoch;
        if (it->dirty) {
            it->dirty = false;
            fifo_push_locked(q, it);
            news = true;
        }
        item_drop_locked(q, it);
        news |= q->shutting_down && !q->n_running;      /* drained: somebody may wait for it */
    }
    kl_unlock(&q->mu);
    wake(q, news);
}

kl_time kl_workqueue_next_due(kl_workqueue *q)
{
    kl_lock(&q->mu);
    kl_heap_node *n = kl_heap_peek(&q->waiting);
    kl_time t = q->ready ? 0 : n ? n->when : KL_NEVER;
    kl_unlock(&q->mu);
    return t;
}

void kl_workqueue_shut_down(kl_workqueue *q)
{
    kl_lock(&q->mu);
    q->shutting_down = true;
    for (kl_heap_node *n; (n = kl_heap_pop_due(&q->waiting, KL_NEVER));)
        item_drop_locked(q, KL_CONTAINER(n, item, due));
    kl_unlock(&q->mu);
    wake(q, true);
}

bool kl_workqueue_shutting_down(kl_workqueue *q)
{
    kl_lock(&q->mu);
    bool yes = q->shutting_down;
    kl_unlock(&q->mu);
    return yes;
}

bool kl_workqueue_drained(kl_workqueue *q)
{
    kl_lock(&q->mu);
    bool yes = q->shutting_down && !q->ready && !q->n_running;
    kl_unlock(&q->mu);
    return yes;
}

void kl_workqueue_stats_get(kl_workqueue *q, kl_time now, kl_workqueue_stats *out)
{
    kl_lock(&q->mu);
    bool news = promote_locked(q, now);
    *out = (kl_workqueue_stats){
        .ready = q->ready, .delayed = q->waiting.len, .running = q->n_running, .adds = q->adds, .retries = q->retries, .failing = q->failing,
    };
    if (q->n_running) {
        out->longest_running = now - KL_CONTAINER(q->running.next, item, link)->started_at;
        out->unfinished = (kl_time)q->n_running * (now - q->epoch) - q->started_sum;
    }
    kl_unlock(&q->mu);
    wake(q, news);
}

const char *kl_workqueue_state(kl_workqueue *q, const char *key, kl_time *due)
{
    kl_lock(&q->mu);
    item *it = kl_map_get(q->items, key);
    const char *state = "absent";
    if (due)
        *due = it && it->due.pos ? it->due.when : KL_NEVER;
    if (it)
        state = it->running ? (it->dirty ? "running, queued again" : "running") : it->queued ? "queued" : it->due.pos ? "waiting" : "absent";
    kl_unlock(&q->mu);
    return state;
}
