/* stepped.h - a worker without a thread that runs the same objects again and again: what the programs of
 * this directory have in common that measure the time of a key. The real clock; no network, no cache. */
#ifndef BENCH_STEPPED_H
#define BENCH_STEPPED_H

#include "../figures.h"
#include "run/worker.h"
#include "script/program.h"

#define OBJECTS 500 /* keys in the queue at a time */

static const char OBJECT[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"pod-%d\",\"namespace\":\"ns\","
    "\"labels\":{\"app\":\"app-%d\"},"
    "\"resourceVersion\":\"%d\"},\"spec\":{\"nodeName\":\"node-%d\",\"priority\":0,\"serviceAccountName\":"
    "\"default\",\"containers\":[{\"name\":\"main\","
    "\"image\":\"example.com/"
    "main:1\"}]},\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.%d\",\"qosClass\":\"Burstable\"}}";

static const kl_value *objects[OBJECTS];
static char keys[OBJECTS][32];

typedef struct stepped {
    kl_logic logic;
    kl_workqueue *queue;
    kl_worker *worker;
    double best_us; /* processor time of a key, the least of all turns; 0: none yet */
} stepped;

static inline void must(kl_status st, kl_err *err)
{
    if (!st)
        return;
    fprintf(stderr, "%s\n", kl_err_message(err));
    exit(1);
}

/* The script at path; a script that cannot be loaded ends the process. */
static inline kl_program *stepped_load(const char *path)
{
    kl_err err = KL_ERR_INIT;
    kl_program *p = NULL;
    must(lkl_program_load(path, &p, &err), &err);
    return p;
}

/* The file of a path. */
static inline const char *stepped_name(const char *path)
{
    const char *name = strrchr(path, '/');
    return name ? name + 1 : path;
}

/* --- the owner of the worker; arg is the stepped ------------------------------------------- */

static inline kl_logic *stepped_logic(void *arg) { return &((stepped *)arg)->logic; }
static inline void stepped_unref(void *arg, kl_logic *l) { (void)arg, (void)l; }
static inline bool stepped_current(void *arg, const kl_logic *l) { return l == stepped_logic(arg); }
static inline void stepped_event(void *arg, const kl_news *n) { (void)arg, (void)n; }

static inline const kl_value *stepped_object(void *arg, kl_logic *l, const char *key)
{
    (void)arg, (void)l;
    return kl_value_ref(objects[atoi(strrchr(key, '-') + 1)]);
}

/* Scripts write ConfigMaps only. */
static inline const kl_resource *stepped_resource(void *arg, const char *kind)
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

/* --- a worker's turns ---------------------------------------------------------------------- */

/* Runs each object `rounds` times, woken by an event of itself. */
static inline void stepped_work(stepped *w, int rounds)
{
    kl_clock *clock = kl_clock_real();
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < OBJECTS; i++)
            kl_workqueue_add_with(w->queue, keys[i],
                &(kl_add){.cause = kl_cause_of(KL_WHY_CHANGED, objects[i])}, kl_clock_now(clock));
        while (kl_worker_step(w->worker) <= kl_clock_now(clock))
            ;
    }
}

/* A worker for the first controller of p, which its first key opens. Keeps best_us. `witnesses` and `door`
 * may be NULL. */
static inline void stepped_open(stepped *w, kl_program *p, kl_witnesses *witnesses, kl_door *door)
{
    const kl_controller_spec *spec = kl_program_spec(p, 0);
    w->logic = (kl_logic){.program = p, .spec = spec, .generation = 1};
    w->queue = kl_workqueue_new(&(kl_workqueue_options){.forget = kl_cause_forget});
    w->worker = kl_worker_new(&(kl_worker_owner){.logic = stepped_logic,
                                  .logic_unref = stepped_unref,
                                  .is_current = stepped_current,
                                  .object = stepped_object,
                                  .resource = stepped_resource,
                                  .event = stepped_event,
                                  .arg = w,
                                  .name = spec->name,
                                  .queue = w->queue,
                                  .door = door,
                                  .clock = kl_clock_real(),
                                  .witnesses = witnesses},
        1);
}

static inline void stepped_measure(stepped *w, int rounds)
{
    double began = cpu_seconds();
    stepped_work(w, rounds);
    double us = (cpu_seconds() - began) / rounds / OBJECTS * 1e6;
    if (!w->best_us || us < w->best_us)
        w->best_us = us;
}

static inline void stepped_close(stepped *w)
{
    kl_worker_drain(w->worker);
    kl_worker_join(w->worker);
    kl_workqueue_free(w->queue);
}

/* Makes the objects, and calls bench for each argument. The program's exit status. */
static inline int bench_all(int argc, char **argv, void (*bench)(const char *path))
{
    for (int i = 0; i < OBJECTS; i++) {
        char text[sizeof OBJECT + 64];
        kl_err err = KL_ERR_INIT;
        snprintf(text, sizeof text, OBJECT, i, i % 20, i, i % 50, i % 250);
        snprintf(keys[i], sizeof keys[i], "ns/pod-%d", i);
        must(kl_value_decode(text, strlen(text), &objects[i], &err), &err);
    }
    for (int i = 1; i < argc; i++)
        bench(argv[i]);
    for (int i = 0; i < OBJECTS; i++)
        kl_value_unref(objects[i]);
    return 0;
}

#endif
