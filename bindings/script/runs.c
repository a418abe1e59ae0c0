/* runs.c - runs of keys, and requests of webhooks, in a worker's state.
 *
 * A key is a coroutine of its state. start and resume run it until it waits or ends; then its outcome goes to
 * the run:
 *
 *   returned --settle (lua/kubelua/result.lua)--> done, after, retry, fail
 *   raised   --verdict--> conflict, retry, fail, or an error with its traceback */
#include "script/worker.h"

#include <string.h>

#include "base/mem.h"

/* Coroutines are reused for later keys: a new one costs an allocation of its stack. */
#define POOL_MAX 64

static lkl__key *key_new(lkl__worker *w)
{
    lkl__key *k = w->pool;
    if (k) {
        w->pool = k->next;
        w->idle--;
    } else {
        k = kl_new(lkl__key);
        k->co = lua_newthread(w->lua->L);
        lkl__tag(k->co, LKL_TAG_KEY, true);
        k->ref = luaL_ref(w->lua->L, LUA_REGISTRYINDEX);
    }
    k->serial = ++w->serials;
    return k;
}

/* The budget of code that follows from a run: at most the default, whatever the run may spend. */
static kl_terms little(const lkl__worker *w)
{
    kl_terms t = lkl__worker_terms(w, NULL);
    t.stop = NULL;
    if (t.cpu > LKL_CPU_DEFAULT)
        t.cpu = LKL_CPU_DEFAULT;
    return t;
}

/* Calls a function of ours that may call the script's, as a turn of its own; the arguments are on top of the
 * main thread's stack. */
static int pcall_turn(lkl__worker *w, int narg, int nres)
{
    kl_terms t = little(w);
    lkl_budget_enter(w->lua, w->lua->L, &t);
    w->lua->ceiling.on = true;
    int st = lua_pcall(w->lua->L, narg, nres, 0);
    w->lua->ceiling.on = false;
    (void)lkl_budget_leave(w->lua);
    lkl_budget_clean(w->lua, w->lua->L);
    return st;
}

/* Closes the pending <close> variables of a coroutine that ended early. */
static void close_pending(lkl__worker *w, lua_State *co)
{
    kl_terms t = little(w);
    lkl_budget_enter(w->lua, co, &t);
    w->lua->ceiling.on = true;
    (void)lua_resetthread(co);
    w->lua->ceiling.on = false;
    if (lkl_budget_leave(w->lua)) {
        kl_error("closing a <close> variable took too long", "controller=%s error=%s", w->lua->controller,
            kl_log_quoted(w->lua->budget.message));
        w->lua->worn = true; /* its state afterwards is unknown */
    }
}

/* Ends a key's coroutine. A coroutine that returned can run another function. Any other may keep a message
 * handler or a lock on hooks, which lua_resetthread does not clear: a budget could not end the next run in
 * it. */
static void key_free(lkl__worker *w, lkl__key *k, bool returned)
{
    if (returned && w->idle < POOL_MAX) {
        lkl_budget_clean(w->lua, k->co);
        lua_settop(k->co, 0);
        k->next = w->pool;
        w->pool = k;
        w->idle++;
        return;
    }
    if (!returned)
        close_pending(w, k->co);
    luaL_unref(w->lua->L, LUA_REGISTRYINDEX, k->ref);
    kl_free(k);
}

