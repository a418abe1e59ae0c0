/* shadows.c - what it costs a live run that a candidate follows: processor time of a key without and with
 * a shadow. What the candidate does on its own thread is not in it.
 *
 *   shadows SCRIPT.lua...     a line of JSON for each; the ways take turns, round after round, so that a
 * drift of the machine hits all alike
 *
 * A worker without a thread runs the same objects again and again, beside a server that answers each write
 * at once. */
#include "run/run_impl.h"
#include "lab/shadow_run.h"
#include "stepped.h"

#define ROUNDS 20 /* of all of them, in one turn of a way */
#define TURNS 9   /* of each way; the least of them counts */

typedef struct way {
    stepped steps;
    kl_witnesses witnesses;
    kl_door *door;
} way;

static uint64_t send(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    (void)arg;
    done(done_arg, KL_OK, 200, op->body, NULL);
    return 0;
}

/* --- what a shadow does beside a live run ------------------------------------------------- */

static void began(void *arg, kl_run *r) { r->observed.shadow = kl_shadow_run_new(r, arg); }
static void saw(void *arg, kl_run *r, const kl_saw *x)
{
    (void)arg;
    kl_shadow_run_saw(r->observed.shadow, r, x);
}
static void asked(void *arg, kl_run *r, const kl_asked *x)
{
    (void)arg;
    kl_shadow_run_asked(r->observed.shadow, r, x);
}
static void answered(void *arg, kl_run *r, const kl_answered *x)
{
    (void)arg;
    kl_shadow_run_answered(r->observed.shadow, r, x);
}

static void ended(void *arg, kl_run *r, const kl_ran *x)
{
    (void)arg, (void)x;
    kl_shadow_run_ended(r->observed.shadow, r);
    kl_shadow_run_free(r->observed.shadow); /* in life the candidate's thread does */
    r->observed.shadow = NULL;
}

static void way_open(way *w, kl_program *p, bool shadow)
{
    if (shadow)
        kl_witnesses_add(&w->witnesses,
            &(kl_witness){
                .began = began, .saw = saw, .asked = asked, .answered = answered, .ended = ended, .arg = w});
    w->door = kl_door_new(&(kl_door_options){.send = send});
    stepped_open(&w->steps, p, &w->witnesses, w->door);
    stepped_work(&w->steps, 2); /* its state is made here */
}

static void way_close(way *w)
{
    stepped_close(&w->steps);
    kl_door_free(w->door);
}

static void bench(const char *path)
{
    kl_program *p = stepped_load(path);
    way ways[2] = {0};
    for (int i = 0; i < 2; i++)
        way_open(&ways[i], p, i == 1);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < 2; i++)
            stepped_measure(&ways[i].steps, ROUNDS);
    for (int i = 0; i < 2; i++)
        way_close(&ways[i]);
    double without = ways[0].steps.best_us, with = ways[1].steps.best_us;
    printf("{\"script\":\"%s\",\"without_us\":%.3f,\"with_us\":%.3f,\"more_us\":%.3f,\"ratio\":%.4f}\n",
        stepped_name(path), without, with, with - without, with / without);
    kl_program_unref(p);
}

int main(int argc, char **argv) { return bench_all(argc, argv, bench); }
