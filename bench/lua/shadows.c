/* shadows.c - what it costs a live run that a candidate follows: processor time of a key without and with
 * a shadow. What the candidate does on its own thread is not in it.
 *
 *   shadows SCRIPT.lua...     a line of JSON for each; the ways take turns, round after round, so that a
 * drift of the machine hits all alike
 *
 * A worker without a thread runs the same objects again and again, beside a server that answers each write
 * at once. */
#include "base/mem.h"
#include "script/program.h"
#include "run/run_impl.h"
#include "lab/shadow_run.h"
#include "stepped.h"

#define ROUNDS 20 /* of all of them, in one turn of a way */
#define TURNS 9   /* of each way; the least of them counts */

typedef struct way {
    kl_logic logic; /* first: stepped.h */
    kl_workqueue *queue;
    kl_worker *worker;
    kl_witnesses witnesses;
    kl_door *door;
    double best_us;
} way;

static const kl_resource *resource(void *arg, const char *kind)
{
    static const kl_resource maps = {.group = "",
        .version = "v1",
        .kind = "ConfigMap",
        .plural = "configmaps",
        .singular = "configmap",
        .namespaced = true};
    (void)arg, (void)kind;
    return &maps;
}

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

static void way_open(way *w, kl_program *p, bool shadow)
{
    *w = (way){.best_us = 1e9, .logic = {.program = p, .spec = kl_program_spec(p, 0), .generation = 1}};
    if (shadow)
        kl_witnesses_add(&w->witnesses,
            &(kl_witness){
                .began = began, .saw = saw, .asked = asked, .answered = answered, .ended = ended, .arg = w});
    w->door = kl_door_new(&(kl_door_options){.send = send});
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
                                  .door = w->door,
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
    kl_door_free(w->door);
}

static void bench(const char *path)
{
    kl_err err = KL_ERR_INIT;
    kl_program *p = NULL;
    way without, with;
    must(lkl_program_load(path, &p, &err), &err);
    way_open(&without, p, false);
    way_open(&with, p, true);
    for (int turn = 0; turn < TURNS; turn++) {
        way_measure(&without);
        way_measure(&with);
    }
    way_close(&without);
    way_close(&with);
    const char *name = strrchr(path, '/');
    printf("{\"script\":\"%s\",\"without_us\":%.3f,\"with_us\":%.3f,\"more_us\":%.3f,\"ratio\":%.4f}\n",
        name ? name + 1 : path, without.best_us, with.best_us, with.best_us - without.best_us,
        with.best_us / without.best_us);
    kl_program_unref(p);
}

int main(int argc, char **argv) { return bench_all(argc, argv, bench); }
