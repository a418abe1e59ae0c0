/* table_workqueue.c - traces of client-go's rate-limiting queue. One getter at a time may wait, as in the table. */
#include <string.h>
#include "base/mem.h"
#include "oracle.h"
#include "queue/workqueue.h"

typedef struct trace {
    kl_workqueue *q;
    bool getter;                   /* one waits */
    bool draining;                 /* shutdownWithDrain waits */
} trace;

static void delivered(kl_builder *b, const char *key, const char *item)
{
    kl_build_key(b, key);
    kl_build_array(b);
    kl_build_object(b);
    if (item)
        kl_build_kstr(b, "item", item);
    else
        oracle_build_bool(b, "shutdown", true);
    kl_build_end(b);
    kl_build_end(b);
}

/* The waiting getter gets what there is. */
static void serve(trace *t, kl_time now, kl_builder *b, const char *key)
{
    kl_queue_item it;
    if (!t->getter)
        return;
    if (kl_workqueue_try_get(t->q, now, &it)) {
        delivered(b, key, it.key);
        kl_free(it.key);
        t->getter = false;
    } else if (kl_workqueue_shutting_down(t->q)) {
        delivered(b, key, NULL);
        t->getter = false;
    }
}

static kl_status operate(trace *t, const kl_value *in, kl_time now, kl_builder *b, kl_err *err)
{
    const char *op = kl_value_str_at(in, "op", NULL), *item = kl_value_str_at(in, "item", NULL);
    bool get = false, drains = false;
    kl_workqueue_stats s;
    if (!op)
        return kl_fail(err, ORACLE_BAD_CASE, "this case makes no sense: an operation without op");
    kl_build_object(b);
    serve(t, now, b, "deliveredBefore");
    kl_workqueue_stats_get(t->q, now, &s);
    if (!strcmp(op, "add")) {
        kl_workqueue_add(t->q, item, now);
    } else if (!strcmp(op, "addAfter")) {
        kl_workqueue_add_after(t->q, item, KL_MILLISECONDS(kl_value_int_at(in, 0, "afterMs", NULL)), now);
    } else if (!strcmp(op, "addRateLimited")) {
        kl_workqueue_add_rate_limited(t->q, item, now);
    } else if (!strcmp(op, "forget")) {
        kl_workqueue_forget(t->q, item);
    } else if (!strcmp(op, "numRequeues")) {
        kl_build_kint(b, "n", kl_workqueue_requeues(t->q, item));
    } else if (!strcmp(op, "done")) {
        kl_workqueue_done(t->q, item, now);
    } else if (!strcmp(op, "get")) {
        t->getter = get = true;
    } else if (!strcmp(op, "shutdown")) {
        kl_workqueue_shut_down(t->q);
        drains = t->draining;                   /* it ends the wait of a drain */
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
    kl_build_kint(b, "len", (int64_t)s.ready);
    oracle_build_bool(b, "shuttingDown", kl_workqueue_shutting_down(t->q));
    kl_build_end(b);
    return KL_OK;
}

static kl_status client_go(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *ops = kl_value_get(c->in, "ops");
    kl_status st = KL_OK;
    trace t = {0};
    t.q = kl_workqueue_new(&(kl_workqueue_options){ .backoff = {
        KL_MILLISECONDS(kl_value_int_at(c->in, 0, "baseDelayMs", NULL)), KL_MILLISECONDS(kl_value_int_at(c->in, 0, "maxDelayMs", NULL)), 0 } });
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

static const oracle_op ops[] = { { "client-go", client_go, NULL }, { 0 } };
ORACLE_TABLE("workqueue", ops)
