/* lroutine.c - the coroutine library of scripts.
 *
 * A key runs as a coroutine of ours, and an API call yields it to the worker. When a script's own
 * coroutine makes the call, the yield must pass through every resume above it: a yield to the runtime
 * carries a mark, and resume hands it on instead of returning it, and resumes its coroutine again when it
 * is resumed itself.
 *
 * Meanwhile other keys of the state run. The coroutines of a waiting run are tagged, and only the runtime
 * resumes or closes them. A script that finds one in a variable sees the status `normal`, as of a coroutine
 * that resumed another.
 *
 * Meanwhile other keys of the state run. The coroutines of a run that waits are tagged, and nobody but the
 * runtime resumes or closes them: to whoever finds one in a variable they are `normal`, as one is that
 * resumed another. */
#include <string.h>
#include "state/depth.h"
#include "state/flaws.h"
#include "state/state.h"

static const char mark;

bool lkl__may_wait(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    return lua_isyieldable(L) && !s->unyieldable;
}

int lkl__wait(lua_State *L, lua_KContext ctx, lua_KFunction k)
{
    lua_pushlightuserdata(L, (void *)&mark);
    return lua_yieldk(L, 1, ctx, k);
}

static lua_State *coroutine(lua_State *L, int idx)
{
    lua_State *co = lua_tothread(L, idx);
    if (!co)
        luaL_typeerror(L, idx, "coroutine");
    return co;
}

/* Only the runtime resumes it. */
static bool is_runtimes(lua_State *co)
{
    return lkl__has_tag(co, LKL_TAG_KEY) || lkl__has_tag(co, LKL_TAG_WAITS);
}

static const char *status_of(lua_State *L, lua_State *co)
{
    lua_Debug ar;
    if (L == co)
        return "running";
    switch (lua_status(co)) {
    case LUA_YIELD: return is_runtimes(co) ? "normal" : "suspended";
    case LUA_OK:
        if (lua_getstack(co, 0, &ar))
            return "normal";
        return lua_gettop(co) ? "suspended" : "dead";
    default: return "dead";
    }
}

/* Closes the pending variables of a coroutine, which may run its code. */
static int closed(lua_State *L, lua_State *co)
{
    lkl_state *s = lkl_state_of(L);
    if (s->closing == LKL_CLOSES_MAX)
        luaL_error(L, "coroutines close each other more than %d deep", LKL_CLOSES_MAX);
    s->closing++;
    int st = lkl_budget_close_coroutine(s, co);
    s->closing--;
    lkl_budget_check(L);
    return st;
}

typedef enum outcome { RETURNED, RAISED, HANDED_ON } outcome;

/* Why co cannot be resumed or closed. */
static const char *whose(lua_State *L, lua_State *co)
{
    return L != co && lua_status(co) == LUA_YIELD && is_runtimes(co) ? ": it is waiting in its own run" : "";
}

/* Resumes co with the top narg values of L. RETURNED: its n results are on top of L. RAISED: the error is.
 * HANDED_ON: L must yield to the runtime and come back. */
static outcome drive(lua_State *L, lua_State *co, int narg, int *n)
{
    lkl_state *s = lkl_state_of(L);
    if (lua_status(co) == LUA_OK && lua_gettop(co) == 0) {
        lua_pop(L, narg);
        lua_pushliteral(L, "cannot resume dead coroutine");
        return RAISED;
    }
    if (strcmp(status_of(L, co), "suspended") || !lkl_depth_room(co, (size_t)narg)) {
        lua_pop(L, narg);
        lua_pushfstring(L, "cannot resume %s coroutine%s",
            strcmp(status_of(L, co), "suspended") ? status_of(L, co) : "a full", whose(L, co));
        return RAISED;
    }
    bool alone = !lua_isyieldable(L); /* nothing above us can yield, so calls below cannot wait */
    s->unyieldable += alone;
    lua_xmove(L, co, narg);
    lua_State *before = lkl_budget_switch(s, co);
    int st = lua_resume(co, L, narg, n);
    (void)lkl_budget_switch(s, before);
    s->unyieldable -= alone;
    /* the key's turn has ended: this coroutine is closed, so that no other key finds it alive */
    if (lkl_budget_is_over(L))
        (void)closed(L, co);
    if (st == LUA_ERRMEM) { /* a script cannot catch this either, except for a stack overflow */
        lua_xmove(co, L, 1);
        if (!lkl__was_too_deep(L))
            lua_error(L);
        return RAISED;
    }
    if (st == LUA_YIELD && *n == 1 && lua_touserdata(co, -1) == &mark) {
        lua_pop(co, 1);
        lkl__tag(co, LKL_TAG_WAITS, true);
        return HANDED_ON;
    }
    if (st == LUA_OK || st == LUA_YIELD) {
        if (!lkl_depth_room(L, (size_t)*n + 1)) {
            lua_pop(co, *n);
            lua_pushliteral(L, "too many results to resume");
            return RAISED;
        }
        lua_xmove(co, L, *n);
        return RETURNED;
    }
    lua_xmove(co, L, 1);
    return RAISED;
}

