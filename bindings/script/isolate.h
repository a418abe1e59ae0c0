/* isolate.h - scripts whose Lua runs in processes of its own (`isolate = true` of a controller, or
 * --isolate): which program is started for that, what it is told, and what it does.
 *
 * That program is kubelua itself, started as "kubelua --isolated-child" by kubelua alone; so a process
 * that is not kubelua (an interpreter with our module, a C program) has no isolation, and a script that
 * asks for it is refused. */
#ifndef LKL_ISOLATE_H
#define LKL_ISOLATE_H

#include "run/reconciler.h"

#define LKL_ISOLATE_WORD "--isolated-child"

/* What a program keeps about its processes. */
typedef struct lkl_isolation {
    const kl_program_ops *here; /* of states in this process */
    atomic_int deaths;          /* in a row, with nothing done between them */
    _Atomic kl_time until;      /* none is started before */
} lkl_isolation;

/* For main, first of all: this process can start others like it. */
void lkl_isolate_offer(void);
/* For main, when argv[1] is that word: is such a process, until its parent is gone. Returns only when it
 * was not kubelua that started it: the exit status. */
int lkl_isolate_child(void);
/* From now on every script is isolated, as if it said so. Before the first is loaded. The top level of a
 * script still runs once in this process, under the budgets of loading, for its specs are read here. */
void lkl_isolate_all(void);
/* Of a loaded program: from now on it opens its states as processes, where its specs or lkl_isolate_all
 * say so. KL_EINVAL: they do, and this process cannot. */
KL_NODISCARD kl_status lkl_isolate_apply(kl_program *p, kl_err *err);
/* The process in which a state of such a program is, for specs; 0: none. */
pid_t lkl_isolate_pid(void *state);

#endif
