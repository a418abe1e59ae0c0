/* budget.c - turns of a state, the hook that ends them, and the signal that arms it. */
#include "budget.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sync.h"
#include "model/time.h"
#include "state.h"

#define ALWAYS (LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT)
/* Instructions between two looks of the hook that stands in for signals. */
#define LOOK_EVERY 1000

static _Atomic lkl_budget_way chosen;
static _Thread_local lkl_state *volatile here;         /* whose turn it is on this thread, for the handler */

/* --- the end of a turn ------------------------------------------------------------------------------------------------------------ */

static char *text_of(lkl_state *s)
{
    char t[KL_DURATION_MAX];
    const lkl_budget *b = &s->budget;
    if (!s->spec)
        return kl_sprintf("loading takes longer than %s: a script returns tables and functions, the work belongs into reconcile", kl_duration_format(b->terms.cpu, t));
    switch (kl_guard_over(&b->guard)) {
    case KL_OVER_DEADLINE:
        return kl_sprintf("timed out after %s, computing: raise `timeout` in the spec of %s, or do less per run", kl_duration_format(s->spec->timeout, t), s->controller);
    case KL_OVER_STOP:
        return kl_strdup("stopped: its worker ends");
    default:
        return kl_sprintf("cpu budget of %s spent (`cpu` of %s): it computed that long without waiting for anything; do less at once, or raise it",
            kl_duration_format(b->terms.cpu, t), s->controller);
    }
}

/* Its own stories are not the script's memory. */
static void tell_first(lkl_state *s, lua_State *L)
{
    bool counted = s->ceiling.on;
    s->ceiling.on = false;
    char *text = text_of(s);
    lkl__where_from(L, 0);
    lua_pushstring(L, text);
    lua_concat(L, 2);
    s->budget.message = kl_strdup(lua_tostring(L, -1));
    kl_free(text);
    luaL_traceback(L, L, NULL, 0);
    s->budget.traceback = kl_strdup(lua_tostring(L, -1));
    lua_pop(L, 2);
    s->ceiling.on = counted;
}

static void at_end(lua_State *L, lua_Debug *ar);

/* Raises, here and at every instruction of L after it. */
static void end(lkl_state *s, lua_State *L)
{
    lua_sethook(L, at_end, ALWAYS, 1);
    if (!s->budget.message && lua_checkstack(L, 8))
        tell_first(s, L);
    lua_pushstring(L, s->budget.message ? s->budget.message : "the budget is spent");
    lua_error(L);
}

/* The hook that a signal armed. One that comes too late finds another turn, and goes. */
static void at_end(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lkl_state *s = lkl_state_of(L);
    if (kl_guard_over(&s->budget.guard))
        end(s, L);
    else
        lkl_budget_clean(s, L);
}

/* The hook that needs no signal. */
static void look(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lkl_state *s = lkl_state_of(L);
    if (kl_guard_over(&s->budget.guard))
        end(s, L);
}

void lkl_budget_check(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    if (kl_guard_over(&s->budget.guard))
        end(s, L);
}

void lkl_budget_spend(lua_State *L, size_t steps)
{
    lkl_budget *b = &lkl_state_of(L)->budget;
    b->steps += steps;
    if (b->steps < LKL_BUDGET_STEPS)
        return;
    b->steps = 0;
    lkl_budget_check(L);
}

/* --- signals ------------------------------------------------------------------------------------------------------------------------ */

/* So many signals in vain, and the turn is inside a C function: who called that can be seen, and is written down for tell_stuck. */
#define IN_VAIN 20

/* On the thread whose turn is over, between any two of its instructions: lua_sethook is made for that. */
static void interrupt(void)
{
    lkl_state *s = here;
    lua_State *co = s ? atomic_load(&s->budget.running) : NULL;
    if (!co || !kl_guard_over(&s->budget.guard))
        return;
    lua_sethook(co, at_end, ALWAYS, 1);
    if (++s->budget.signals == IN_VAIN && lkl__place(co, 1, s->budget.where, sizeof s->budget.where))
        atomic_store(&s->budget.found, true);
}

/* On the dog's thread; the state's own is in its turn and cannot leave it now. */
static void tell_stuck(void *arg, kl_stuck *out)
{
    lkl_state *s = arg;
    char *what = s->run ? kl_sprintf("the run of key %s", kl_run_key(s->run)) : kl_strdup(s->spec ? "a function of the script" : "its load");
    out->name = kl_sprintf("%s/%s", s->run ? "worker" : "function", *s->controller ? s->controller : s->bundle->sources[0].path);
    if (atomic_load(&s->budget.found))
        out->story = kl_sprintf("%s cannot be ended: it does not come back from a C function that was called at %s", what, s->budget.where);
    else
        out->story = kl_sprintf("%s cannot be ended: it does not come back from a C function", what);
    kl_free(what);
}

void lkl_budget_choose(lkl_budget_way way)
{
#ifdef __SANITIZE_THREAD__                 /* it hands a signal over at the next call into the C library, and pure Lua makes none */
    if (way == LKL_BUDGET_SIGNALS)
        way = LKL_BUDGET_HOOKS;
#endif
    if (way == LKL_BUDGET_SIGNALS)
        kl_watchdog_signals(interrupt);
    atomic_store(&chosen, way);
}

/* --- turns ---------------------------------------------------------------------------------------------------------------------------- */

void lkl_budget_clean(lkl_state *s, lua_State *co)
{
    if (s->budget.way == LKL_BUDGET_HOOKS)
        lua_sethook(co, look, LUA_MASKCOUNT, LOOK_EVERY);
    else
        lua_sethook(co, NULL, 0, 0);
}

void lkl_budget_open(lkl_state *s)
{
    s->budget.way = atomic_load(&chosen);
    kl_guard_init(&s->budget.guard, tell_stuck, s);
    lkl_budget_clean(s, s->L);
}

void lkl_budget_close(lkl_state *s)
{
    kl_guard_fini(&s->budget.guard);
    kl_free(s->budget.message);
    kl_free(s->budget.traceback);
}

static void forget(lkl_budget *b)
{
    kl_free(b->message);
    kl_free(b->traceback);
    b->message = b->traceback = NULL;
}

void lkl_budget_enter(lkl_state *s, lua_State *co, const kl_terms *t)
{
    if (s->budget.message)
        forget(&s->budget);
    s->budget.terms = *t;
    if (s->budget.way == LKL_BUDGET_NONE)
        return;
    s->budget.steps = 0;
    s->budget.signals = 0;
    atomic_store_explicit(&s->budget.found, false, memory_order_relaxed);
    kl_guard_enter(&s->budget.guard, t);
    here = s;
    atomic_store_explicit(&s->budget.running, co, memory_order_relaxed);
}

kl_over lkl_budget_leave(lkl_state *s)
{
    if (s->budget.way == LKL_BUDGET_NONE)
        return KL_OVER_NOT;
    atomic_store_explicit(&s->budget.running, NULL, memory_order_relaxed);
    here = NULL;
    kl_over over = kl_guard_leave(&s->budget.guard);
    return s->budget.message ? over : KL_OVER_NOT;
}

lkl_state *lkl_budget_here(void)
{
    return here;
}

lua_State *lkl_budget_switch(lkl_state *s, lua_State *co)
{
    return atomic_exchange_explicit(&s->budget.running, co, memory_order_relaxed);
}
