/* keys.c - what a key costs on a worker, script by script: processor time, and how long one start takes at
 * the 99th percentile.
 *
 *   keys SCRIPT.lua...        each beside a program in C that does nothing, which is what queue and worker
 * cost by themselves
 *
 * A worker without a thread runs the same objects round after round. No network, no cache: bench/run.py
 * measures those. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "script/program.h"
#include "run/worker.h"

#define OBJECTS 500 /* keys in the queue at a time */
#define ROUNDS 200
#define RUNS 5 /* the least counts */

static const char OBJECT[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"pod-%d\",\"namespace\":\"ns\","
    "\"labels\":{\"app\":\"app-%d\"},"
    "\"resourceVersion\":\"%d\"},\"spec\":{\"nodeName\":\"node-%d\",\"priority\":0,\"serviceAccountName\":"
    "\"default\",\"containers\":[{\"name\":\"main\","
    "\"image\":\"example.com/"
    "main:1\"}]},\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.%d\",\"qosClass\":\"Burstable\"}}";

typedef struct bench {
    kl_program program; /* first: stands before the script's and takes the time of each start */
    kl_program *script; /* NULL: nothing is done */
    kl_logic logic;
    kl_clock *clock;
    kl_workqueue *queue;
    const kl_value *objects[OBJECTS];
    char keys[OBJECTS][32];
    kl_time *took, *rests; /* of each start; of each rest that did something */
    size_t n_took, n_rests, cap;
} bench;

static bench *of(kl_program *p) { return (bench *)(void *)p; }

typedef struct state {
    bench *b;
    void *inner;
} state;

static void *open_state(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    state *s = kl_new(state);
    s->b = of(p);
    if (s->b->script && !(s->inner = s->b->script->ops->open(s->b->script, controller, stop, err))) {
        kl_free(s);
        return NULL;
    }
    return s;
}

static void close_state(void *arg)
{
    state *s = arg;
    if (s->inner)
        s->b->script->ops->close(s->inner);
    kl_free(s);
}

static kl_run_state start(void *arg, kl_run *run)
{
    state *s = arg;
    kl_time began = kl_clock_now(s->b->clock);
    kl_run_state st = KL_RUN_DONE;
    if (s->inner)
        st = s->b->script->ops->start(s->inner, run);
    else
        kl_run_finish(run, KL_RESULT_DONE, 0, NULL, NULL);
    if (s->b->n_took < s->b->cap)
        s->b->took[s->b->n_took++] = kl_clock_now(s->b->clock) - began;
    return st;
}

static kl_run_state resume(void *arg, kl_run *run)
{
    state *s = arg;
    return s->b->script->ops->resume(s->inner, run);
}

static void abandon(void *arg, kl_run *run)
{
    state *s = arg;
    s->b->script->ops->abandon(s->inner, run);
}

static bool rest(void *arg, bool idle)
{
    state *s = arg;
    if (!s->inner)
        return false;
    kl_time began = kl_clock_now(s->b->clock);
    bool did = s->b->script->ops->rest(s->inner, idle);
    kl_time took = kl_clock_now(s->b->clock) - began;
    if (did && s->b->n_rests < s->b->cap)
        s->b->rests[s->b->n_rests++] = took;
    return did;
}

static kl_logic *logic(void *arg) { return &((bench *)arg)->logic; }
static void logic_unref(void *arg, kl_logic *l) { (void)arg, (void)l; }
static bool is_current(void *arg, const kl_logic *l) { return l == &((bench *)arg)->logic; }
static const kl_value *object(void *arg, kl_logic *l, const char *key)
{
    (void)l;
    return kl_value_ref(((bench *)arg)->objects[atoi(strrchr(key, '-') + 1)]);
}
static const kl_resource *resource(void *arg, const char *kind)
{
    (void)arg, (void)kind;
    return NULL;
}
static void event(void *arg, const kl_news *n) { (void)arg, (void)n; }

static double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec)
        + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static int by_value(const void *a, const void *b)
{
    kl_time x = *(const kl_time *)a, y = *(const kl_time *)b;
    return x < y ? -1 : x > y;
}

