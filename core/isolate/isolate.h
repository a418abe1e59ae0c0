/* isolate.h - a program's state as a process of its own: the runtime's side of isolate/far.h.
 *
 * The process is begun, fed and ended by the thread whose state it is, and what it asks is answered there,
 * with the kl_run and kl_reader of the turn. It is believed nothing: a message that makes no sense, a turn
 * that does not come back, and it is killed. When it ends, however that came, runs under way on it fail
 * (KL_RESULT_ERROR, so that their keys come again with backoff), the state is worn, and the worker opens
 * another one. */
#ifndef KL_ISOLATE_ISOLATE_H
#define KL_ISOLATE_ISOLATE_H

#include "run/reconciler.h"

typedef struct kl_isolate_order { /* borrowed for the call; `program` while the state lives */
    kl_program *program;
    size_t controller;
    const char *path; /* the executable, and its arguments, argv[0] first */
    const char *const *argv;
    const kl_value *boot; /* the first message that it gets */
    /* Once true, nobody waits for its answers any more. Outlives the state. */
    const atomic_bool *stop;
    /* what one turn may use, as far as the process itself sees to it */
    kl_time cpu;
    /* bytes that it may be told at once: a bigger answer is an error of the run's */
    size_t message;
    kl_time patience; /* how much longer it may take before it is killed */
} kl_isolate_order;

typedef struct kl_isolate kl_isolate;

/* Waits until the process says that it is ready. *said (may be NULL): what it says then, a new reference. */
KL_NODISCARD kl_status kl_isolate_open(
    const kl_isolate_order *o, kl_isolate **out, const kl_value **said, kl_err *err);
void kl_isolate_close(kl_isolate *i); /* ends it; waits for its end */
pid_t kl_isolate_pid(const kl_isolate *i);

/* The functions of kl_program_ops, for a state that is one of these; `map`, `index` and `predicate` fail
 * once it is dead. */
kl_run_state kl_isolate_start(kl_isolate *i, kl_run *run);
kl_run_state kl_isolate_resume(kl_isolate *i, kl_run *run);
void kl_isolate_abandon(kl_isolate *i, kl_run *run);
bool kl_isolate_worn(kl_isolate *i);
/* why it is, or NULL: it lives, as far as is known */
const char *kl_isolate_dead(const kl_isolate *i);
const char *kl_isolate_look(kl_isolate *i); /* the same, after a look */
KL_NODISCARD kl_status kl_isolate_map(kl_isolate *i, size_t fn, kl_reader *reader, const kl_value *object,
    kl_emit_fn *emit, void *arg, kl_err *err);
KL_NODISCARD kl_status kl_isolate_index(
    kl_isolate *i, size_t fn, const kl_value *object, kl_emit_fn *emit, void *arg, kl_err *err);
KL_NODISCARD kl_status kl_isolate_predicate(
    kl_isolate *i, size_t fn, const kl_value *now, const kl_value *old, bool *pass, kl_err *err);

#endif
