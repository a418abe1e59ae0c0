/* controller.h - one controller: its queue, its workers, its present generation and perhaps the next one.
 *
 *   staged --synced--> published --leading--> running --drain--> stopped
 *
 * A next generation is staged beside the running one and takes over when its caches are synced; queue,
 * backoff and workers stay. All functions run on the manager's loop unless stated otherwise. */
#ifndef KL_CONTROLLER_CONTROLLER_H
#define KL_CONTROLLER_CONTROLLER_H

#include "controller/office.h"
#include "controller/outlook.h"
#include "controller/wiring.h"

typedef struct kl_controller kl_controller;

typedef struct kl_controller_env { /* the parts of the manager that all its controllers use */
    kl_client *client;
    kl_clock *clock;
    kl_loop *loop, *mapper;
    kl_caches *caches;
    kl_door *door;
    const kl_fleet *fleet; /* the managers of all clusters; NULL: there is one cluster */
    size_t cluster;
    kl_offices *offices; /* NULL: controllers work in every replica */
    kl_metrics *metrics;
    int workers;
    bool workers_forced, trace_requests;
    bool never_slow_down;       /* keys in a write loop are neither reported nor slowed down */
    bool quiet;                 /* their starts are logged at debug */
    kl_reload_keys reload_keys; /* the default if the spec sets none */
    kl_time rollback_window;    /* see kl_probation_options */
    /* On the loop: a generation does much worse than the previous one. May be NULL. */
    void (*broken)(void *arg, const char *controller, int generation, const char *why);
    void *broken_arg;
    kl_time reload_deadline;                    /* of runs on an old generation; 0: see kl_worker_owner */
    void (*event)(void *arg, const kl_news *n); /* any thread */
    void *event_arg;
    kl_commons *commons;           /* the memory of scripts */
    bool turns;                    /* see manager/turns.h */
    const kl_imagination *imagine; /* simulates writes instead of sending them; NULL: they are sent */
    struct kl_flight *flight;      /* gets events that enqueued no key; may be NULL */
    const kl_witnesses *witnesses; /* observers of runs; may be NULL */
    void (*ran)(void *arg, const kl_ran *r); /* on worker threads; may be NULL */
    void *ran_arg;
    /* Webhooks only: the queue has requests, not keys of objects. Any thread; NULL for controllers. */
    const kl_value *(*object)(void *arg, const char *key);
    void (*answer)(void *arg, const char *key, const kl_value *decision);
    /* false: the request has no trace, and *out is unchanged */
    bool (*trace)(void *arg, const char *key, kl_trace *out);
    void *hook_arg;
    void (*changed)(void *arg); /* on the loop: a worker has ended */
    void *changed_arg;
} kl_controller_env;

kl_controller *kl_controller_new(const kl_controller_env *env, const kl_controller_spec *spec);
const char *kl_controller_name(const kl_controller *c);
const char *kl_controller_resource(const kl_controller *c);
void kl_controller_stage(kl_controller *c, kl_program *p, size_t index, int generation);
/* Publishes the staged generation when it is ready; starts workers when its office is open, and ends them
 * when it is closed. It never waits: `changed` is called when another step is due. A drained controller
 * aborts its runs when its office has closed. */
void kl_controller_advance(kl_controller *c);
/* Shutdown: no new keys; then abort the remaining runs; then join. */
void kl_controller_drain(kl_controller *c);
void kl_controller_wait(kl_controller *c); /* any thread, after drain: until its workers have ended */
void kl_controller_abort(kl_controller *c);
void kl_controller_join(kl_controller *c);
/* after join; the memory stays until the mapper has handled its last event */
void kl_controller_free(kl_controller *c);
bool kl_controller_published(kl_controller *c); /* a generation has taken over */
int kl_controller_generation(kl_controller *c); /* the published generation; 0: none */
size_t kl_controller_slowed(kl_controller *c);  /* keys in a write loop, which are slowed down */
bool kl_controller_ended(kl_controller *c);     /* drained, and all workers have ended */
/* Paused, its workers take no keys; running keys continue. */
void kl_controller_pause(kl_controller *c, bool pause);
bool kl_controller_paused(const kl_controller *c);
/* Sets params of its present generation: `wish` over the present ones (run/params.h); *out has all of them, a
 * new reference. KL_EAGAIN while a new generation is loading. */
KL_NODISCARD kl_status kl_controller_set_params(
    kl_controller *c, const kl_value *wish, const kl_value **out, kl_err *err);
/* Runs a key now without writing anything (controller/rehearse.h); done is called once, on a thread of its
 * own. KL_EAGAIN: not now. */
KL_NODISCARD kl_status kl_controller_rehearse(kl_controller *c, const char *key,
    void (*done)(void *arg, const kl_value *report), void *arg, kl_err *err);
/* The parts of a controller, for control/why.c: borrowed while on the loop, but for the wiring, which is a
 * reference. */
typedef struct kl_controller_look {
    const char *name, *resource;
    kl_workqueue *queue;
    kl_own_writes *own_writes;
    /* the present wiring, or the first one while it loads; NULL: none */
    kl_wiring *wiring;
    bool published; /* `wiring` is the present one */
    kl_gate *gate;  /* NULL: all keys are ours */
    const kl_office *office;
    struct kl_flight *flight; /* or NULL */
    kl_clock *clock;
    bool working, paused;
} kl_controller_look;
void kl_controller_look_at(kl_controller *c, kl_controller_look *out);
void kl_controller_state_get(kl_controller *c, kl_controller_state *out);
bool kl_controller_idle(kl_controller *c);
kl_workqueue *kl_controller_queue(kl_controller *c);
/* With turns: kl_controller_outlook adds the controller's next steps to *o; kl_controller_turn lets it take
 * one key. On the loop. */
void kl_controller_outlook(kl_controller *c, kl_outlook *o);
void kl_controller_turn(kl_controller *c);
void kl_controller_wake(kl_controller *c); /* the clock was moved */

#endif
