/* program.c - a script as a program of the runtime: its load, and what workers and the mapper call.
 *
 * A key is a coroutine of its state. start and resume run it until it waits or ends; then its outcome goes to
 * the run:
 *
 *   returned --settle (lua/kubelua/result.lua)--> done, after, retry, fail
 *   raised   --verdict--> conflict, retry, fail, or an error with its traceback */
#include "script/program.h"

#include <string.h>

#include "base/mem.h"
#include "script/specs.h"
#include "state/state.h"

typedef struct lkl_program {
    kl_program base; /* first */
    lkl_bundle bundle;
    lkl_isolation isolation;
    uint64_t digest;
    char *description;
    const kl_value *tables;
    lkl_state *_Atomic loaded; /* the state of the load, until a worker takes it */
} lkl_program;

static lkl_program *self(const kl_program *p) { return (lkl_program *)(void *)p; }

/* --- states ------------------------------------------------------------------------------- */

/* Coroutines are reused for later keys: a new one costs an allocation of its stack. */
#define POOL_MAX 64

/* A key's coroutine, and the registry reference that keeps it. */
typedef struct key_state {
    struct key_state *next; /* in the pool */
    lua_State *co;
    int ref;
    uint64_t serial; /* of its run */
} key_state;

typedef struct worker_state {
    lkl_state *lua;
    lkl_program *program;
    size_t controller;
    bool hook; /* it is a webhook */
    const atomic_bool *stop;
    int body; /* registry reference of the function that every key runs */
    key_state *pool;
    int idle;
    uint64_t serials;
} worker_state;

static int body(lua_State *L);

