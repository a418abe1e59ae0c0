/* budget.c - turns of a state, the hook that ends them, and the signal that arms it.
 *
 * A turn that is over ends in one of two ways. Where the coroutine can yield, the hook yields: the turn is
 * left at once, past every protected call, and whoever resumed the coroutine closes it
 * (lkl_budget_close_turn). Passing an error on would cost each of 100,000 nested calls a look through the
 * whole stack. Elsewhere (the main thread, below a C function that calls back) the hook raises, and at
 * most 200 protected calls are nested there. */
#include "state/budget.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/mem.h"
#include "base/sync.h"
#include "model/time.h"
#include "state/state.h"

#define ALWAYS (LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT)
/* Instructions between two checks by the hook that replaces signals. */
#define LOOK_EVERY 1000

static _Atomic lkl_budget_way chosen;
static _Thread_local lkl_state *volatile here; /* whose turn it is on this thread, for the handler */

/* --- the end of a turn -------------------------------------------------------------------- */

static const char LOADING_IS_LATE[] =
    "the top level only builds tables and functions; do the work in reconcile";

/* The message for a load: it has the processor time, which is limited, and the wall-clock time that somebody
 * waited. */
static char *text_of_load(const lkl_state *s, kl_over why)
{
    char cpu[KL_DURATION_MAX], wall[KL_DURATION_MAX];
    kl_time passed = kl_clock_now(kl_clock_real()) - s->budget.entered;
    kl_duration_format(s->budget.terms.cpu, cpu);
    kl_duration_format(passed / KL_MILLISECONDS(1) * KL_MILLISECONDS(1), wall);
    if (why == KL_OVER_DEADLINE)
        return kl_sprintf("loading has not finished after %s: %s", wall, LOADING_IS_LATE);
    return kl_sprintf(
        "loading takes longer than %s of processor time (%s have passed): %s", cpu, wall, LOADING_IS_LATE);
}

static char *text_of(lkl_state *s)
{
    char t[KL_DURATION_MAX];
    const lkl_budget *b = &s->budget;
    kl_over why = kl_guard_over(&b->guard);
    if (!s->spec)
        return text_of_load(s, why);
    switch (why) {
    case KL_OVER_DEADLINE:
        return kl_sprintf(
            "timed out after %s while computing: raise `timeout` in the spec of %s, or do less per run",
            kl_duration_format(s->spec->timeout, t), s->controller);
    case KL_OVER_STOP: return kl_strdup("stopped: its worker ends");
    default:
        return kl_sprintf("cpu budget of %s spent (`cpu` of %s): it computed for that long without waiting; "
                          "do less at once, or raise it",
            kl_duration_format(b->terms.cpu, t), s->controller);
    }
}

static int push_traceback(lua_State *L)
{
    lkl_budget *b = &lkl_state_of(L)->budget;
    b->traceback = lkl__traceback(L);
    return 0;
}

/* The message about a spent budget is not charged to the script. A traceback needs calls, and there may be no
 * room for calls. */
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
    s->budget.telling = true;
    lua_pushcfunction(L, push_traceback);
    (void)lua_pcall(L, 0, 1, 0);
    s->budget.telling = false;
    lua_pop(L, 2);
    s->ceiling.on = counted;
}

static void at_end(lua_State *L, lua_Debug *ar);

/* Once per coroutine: lua_sethook walks through all its calls. */
static void arm(lua_State *L)
{
    if (lua_gethook(L) != at_end)
        lua_sethook(L, at_end, ALWAYS, 1);
}

static void tell(lkl_state *s, lua_State *L)
{
    arm(L);
    if (!s->budget.ended && lua_checkstack(L, 8))
        tell_first(s, L);
    s->budget.ended = true;
}

/* The message when the stack has no room for a longer one. */
static const char SPENT[] = "the budget is spent";

/* Raises here, and at every later instruction of L. */
static void raise_error(lkl_state *s, lua_State *L)
{
    lua_pushstring(L, s->budget.message ? s->budget.message : SPENT);
    lua_error(L);
}

/* A hook can yield between two instructions of a Lua function. It cannot while a function is called or
 * returns, but that function's next instruction comes soon. */
static void end_in_hook(lkl_state *s, lua_State *L, const lua_Debug *ar)
{
    bool yields = lua_isyieldable(L);
    if (s->budget.telling)
        return;
    if (yields && ar->event != LUA_HOOKCOUNT && ar->event != LUA_HOOKLINE) {
        arm(L);
        return;
    }
    tell(s, L);
    if (yields)
        (void)lua_yield(L, 0);
    else
        raise_error(s, L);
}

/* Ends the turn in a C function; does not return. */
static void end_in_function(lkl_state *s, lua_State *L)
{
    tell(s, L);
    if (lua_isyieldable(L))
        lua_yield(L, 0);
    raise_error(s, L);
}

/* The hook that a signal armed. If its turn has ended already, it does nothing. */
static void at_end(lua_State *L, lua_Debug *ar)
{
    lkl_state *s = lkl_state_of(L);
    if (kl_guard_over(&s->budget.guard))
        end_in_hook(s, L, ar);
    else
        lkl_budget_clean(s, L);
}

/* The hook that works without signals. */
static void look(lua_State *L, lua_Debug *ar)
{
    lkl_state *s = lkl_state_of(L);
    if (kl_guard_over(&s->budget.guard))
        end_in_hook(s, L, ar);
}

void lkl_budget_check(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    if (kl_guard_over(&s->budget.guard))
        end_in_function(s, L);
}

