/* isolate.h - scripts whose Lua runs in separate processes (`isolate = true` of a controller, or
 * --isolate): starts the program for that, gives it its input, and does its work.
 *
 * That program is kubelua itself, started as "kubelua --isolated-child", and only kubelua starts it. Another
 * process (an interpreter with our module, a C program) has no isolation and refuses a script with `isolate =
 * true`. */
#ifndef LKL_ISOLATE_H
#define LKL_ISOLATE_H

#include "run/reconciler.h"

#define LKL_ISOLATE_WORD "--isolated-child"

/* A program's data about its processes. */
typedef struct lkl_isolation {
    const kl_program_ops *here; /* of states in this process */
    atomic_int deaths;          /* in a row, without any work between them */
    _Atomic kl_time until;      /* no process is started before */
} lkl_isolation;

/* For main, at its very start: this process can start others like it. */
void lkl_isolate_offer(void);
/* For main, when argv[1] is that word: runs an isolated state until the parent process ends. Returns the exit
 * status if kubelua did not start this process; otherwise it does not return. */
int lkl_isolate_child(void);
/* Makes every script isolated from now on, as with `isolate = true`. Before the first is loaded. The top
 * level of a script still runs once in this process, under the budgets of loading, because its specs are read
 * here. */
void lkl_isolate_all(void);
/* For a loaded program: from now on its states are processes, if its specs or lkl_isolate_all require it.
 * KL_EINVAL: isolation is required, but this process cannot isolate scripts. */
KL_NODISCARD kl_status lkl_isolate_apply(kl_program *p, kl_err *err);
/* For specs: the id of the process that runs an isolated state; 0: none. */
pid_t lkl_isolate_pid(void *state);

#endif
