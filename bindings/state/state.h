/* state.h - one Lua state of a script: a fresh environment, our own require and coroutines, and the functions
 * that the runtime calls. */
#ifndef LKL_STATE_H
#define LKL_STATE_H

#include "state/border.h"
#include "state/budget.h"
#include "state/bundle.h"
#include "state/ceiling.h"
#include "run/reconciler.h"
#ifdef KL_DEBUG
#include "state/stress.h"
#endif

typedef struct lkl_state {
    lua_State *L;
    lkl_bundle *bundle;
    /* the load phase: modules are read from files, and I/O is refused with a message for this phase */
    bool loading;
    kl_run *run;            /* the run whose coroutine runs now, or NULL */
    uint64_t serial;        /* the number of the run in this state: 1, 2, ...; 0 for none */
    const kl_value *params; /* the params of the runs; the registry has their view */
    kl_reader *reader;      /* the reader of ctx:get and related functions, or NULL */
    int closing;     /* the number of coroutines being closed, each by a variable of the previous one */
    int unyieldable; /* the number of the script's coroutines that were resumed where a yield is impossible */
    char *traceback; /* of the error that ended the last key, taken at the place that raised it; or NULL */
    const char *controller;         /* name, for logs; "" while loading */
    const kl_controller_spec *spec; /* the program's; NULL while loading */
    char raised_at[96];             /* the line where the load raised something that is not text, or "" */
#ifdef KL_DEBUG
    lkl_stress stress;
#endif
    lkl_ceiling ceiling;
    bool worn; /* it holds too much memory that belongs to no key, and should be replaced */
    lkl_budget budget;
    size_t gc_last, gc_full; /* bytes left by the last collection, and by the last full one */
} lkl_state;

/* Loads the script of a bundle in a new state. With `describe` this is a program's load phase: modules
 * that the script requires are added to the bundle, and describe(arg as a light userdata) is called when
 * the script has run, in the same turn, under the budgets of the load. */
KL_NODISCARD kl_status lkl_state_new(
    lkl_bundle *bundle, lua_CFunction describe, void *arg, lkl_state **out, kl_err *err);
void lkl_state_free(lkl_state *s);
/* Sets the processor time that each later load may use, instead of 2 s: for programs that load thousands of
 * scripts made to exhaust it. Any thread. */
void lkl_state_set_load_max(kl_time cpu);
lkl_state *lkl_state_of(lua_State *L);
/* Pushes a function of lua/kubelua/script.lua, or the list of controllers that the script returned. */
void lkl_state_push(lua_State *L, const char *what);
/* The error on top of co's stack as text: position, message; pops it. */
char *lkl_state_error(lua_State *co);

/* The state of a worker: from now on garbage is collected between keys (gc.c). */
void lkl_gc_start(lkl_state *s);
/* Between keys: collects a bounded part if that is worthwhile, and returns whether it did. `idle`: no key
 * waits. */
bool lkl_gc_rest(lkl_state *s, bool idle);

/* The kinds of coroutines that only the runtime resumes: a key's own, or a script's own that waits for the
 * API server in some key's run. */
typedef enum lkl_tag { LKL_TAG_KEY = 1, LKL_TAG_WAITS = 2, LKL_TAGS = 3 } lkl_tag;
void lkl__tag(lua_State *co, lkl_tag tag, bool on);
bool lkl__has_tag(lua_State *co, lkl_tag tag);

/* If the memory error on top of the stack is a stack overflow, in any coroutine, replaces it by its text, an
 * ordinary error. */
bool lkl__was_too_deep(lua_State *L);

/* coroutine.* for scripts: runtime yields pass through (lroutine.c). Pushes the library table. */
void lkl__push_coroutines(lua_State *L);
/* Whether lkl__wait, which yields to the worker, is possible now. */
bool lkl__may_wait(lua_State *L);
/* L is the coroutine of a key itself (or the main thread), not one that the script made. */
bool lkl__is_key(lua_State *L);
int lkl__wait(lua_State *L, lua_KContext ctx, lua_KFunction k);
/* Reproducible time and random numbers, for replays (lagain.c): changes `os` and `math` of the state, and
 * core, which is on top. */
void lkl__open_again(lua_State *L);
/* core.run: the functions behind ctx (lrun.c). Pushes the table. */
void lkl__push_run(lua_State *L);
/* ctx itself (lctx.c): adds its part to the table on top; pushes the ctx of a run (its serial), whose
 * object's view is at object_idx. */
void lkl__open_context(lua_State *L);
/* kube.shared and ctx.memo (lshared.c): adds its part to the table on top; pushes the memo of a run (its
 * serial). */
void lkl__open_shared(lua_State *L);
void lkl__push_memo(lua_State *L, uint64_t serial);
void lkl__push_context(lua_State *L, uint64_t serial, int object_idx);

#endif
