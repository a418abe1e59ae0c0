/* budget.h - what a script's code may spend: processor time between two yields of a run (`cpu`), wall time
 * (`timeout`), and a word from outside that the worker is to stop. Who spends more fails, and nobody else
 * does.
 *
 * Each time the runtime enters a state it is a turn of a guard (base/watchdog.h). While nothing is wrong
 * nothing is armed. When a turn is over its thread gets a signal, and the handler arms a hook on the
 * coroutine that runs, as the stock interpreter does for ^C; the hook ends the turn at the next
 * instruction: it yields, never to be resumed, or raises there and at each instruction after it. No pcall
 * holds that up. Where signals are not ours, since the process belongs to somebody else or to
 * ThreadSanitizer, a hook that looks now and then stands in for them; that costs a third of the speed. No
 * hook fires inside C: what loops there on behalf of a script calls lkl_budget_spend.
 *
 * Owner thread, but for what says otherwise. */
#ifndef LKL_BUDGET_H
#define LKL_BUDGET_H

#include <lua.h>
#include <stddef.h>
#include "base/watchdog.h"

struct lkl_state;

/* Processor time between two yields where the spec does not say: a hundred times what a big reconcile
 * takes, and short enough for the other keys of the worker to wait out. */
#define LKL_CPU_DEFAULT KL_SECONDS(2)

/* How turns are ended. A program whose process is ours asks for signals at its start, before the first
 * state; what is measured without budgets (bench/lua/budgets.c) asks for none. Each is for the states that
 * are made afterwards. */
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
/* KL_OVER_NOT: all is well, or it came to its end before anybody could say it was not. Otherwise the
 * message is there until the next turn, and the traceback where there was room for it. */
kl_over lkl_budget_leave(struct lkl_state *s);
/* Another coroutine of the script runs now, or the one before again; returns the one before. */
lua_State *lkl_budget_switch(struct lkl_state *s, lua_State *co);
/* Whose turn it is on the calling thread, or NULL. */
struct lkl_state *lkl_budget_here(void);
/* No hook is left on co from a turn that was over: it may be used for another key. */
void lkl_budget_clean(struct lkl_state *s, lua_State *co);

/* Ends the turn under way when it is over, and does not return then. Who catches errors of the script asks
 * this first. */
void lkl_budget_check(lua_State *L);
/* Whether it is. */
bool lkl_budget_is_over(lua_State *L);
/* Closes a coroutine that ended early or ended the turn, with its pending variables, as code of the turn
 * under way (in one that is over they get no instruction); what lua_resetthread returned. */
int lkl_budget_close_coroutine(struct lkl_state *s, lua_State *co);

/* For C functions that may loop for long on a script's behalf (a matcher, a repetition, a walk through a
 * table): says that `steps` more were done, each a few nanoseconds of work. Every some thousand steps it
 * looks whether the turn is over, and ends it if so; between that it is an addition, so call it for each
 * small piece. Like luaL_error it does not return then: whatever is held must be in a box. L is any
 * coroutine of one of our states (lkl_state_new), while its script runs; never a stock interpreter's. */
#define LKL_BUDGET_STEPS 4096
void lkl_budget_spend(lua_State *L, size_t steps);

#endif
