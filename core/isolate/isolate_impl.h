/* isolate_impl.h - the inside of an isolated state, for isolate.c (its life and its turns) and
 * isolate_serve.c (its requests). */
#ifndef KL_ISOLATE_ISOLATE_IMPL_H
#define KL_ISOLATE_ISOLATE_IMPL_H

#include <sys/types.h>

#include "base/list.h"
#include "isolate/far.h"
#include "isolate/isolate.h"

struct kl_isolate {
    kl_list link;    /* in the list of all, under its lock */
    uint64_t number; /* its id in that list */
    /* the worker whose runs it executes, woken when the process ends; NULL: none. Under that lock */
    struct kl_worker *worker;
    kl_program *program;
    const kl_controller_spec *spec;
    const atomic_bool *stop;
    kl_wire wire;
    size_t most; /* bytes of a message to it */
    pid_t pid;
    char *dead; /* why; NULL: it lives */
    bool worn;
    int64_t runs;           /* the number of started runs */
    const kl_value *params; /* the last one sent to it */
    bool told_fleet;
    /* of the turn */
    kl_run *run;       /* or NULL */
    kl_reader *reader; /* or NULL */
    kl_time cpu, patience;
    kl_time used;                 /* processor time at the start of the turn */
    kl_time began, heard, judged; /* when the turn started, when its last message came, and when its limits
                                     were checked last */
};

/* Answers `m` if it is an ask or a tell. KL_ESYNTAX: it is invalid. */
KL_NODISCARD kl_status kl__isolate_serve(kl_isolate *i, const kl_message *m, kl_err *err);

/* kl_run_deposed as a value for the other side; false without a run. A new reference. */
const kl_value *kl__isolate_deposed(kl_run *run);

#endif
