/* budget.h - the budgets of a script's code: processor time between two yields of a run (`cpu`), wall time
 * (`timeout`), and a stop flag of the worker. Only the run that exceeds them fails.
 *
 * Each entry of the runtime into a state is a turn of a guard (base/watchdog.h). Normally no hook is armed.
 * When a turn is over, its thread gets a signal, and the handler arms a hook on the running coroutine, as the
 * stock interpreter does for ^C. The hook ends the turn at the next instruction: it yields, never to be
 * resumed, or raises there and at each following instruction, which no pcall can stop. Without signals,
 * because the process is not ours or runs under ThreadSanitizer, a count hook checks regularly; that costs a
 * third of the speed. No hook fires inside C, so C code that loops for a script calls lkl_budget_spend.
 *
 * Owner thread, unless stated otherwise. */
#ifndef LKL_BUDGET_H
#define LKL_BUDGET_H

#include <lua.h>
#include <stddef.h>
#include "base/watchdog.h"

struct lkl_state;

/* The default processor time between two yields: a hundred times that of a big reconcile, and short enough
 * for the other keys of the worker to wait. */
#define LKL_CPU_DEFAULT KL_SECONDS(2)

/* How turns end. A program that owns its process selects signals at its start, before the first state; a
 * benchmark without budgets (bench/lua/budgets.c) selects none. Each applies to states created afterwards. */
typedef enum lkl_budget_way { LKL_BUDGET_HOOKS, LKL_BUDGET_SIGNALS, LKL_BUDGET_NONE } lkl_budget_way;
void lkl_budget_choose(lkl_budget_way way);

typedef struct lkl_budget {
    lkl_budget_way way;
    kl_guard guard;
    kl_terms terms;             /* of the turn */
    lua_State *_Atomic running; /* the coroutine whose code runs in it; NULL: none */
    bool ended;                 /* this turn was ended */
    bool telling;               /* its end is being reported: hooks do nothing */
    char *message, *traceback;  /* of the first end; NULL: none, or no room for them */
    size_t steps;               /* of lkl_budget_spend, since its last check */
    kl_time entered;            /* while loading: when the turn began, monotonic */
    atomic_int asked;           /* between the watchdog and the handler of its signal (budget.c) */
} lkl_budget;

/* At the start and the end of a state's life; its main thread exists already. */
void lkl_budget_open(struct lkl_state *s);
void lkl_budget_close(struct lkl_state *s);

/* Begins a turn, in which code of the script runs in `co`. Not nested. */
void lkl_budget_enter(struct lkl_state *s, lua_State *co, const kl_terms *t);
/* KL_OVER_NOT: the turn was within its budgets, or it ended before the check. Otherwise the message is valid
 * until the next turn, and so is the traceback if there was memory for it. */
kl_over lkl_budget_leave(struct lkl_state *s);
/* Another coroutine of the script runs from now on, or an earlier one again; returns the one before. */
lua_State *lkl_budget_switch(struct lkl_state *s, lua_State *co);
/* The state whose turn runs on the calling thread, or NULL. */
struct lkl_state *lkl_budget_here(void);
/* Removes a hook that a finished turn left on co, so that another key may use co. */
void lkl_budget_clean(struct lkl_state *s, lua_State *co);

/* Ends the running turn when it is over, and does not return then. Code that catches errors of the script
 * must call this first. */
void lkl_budget_check(lua_State *L);
/* Whether the running turn is over. */
bool lkl_budget_is_over(lua_State *L);
/* Closes a coroutine that ended early or ended the turn, with its pending variables; returns the result of
 * lua_resetthread. The variables' functions run as code of the turn, and not at all in a turn that is
 * over. */
int lkl_budget_close_coroutine(struct lkl_state *s, lua_State *co);

/* For C functions that may loop for long on a script's behalf (a matcher, a repetition, a walk through a
 * table): counts `steps`, each a few nanoseconds of work. Most calls are one addition, so call it for each
 * small piece. After some thousand steps it checks whether the turn is over; if so it ends the turn and, like
 * luaL_error, does not return: everything owned must be in a box. L is any coroutine of one of our states
 * (lkl_state_new), while its script runs; never a stock interpreter's. */
#define LKL_BUDGET_STEPS 4096
void lkl_budget_spend(lua_State *L, size_t steps);

#endif
