/* records.c - what it costs to take runs down, and how fast they run again: processor time of a key
 * without and with --record, and of its replay.
 *
 *   records SCRIPT.lua...     a line of JSON for each; the ways take turns, round after round, so that a
 * drift of the machine hits all alike
 *
 * A worker without a thread runs the same objects again and again, as new ones: each is written with its
 * run, as the event that woke it would be. */
#include <unistd.h>

#include "base/mem.h"
#include "script/program.h"
#include "lab/record.h"
#include "lab/replay.h"
#include "run/worker.h"
#include "stepped.h"

#define ROUNDS 20 /* of all of them, in one turn of a way */
#define TURNS 9   /* of each way; the least of them counts */

typedef struct way {
    kl_logic logic; /* first: stepped.h */
    kl_workqueue *queue;
    kl_worker *worker;
    kl_witnesses witnesses;
    kl_record *record; /* NULL: nothing is taken down */
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

static void must(kl_status st, kl_err *err)
{
    if (!st)
        return;
    fprintf(stderr, "%s\n", kl_err_message(err));
    exit(1);
}

static void way_open(way *w, kl_program *p, const char *tape)
{
    kl_err err = KL_ERR_INIT;
    *w = (way){.best_us = 1e9, .logic = {.program = p, .spec = kl_program_spec(p, 0), .generation = 1}};
    if (tape) {
        must(kl_record_new(&(kl_record_options){.path = tape, .max = (size_t)4 << 30}, &w->record, &err),
            &err);
        kl_witnesses_add(&w->witnesses, kl_record_witness(w->record));
    }
    w->queue = kl_workqueue_new(NULL);
    w->worker = kl_worker_new(&(kl_worker_owner){.logic = logic,
                                  .logic_unref = logic_unref,
                                  .is_current = is_current,
                                  .object = object,
                                  .resource = resource,
                                  .event = event,
                                  .arg = w,
                                  .name = kl_program_spec(p, 0)->name,
                                  .queue = w->queue,
                                  .clock = kl_clock_real(),
                                  .witnesses = &w->witnesses},
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
    kl_record_free(w->record);
}

static double replay_us(kl_program *p, const char *tape, double *bytes)
{
    kl_err err = KL_ERR_INIT;
    kl_past *past;
    kl_replay_sum sum;
    double began = cpu_seconds();
    must(kl_past_read(tape, &past, &err), &err);
    must(kl_replay(&(kl_replay_options){.past = past, .programs = &p, .n_programs = 1}, &sum, &err), &err);
    if (sum.same != sum.runs) {
        fprintf(stderr, "%zu of %zu runs are the same\n", sum.same, sum.runs);
        exit(1);
    }
    double us = (cpu_seconds() - began) / (double)sum.runs * 1e6;
    FILE *f = fopen(tape, "rb");
    fseek(f, 0, SEEK_END);
    *bytes = (double)ftell(f) / (double)sum.runs;
    fclose(f);
    kl_replay_sum_fini(&sum);
    kl_past_free(past);
    return us;
}

static void bench(const char *path)
{
    kl_err err = KL_ERR_INIT;
    kl_program *p = NULL;
    way without, with;
    char *tape = kl_sprintf("/tmp/records-%d.tape", (int)getpid());
    must(lkl_program_load(path, &p, &err), &err);
    way_open(&without, p, NULL);
    way_open(&with, p, tape);
    for (int turn = 0; turn < TURNS; turn++) {
        way_measure(&without);
        way_measure(&with);
    }
    way_close(&without);
    way_close(&with);
    double bytes, again = replay_us(p, tape, &bytes);
    const char *name = strrchr(path, '/');
    printf("{\"script\":\"%s\",\"without_us\":%.3f,\"with_us\":%.3f,\"more_us\":%.3f,\"ratio\":%.4f,"
           "\"bytes\":%.0f,\"replay_us\":%.3f}\n",
        name ? name + 1 : path, without.best_us, with.best_us, with.best_us - without.best_us,
        with.best_us / without.best_us, bytes, again);
    unlink(tape);
    kl_free(tape);
    kl_program_unref(p);
}

int main(int argc, char **argv) { return bench_all(argc, argv, bench); }
