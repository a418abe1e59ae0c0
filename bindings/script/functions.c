/* functions.c - a script's functions for mapping, indexing and predicates, which the mapper thread calls. */
#include "script/worker.h"

#include <string.h>

#include "base/mem.h"

/* Emitted texts wait until the function has returned: a function that fails has emitted nothing. */
typedef struct emit_call {
    kl_emit_fn *emit;
    void *arg;
    const char *words; /* what they are, for messages */
    size_t max, n;
    kl_buf texts; /* each with its NUL */
    size_t charged;
} emit_call;

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
    lkl__worker *w;
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
    kl_terms t = lkl__worker_terms(c->w, NULL);
    lkl_budget_enter(c->w->lua, L, &t);
    c->w->lua->ceiling.on = true;
    *c->w->lua->ceiling.where = 0;
    lua_pushcfunction(L, call_protected);
    lua_pushlightuserdata(L, c);
    int failed = lua_pcall(L, 1, 0, 0);
    lkl_ceiling_charge(L, &c->emit->charged, 0);
    c->w->lua->ceiling.on = false;
    char *text = failed == LUA_ERRMEM ? lkl__worker_too_big(c->w) : failed ? lkl_state_error(L) : NULL;
    if (failed == LUA_ERRMEM)
        lua_pop(L, 1);
    kl_over over = lkl_budget_leave(c->w->lua);
    lkl_budget_clean(c->w->lua, L);
    if (failed == LUA_ERRMEM)
        lkl__worker_make_room(c->w);
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

kl_status lkl__call_map(void *state, size_t fn, kl_reader *reader, const kl_value *object,
    kl_emit_fn *emit_key, void *arg, kl_err *err)
{
    return call_fn(
        &(fn_call){.w = state,
            .what = "map",
            .fn = fn,
            .a = object,
            .emit = &(emit_call){.emit = emit_key, .arg = arg, .words = "keys", .max = KL_EMITTED_KEYS}},
        reader, err);
}

kl_status lkl__call_index(
    void *state, size_t fn, const kl_value *object, kl_emit_fn *emit_value, void *arg, kl_err *err)
{
    return call_fn(
        &(fn_call){.w = state,
            .what = "index",
            .fn = fn,
            .a = object,
            .emit = &(
                emit_call){.emit = emit_value, .arg = arg, .words = "values", .max = KL_EMITTED_VALUES}},
        NULL, err);
}

kl_status lkl__call_predicate(
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
