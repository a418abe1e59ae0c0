/* shown.c - a value as text, without its place in memory.
 *
 * Lua writes a table as "table: 0x55d0c3a5a2b0". Such an address helps an attacker of this process, so
 * scripts see another number: the same for the same value as long as it lives, and of no use for computing
 * an address (kl_hash has a seed per process). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "state/border.h"
#include "state/bounds.h"

static bool shows_its_address(lua_State *L, int idx)
{
    switch (lua_type(L, idx)) {
    case LUA_TTABLE:
    case LUA_TUSERDATA:
    case LUA_TLIGHTUSERDATA:
    case LUA_TFUNCTION:
    case LUA_TTHREAD: break;
    default: return false;
    }
    if (luaL_getmetafield(L, idx, "__tostring") == LUA_TNIL)
        return true;
    lua_pop(L, 1);
    return false;
}

const char *lkl__shown(lua_State *L, int idx, size_t *n)
{
    idx = lua_absindex(L, idx);
    if (!shows_its_address(L, idx))
        return luaL_tolstring(L, idx, n);
    const void *place = lua_topointer(L, idx);
    char number[19];
    snprintf(number, sizeof number, "0x%016" PRIx64, kl_hash(&place, sizeof place));
    int type = luaL_getmetafield(L, idx, "__name");
    lua_pushfstring(L, "%s: %s", type == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, idx), number);
    if (type != LUA_TNIL)
        lua_remove(L, -2);
    return lua_tolstring(L, -1, n);
}

static int to_string(lua_State *L)
{
    luaL_checkany(L, 1);
    lkl__shown(L, 1, NULL);
    return 1;
}

/* Quoting writes four characters for one, each formatted by itself: a tenth of a microsecond. */
#define QUOTED_MAX ((size_t)1 << 20)

static void check_argument(lua_State *L, char conversion, int arg)
{
    switch (conversion) {
    case 'p':
        luaL_error(L, "'%%p' would show where a value lies in memory; tostring(value) tells values apart");
        break;
    case 'q':
        if (lua_type(L, arg) == LUA_TSTRING && lua_rawlen(L, arg) > QUOTED_MAX)
            luaL_argerror(L, arg, "a string quoted by %q may have at most 1 MiB");
        break;
    case 's':
        if (shows_its_address(L, arg)) {
            lkl__shown(L, arg, NULL);
            lua_replace(L, arg);
        }
        break;
    default: break;
    }
}

/* string.format, the upvalue, without addresses, and with texts that %q can quote in one call. */
static int format(lua_State *L)
{
    size_t n;
    const char *how = luaL_checklstring(L, 1, &n), *end = how + n;
    int last = lua_gettop(L);
    for (int arg = 2; how < end && arg <= last; how++) {
        if (*how != '%')
            continue;
        how++;
        while (how < end && *how && strchr("-+ #0123456789.", *how))
            how++;
        if (how < end && *how != '%')
            check_argument(L, *how, arg++);
    }
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

void lkl_install_shown(lua_State *L)
{
    lua_pushcfunction(L, to_string);
    lua_setglobal(L, "tostring");
    lua_getglobal(L, "string");
    lua_getfield(L, -1, "format");
    lua_pushcclosure(L, format, 1);
    lua_setfield(L, -2, "format");
    lua_pop(L, 1);
}
