/* isolated.c - what isolation costs: a key whose Lua runs in this process, and one whose Lua runs in a
 * process of its own.
 *
 *   isolated SCRIPT.lua...    a line of JSON for each; the ways take turns, so that a drift of the machine
 *                             hits both alike
 *
 * A worker without a thread runs the same objects again and again, one run at a time. Processor time is that
 * of this process and of its isolated one. The time of a key by the wall has two switches between them, so
 * that with a second processor it is a wake-up more. A start is the process, its jail and the script loaded
 * there. */
#include <unistd.h>

#include "state/budget.h"
#include "script/isolate.h"
#include "stepped.h"

#define ROUNDS 10 /* of all objects, in one turn of a way */
#define TURNS 5   /* of each way with the same state; the least of all turns counts */
#define STATES 4  /* of each way */

typedef struct way {
    stepped steps;
    pid_t child; /* or 0 */
    double cpu_us, wall_us, start_ms, child_mib;
} way;

static double now(void) { return (double)kl_clock_now(kl_clock_real()) / 1e9; }

static double cpu_of(const way *w)
{
    return cpu_seconds() + (w->child ? (double)kl_clock_cpu_of_process(w->child) / 1e9 : 0);
}

/* Of the one process that this one has begun. */
static double child_number(const char *path, const char *format)
{
    double n = 0;
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, format, &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

static void least(double *best, double x)
{
    if (!*best || x < *best)
        *best = x;
}

static void way_open(way *w, kl_program *p)
{
    stepped_open(&w->steps, p, NULL, NULL);
    double began = now();
    kl_workqueue_add(w->steps.queue, keys[0], kl_clock_now(kl_clock_real()));
    while (kl_worker_step(w->steps.worker) <= kl_clock_now(kl_clock_real()))
        ; /* its state is made here */
    least(&w->start_ms, (now() - began) * 1e3);
    stepped_work(&w->steps, 2);
}

static void way_measure(way *w)
{
    double cpu = cpu_of(w), wall = now();
    stepped_work(&w->steps, ROUNDS);
    least(&w->wall_us, (now() - wall) / ROUNDS / OBJECTS * 1e6);
    least(&w->cpu_us, (cpu_of(w) - cpu) / ROUNDS / OBJECTS * 1e6);
}

static void way_close(way *w)
{
    if (w->child) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/statm", (int)w->child);
        double mib = child_number(path, "%*f %lf") * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
        if (mib > w->child_mib)
            w->child_mib = mib;
    }
    stepped_close(&w->steps);
}

/* Which way a program goes is settled when it is loaded. */
static kl_program *here[16], *there[16];

static void bench(const char *path)
{
    static size_t n;
    way ways[2] = {0};
    for (int state = 0; state < STATES; state++) {
        way_open(&ways[0], here[n]);
        way_open(&ways[1], there[n]);
        ways[1].child = (pid_t)child_number("/proc/thread-self/children", "%lf");
        for (int turn = 0; turn < TURNS; turn++)
            for (int i = 0; i < 2; i++)
                way_measure(&ways[i]);
        for (int i = 0; i < 2; i++)
            way_close(&ways[i]);
    }
    printf("{\"script\":\"%s\",\"here_us\":%.3f,\"there_us\":%.3f,\"more_us\":%.3f,\"here_wall_us\":%.3f,"
           "\"there_wall_us\":%.3f,\"here_ms\":%.3f,\"there_ms\":%.3f,\"child_mib\":%.2f}\n",
        stepped_name(path), ways[0].cpu_us, ways[1].cpu_us, ways[1].cpu_us - ways[0].cpu_us, ways[0].wall_us,
        ways[1].wall_us, ways[0].start_ms, ways[1].start_ms, ways[1].child_mib);
    kl_program_unref(here[n]);
    kl_program_unref(there[n++]);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], LKL_ISOLATE_WORD))
        return lkl_isolate_child();
    if (argc > 17)
        return 2;
    lkl_budget_choose(LKL_BUDGET_SIGNALS);
    lkl_isolate_offer();
    for (int i = 1; i < argc; i++)
        here[i - 1] = stepped_load(argv[i]);
    lkl_isolate_all();
    for (int i = 1; i < argc; i++)
        there[i - 1] = stepped_load(argv[i]);
    return bench_all(argc, argv, bench);
}
