/* keys.c - what a key costs on a worker, script by script: processor time, and how long one start takes at
 * the 99th percentile.
 *
 *   keys SCRIPT.lua...        each beside a program in C that does nothing, which is what queue and worker
 * cost by themselves
 *
 * A worker without a thread runs the same objects round after round. No network, no cache: bench/run.py
 * measures those. */
#include "base/mem.h"
#include "stepped.h"

#define ROUNDS 200
#define RUNS 5 /* the least counts */

typedef struct bench {
    kl_program program; /* first: stands before the script's and takes the time of each start */
    kl_program *script; /* NULL: nothing is done */
    kl_clock *clock;
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

static int by_value(const void *a, const void *b)
{
    kl_time x = *(const kl_time *)a, y = *(const kl_time *)b;
    return x < y ? -1 : x > y;
}

/* Of `path`, or of the program that does nothing. */
static void measure(bench *b, const char *path)
{
    static const kl_program_ops ops = {.open = open_state,
        .close = close_state,
        .start = start,
        .resume = resume,
        .rest = rest,
        .abandon = abandon};
    static kl_controller_spec spec = {.name = "bench", .resource = "v1/Pod"};
    static double idle_us;
    stepped w = {0};
    b->program = (kl_program){.ops = &ops, .name = "bench", .specs = &spec, .n_specs = 1, .generation = 1};
    b->script = path ? stepped_load(path) : NULL;
    stepped_open(&w, &b->program, NULL, NULL);
    for (int run = 0; run < RUNS; run++) {
        b->n_took = b->n_rests = 0;
        stepped_measure(&w, ROUNDS);
    }
    if (!path)
        idle_us = w.best_us;
    qsort(b->took, b->n_took, sizeof *b->took, by_value);
    printf("%-36s %8.2f us a key, %8.2f over C; a start: p50 %6.2f  p99 %6.2f  p99.9 %6.2f  most %7.2f us\n",
        path ? path : "a program in C that does nothing", w.best_us, w.best_us - idle_us,
        (double)b->took[b->n_took / 2] / 1e3, (double)b->took[b->n_took / 100 * 99] / 1e3,
        (double)b->took[b->n_took / 1000 * 999] / 1e3, (double)b->took[b->n_took - 1] / 1e3);
    if (b->n_rests) {
        qsort(b->rests, b->n_rests, sizeof *b->rests, by_value);
        printf("%-36s %8zu rests in %zu keys; a rest: p50 %6.2f  p99 %6.2f  most %7.2f us\n", "", b->n_rests,
            b->n_took, (double)b->rests[b->n_rests / 2] / 1e3, (double)b->rests[b->n_rests * 99 / 100] / 1e3,
            (double)b->rests[b->n_rests - 1] / 1e3);
    }
    stepped_close(&w);
    if (b->script)
        kl_program_unref(b->script);
}

static bench measured;

static void bench_script(const char *path)
{
    if (!measured.took) {
        measured.cap = (size_t)OBJECTS * ROUNDS;
        measured.clock = kl_clock_real();
        measured.took = kl_new_array(kl_time, measured.cap);
        measured.rests = kl_new_array(kl_time, measured.cap);
        printf("\na key, through queue and worker\n");
        measure(&measured, NULL);
    }
    measure(&measured, path);
}

int main(int argc, char **argv)
{
    int st = bench_all(argc, argv, bench_script);
    kl_free(measured.took);
    kl_free(measured.rests);
    return st;
}
