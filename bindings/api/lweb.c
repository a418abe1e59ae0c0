/* lweb.c - kube.http of a program: requests to servers that are no API server, on a thread and connections of
 * their own (client/web.h).
 *
 *   web:begin(op) --> call:poll() --> false (nothing yet) ... then true and the answer, or a raised error */
#include "api/post.h"
#include "base/mem.h"
#include "base/version.h"

static const lkl_class web_class;

/* web:begin(op): a call. Its messages have the displayable form of the URL, not the URL. */
static int begin(lua_State *L)
{
    lkl_hub *h = lkl_box_check(L, 1, &web_class);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    kl_op op;
    lkl_op_from_table(L, 2, &op);
    if (op.verb != KL_HTTP)
        return luaL_argerror(L, 2, "expected a request to another server");
    op.http = kl_web_anywhere;
    lua_createtable(L, 0, 1);
    lua_pushstring(L, op.subresource);
    lua_setfield(L, -2, "verb");
    lkl_box *box = lkl__post_box(L, &lkl__call_class);
    lkl_post *p = lkl__post_new(h);
    box->ptr = p;
    p->id = kl_web_do(h->web, &op, lkl__post_reply, p);
    return 1;
}

static const luaL_Reg web_methods[] = {{"begin", begin}, {"close", lkl__box_close}, {NULL, NULL}};
static const lkl_class web_class = {"kubelua.web", lkl__hub_free, web_methods, NULL};

/* core.web(): its thread starts with the first request, and ends with the state. */
static int web(lua_State *L)
{
    lkl_box *box = lkl_box_new(L, &web_class, 0);
    lkl_hub *h = kl_new(lkl_hub);
    box->ptr = h;
    h->web = kl_web_new(&(kl_web_options){.user_agent = "kubelua/" KL_VERSION});
    return 1;
}

void lkl__open_web(lua_State *L)
{
    lua_pushcfunction(L, web);
    lua_setfield(L, -2, "web");
}