bool lkl_budget_is_over(lua_State *L) { return kl_guard_over(&lkl_state_of(L)->budget.guard); }

void lkl_budget_spend(lua_State *L, size_t steps)
{
    lkl_budget *b = &lkl_state_of(L)->budget;
    b->steps += steps;
    if (b->steps < LKL_BUDGET_STEPS)
        return;
    b->steps = 0;
    lkl_budget_check(L);
}

/* --- signals ------------------------------------------------------------------------------ */

/* A thread that is stuck in a C function must hold still while the watchdog reads where that function was
 * called. The watchdog asks and sends a signal; the signal handler answers, then waits for a limited time to
 * be released. So the handler needs only atomics and poll, which are safe in a handler. */
enum { NOBODY_ASKS, ASKED, HOLDS_STILL };
#define LOOKS_FOR_ANSWER 50 /* a millisecond each */
#define HOLDS_STILL_FOR 1000

static void pause_for_a_millisecond(void)
{
    int was = errno;
    (void)poll(NULL, 0, 1);
    errno = was;
}

static void hold_still(lkl_budget *b)
{
    int asked = ASKED;
    if (!atomic_compare_exchange_strong(&b->asked, &asked, HOLDS_STILL))
        return;
    for (int i = 0; i < HOLDS_STILL_FOR && atomic_load(&b->asked) == HOLDS_STILL; i++)
        pause_for_a_millisecond();
}

/* Runs on the thread whose turn is over, between any two instructions; lua_sethook may be called there. */
static void interrupt(void)
{
    lkl_state *s = here;
    lua_State *co = s ? atomic_load(&s->budget.running) : NULL;
    if (!co || !kl_guard_over(&s->budget.guard))
        return;
    lua_sethook(co, at_end, ALWAYS, 1);
    hold_still(&s->budget);
}

/* Finds the line that called the stuck function; false: the thread did not answer. Watchdog's thread. */
static bool ask_where(lkl_state *s, char *where, size_t size)
{
    lkl_budget *b = &s->budget;
    bool found = false;
    atomic_store(&b->asked, ASKED);
    kl_guard_interrupt(&b->guard);
    for (int i = 0; i < LOOKS_FOR_ANSWER && atomic_load(&b->asked) == ASKED; i++)
        pause_for_a_millisecond();
    int asked = ASKED;
    if (!atomic_compare_exchange_strong(&b->asked, &asked, NOBODY_ASKS)) {
        lua_State *co = atomic_load(&b->running);
        found = co && lkl__place(co, 0, where, size);
        atomic_store(&b->asked, NOBODY_ASKS);
    }
    return found;
}

/* Watchdog's thread; the state's own thread is inside its turn and cannot leave it now. */
static void tell_stuck(void *arg, kl_stuck *out)
{
    lkl_state *s = arg;
    char where[96];
    char *what = s->run ? kl_sprintf("the run of key %s", kl_run_key(s->run))
                        : kl_strdup(s->spec ? "a function of the script" : "its load");
    out->name = kl_sprintf(
        "%s/%s", s->run ? "worker" : "function", *s->controller ? s->controller : s->bundle->sources[0].path);
    if (ask_where(s, where, sizeof where))
        out->story = kl_sprintf("%s cannot be ended: it is stuck in a C function called at %s", what, where);
    else
        out->story = kl_sprintf("%s cannot be ended: it is stuck in a C function", what);
    kl_free(what);
}

void lkl_budget_choose(lkl_budget_way way)
{
#ifdef __SANITIZE_THREAD__ /* it hands a signal over at the next call into the C library, and pure Lua makes \
                              none */
    if (way == LKL_BUDGET_SIGNALS)
        way = LKL_BUDGET_HOOKS;
#endif
    if (way == LKL_BUDGET_SIGNALS)
        kl_watchdog_signals(interrupt);
    atomic_store(&chosen, way);
}

/* --- turns -------------------------------------------------------------------------------- */

void lkl_budget_clean(lkl_state *s, lua_State *co)
{
    if (s->budget.way == LKL_BUDGET_HOOKS)
        lua_sethook(co, look, LUA_MASKCOUNT, LOOK_EVERY);
    else
        lua_sethook(co, NULL, 0, 0);
}

static void forget(lkl_budget *b)
{
    kl_free(b->message);
    kl_free(b->traceback);
    b->message = b->traceback = NULL;
    b->ended = false;
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
    forget(&s->budget);
}

void lkl_budget_enter(lkl_state *s, lua_State *co, const kl_terms *t)
{
    if (s->budget.ended)
        forget(&s->budget);
    s->budget.terms = *t;
    if (s->budget.way == LKL_BUDGET_NONE)
        return;
    s->budget.steps = 0;
    s->budget.entered = s->spec ? 0 : kl_clock_now(kl_clock_real());
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
    if (!s->budget.ended)
        return KL_OVER_NOT;
    if (!s->budget.message)
        s->budget.message = kl_strdup(SPENT);
    return over;
}

int lkl_budget_close_coroutine(lkl_state *s, lua_State *co)
{
    lua_State *before = lkl_budget_switch(s, co);
    int st = lua_resetthread(co);
    (void)lkl_budget_switch(s, before);
    return st;
}

lkl_state *lkl_budget_here(void) { return here; }

lua_State *lkl_budget_switch(lkl_state *s, lua_State *co)
{
    return atomic_exchange_explicit(&s->budget.running, co, memory_order_relaxed);
}
