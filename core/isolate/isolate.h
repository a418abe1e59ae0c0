/* isolate.h - a program's state as a process of its own: the runtime's side of isolate/far.h.
 *
 * The thread that owns the state starts, serves and ends the process, with the kl_run and kl_reader of the
 * turn. The process is not trusted: after an invalid message, or a turn that does not end, it is killed. When
 * it ends, for whatever reason, its runs fail (KL_RESULT_ERROR, so that their keys are retried with backoff),
 * the state is worn, and the worker opens another one. */
#ifndef KL_ISOLATE_ISOLATE_H
#define KL_ISOLATE_ISOLATE_H

#include "run/reconciler.h"

typedef struct kl_isolate_order { /* borrowed for the call; `program` while the state lives */
    kl_program *program;
    size_t controller;
    const char *path; /* the executable, and its arguments, argv[0] first */
    const char *const *argv;
    const kl_value *boot; /* the first message that it gets */
    /* Once true, a running turn ends with KL_ECANCELLED. Outlives the state. */
    const atomic_bool *stop;
    /* the limits of one turn, which the process itself enforces */
    kl_time cpu;
    /* maximum bytes of an answer to the process: a larger one fails the run */
    size_t message;
    kl_time patience; /* how much longer a turn may take before we kill the process */
} kl_isolate_order;

typedef struct kl_isolate kl_isolate;

/* Waits until the process is ready. *said (may be NULL): the value of its READY message, a new reference. */
KL_NODISCARD kl_status kl_isolate_open(
    const kl_isolate_order *o, kl_isolate **out, const kl_value **said, kl_err *err);
void kl_isolate_close(kl_isolate *i); /* ends the process, and waits for its end */
pid_t kl_isolate_pid(const kl_isolate *i);

/* The functions of kl_program_ops for a state in an isolated process; `map`, `index` and `predicate` fail
 * once the process is dead. */
kl_run_state kl_isolate_start(kl_isolate *i, kl_run *run);
kl_run_state kl_isolate_resume(kl_isolate *i, kl_run *run);
void kl_isolate_abandon(kl_isolate *i, kl_run *run);
bool kl_isolate_worn(kl_isolate *i);
/* why the process ended; NULL: it lives, as far as known */
const char *kl_isolate_dead(const kl_isolate *i);
const char *kl_isolate_look(kl_isolate *i); /* the same, after a check */
KL_NODISCARD kl_status kl_isolate_map(kl_isolate *i, size_t fn, kl_reader *reader, const kl_value *object,
    kl_emit_fn *emit, void *arg, kl_err *err);
KL_NODISCARD kl_status kl_isolate_index(
    kl_isolate *i, size_t fn, const kl_value *object, kl_emit_fn *emit, void *arg, kl_err *err);
KL_NODISCARD kl_status kl_isolate_predicate(
    kl_isolate *i, size_t fn, const kl_value *now, const kl_value *old, bool *pass, kl_err *err);

#endif
