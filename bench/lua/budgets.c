/* budgets.c - what budgets cost while nothing is wrong: processor time of a key, with them, without, and
 * with the hook that stands in for signals.
 *
 *   budgets SCRIPT.lua...     a line of JSON for each; the ways take turns, round after round, so that a
 * drift of the machine hits all alike
 *
 * A worker without a thread runs the same objects again and again; the watchdog's own thread counts as
 * well. "With" is all of it: turns, the watchdog, the memory that is counted. */
#include "base/mem.h"
#include "state/budget.h"
#include "script/program.h"
#include "run/worker.h"
#include "stepped.h"

#define ROUNDS 40 /* of all of them, in one turn of a way */
#define TURNS 5   /* of each way with the same state */
#define STATES                                                                                               \
    8 /* of each way: where a state's tables and strings fall is luck; the least of all turns counts */

/* One way: a worker with a state that was made in it. */
typedef struct way {
    kl_logic logic; /* first: stepped.h */
    kl_workqueue *queue;
    kl_worker *worker;
    double best_us;
} way;

static const kl_resource *resource(void *arg, const char *kind)
{
    (void)arg, (void)kind;
    return NULL;
}

static void work(way *w, int rounds)
{
    kl_clock *clock = kl_clock_real();
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < OBJECTS; i++)
            kl_workqueue_add(w->queue, keys[i], kl_clock_now(clock));
        while (kl_worker_step(w->worker) <= kl_clock_now(clock))
            ;
    }
}

static void way_open(way *w, kl_program *p, lkl_budget_way how)
{
    lkl_budget_choose(how);
    if (!w->best_us)
        w->best_us = 1e9;
    w->logic = (kl_logic){.program = p, .spec = kl_program_spec(p, 0), .generation = 1};
    w->queue = kl_workqueue_new(NULL);
    w->worker = kl_worker_new(&(kl_worker_owner){.logic = logic,
                                  .logic_unref = logic_unref,
                                  .is_current = is_current,
                                  .object = object,
                                  .resource = resource,
                                  .event = event,
                                  .arg = w,
                                  .name = "bench",
                                  .queue = w->queue,
                                  .clock = kl_clock_real()},
        1);
    work(w, 2); /* its state is made here */
}

static void way_measure(way *w)
{
    double began = cpu_seconds();
    work(w, ROUNDS);
    double us = (cpu_seconds() - began) / ROUNDS / OBJECTS * 1e6;
    if (us < w->best_us)
        w->best_us = us;
}

static void way_close(way *w)
{
    kl_worker_drain(w->worker);
    kl_worker_join(w->worker);
    kl_workqueue_free(w->queue);
}

static void bench(const char *path)
{
    static const lkl_budget_way HOW[] = {LKL_BUDGET_NONE, LKL_BUDGET_SIGNALS, LKL_BUDGET_HOOKS};
    kl_err err = KL_ERR_INIT;
    kl_program *p = NULL;
    way ways[3] = {0};
    if (lkl_program_load(path, &p, &err)) {
        fprintf(stderr, "%s\n", kl_err_message(&err));
        exit(1);
    }
    for (int state = 0; state < STATES; state++) {
        for (int i = 0; i < 3; i++)
            way_open(&ways[i], p, HOW[i]);
        for (int turn = 0; turn < TURNS; turn++)
            for (int i = 0; i < 3; i++)
                way_measure(&ways[i]);
        for (int i = 0; i < 3; i++)
            way_close(&ways[i]);
    }
    const char *name = strrchr(path, '/');
    printf("{\"script\":\"%s\",\"without_us\":%.3f,\"with_us\":%.3f,\"hook_us\":%.3f,\"ratio\":%.4f,\"hook_"
           "ratio\":%.4f}\n",
        name ? name + 1 : path, ways[0].best_us, ways[1].best_us, ways[2].best_us,
        ways[1].best_us / ways[0].best_us, ways[2].best_us / ways[0].best_us);
    kl_program_unref(p);
}

int main(int argc, char **argv) { return bench_all(argc, argv, bench); }
