/* budget.h - the budgets of a script's code: processor time between two yields of a run (`cpu`), wall time
 * (`timeout`), and a stop flag of the worker. Only the run that exceeds them fails.
 *
 * Each entry of the runtime into a state is a turn of a guard (base/watchdog.h). Normally no hook is armed.
 * When a turn is over its thread gets a signal, and the handler arms a hook on the running coroutine, as the
 * stock interpreter does for ^C; the hook ends the turn at the next instruction: it yields, never to be
 * resumed, or raises there and at each instruction after it. No pcall holds that up. Where signals are not
 * available, since the process is not ours or runs under ThreadSanitizer, a count hook checks regularly
 * instead; that costs a third of the speed. No hook fires inside C: what loops there on behalf of a script
 * calls lkl_budget_spend.
 *
 * Owner thread, unless said otherwise. */
#ifndef LKL_BUDGET_H
#define LKL_BUDGET_H

#include <lua.h>
#include <stddef.h>
#include "base/watchdog.h"

struct lkl_state;

/* The default processor time between two yields: a hundred times that of a big reconcile, and short enough
 * for the other keys of the worker to wait. */
#define LKL_CPU_DEFAULT KL_SECONDS(2)

/* How turns are ended. A program that owns its process selects signals at its start, before the first state;
 * a benchmark without budgets (bench/lua/budgets.c) selects none. Each applies to states created
 * afterwards. */
typedef enum lkl_budget_way { LKL_BUDGET_HOOKS, LKL_BUDGET_SIGNALS, LKL_BUDGET_NONE } lkl_budget_way;
void lkl_budget_choose(lkl_budget_way way);

typedef struct lkl_budget {
    lkl_budget_way way;
    kl_guard guard;
    kl_terms terms;             /* of the turn */
    lua_State *_Atomic running; /* the coroutine whose code runs in it; NULL: none */
    bool ended;                 /* this turn was */
    bool telling;               /* that is being told: hooks let it be */
    char *message, *traceback;  /* of the first time that it was; NULL: it was not, or no room to tell */
    size_t steps;               /* of lkl_budget_spend, since its last look */
    kl_time entered;            /* while loading: when the turn began, monotonic */
    atomic_int asked;           /* between the watchdog and the handler of its signal (budget.c) */
} lkl_budget;

/* Around the life of a state; its main thread is there already. */
void lkl_budget_open(struct lkl_state *s);
void lkl_budget_close(struct lkl_state *s);

/* A turn: code of the script runs in `co`. Not nested. */
void lkl_budget_enter(struct lkl_state *s, lua_State *co, const kl_terms *t);
/* KL_OVER_NOT: the turn was within its budgets, or it ended before the check. Otherwise the message is valid
 * until the next turn, and the traceback where there was memory for it. */
kl_over lkl_budget_leave(struct lkl_state *s);
/* Another coroutine of the script runs now, or the previous one again; returns the previous one. */
lua_State *lkl_budget_switch(struct lkl_state *s, lua_State *co);
/* The state whose turn runs on the calling thread, or NULL. */
struct lkl_state *lkl_budget_here(void);
/* Removes a hook that a finished turn left on co: it may be used for another key. */
void lkl_budget_clean(struct lkl_state *s, lua_State *co);

/* Ends the running turn when it is over, and does not return then. Code that catches errors of the script
 * must call this first. */
void lkl_budget_check(lua_State *L);
/* Whether it is. */
bool lkl_budget_is_over(lua_State *L);
/* Closes a coroutine that ended early or ended the turn, with its pending variables, as code of the running
 * turn (in one that is over they get no instruction); returns the result of lua_resetthread. */
int lkl_budget_close_coroutine(struct lkl_state *s, lua_State *co);

/* For C functions that may loop for long on a script's behalf (a matcher, a repetition, a walk through a
 * table): counts `steps`, each a few nanoseconds of work. After some thousand steps it checks whether the
 * turn is over, and ends it if so; otherwise it is an addition, so call it for each small piece. Like
 * luaL_error it does not return then: everything owned must be in a box. L is any coroutine of one of our
 * states (lkl_state_new), while its script runs; never a stock interpreter's. */
#define LKL_BUDGET_STEPS 4096
void lkl_budget_spend(lua_State *L, size_t steps);

#endif
