/* workqueue_look.c - what people and metrics see of a queue: counts, depths by priority, the state of a key.
 */
#include "queue/workqueue.h"

#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "queue/workqueue_impl.h"

void kl_workqueue_stats_get(kl_workqueue *q, kl_time now, kl_workqueue_stats *out)
{
    kl_spin_lock(&q->mu);
    bool news = kl__queue_catch_up_locked(q, now);
    *out = (kl_workqueue_stats){.ready = q->ready.len,
        .delayed = q->waiting.len,
        .running = q->n_running,
        .adds = q->adds,
        .retries = q->retries,
        .failing = q->failing,
        .parked = q->groups.n_parked,
        .held = q->held,
        .resting = q->resting};
    if (q->n_running) {
        out->longest_running = now - kl_items_at(&q->items, q->running_first)->at;
        out->unfinished = (kl_time)q->n_running * (now - q->started_base) - q->started_sum;
    }
    kl__queue_leave(q, news);
}

static int highest_first(const void *a, const void *b)
{
    const kl_level *const *x = a, *const *y = b;
    return ((*x)->priority < (*y)->priority) - ((*x)->priority > (*y)->priority);
}

void kl_workqueue_depths_get(kl_workqueue *q, kl_workqueue_depths *out)
{
    memset(out, 0, sizeof *out);
    kl_spin_lock(&q->mu);
    kl__queue_empty_inbox_locked(q);
    kl_ready *r = &q->ready;
    const kl_level **v = kl_new_array(const kl_level *, r->n_levels);
    size_t n = 0;
    for (uint32_t i = 1; i < r->n_levels; i++)
        if (r->levels[i]->used)
            v[n++] = r->levels[i];
    qsort(v, n, sizeof *v, highest_first);
    for (size_t i = 0; i < n; i++) {
        if (out->n == KL_QUEUE_DEPTHS) {
            out->more = true;
            out->others += v[i]->len;
            continue;
        }
        out->of[out->n].priority = v[i]->priority;
        out->of[out->n++].ready = v[i]->len;
    }
    kl__queue_unlock(q);
    kl_free(v);
}

const char *kl_workqueue_state(kl_workqueue *q, const char *key, kl_time *due)
{
    kl_spin_lock(&q->mu);
    kl_item *it = kl__queue_find_locked(q, key);
    const char *state = "absent";
    if (due)
        *due = it && it->waiting ? q->waiting.v[it->place - 1].number : KL_NEVER;
    if (it)
        state = it->running ? (it->dirty ? "running, queued again" : "running")
            : it->parked    ? "waiting for its group"
            : it->queued    ? "queued"
            : it->held      ? "held"
            : it->waiting   ? "waiting"
            : it->resting   ? "given up"
                            : "absent";
    kl__queue_unlock(q);
    return state;
}

int kl_workqueue_priority(kl_workqueue *q, const char *key)
{
    kl_spin_lock(&q->mu);
    kl_item *it = kl__queue_find_locked(q, key);
    int p = it ? it->priority : 0;
    kl__queue_unlock(q);
    return p;
}
