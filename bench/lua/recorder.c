/* recorder.c - what the flight recorder costs: processor time of a key with it and without.
 *
 *   recorder SCRIPT.lua...    a line of JSON for each; the two take turns, so that a drift of the machine
 * hits both alike
 *
 * A worker without a thread runs the same objects again and again, each woken by an event of itself. Both
 * have the tally, which is always there. */
#include "observe/flight.h"
#include "observe/tally.h"
#include "stepped.h"

#define ROUNDS 40 /* of all of them, in one turn of a way */
#define TURNS 5   /* of each way with the same state */
/* Of each way: where a state's tables and strings fall is luck; the least of all turns counts. */
#define STATES 8

typedef struct way {
    stepped steps;
    kl_tally *tally;
    kl_flight *flight; /* NULL: without */
    kl_witnesses witnesses;
} way;

static void way_open(way *w, kl_program *p, bool with)
{
    w->tally = kl_tally_new();
    w->flight = with ? kl_flight_new(KL_FLIGHT_BYTES, kl_clock_real()) : NULL;
    w->witnesses = (kl_witnesses){0};
    kl_witness tally = kl_tally_witness(w->tally);
    kl_witnesses_add(&w->witnesses, &tally);
    if (with) {
        kl_witness flight = kl_flight_witness(w->flight);
        kl_witnesses_add(&w->witnesses, &flight);
    }
    stepped_open(&w->steps, p, &w->witnesses, NULL);
    stepped_work(&w->steps, 2); /* its state is made here */
}

static void way_close(way *w)
{
    stepped_close(&w->steps);
    kl_flight_free(w->flight);
    kl_tally_free(w->tally);
}

static void bench(const char *path)
{
    kl_program *p = stepped_load(path);
    way ways[2] = {0};
    for (int state = 0; state < STATES; state++) {
        for (int i = 0; i < 2; i++)
            way_open(&ways[i], p, i == 1);
        for (int turn = 0; turn < TURNS; turn++)
            for (int i = 0; i < 2; i++)
                stepped_measure(&ways[i].steps, ROUNDS);
        for (int i = 0; i < 2; i++)
            way_close(&ways[i]);
    }
    double without = ways[0].steps.best_us, with = ways[1].steps.best_us;
    printf("{\"script\":\"%s\",\"without_us\":%.3f,\"with_us\":%.3f,\"ratio\":%.4f}\n", stepped_name(path),
        without, with, with / without);
    kl_program_unref(p);
}

int main(int argc, char **argv) { return bench_all(argc, argv, bench); }