/* Goes on: what the coroutine waited for has arrived. */
static outcome drive_on(lua_State *L, lua_State *co, int *n)
{
    lkl__tag(co, LKL_TAG_WAITS, false);
    return drive(L, co, 0, n);
}

/* --- resume ------------------------------------------------------------------------------- */

static int resume_on(lua_State *L, int status, lua_KContext ctx);

static int resumed(lua_State *L, outcome o, int n)
{
    switch (o) {
    case HANDED_ON: return lkl__wait(L, 0, resume_on);
    case RAISED:
        lua_pushboolean(L, false);
        lua_insert(L, -2);
        return 2;
    default:
        lua_pushboolean(L, true);
        lua_insert(L, -(n + 1));
        return n + 1;
    }
}

static int resume_on(lua_State *L, int status, lua_KContext ctx)
{
    (void)status, (void)ctx;
    int n = 0;
    outcome o = drive_on(L, lua_tothread(L, 1), &n);
    return resumed(L, o, n);
}

static int resume(lua_State *L)
{
    lua_State *co = coroutine(L, 1);
    int n = 0;
    outcome o = drive(L, co, lua_gettop(L) - 1, &n);
    return resumed(L, o, n);
}

/* --- wrap --------------------------------------------------------------------------------- */

static int wrap_on(lua_State *L, int status, lua_KContext ctx);

static int wrapped(lua_State *L, lua_State *co, outcome o, int n)
{
    if (o == HANDED_ON)
        return lkl__wait(L, 0, wrap_on);
    if (o == RETURNED)
        return n;
    int st = lua_status(co);
    if (st != LUA_OK && st != LUA_YIELD) { /* an error in it: close its pending variables */
        closed(L, co);
        if (st != LUA_ERRMEM) { /* the message for that exists already */
            lua_pop(L, 1);
            lua_xmove(co, L, 1);
        }
    }
    if (lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int wrap_on(lua_State *L, int status, lua_KContext ctx)
{
    (void)status, (void)ctx;
    int n = 0;
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    outcome o = drive_on(L, co, &n);
    return wrapped(L, co, o, n);
}

static int wrap_call(lua_State *L)
{
    int n = 0;
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    outcome o = drive(L, co, lua_gettop(L), &n);
    return wrapped(L, co, o, n);
}

static int body_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)ctx;
    return status == LUA_OK || status == LUA_YIELD ? lua_gettop(L) : lua_error(L);
}

/* After an error of a hook a coroutine never runs a hook again, so variables that close at its end could not
 * be stopped. With a protected call around it, only that call ends. */
static int body(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    return body_done(L, lua_pcallk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, 0, body_done), 0);
}

static int create(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, body, 1);
    lua_xmove(L, co, 1);
    return 1;
}

static int wrap(lua_State *L)
{
    create(L);
    lua_pushcclosure(L, wrap_call, 1);
    return 1;
}

/* --- the rest ----------------------------------------------------------------------------- */

static int yield(lua_State *L)
{
    if (!lua_isyieldable(L))
        return luaL_error(L, "attempt to yield from outside a coroutine");
    if (lkl__is_key(L))
        return luaL_error(L,
            "attempt to yield from outside a coroutine: to wait in reconcile, use ctx:sleep or an API call");
    return lua_yield(L, lua_gettop(L));
}

static int status(lua_State *L)
{
    lua_pushstring(L, status_of(L, coroutine(L, 1)));
    return 1;
}

static int isyieldable(lua_State *L)
{
    lua_State *co = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
    lua_pushboolean(L, lua_isyieldable(co) && !lkl__is_key(co));
    return 1;
}

static int running(lua_State *L)
{
    lua_pushthread(L);
    lua_pushboolean(L, lkl__is_key(L));
    return 2;
}

static int close(lua_State *L)
{
    lua_State *co = coroutine(L, 1);
    const char *st = status_of(L, co);
    if (strcmp(st, "suspended") && strcmp(st, "dead"))
        return luaL_error(L, "cannot close a %s coroutine%s", st, whose(L, co));
    if (closed(L, co) == LUA_OK) {
        lua_pushboolean(L, true);
        return 1;
    }
    lua_pushboolean(L, false);
    lua_xmove(co, L, 1);
    return 2;
}

void lkl__push_coroutines(lua_State *L)
{
    static const luaL_Reg functions[] = {{"create", create}, {"resume", resume}, {"wrap", wrap},
        {"yield", yield}, {"status", status}, {"isyieldable", isyieldable}, {"running", running},
        {"close", close}, {NULL, NULL}};
    luaL_newlib(L, functions);
}
