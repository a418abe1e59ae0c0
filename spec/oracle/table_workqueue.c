/* table_workqueue.c - traces of client-go's rate-limiting queue and of controller-runtime's priority
 * queue. One getter at a time may wait, as in the table.
 *
 * Two habits of controller-runtime's are not our queue's, and are acted out here: its Len counts the ready
 * keys only down to the first priority that has a key still waiting, and its shutdown answers every getter
 * with "shutdown" at once, while the keys stay where they are. */
#include <string.h>
#include "base/mem.h"
#include "oracle.h"
#include "queue/workqueue.h"

#define KEYS_MAX 64

typedef struct trace {
    kl_workqueue *q;
    bool priority;              /* controller-runtime's */
    bool down;                  /* it has been shut down: the queue below has not */
    const char *keys[KEYS_MAX]; /* that were named so far */
    size_t n_keys;
    bool getter;   /* one waits */
    bool draining; /* shutdownWithDrain waits */
} trace;

static bool down(const trace *t) { return t->priority ? t->down : kl_workqueue_shutting_down(t->q); }

static void delivered(const trace *t, kl_builder *b, const char *key, const kl_queue_item *it)
{
    kl_build_key(b, key);
    kl_build_array(b);
    kl_build_object(b);
    if (it)
        kl_build_kstr(b, "item", it->key);
    else
        oracle_build_bool(b, "shutdown", true);
    if (it && t->priority)
        kl_build_kint(b, "priority", it->priority);
    kl_build_end(b);
    kl_build_end(b);
}

/* The waiting getter gets what there is. */
static void serve(trace *t, kl_time now, kl_builder *b, const char *key)
{
    kl_queue_item it;
    if (!t->getter)
        return;
    if (!t->down && kl_workqueue_try_get(t->q, now, &it)) {
        delivered(t, b, key, &it);
        t->getter = false;
    } else if (down(t)) {
        delivered(t, b, key, NULL);
        t->getter = false;
    }
}

static kl_status remember(trace *t, const char *item, kl_err *err)
{
    for (size_t i = 0; item && i < t->n_keys; i++)
        if (!strcmp(t->keys[i], item))
            return KL_OK;
    if (item && t->n_keys == KEYS_MAX)
        return kl_fail(err, ORACLE_BAD_CASE,
            "this case makes no sense to us: more than %d keys; raise KEYS_MAX", KEYS_MAX);
    if (item)
        t->keys[t->n_keys++] = item;
    return KL_OK;
}

static size_t length(const trace *t, kl_time now)
{
    kl_workqueue_stats s;
    kl_workqueue_stats_get(t->q, now, &s);
    if (!t->priority)
        return s.ready;
    size_t n = 0;
    int64_t barrier = INT64_MIN; /* the highest priority with a waiting key */
    kl_time due;
    for (size_t i = 0; i < t->n_keys; i++) {
        kl_workqueue_state(t->q, t->keys[i], &due);
        int64_t p = kl_workqueue_priority(t->q, t->keys[i]);
        if (due != KL_NEVER && p > barrier)
            barrier = p;
    }
    for (size_t i = 0; i < t->n_keys; i++)
        n += strstr(kl_workqueue_state(t->q, t->keys[i], NULL), "queued")
            && kl_workqueue_priority(t->q, t->keys[i]) >= barrier;
    return n;
}

static bool add(trace *t, const char *op, const char *item, const kl_value *in, kl_time now)
{
    kl_add how = {.after = KL_MILLISECONDS(kl_value_int_at(in, 0, "afterMs", NULL)),
        .priority = (int)kl_value_int_at(in, 0, "priority", NULL)};
    how.rate_limited = kl_value_bool(kl_value_get(in, "rateLimited"), false);
    if (strncmp(op, "add", 3))
        return false;
    if (t->down)
        return true;
    if (!strcmp(op, "add"))
        kl_workqueue_add(t->q, item, now);
    else if (!strcmp(op, "addAfter"))
        kl_workqueue_add_after(t->q, item, how.after, now);
    else if (!strcmp(op, "addRateLimited"))
        kl_workqueue_add_rate_limited(t->q, item, now);
    else if (!strcmp(op, "addWithOpts"))
        kl_workqueue_add_with(t->q, item, &how, now);
    else
        return false;
    return true;
}

