/* lttl.c - a store with time to live in Lua; lua/kubelua/ttl.lua gives it its shape and its clock. */
#include "state/border.h"
#include "base/mem.h"
#include "cache/ttl.h"

static void ttl_free(void *t) { kl_ttl_free(t); }

extern const lkl_class lkl__ttl_class;

static kl_ttl *self(lua_State *L) { return lkl_box_check(L, 1, &lkl__ttl_class); }
static kl_time now(lua_State *L, int idx) { return lkl__seconds(luaL_checknumber(L, idx)); }

/* t:put(now, key, object) */
static int put(lua_State *L)
{
    kl_ttl *t = self(L);
    const char *key = lkl__text(L, 3);
    const kl_value *v = lkl_view_value(L, 4);
    luaL_argcheck(L, v, 4, "expected a view");
    kl_ttl_put(t, key, v, now(L, 2));
    lkl_box_charge(L, lkl_box_at(L, 1), kl_ttl_bytes(t));
    return 0;
}

/* t:get(now, key): the object or nil */
static int get(lua_State *L)
{
    kl_ttl *t = self(L);
    const char *key = lkl__text(L, 3);
    kl_time at = now(L, 2);
    lkl__view_prepare(L);
    lkl__push_taken(L, kl_ttl_lookup(t, key, at));
    lkl__view_charge(L);
    return 1;
}

static int delete (lua_State *L)
{
    lua_pushboolean(L, kl_ttl_delete(self(L), lkl__text(L, 3), now(L, 2)));
    return 1;
}

static int len(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)kl_ttl_count(self(L), now(L, 2)));
    return 1;
}

static void objects_free(void *p)
{
    kl_objects_fini(p);
    kl_free(p);
}

static const lkl_class objects_class = {.name = "kubelua.objects", .free = objects_free};

static int list(lua_State *L)
{
    kl_ttl *t = self(L);
    kl_time at = now(L, 2);
    lkl_box *box = lkl_box_new(L, &objects_class, 0);
    kl_objects *o = box->ptr = kl_new(kl_objects);
    kl_ttl_list(t, at, o);
    lkl__push_list(L, o);
    lkl_box_close(L, -2);
    return 1;
}

/* core.ttl(seconds) */
static int ttl(lua_State *L)
{
    kl_time t = lkl_check_duration(L, 1, "the time to live");
    luaL_argcheck(L, t > 0, 1, "the time to live must be above zero");
    lkl_box *box = lkl_box_new(L, &lkl__ttl_class, 0);
    box->ptr = kl_ttl_new(t);
    return 1;
}

static const luaL_Reg methods[] = {
    {"put", put}, {"get", get}, {"delete", delete}, {"len", len}, {"list", list}, {NULL, NULL}};
const lkl_class lkl__ttl_class = {"kubelua.ttl", ttl_free, methods, NULL};

void lkl__open_ttl(lua_State *L)
{
    static const luaL_Reg functions[] = {{"ttl", ttl}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
