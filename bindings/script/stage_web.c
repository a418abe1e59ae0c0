/* stage_web.c - answers ctx.http on a stage: requests wait in a list for the thread that settles, whose Lua
 * state has the function that answers (kube.testing.http).
 *
 *   a worker: asked --listed--> the stage's thread: function called -> answered -> the worker goes on */
#include <string.h>

#include "base/mem.h"
#include "client/web.h"
#include "script/stage.h"
#include "state/border.h"

struct lkl_ask {
    kl_web_call *call;
    const kl_op *op; /* the call's */
    struct lkl_ask *next;
};

static void refuse(kl_web_call *call, kl_status st, const char *why)
{
    kl_err err = KL_ERR_INIT;
    (void)kl_fail(&err, st, "%s", why);
    kl_web_answer(call, &(kl_web_reply){.status = st, .err = &err});
    kl_err_fini(&err);
}

void lkl__stage_ask(void *stage, kl_web_call *call, const kl_op *op)
{
    lkl_stage *s = stage;
    kl_lock(&s->web.mu);
    bool open = s->web.open;
    if (open) {
        lkl_ask *a = kl_new(lkl_ask), **at = &s->web.first;
        a->call = call;
        a->op = op;
        while (*at)
            at = &(*at)->next;
        *at = a;
    }
    kl_unlock(&s->web.mu);
    if (!open)
        refuse(call, KL_EFORBIDDEN,
            "this test has no HTTP answers; give kube.testing.start { http = kube.testing.http() }");
}

static lkl_ask *take(lkl_stage *s)
{
    kl_lock(&s->web.mu);
    lkl_ask *a = s->web.first;
    if (a)
        s->web.first = a->next;
    kl_unlock(&s->web.mu);
    return a;
}

void lkl__stage_web_close(lkl_stage *s)
{
    kl_lock(&s->web.mu);
    s->web.open = false;
    kl_unlock(&s->web.mu);
    for (lkl_ask *a; (a = take(s)); kl_free(a))
        refuse(a->call, KL_ECANCELLED, "the test has ended");
}

/* --- the function ------------------------------------------------------------------------- */

typedef struct asking {
    lkl_ask *ask;
    bool answered;
} asking;

static kl_status word_status(const char *word)
{
    if (!strcmp(word, "timeout"))
        return KL_ETIMEOUT;
    return strcmp(word, "closed") == 0 ? KL_ECLOSED : KL_ECONNECT;
}

/* (function, asking): function(method, url, order) -> status, headers or nil, body; or nil, word, message */
static int ask(lua_State *L)
{
    asking *a = lua_touserdata(L, 2);
    const kl_op *op = a->ask->op;
    lua_settop(L, 1);
    lua_pushstring(L, op->subresource);
    lua_pushstring(L, op->name);
    lkl_push_value(L, op->body);
    lua_call(L, 3, 3);
    const char *word = lua_tostring(L, 2);
    if (lua_isnil(L, 1)) {
        const char *why = luaL_checkstring(L, 3);
        a->answered = true;
        refuse(a->ask->call, word_status(word ? word : ""), why);
        return 0;
    }
    kl_web_reply r = {.code = (int)luaL_checkinteger(L, 1), .headers = lkl_view_value(L, 2)};
    r.body = luaL_checklstring(L, 3, &r.len);
    a->answered = true;
    kl_web_answer(a->ask->call, &r);
    return 0;
}

/* The first error that the function raises is kept, and raised at the test's next settling. */
static void answer(lkl_stage *s, lkl_ask *a)
{
    lua_State *L = s->web.L;
    asking x = {.ask = a};
    lua_pushcfunction(L, ask);
    lua_getiuservalue(L, s->web.box, 1);
    lua_pushlightuserdata(L, &x);
    if (lua_pcall(L, 2, 0, 0)) {
        if (!s->web.raised)
            lua_setiuservalue(L, s->web.box, 2);
        else
            lua_pop(L, 1);
        s->web.raised = true;
        if (!x.answered)
            refuse(a->call, KL_EREJECTED, "the function of the test that answers it raised an error");
    }
}

void lkl__stage_web_serve(lkl_stage *s)
{
    if (!s->web.L)
        return;
    for (lkl_ask *a; (a = take(s)); kl_free(a))
        answer(s, a);
}

/* --- for lstage.c ------------------------------------------------------------------------- */

void lkl__stage_web_function(lua_State *L, lkl_stage *s)
{
    lua_settop(L, 2);
    bool some = lua_isfunction(L, 2);
    lua_setiuservalue(L, 1, 1);
    kl_lock(&s->web.mu);
    s->web.open = some;
    kl_unlock(&s->web.mu);
}

void lkl__stage_web_enter(lua_State *L, lkl_stage *s)
{
    luaL_checkstack(L, 16, "kube.testing");
    s->web.L = L;
    s->web.box = 1;
}

void lkl__stage_web_leave(lua_State *L, lkl_stage *s)
{
    s->web.L = NULL;
    if (!s->web.raised)
        return;
    s->web.raised = false;
    lua_getiuservalue(L, 1, 2);
    lua_pushnil(L);
    lua_setiuservalue(L, 1, 2);
    (void)lua_error(L);
}