static kl_status operate(trace *t, const kl_value *in, kl_time now, kl_builder *b, kl_err *err)
{
    const char *op = kl_value_str_at(in, "op", NULL), *item = kl_value_str_at(in, "item", NULL);
    bool get = false, drains = false;
    kl_workqueue_stats s;
    if (!op)
        return kl_fail(err, ORACLE_BAD_CASE, "this case makes no sense: an operation without op");
    kl_status st = remember(t, item, err);
    if (st)
        return st;
    kl_build_object(b);
    serve(t, now, b, "deliveredBefore");
    kl_workqueue_stats_get(t->q, now, &s);
    if (add(t, op, item, in, now)) {
        /* done */
    } else if (!strcmp(op, "forget")) {
        kl_workqueue_forget(t->q, item);
    } else if (!strcmp(op, "numRequeues")) {
        kl_build_kint(b, "n", kl_workqueue_requeues(t->q, item));
    } else if (!strcmp(op, "done")) {
        kl_workqueue_done(t->q, item, now);
    } else if (!strcmp(op, "get")) {
        t->getter = get = true;
    } else if (!strcmp(op, "shutdown") && t->priority) {
        t->down = true;
    } else if (!strcmp(op, "shutdown")) {
        kl_workqueue_shut_down(t->q);
        drains = t->draining; /* it ends the wait of a drain */
    } else if (!strcmp(op, "shutdownWithDrain")) {
        kl_workqueue_shut_down(t->q);
        t->draining = s.running > 0;
        drains = !t->draining;
    } else if (strcmp(op, "len")) {
        return kl_fail(err, ORACLE_BAD_CASE, "this case makes no sense: op %s", op);
    }
    serve(t, now, b, "delivered");
    if (get && t->getter)
        oracle_build_bool(b, "blocked", true);
    kl_workqueue_stats_get(t->q, now, &s);
    if (t->draining && !s.running)
        drains = true;
    if (drains) {
        t->draining = false;
        oracle_build_bool(b, "drained", true);
    } else if (t->draining && !strcmp(op, "shutdownWithDrain")) {
        oracle_build_bool(b, "draining", true);
    }
    kl_build_kint(b, "len", (int64_t)length(t, now));
    oracle_build_bool(b, "shuttingDown", down(t));
    kl_build_end(b);
    return KL_OK;
}

static kl_status run(const oracle_case *c, bool priority, kl_builder *b, kl_err *err)
{
    const kl_value *ops = kl_value_get(c->in, "ops");
    kl_status st = KL_OK;
    trace t = {.priority = priority};
    t.q = kl_workqueue_new(&(kl_workqueue_options){.order = priority ? KL_QUEUE_RANK : KL_QUEUE_FIFO,
        .backoff = {KL_MILLISECONDS(kl_value_int_at(c->in, 0, "baseDelayMs", NULL)),
            KL_MILLISECONDS(kl_value_int_at(c->in, 0, "maxDelayMs", NULL)), 0}});
    kl_build_key(b, "results");
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(ops) && !st; i++) {
        const kl_value *op = kl_value_item(ops, i);
        st = operate(&t, op, KL_MICROSECONDS(kl_value_int_at(op, 0, "tUs", NULL)), b, err);
    }
    if (!st)
        kl_build_end(b);
    kl_workqueue_free(t.q);
    return st;
}

static kl_status client_go(const oracle_case *c, kl_builder *b, kl_err *err) { return run(c, false, b, err); }
static kl_status priority(const oracle_case *c, kl_builder *b, kl_err *err) { return run(c, true, b, err); }

static const oracle_op ops[] = {{"client-go", client_go, NULL}, {"priority", priority, NULL}, {0}};
ORACLE_TABLE("workqueue", ops)
