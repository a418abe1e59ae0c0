/* outlook.h - the state of a controller, for people, and its next steps, for virtual time
 * (manager/turns.h). */
#ifndef KL_CONTROLLER_OUTLOOK_H
#define KL_CONTROLLER_OUTLOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "value/value.h"

/* The first monotonic time of a virtual clock. No machine is up for 36 years, so it differs from real
 * time. */
#define KL_TURNS_EPOCH ((kl_time)1 << 60)

/* Accumulates over controllers: start from zero, with next and next_key set to KL_NEVER. */
typedef struct kl_outlook {
    bool busy;              /* work is under way that needs no virtual time: ask again */
    bool ready;             /* a key may run */
    size_t failing, asleep; /* keys whose last run failed; sleeping runs */
    uint64_t parked;        /* controllers that wait for a missing kind or permission */
    kl_time next;           /* the time of the next step, or KL_NEVER */
    kl_time next_key;       /* when the next key runs or resumes, or KL_NEVER */
    /* the work under way, for messages: "reconcile of web default/a"; NULL: none. Caller frees */
    char *what;
} kl_outlook;

typedef struct kl_controller_state {
    /* resource: its kind; state: "waiting for caches", "waiting for leadership", "running", "paused",
     * "parked", "stopped"; message says why */
    char *name, *resource, *state, *message;
    int generation;
    const kl_value *params; /* kl_params_given; or NULL */
    size_t ready, delayed, running, failing;
    uint64_t runs, errors;
} kl_controller_state;

#endif