static kl_result_kind result_kind(const char *word)
{
    static const struct {
        const char *word;
        kl_result_kind kind;
    } words[] = {{"done", KL_RESULT_DONE}, {"after", KL_RESULT_AFTER}, {"retry", KL_RESULT_RETRY},
        {"conflict", KL_RESULT_CONFLICT}, {"requeue", KL_RESULT_REQUEUE}, {"fail", KL_RESULT_FAIL}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (word && !strcmp(word, words[i].word))
            return words[i].kind;
    return KL_RESULT_ERROR;
}

/* Stack top: kind, seconds or nil, message or nil. */
static void finish(kl_run *run, lua_State *L, const char *traceback)
{
    kl_result_kind kind = result_kind(lua_tostring(L, -3));
    kl_run_finish(run, kind, lkl__seconds(lua_tonumber(L, -2)), lua_tostring(L, -1),
        kind == KL_RESULT_ERROR ? traceback : NULL);
}

/* verdict(error, kind, key); no kind where an object of that name may be in another cluster. */
static int verdict_protected(lua_State *L)
{
    const kl_run *run = lua_touserdata(L, 1);
    lkl_state_push(L, "verdict");
    lua_pushvalue(L, 2);
    lua_pushstring(L, kl_run_fleet(run) ? NULL : kl_run_spec(run)->resource);
    lua_pushstring(L, kl_run_key(run));
    lua_call(L, 3, 3);
    return 3;
}

/* The error value is on top of co. */
static void finish_error(lkl__worker *w, kl_run *run, lua_State *co)
{
    lua_State *L = w->lua->L;
    lua_pushcfunction(L, verdict_protected);
    lua_pushlightuserdata(L, run);
    lua_xmove(co, L, 1);
    if (pcall_turn(w, 2, 3)) {
        const char *over = w->lua->budget.message; /* making the error's text may have called the script */
        if (over)
            kl_run_spent(run, KL_SPENT_CPU);
        kl_run_finish(
            run, KL_RESULT_ERROR, 0, over ? over : "an error that cannot be shown", w->lua->traceback);
        lua_pop(L, 1);
    } else {
        finish(run, L, w->lua->traceback);
        lua_pop(L, 3);
    }
}

/* Ends a run that spent more than it may. */
static void finish_over(lkl__worker *w, kl_run *run, kl_over why)
{
    kl_run_spent(run, why == KL_OVER_DEADLINE ? KL_SPENT_TIME : KL_SPENT_CPU);
    kl_run_finish(run, KL_RESULT_ERROR, 0, w->lua->budget.message, w->lua->budget.traceback);
}

static void finish_too_big(lkl__worker *w, kl_run *run)
{
    char *why = lkl__worker_too_big(w);
    if (!w->lua->ceiling.other)
        kl_run_spent(run, KL_SPENT_MEMORY);
    kl_run_finish(run, KL_RESULT_ERROR, 0, why, NULL);
    kl_free(why);
}

static int raised_protected(lua_State *L)
{
    lkl__worker *w = lua_touserdata(L, 1);
    lkl_state_push(L, "raised");
    lkl_state_push(L, "list");
    lua_rawgeti(L, -1, (lua_Integer)w->controller + 1);
    lua_remove(L, -2);
    lua_pushvalue(L, 2);
    lua_call(L, 2, 1);
    return 1;
}

/* A webhook raised, and its error is on top of co: script.raised makes the answer, and the text for the
 * log. */
static void finish_raised(lkl__worker *w, kl_run *run, lua_State *co, const char *traceback)
{
    lua_State *L = w->lua->L;
    lua_pushcfunction(L, raised_protected);
    lua_pushlightuserdata(L, w);
    lua_xmove(co, L, 1);
    w->lua->run = run;
    bool shown = !pcall_turn(w, 2, 1);
    w->lua->run = NULL;
    if (!shown) { /* even that failed: no memory, or an error without a text */
        const kl_value *unknown = kl_value_of_str("the webhook failed, and its error cannot be shown"),
                       *decision = kl_value_with(NULL, "failed", unknown);
        kl_run_answer(run, decision);
        kl_value_unref(decision);
        kl_value_unref(unknown);
    }
    if (lua_isstring(L, -1))
        kl_error("webhook failed", "webhook=%s request=%s error=%s\n%s", kl_run_spec(run)->name,
            kl_run_key(run), kl_log_quoted(lua_tostring(L, -1)), traceback ? traceback : "");
    lua_pop(L, 1);
    kl_run_finish(run, KL_RESULT_DONE, 0, NULL, NULL);
}

/* A webhook that was ended has failed; `why` replaces the error. */
static void finish_raised_as(
    lkl__worker *w, kl_run *run, lua_State *co, const char *why, const char *traceback)
{
    char *said = kl_strdup(why), *where = kl_strdup(traceback); /* copies: the next turn overwrites them */
    lua_settop(co, 0);
    lua_pushstring(co, said);
    finish_raised(w, run, co, where);
    kl_free(said);
    kl_free(where);
}

static void finish_raised_too_big(lkl__worker *w, kl_run *run, lua_State *co)
{
    char *why = lkl__worker_too_big(w);
    if (!w->lua->ceiling.other)
        kl_run_spent(run, KL_SPENT_MEMORY);
    finish_raised_as(w, run, co, why, NULL);
    kl_free(why);
}

/* Ends the run of a coroutine that did not return. */
static void finish_failed(lkl__worker *w, kl_run *run, lua_State *co, int st, kl_over over)
{
    const lkl_budget *b = &w->lua->budget;
    if (over && w->hook) {
        kl_run_spent(run, over == KL_OVER_DEADLINE ? KL_SPENT_TIME : KL_SPENT_CPU);
        finish_raised_as(w, run, co, b->message, b->traceback);
    } else if (over)
        finish_over(w, run, over);
    else if (st == LUA_ERRMEM && w->hook)
        finish_raised_too_big(w, run, co);
    else if (st == LUA_ERRMEM)
        finish_too_big(w, run);
    else if (w->hook)
        finish_raised(w, run, co, w->lua->traceback);
    else
        finish_error(w, run, co);
}

static kl_over turn(lkl__worker *w, kl_run *run, int narg, int *st, int *n)
{
    lkl_state *s = w->lua;
    lkl__key *k = kl_run_user(run);
    kl_terms t = lkl__worker_terms(w, run);
    s->run = run;
    s->reader = kl_run_reader(run);
    s->serial = k->serial;
    s->ceiling.on = true;
    *s->ceiling.where = 0;
    lkl_budget_enter(s, k->co, &t);
    *st = lua_resume(k->co, s->L, narg, n);
    if (s->budget.ended)
        (void)lkl_budget_close_coroutine(s, k->co);
    kl_over over = lkl_budget_leave(s);
    s->ceiling.on = false;
    s->run = NULL;
    s->reader = NULL;
    s->serial = 0;
    return over;
}

static kl_run_state drive(lkl__worker *w, kl_run *run, int narg)
{
    lkl__key *k = kl_run_user(run);
    int n = 0, st;
    kl_over over = turn(w, run, narg, &st, &n);
    if (over == KL_OVER_STOP)
        return KL_RUN_WAITING; /* it is abandoned next */
    if (st == LUA_YIELD && !over) {
        lua_pop(k->co, n);
        return KL_RUN_WAITING;
    }
    if (st == LUA_OK && !over && n == 0)
        kl_run_finish(run, KL_RESULT_DONE, 0, NULL, NULL);
    else if (st == LUA_OK && !over && n == 3)
        finish(run, k->co, NULL);
    else
        finish_failed(w, run, k->co, st, over);
    kl_run_set_user(run, NULL);
    key_free(w, k, st == LUA_OK);
    kl_free(w->lua->traceback);
    w->lua->traceback = NULL;
    w->lua->worn |= st == LUA_ERRERR; /* an error on the way out of another one */
    if (st == LUA_ERRMEM)
        lkl__worker_make_room(w);
    return KL_RUN_DONE;
}

/* The message handler of a key, called before the stack unwinds. A spent budget has its own message, made
 * earlier. */
static int keep_traceback(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    bool counted = s->ceiling.on;
    if (s->budget.message || s->traceback)
        return 1;
    s->ceiling.on = false;
    s->traceback = lkl__traceback(L);
    s->ceiling.on = counted;
    return 1;
}

static int entered(lua_State *L, int status, lua_KContext ctx)
{
    (void)ctx;
    return status == LUA_OK || status == LUA_YIELD ? lua_gettop(L) - 1 : lua_error(L);
}

/* The body of each coroutine: an allocation error in it belongs to the key, like any other error. Upvalues:
 * script.run and the controller. Protected, since a coroutine that an error of a hook ends never runs a hook
 * again: variables that close at its end could not be stopped. */
int lkl__run_body(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    lua_pushcfunction(L, keep_traceback);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, lua_upvalueindex(2));
    lkl_push_object(L, kl_run_object(s->run));
    lkl__push_context(L, s->serial, -1);
    return entered(L, lua_pcallk(L, 3, LUA_MULTRET, 1, 0, entered), 0);
}

kl_run_state lkl__run_start(void *state, kl_run *run)
{
    lkl__worker *w = state;
    lkl__key *k = key_new(w);
    kl_run_set_user(run, k);
    lua_rawgeti(w->lua->L, LUA_REGISTRYINDEX, w->body);
    lua_xmove(w->lua->L, k->co, 1);
    return drive(w, run, 0);
}

kl_run_state lkl__run_resume(void *state, kl_run *run) { return drive(state, run, 0); }

bool lkl__run_rest(void *state, bool idle)
{
    lkl__worker *w = state;
    return lkl_gc_rest(w->lua, idle);
}

bool lkl__run_worn(void *state) { return ((lkl__worker *)state)->lua->worn; }

void lkl__run_abandon(void *state, kl_run *run)
{
    lkl__key *k = kl_run_user(run);
    kl_run_set_user(run, NULL);
    if (k)
        key_free(state, k, false);
}
