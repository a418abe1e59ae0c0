/* wq.c - the work queue alone: 1M distinct keys, every other one added twice, handed out and done. As
 * bin/wq-go.
 *
 *   wq [-q fair|fifo|rank] [-n KEYS] [-workers W] [-concurrent]
 *
 * One line of JSON. -concurrent: the workers run while keys are added. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/mem.h"
#include "base/sync.h"
#include "figures.h"
#include "queue/workqueue.h"

typedef struct bench {
    kl_workqueue *q;
    long n, want;
    atomic_long got;
    kl_mutex mu;
    kl_cond cond;
    long news; /* under mu */
} bench;

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }
static double seconds(kl_time t) { return (double)t / 1e9; }

static void wake(void *arg)
{
    bench *b = arg;
    kl_lock(&b->mu);
    b->news++;
    kl_cond_broadcast(&b->cond);
    kl_unlock(&b->mu);
}

static void work(void *arg)
{
    bench *b = arg;
    kl_queue_item it;
    for (;;) {
        kl_lock(&b->mu);
        long seen = b->news;
        kl_unlock(&b->mu);
        for (kl_time t; kl_workqueue_try_get(b->q, t = now(), &it);) {
            kl_workqueue_finish(b->q, &it, t);
            atomic_fetch_add(&b->got, 1);
        }
        if (kl_workqueue_drained(b->q))
            return;
        kl_lock(&b->mu);
        while (b->news == seen)
            kl_cond_wait(&b->cond, &b->mu);
        kl_unlock(&b->mu);
    }
}

int main(int argc, char **argv)
{
    static const char *const orders[] = {"fair", "fifo", "rank"};
    bench b = {.n = 1000000};
    int workers = 1, order = 0;
    bool concurrent = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-n") && i + 1 < argc)
            b.n = atol(argv[++i]);
        else if (!strcmp(argv[i], "-workers") && i + 1 < argc)
            workers = atoi(argv[++i]);
        else if (!strcmp(argv[i], "-concurrent"))
            concurrent = true;
        else if (!strcmp(argv[i], "-q") && i + 1 < argc && ++i)
            for (order = 2; order > 0 && strcmp(argv[i], orders[order]);)
                order--;
    }
    char(*keys)[64] = kl_zalloc_array(sizeof *keys, (size_t)b.n);
    for (long i = 0; i < b.n; i++)
        snprintf(keys[i], sizeof *keys, "namespace-%02ld/deployment-name-%06lx-%05ld", i % 50,
            i * 7919 % (1 << 24), i);
    kl_mutex_init(&b.mu);
    kl_cond_init(&b.cond);
    b.q = kl_workqueue_new(
        &(kl_workqueue_options){.order = (kl_queue_order)order, .wake = wake, .wake_arg = &b});
    kl_thread **threads = kl_new_array(kl_thread *, workers);
    long adds = 0;
    kl_time t0 = now();
    double c0 = cpu_seconds();
    for (int w = 0; w < workers && concurrent; w++)
        threads[w] = kl_thread_start("worker", work, &b);
    for (long i = 0; i < b.n; i++) {
        kl_time t = now();
        kl_workqueue_add(b.q, keys[i], t);
        adds++;
        if (i % 2) { /* every other key a second time, after others were added */
            kl_workqueue_add(b.q, keys[i / 2], t);
            adds++;
        }
    }
    kl_time t1 = now();
    for (int w = 0; w < workers && !concurrent; w++)
        threads[w] = kl_thread_start("worker", work, &b);
    kl_workqueue_shut_down(b.q);
    for (int w = 0; w < workers; w++)
        kl_thread_join(threads[w]);
    kl_time t2 = now();
    double c = cpu_seconds() - c0;
    long got = atomic_load(&b.got);
    printf("{\"peer\":\"kubelua-%s\",\"workers\":%d,\"concurrent\":%s,\"adds\":%ld,\"gets\":%ld,\"adds_per_"
           "s\":%.0f,\"getdones_per_s\":%.0f,"
           "\"total_wall_s\":%.4f,\"cpu_s\":%.4f,\"ns_cpu_per_key\":%.0f}\n",
        orders[order], workers, concurrent ? "true" : "false", adds, got, (double)adds / seconds(t1 - t0),
        (double)got / seconds(t2 - t1), seconds(t2 - t0), c, c / (double)b.n * 1e9);
    kl_workqueue_free(b.q);
    kl_cond_fini(&b.cond);
    kl_mutex_fini(&b.mu);
    kl_free(threads);
    kl_free(keys);
    return got < b.n;
}
