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
#include "lab/record.h"
#include "lab/replay.h"
#include "stepped.h"

#define ROUNDS 20 /* of all of them, in one turn of a way */
#define TURNS 9   /* of each way; the least of them counts */

typedef struct way {
    stepped steps;
    kl_witnesses witnesses;
    kl_record *record; /* NULL: nothing is taken down */
} way;

static void way_open(way *w, kl_program *p, const char *tape)
{
    kl_err err = KL_ERR_INIT;
    if (tape) {
        must(kl_record_new(&(kl_record_options){.path = tape, .max = (size_t)4 << 30}, &w->record, &err),
            &err);
        kl_witnesses_add(&w->witnesses, kl_record_witness(w->record));
    }
    stepped_open(&w->steps, p, &w->witnesses, NULL);
    stepped_work(&w->steps, 2); /* its state is made here */
}

static void way_close(way *w)
{
    stepped_close(&w->steps);
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
    kl_program *p = stepped_load(path);
    way ways[2] = {0};
    char *tape = kl_sprintf("/tmp/records-%d.tape", (int)getpid());
    for (int i = 0; i < 2; i++)
        way_open(&ways[i], p, i ? tape : NULL);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < 2; i++)
            stepped_measure(&ways[i].steps, ROUNDS);
    for (int i = 0; i < 2; i++)
        way_close(&ways[i]);
    double without = ways[0].steps.best_us, with = ways[1].steps.best_us;
    double bytes, again = replay_us(p, tape, &bytes);
    printf("{\"script\":\"%s\",\"without_us\":%.3f,\"with_us\":%.3f,\"more_us\":%.3f,\"ratio\":%.4f,"
           "\"bytes\":%.0f,\"replay_us\":%.3f}\n",
        stepped_name(path), without, with, with - without, with / without, bytes, again);
    unlink(tape);
    kl_free(tape);
    kl_program_unref(p);
}

int main(int argc, char **argv) { return bench_all(argc, argv, bench); }
