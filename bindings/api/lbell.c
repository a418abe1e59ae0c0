/* lbell.c - a bell for Lua: bell:fd(), bell:hush(), bell:alarm(seconds), bell:wait(seconds). */
#include "api/bell.h"
#include "state/border.h"
#include "api/post.h"

static void bell_free(void *b) { lkl__bell_unref(b); }
static lkl_bell *self(lua_State *L) { return lkl_box_check(L, 1, &lkl__bell_class); }

/* core.bell() */
static int bell(lua_State *L)
{
    lkl_box *box = lkl_box_new(L, &lkl__bell_class, 0);
    lkl_bell *b = NULL;
    kl_err err = KL_ERR_INIT;
    if (lkl__bell_new(&b, &err))
        return lkl__fail(L, &err);
    box->ptr = b;
    return 1;
}

static int fd(lua_State *L)
{
    lua_pushinteger(L, lkl__bell_fd(self(L)));
    return 1;
}

static int hush(lua_State *L)
{
    lkl__bell_hush(self(L));
    return 0;
}

/* bell:alarm(seconds): math.huge for none */
static int alarm_at(lua_State *L)
{
    lkl__bell_alarm(self(L), lkl__seconds(luaL_checknumber(L, 2)));
    return 0;
}

/* bell:wait(seconds): whether it rang; one slice at most */
static int wait(lua_State *L)
{
    kl_time most = lkl__seconds(luaL_checknumber(L, 2));
    lua_pushboolean(L, lkl__bell_wait(self(L), most < 0 ? 0 : most < LKL_SLICE ? most : LKL_SLICE));
    return 1;
}

static const luaL_Reg methods[] = {
    {"fd", fd}, {"hush", hush}, {"alarm", alarm_at}, {"wait", wait}, {NULL, NULL}};
const lkl_class lkl__bell_class = {"kubelua.bell", bell_free, methods, NULL};

void lkl__open_bell(lua_State *L)
{
    lua_pushcfunction(L, bell);
    lua_setfield(L, -2, "bell");
}