/* Pushes `body` with its two upvalues. */
static int make_body(lua_State *L)
{
    worker_state *w = lua_touserdata(L, 1);
    lkl_state_push(L, w->hook ? "review" : "run");
    lkl_state_push(L, "list");
    lua_rawgeti(L, -1, (lua_Integer)w->controller + 1);
    lua_remove(L, -2);
    lua_pushcclosure(L, body, 2);
    w->body = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

static void close_state(void *state)
{
    worker_state *w = state;
    for (key_state *k; (k = w->pool); kl_free(k))
        w->pool = k->next;
    lkl_state_free(w->lua);
    kl_free(w);
}

/* Takes the state of the load, once; the caller owns it. Making a state takes milliseconds, and a reload
 * waits for a program's first one. */
static lkl_state *take_loaded(lkl_program *p)
{
    lkl_state *s = atomic_exchange(&p->loaded, NULL);
    if (s)
        lkl_adopt(s->L);
    return s;
}

static void *open_state(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    lkl_program *me = self(p);
    worker_state *w = kl_new(worker_state);
    w->lua = take_loaded(me);
    if (!w->lua && lkl_state_new(&me->bundle, NULL, NULL, &w->lua, err)) {
        kl_free(w);
        return NULL;
    }
    w->program = me;
    w->controller = controller;
    w->stop = stop;
    w->hook = controller >= p->n_specs;
    w->lua->controller = kl_program_spec(p, controller)->name;
    w->lua->spec = kl_program_spec(p, controller);
    lkl__border(w->lua->L)->cuts = w->lua->spec->n_fields ? w->lua->spec : NULL;
    lua_pushcfunction(w->lua->L, make_body);
    lua_pushlightuserdata(w->lua->L, w);
    if (lua_pcall(w->lua->L, 1, 0, 0)) {
        char *text = lkl_state_error(w->lua->L);
        kl_status st = kl_fail(err, KL_ESCRIPT, "%s", text);
        (void)st;
        kl_free(text);
        close_state(w);
        return NULL;
    }
    lkl_gc_start(w->lua);
    if (w->lua->spec->memory)
        w->lua->ceiling.max = w->lua->spec->memory;
    return w;
}

static key_state *key_new(worker_state *w)
{
    key_state *k = w->pool;
    if (k) {
        w->pool = k->next;
        w->idle--;
    } else {
        k = kl_new(key_state);
        k->co = lua_newthread(w->lua->L);
        lkl__tag(k->co, LKL_TAG_KEY, true);
        k->ref = luaL_ref(w->lua->L, LUA_REGISTRYINDEX);
    }
    k->serial = ++w->serials;
    return k;
}

/* The budget of a turn of this state; run NULL: the turn belongs to no run. */
static kl_terms terms(const worker_state *w, const kl_run *run)
{
    kl_time cpu = w->lua->spec->cpu;
    return (kl_terms){.cpu = cpu ? cpu : LKL_CPU_DEFAULT,
        .deadline = run ? kl_run_deadline(run) : KL_NEVER,
        .stop = w->stop};
}

/* The budget of code that follows from a run: at most the default, whatever the run may spend. */
static kl_terms little(const worker_state *w)
{
    kl_terms t = terms(w, NULL);
    t.stop = NULL;
    if (t.cpu > LKL_CPU_DEFAULT)
        t.cpu = LKL_CPU_DEFAULT;
    return t;
}

/* Calls a function of ours that may call the script's, as a turn of its own; the arguments are on top of the
 * main thread's stack. */
static int pcall_turn(worker_state *w, int narg, int nres)
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
static void close_pending(worker_state *w, lua_State *co)
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
static void key_free(worker_state *w, key_state *k, bool returned)
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

/* --- running a key ------------------------------------------------------------------------ */

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
static void finish_error(worker_state *w, kl_run *run, lua_State *co)
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
static void finish_over(worker_state *w, kl_run *run, kl_over why)
{
    kl_run_spent(run, why == KL_OVER_DEADLINE ? KL_SPENT_TIME : KL_SPENT_CPU);
    kl_run_finish(run, KL_RESULT_ERROR, 0, w->lua->budget.message, w->lua->budget.traceback);
}

/* The memory ceiling was reached, or the machine's memory. The stack is unwound by now, but the line is
 * known. */
static char *too_big(const worker_state *w)
{
    char *other = lkl_ceiling_tell_other(&w->lua->ceiling);
    if (other)
        return other;
    const char *where = w->lua->ceiling.where;
    size_t max = w->lua->ceiling.max;
    bool whole = !(max & ((1u << 20) - 1));
    return kl_sprintf("%s%snot enough memory: a worker's state may hold %zu%s (`memory` of %s); raise it, or "
                      "keep less data at once",
        where, *where ? ": " : "", whole ? max >> 20 : max >> 10, whole ? "Mi" : "Ki", w->lua->controller);
}

/* Collects what the key or function held, so that the next one starts with room. What remains is held by
 * others. */
static void make_room(worker_state *w)
{
    lua_gc(w->lua->L, LUA_GCCOLLECT);
    w->lua->worn |= lkl_ceiling_is_worn(&w->lua->ceiling);
}

static void finish_too_big(worker_state *w, kl_run *run)
{
    char *why = too_big(w);
    if (!w->lua->ceiling.other)
        kl_run_spent(run, KL_SPENT_MEMORY);
    kl_run_finish(run, KL_RESULT_ERROR, 0, why, NULL);
    kl_free(why);
}

static int raised_protected(lua_State *L)
{
    worker_state *w = lua_touserdata(L, 1);
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
static void finish_raised(worker_state *w, kl_run *run, lua_State *co, const char *traceback)
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
    worker_state *w, kl_run *run, lua_State *co, const char *why, const char *traceback)
{
    char *said = kl_strdup(why), *where = kl_strdup(traceback); /* copies: the next turn overwrites them */
    lua_settop(co, 0);
    lua_pushstring(co, said);
    finish_raised(w, run, co, where);
    kl_free(said);
    kl_free(where);
}

static void finish_raised_too_big(worker_state *w, kl_run *run, lua_State *co)
{
    char *why = too_big(w);
    if (!w->lua->ceiling.other)
        kl_run_spent(run, KL_SPENT_MEMORY);
    finish_raised_as(w, run, co, why, NULL);
    kl_free(why);
}

/* Ends the run of a coroutine that did not return. */
static void finish_failed(worker_state *w, kl_run *run, lua_State *co, int st, kl_over over)
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

static kl_over turn(worker_state *w, kl_run *run, int narg, int *st, int *n)
{
    lkl_state *s = w->lua;
    key_state *k = kl_run_user(run);
    kl_terms t = terms(w, run);
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

static kl_run_state drive(worker_state *w, kl_run *run, int narg)
{
    key_state *k = kl_run_user(run);
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
        make_room(w);
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
static int body(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    lua_pushcfunction(L, keep_traceback);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, lua_upvalueindex(2));
    lkl_push_object(L, kl_run_object(s->run));
    lkl__push_context(L, s->serial, -1);
    return entered(L, lua_pcallk(L, 3, LUA_MULTRET, 1, 0, entered), 0);
}

static kl_run_state start(void *state, kl_run *run)
{
    worker_state *w = state;
    key_state *k = key_new(w);
    kl_run_set_user(run, k);
    lua_rawgeti(w->lua->L, LUA_REGISTRYINDEX, w->body);
    lua_xmove(w->lua->L, k->co, 1);
    return drive(w, run, 0);
}

static kl_run_state resume(void *state, kl_run *run) { return drive(state, run, 0); }

static bool rest(void *state, bool idle)
{
    worker_state *w = state;
    return lkl_gc_rest(w->lua, idle);
}

static bool worn(void *state) { return ((worker_state *)state)->lua->worn; }

static void abandon(void *state, kl_run *run)
{
    key_state *k = kl_run_user(run);
    kl_run_set_user(run, NULL);
    if (k)
        key_free(state, k, false);
}

/* --- functions of the script, on the mapper thread ---------------------------------------- */

/* Emitted texts wait until the function has returned: a function that fails has emitted nothing. */
typedef struct emit_call {
    kl_emit_fn *emit;
    void *arg;
    const char *words; /* what they are, for messages */
    size_t max, n;
    kl_buf texts; /* each with its NUL */
    size_t charged;
} emit_call;

/* The most keys that one event may wake, and values that one object may have in an index. Each is handled
 * under the index's lock or by the queue, where no script's budget counts. */
#define KEYS_MAX 100000
#define VALUES_MAX 10000
#define EMITTED_BYTES_MAX ((size_t)16 << 20)
/* The memory that an emitted text takes besides its bytes, until the function has returned. */
#define EMITTED 64

static int emit_text(lua_State *L)
{
    emit_call *c = lua_touserdata(L, lua_upvalueindex(1));
    const char *text = lkl__text(L, 1);
    size_t len = lua_rawlen(L, 1);
    if (c->n == c->max)
        return lkl__error(L, "more than %d %s from one object", (int)c->max, c->words);
    if (len > EMITTED_BYTES_MAX - (c->texts.len - c->n))
        return lkl__error(
            L, "more than %d MiB of %s from one object", (int)(EMITTED_BYTES_MAX >> 20), c->words);
    lkl_ceiling_charge(L, &c->charged, c->charged + len + EMITTED);
    (void)kl_buf_add(&c->texts, text, len + 1); /* far below its ceiling */
    c->n++;
    return 0;
}

static void emit_all(const emit_call *c)
{
    const char *text = c->texts.data;
    for (size_t i = 0; i < c->n; i++, text += strlen(text) + 1)
        c->emit(c->arg, text);
}

/* Calls script.<what>(controller, fn, a, b, emit); its one result stays on the stack of a good call. */
typedef struct fn_call {
    worker_state *w;
    const char *what;
    size_t fn;
    const kl_value *a, *b;
    emit_call *emit;
    bool pass;
} fn_call;

static int call_protected(lua_State *L)
{
    fn_call *c = lua_touserdata(L, 1);
    lkl_state_push(L, c->what);
    lkl_state_push(L, "list");
    lua_rawgeti(L, -1, (lua_Integer)c->w->controller + 1);
    lua_remove(L, -2);
    lua_pushinteger(L, (lua_Integer)c->fn);
    lkl_push_object(L, c->a);
    if (c->b)
        lkl_push_object(L, c->b);
    else
        lua_pushnil(L);
    lua_pushlightuserdata(L, c->emit);
    lua_pushcclosure(L, emit_text, 1);
    lua_call(L, 5, 1);
    c->pass = lua_toboolean(L, -1);
    return 0;
}

static kl_status call_fn(fn_call *c, kl_reader *reader, kl_err *err)
{
    lua_State *L = c->w->lua->L;
    kl_status st = KL_OK;
    c->w->lua->reader = reader;
    kl_terms t = terms(c->w, NULL);
    lkl_budget_enter(c->w->lua, L, &t);
    c->w->lua->ceiling.on = true;
    *c->w->lua->ceiling.where = 0;
    lua_pushcfunction(L, call_protected);
    lua_pushlightuserdata(L, c);
    int failed = lua_pcall(L, 1, 0, 0);
    lkl_ceiling_charge(L, &c->emit->charged, 0);
    c->w->lua->ceiling.on = false;
    char *text = failed == LUA_ERRMEM ? too_big(c->w) : failed ? lkl_state_error(L) : NULL;
    if (failed == LUA_ERRMEM)
        lua_pop(L, 1);
    kl_over over = lkl_budget_leave(c->w->lua);
    lkl_budget_clean(c->w->lua, L);
    if (failed == LUA_ERRMEM)
        make_room(c->w);
    bool full = failed == LUA_ERRMEM && !c->w->lua->ceiling.other;
    if (failed || over)
        st = kl_fail(err,
            over == KL_OVER_STOP ? KL_ECANCELLED
                : over           ? KL_ETIMEOUT
                : full           ? KL_ETOOBIG
                                 : KL_ESCRIPT,
            "%s", over ? c->w->lua->budget.message : text);
    kl_free(text);
    c->w->lua->reader = NULL;
    if (!st)
        emit_all(c->emit);
    kl_buf_fini(&c->emit->texts);
    return st;
}

static kl_status map(void *state, size_t fn, kl_reader *reader, const kl_value *object, kl_emit_fn *emit_key,
    void *arg, kl_err *err)
{
    return call_fn(&(fn_call){.w = state,
                       .what = "map",
                       .fn = fn,
                       .a = object,
                       .emit = &(emit_call){.emit = emit_key, .arg = arg, .words = "keys", .max = KEYS_MAX}},
        reader, err);
}

static kl_status index_of(
    void *state, size_t fn, const kl_value *object, kl_emit_fn *emit_value, void *arg, kl_err *err)
{
    return call_fn(
        &(fn_call){.w = state,
            .what = "index",
            .fn = fn,
            .a = object,
            .emit = &(emit_call){.emit = emit_value, .arg = arg, .words = "values", .max = VALUES_MAX}},
        NULL, err);
}

static kl_status predicate(
    void *state, size_t fn, const kl_value *now, const kl_value *old, bool *pass, kl_err *err)
{
    fn_call c = {.w = state,
        .what = "predicate",
        .fn = fn,
        .a = now,
        .b = old,
        .emit = &(emit_call){.words = "values"}};
    kl_status st = call_fn(&c, NULL, err);
    *pass = c.pass;
    return st;
}

/* --- loading ------------------------------------------------------------------------------ */

static void program_free(kl_program *p)
{
    lkl_program *me = self(p);
    for (size_t i = 0; i < p->n_specs; i++)
        kl_controller_spec_fini(&p->specs[i]);
    kl_free(p->specs);
    for (size_t i = 0; i < p->n_hooks; i++)
        kl_webhook_spec_fini(&p->hooks[i]);
    kl_free(p->hooks);
    kl_value_unref(p->metrics);
    lkl_state_free(take_loaded(me));
    kl_value_unref(p->crds);
    kl_value_unref(me->tables);
    kl_free(me->description);
    lkl_bundle_fini(&me->bundle);
    kl_free(me);
}

/* Of a program that has its bundle. */
static kl_status load_bundle(lkl_program *p, kl_program **out, kl_err *err)
{
    static const kl_program_ops ops = {.open = open_state,
        .close = close_state,
        .start = start,
        .resume = resume,
        .rest = rest,
        .worn = worn,
        .abandon = abandon,
        .map = map,
        .index = index_of,
        .predicate = predicate,
        .free = program_free};
    p->base.ops = &ops;
    p->base.name = p->bundle.sources[0].path;
    atomic_init(&p->base.refs, 1);
    lkl_state *loaded = NULL;
    lkl_specs read = {.program = &p->base};
    kl_status st = lkl_state_new(&p->bundle, lkl__read_specs, &read, &loaded, err);
    atomic_init(&p->loaded, loaded);
    p->description = read.description;
    p->tables = read.tables;
    if (!st)
        st = lkl_isolate_apply(&p->base, err);
    if (st) {
        program_free(&p->base);
        return st;
    }
    if (p->base.ops != &ops) /* its states are processes */
        lkl_state_free(take_loaded(p));
    p->digest = lkl_bundle_digest(&p->bundle);
    *out = &p->base;
    return KL_OK;
}

kl_status lkl_program_load(const char *path, kl_program **out, kl_err *err)
{
    lkl_program *p = kl_new(lkl_program);
    kl_status st = lkl_bundle_init(&p->bundle, path, err);
    if (!st)
        return load_bundle(p, out, err);
    kl_free(p);
    return st;
}

kl_status lkl_program_load_text(const char *path, const char *text, size_t len, kl_program **out, kl_err *err)
{
    lkl_program *p = kl_new(lkl_program);
    lkl_bundle_init_text(&p->bundle, path, text, len);
    return load_bundle(p, out, err);
}

kl_status lkl_program_load_texts(
    const char *name, const kl_value *texts, const char *main, kl_program **out, kl_err *err)
{
    lkl_program *p = kl_new(lkl_program);
    kl_status st = lkl_bundle_init_texts(&p->bundle, name, texts, main, err);
    if (!st)
        return load_bundle(p, out, err);
    kl_free(p);
    return st;
}

kl_status lkl_program_load_bundle(lkl_bundle *bundle, kl_program **out, kl_err *err)
{
    lkl_program *p = kl_new(lkl_program);
    p->bundle = *bundle;
    return load_bundle(p, out, err);
}

const lkl_bundle *lkl_program_bundle(const kl_program *p) { return &self(p)->bundle; }
lkl_isolation *lkl_program_isolation(kl_program *p) { return &self(p)->isolation; }
uint64_t lkl_program_digest(const kl_program *p) { return self(p)->digest; }
const char *const *lkl_program_files(const kl_program *p) { return self(p)->bundle.paths; }
const kl_value *lkl_program_tables(const kl_program *p) { return self(p)->tables; }

char *lkl_program_describe(const kl_program *p) { return kl_strdup(self(p)->description); }
