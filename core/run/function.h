/* function.h - a controller in C from one function, for programs that embed kubelua and may block a worker
 * while they wait for the API server. For many keys in flight per worker, implement kl_program_ops
 * (reconciler.h). */
#ifndef KL_RUN_FUNCTION_H
#define KL_RUN_FUNCTION_H

#include "run/reconciler.h"

/* Reconciles one key: it reads (kl_run_object, kl_reader_get), writes (kl_run_call_wait) and returns. KL_OK
 * with *after 0: done; with *after > 0: the key runs again after that time. Any other status is a failure,
 * which is retried with backoff; KL_ECONFLICT is retried at once and counts no error. Called on worker
 * threads, on several at a time. */
typedef kl_status kl_reconcile_fn(kl_run *run, void *arg, kl_time *after, kl_err *err);

/* A program of one controller. Takes over the spec's contents (allocate its strings with kl_strdup); copies
 * `name`. Returns one reference. */
kl_program *kl_program_of_function(
    const char *name, kl_controller_spec *spec, kl_reconcile_fn *fn, void *arg);

#endif
