/* function.h - a controller in C from one function, for programs that embed kubelua and may block a worker
 * while they wait for the API server. For many keys in flight per worker, implement kl_program_ops
 * (reconciler.h). */
#ifndef KL_RUN_FUNCTION_H
#define KL_RUN_FUNCTION_H

#include "run/reconciler.h"

/* One key: read (kl_run_object, kl_reader_get), write (kl_run_call_wait), return. KL_OK with *after 0 is
 * done, with *after > 0 the key runs again after that time; any other status is a failure and retried with
 * backoff (a KL_ECONFLICT at once and without an error). Called on worker threads,
 * on several at a time. */
typedef kl_status kl_reconcile_fn(kl_run *run, void *arg, kl_time *after, kl_err *err);

/* A program of one controller. Moves the spec in (allocate its strings with kl_strdup). `name` is copied.
 * One reference. */
kl_program *kl_program_of_function(
    const char *name, kl_controller_spec *spec, kl_reconcile_fn *fn, void *arg);

#endif
