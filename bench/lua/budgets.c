/* budgets.c - what budgets cost while nothing is wrong: processor time of a key, with them, without, and
 * with the hook that stands in for signals.
 *
 *   budgets SCRIPT.lua...     a line of JSON for each; the ways take turns, round after round, so that a
 * drift of the machine hits all alike
 *
 * A worker without a thread runs the same objects again and again; the watchdog's own thread counts as
 * well. "With" is all of it: turns, the watchdog, the memory that is counted. */
#include "state/budget.h"
#include "stepped.h"

#define ROUNDS 40 /* of all of them, in one turn of a way */
#define TURNS 5   /* of each way with the same state */
/* Of each way: where a state's tables and strings fall is luck; the least of all turns counts. */
#define STATES 8

static void bench(const char *path)
{
    static const lkl_budget_way HOW[] = {LKL_BUDGET_NONE, LKL_BUDGET_SIGNALS, LKL_BUDGET_HOOKS};
    kl_program *p = stepped_load(path);
    stepped ways[3] = {0};
    for (int state = 0; state < STATES; state++) {
        for (int i = 0; i < 3; i++) {
            lkl_budget_choose(HOW[i]);
            stepped_open(&ways[i], p, NULL, NULL);
            stepped_work(&ways[i], 2); /* its state is made here */
        }
        for (int turn = 0; turn < TURNS; turn++)
            for (int i = 0; i < 3; i++)
                stepped_measure(&ways[i], ROUNDS);
        for (int i = 0; i < 3; i++)
            stepped_close(&ways[i]);
    }
    printf("{\"script\":\"%s\",\"without_us\":%.3f,\"with_us\":%.3f,\"hook_us\":%.3f,\"ratio\":%.4f,\"hook_"
           "ratio\":%.4f}\n",
        stepped_name(path), ways[0].best_us, ways[1].best_us, ways[2].best_us,
        ways[1].best_us / ways[0].best_us, ways[2].best_us / ways[0].best_us);
    kl_program_unref(p);
}

int main(int argc, char **argv) { return bench_all(argc, argv, bench); }
