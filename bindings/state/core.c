/* core.c - the module kubelua.core: one table of C functions per Lua state, on which lua/kubelua builds
 * what people use.
 *
 * Two tables: a script's state gets what computes, a program's own state everything. What reaches files,
 * processes or the network does not exist in a script's state, so nothing has to keep a script away from
 * it. */
#include <stdio.h>
#include <string.h>
#include "state/border.h"

static const char module_key;

void lkl__push_script_core(lua_State *L)
{
    lua_newtable(L);
    lkl__open_scalars(L);
    lkl__open_values(L);
    lkl__open_convert(L);
    lkl__open_codec(L);
    lkl__open_base64(L);
    lkl__open_draft(L);
    lkl__open_nil(L);
    lkl__open_error(L);
    lkl__open_quantity(L);
    lkl__open_time(L);
    lkl__open_clock(L);
    lkl__open_selector(L);
    lkl__open_patch(L);
    lkl__open_op(L);
    lkl__open_suggest(L);
}

/* What only a program of one's own may call: clients, files, certificates, stores without a bound, servers
 * for tests. */
static void open_host(lua_State *L)
{
    lkl__open_client(L);
    lkl__open_informer(L);
    lkl__open_host(L);
    lkl__open_ttl(L);
    lkl__open_cert(L);
    lkl__open_stage(L);
    lkl__open_bounds(L);
}

int lkl_open(lua_State *L)
{
    luaL_checkversion(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &module_key) == LUA_TTABLE)
        return 1;
    lua_pop(L, 1);
    lkl__push_script_core(L);
    open_host(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &module_key);
    return 1;
}

int luaopen_kubelua_core(lua_State *L) { return lkl_open(L); }

/* --- our own states carry the library in the binary --------------------------------------- */

/* Pushes the chunk of an embedded source, compiled. */
static void push_embedded(lua_State *L, const lkl_embedded_source *s)
{
    char chunk[128];
    snprintf(
        chunk, sizeof chunk, "@kubelua/%s.lua", strchr(s->name, '.') ? strchr(s->name, '.') + 1 : "init");
    if (luaL_loadbufferx(L, s->text, s->len, chunk, "t"))
        lua_error(L);
}

static int load_embedded(lua_State *L)
{
    const lkl_embedded_source *s = lua_touserdata(L, lua_upvalueindex(1));
    push_embedded(L, s);
    lua_pushstring(L, s->name);
    lua_call(L, 1, 1);
    return 1;
}

bool lkl__push_embedded(lua_State *L, const char *name)
{
    for (const lkl_embedded_source *s = lkl_embedded; s->name; s++)
        if (!strcmp(s->name, name)) {
            push_embedded(L, s);
            return true;
        }
    return false;
}

void lkl_preload_embedded(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_kubelua_core);
    lua_setfield(L, -2, "kubelua.core");
    for (const lkl_embedded_source *s = lkl_embedded; s->name; s++) {
        lua_pushlightuserdata(L, (void *)s);
        lua_pushcclosure(L, load_embedded, 1);
        lua_setfield(L, -2, s->name);
    }
    lua_pop(L, 1);
}