static double measure(bench *b, kl_worker *w)
{
    double best = 1e9;
    for (int run = 0; run < RUNS; run++) {
        b->n_took = b->n_rests = 0;
        double began = cpu_seconds();
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < OBJECTS; i++)
                kl_workqueue_add(b->queue, b->keys[i], kl_clock_now(b->clock));
            while (kl_worker_step(w) <= kl_clock_now(b->clock))
                ;
        }
        double us = (cpu_seconds() - began) / ROUNDS / OBJECTS * 1e6;
        if (us < best)
            best = us;
    }
    return best;
}

static void bench_script(bench *b, const char *path, double *idle_us)
{
    static const kl_program_ops ops = {.open = open_state,
        .close = close_state,
        .start = start,
        .resume = resume,
        .rest = rest,
        .abandon = abandon};
    static kl_controller_spec spec = {.name = "bench", .resource = "v1/Pod"};
    kl_err err = KL_ERR_INIT;
    b->program = (kl_program){.ops = &ops, .name = "bench", .specs = &spec, .n_specs = 1, .generation = 1};
    b->script = NULL;
    if (path && lkl_program_load(path, &b->script, &err)) {
        fprintf(stderr, "%s\n", kl_err_message(&err));
        exit(1);
    }
    b->logic = (kl_logic){.program = &b->program, .spec = &spec, .generation = 1};
    kl_worker_owner owner = {.logic = logic,
        .logic_unref = logic_unref,
        .is_current = is_current,
        .object = object,
        .resource = resource,
        .event = event,
        .arg = b,
        .name = "bench",
        .queue = b->queue,
        .clock = b->clock};
    kl_worker *w = kl_worker_new(&owner, 1);
    double us = measure(b, w);
    if (!path)
        *idle_us = us;
    qsort(b->took, b->n_took, sizeof *b->took, by_value);
    printf("%-36s %8.2f us a key, %8.2f over C; a start: p50 %6.2f  p99 %6.2f  p99.9 %6.2f  most %7.2f us\n",
        path ? path : "a program in C that does nothing", us, us - *idle_us,
        (double)b->took[b->n_took / 2] / 1e3, (double)b->took[b->n_took / 100 * 99] / 1e3,
        (double)b->took[b->n_took / 1000 * 999] / 1e3, (double)b->took[b->n_took - 1] / 1e3);
    if (b->n_rests) {
        qsort(b->rests, b->n_rests, sizeof *b->rests, by_value);
        printf("%-36s %8zu rests in %zu keys; a rest: p50 %6.2f  p99 %6.2f  most %7.2f us\n", "", b->n_rests,
            b->n_took, (double)b->rests[b->n_rests / 2] / 1e3, (double)b->rests[b->n_rests * 99 / 100] / 1e3,
            (double)b->rests[b->n_rests - 1] / 1e3);
    }
    kl_worker_drain(w);
    kl_worker_join(w);
    if (b->script)
        kl_program_unref(b->script);
}

int main(int argc, char **argv)
{
    bench b = {.clock = kl_clock_real(), .cap = (size_t)OBJECTS * ROUNDS};
    b.took = kl_new_array(kl_time, b.cap);
    b.rests = kl_new_array(kl_time, b.cap);
    b.queue = kl_workqueue_new(NULL);
    for (int i = 0; i < OBJECTS; i++) {
        char text[sizeof OBJECT + 64];
        kl_err err = KL_ERR_INIT;
        snprintf(text, sizeof text, OBJECT, i, i % 20, i, i % 50, i % 250);
        snprintf(b.keys[i], sizeof b.keys[i], "ns/pod-%d", i);
        if (kl_value_decode(text, strlen(text), &b.objects[i], &err))
            return 1;
    }
    double idle_us = 0;
    printf("\na key, through queue and worker\n");
    bench_script(&b, NULL, &idle_us);
    for (int i = 1; i < argc; i++)
        bench_script(&b, argv[i], &idle_us);
    for (int i = 0; i < OBJECTS; i++)
        kl_value_unref(b.objects[i]);
    kl_workqueue_free(b.queue);
    kl_free(b.took);
    kl_free(b.rests);
    return 0;
}
