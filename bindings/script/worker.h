/* worker.h - one state of a program, for a worker or the mapper: shared by program.c, which makes it, runs.c
 * and functions.c. On the state's thread. */
#ifndef LKL_WORKER_H
#define LKL_WORKER_H

#include "script/program.h"
#include "state/state.h"

/* A key's coroutine, and the registry reference that keeps it. */
typedef struct lkl__key {
    struct lkl__key *next; /* in the pool */
    lua_State *co;
    int ref;
    uint64_t serial; /* of its run */
} lkl__key;

/* A state, of one controller or webhook of its program. */
typedef struct lkl__worker {
    lkl_state *lua;
    size_t controller;
    bool hook; /* it is a webhook */
    const atomic_bool *stop;
    int body; /* registry reference of the function that every key runs */
    lkl__key *pool;
    int idle;
    uint64_t serials;
} lkl__worker;

/* The budget of a turn of this state; run NULL: the turn belongs to no run. */
kl_terms lkl__worker_terms(const lkl__worker *w, const kl_run *run);
/* The error's text after the memory ceiling was reached, or the machine's memory was exhausted. The stack is
 * unwound by then, but the line is known. The caller kl_free()s it. */
char *lkl__worker_too_big(const lkl__worker *w);
/* Collects the garbage of the key or function, so that the next one starts with room. Others hold the
 * rest. */
void lkl__worker_make_room(lkl__worker *w);

/* runs.c: the function of every key's coroutine; its upvalues are script.run or review, and the controller */
int lkl__run_body(lua_State *L);
/* runs.c: of kl_program_ops; `state` is an lkl__worker */
kl_run_state lkl__run_start(void *state, kl_run *run);
kl_run_state lkl__run_resume(void *state, kl_run *run);
bool lkl__run_rest(void *state, bool idle);
bool lkl__run_worn(void *state);
void lkl__run_abandon(void *state, kl_run *run);

/* functions.c: likewise */
kl_status lkl__call_map(void *state, size_t fn, kl_reader *reader, const kl_value *object,
    kl_emit_fn *emit_key, void *arg, kl_err *err);
kl_status lkl__call_index(
    void *state, size_t fn, const kl_value *object, kl_emit_fn *emit_value, void *arg, kl_err *err);
kl_status lkl__call_predicate(
    void *state, size_t fn, const kl_value *now, const kl_value *old, bool *pass, kl_err *err);

#endif
