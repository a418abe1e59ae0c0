/* scalar.c - what Lua has no type for: JSON null, integers above int64, and tables that know whether they are
 * lists. */
#include <stdio.h>
#include <string.h>
#include "state/border.h"

static const char null_tag, null_mt, uint64_tag, uint64_mt, array_mt, object_mt;

typedef struct lkl_uint64 {
    const void *tag;
    uint64_t u;
} lkl_uint64;

/* --- null --------------------------------------------------------------------------------- */

static int null_tostring(lua_State *L)
{
    lua_pushliteral(L, "null");
    return 1;
}

void lkl__push_null(lua_State *L)
{
    lkl__border_push(L);
    if (lua_getiuservalue(L, -1, BORDER_NULL) != LUA_TUSERDATA) {
        lua_pop(L, 1);
        *(const void **)lua_newuserdatauv(L, sizeof(void *), 0) = &null_tag;
        if (lkl__metatable(L, &null_mt, "kube.null")) {
            lua_pushcfunction(L, null_tostring);
            lua_setfield(L, -2, "__tostring");
            lkl__keep_metatable(L, &null_mt);
        }
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, -3, BORDER_NULL);
    }
    lua_remove(L, -2);
}

bool lkl__is_null(lua_State *L, int idx) { return lkl__tagged(L, idx, &null_tag, sizeof(void *)) != NULL; }

/* --- uint64 ------------------------------------------------------------------------------- */

bool lkl__uint64(lua_State *L, int idx, uint64_t *out)
{
    lkl_uint64 *x = lkl__tagged(L, idx, &uint64_tag, sizeof *x);
    if (x)
        *out = x->u;
    return x != NULL;
}

static bool parse_uint64(const char *s, uint64_t *out)
{
    uint64_t u = 0;
    if (!*s)
        return false;
    for (; *s; s++) {
        unsigned digit = (unsigned)(*s - '0');
        if (digit > 9 || u > (UINT64_MAX - digit) / 10)
            return false;
        u = u * 10 + digit;
    }
    *out = u;
    return true;
}

static int uint64_tostring(lua_State *L)
{
    uint64_t u = 0;
    lkl__uint64(L, 1, &u);
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)u);
    lua_pushstring(L, text);
    return 1;
}

/* Compares a uint64 with any number: -1, 0, 1; raises for other values. */
static int compare(lua_State *L)
{
    uint64_t a = 0, b = 0;
    bool ua = lkl__uint64(L, 1, &a), ub = lkl__uint64(L, 2, &b);
    if (ua && ub)
        return a < b ? -1 : a > b;
    int other = ua ? 2 : 1;
    int sign;
    if (lua_isinteger(L, other)) {
        lua_Integer i = lua_tointeger(L, other);
        uint64_t u = ua ? a : b;
        sign = i < 0 ? 1 : u < (uint64_t)i ? -1 : u > (uint64_t)i;
    } else {
        double x = luaL_checknumber(L, other), u = (double)(ua ? a : b);
        sign = u < x ? -1 : u > x;
    }
    return ua ? sign : -sign;
}

static int uint64_eq(lua_State *L)
{
    uint64_t a, b;
    lua_pushboolean(L, lkl__uint64(L, 1, &a) && lkl__uint64(L, 2, &b) && a == b);
    return 1;
}

static int uint64_lt(lua_State *L)
{
    lua_pushboolean(L, compare(L) < 0);
    return 1;
}

static int uint64_le(lua_State *L)
{
    lua_pushboolean(L, compare(L) <= 0);
    return 1;
}

/* An integer if it fits; else the nearest float. */
static int uint64_number(lua_State *L)
{
    uint64_t u = 0;
    if (!lkl__uint64(L, 1, &u))
        return luaL_typeerror(L, 1, "kube.uint64");
    if (u <= INT64_MAX)
        lua_pushinteger(L, (lua_Integer)u);
    else
        lua_pushnumber(L, (double)u);
    return 1;
}

static const luaL_Reg uint64_meta[] = {
    {"__tostring", uint64_tostring},
    {"__eq", uint64_eq},
    {"__lt", uint64_lt},
    {"__le", uint64_le},
    {NULL, NULL},
};
static const luaL_Reg uint64_methods[] = {{"number", uint64_number}, {NULL, NULL}};

void lkl__push_uint64(lua_State *L, uint64_t u)
{
    lkl_uint64 *x = lua_newuserdatauv(L, sizeof *x, 0);
    *x = (lkl_uint64){&uint64_tag, u};
    if (lkl__metatable(L, &uint64_mt, "kube.uint64")) {
        luaL_setfuncs(L, uint64_meta, 0);
        lua_newtable(L);
        luaL_setfuncs(L, uint64_methods, 0);
        lua_setfield(L, -2, "__index");
        lkl__keep_metatable(L, &uint64_mt);
    }
    lua_setmetatable(L, -2);
}

/* kube.uint64(text or integer) */
static int make_uint64(lua_State *L)
{
    uint64_t u = 0;
    if (lkl__uint64(L, 1, &u))
        lua_settop(L, 1);
    else if (lua_isinteger(L, 1)) {
        luaL_argcheck(L, lua_tointeger(L, 1) >= 0, 1, "it must not be negative");
        lkl__push_uint64(L, (uint64_t)lua_tointeger(L, 1));
    } else {
        const char *s = lkl__text(L, 1);
        if (lua_type(L, 1) != LUA_TSTRING || !parse_uint64(s, &u))
            return luaL_argerror(L, 1, "expected digits of an integer from 0 to 18446744073709551615");
        lkl__push_uint64(L, u);
    }
    return 1;
}

/* --- marked tables ------------------------------------------------------------------------ */

void lkl__mark(lua_State *L, int idx, lkl_mark mark)
{
    if (mark == LKL_PLAIN)
        return;
    idx = lua_absindex(L, idx);
    const void *key = mark == LKL_ARRAY ? &array_mt : &object_mt;
    if (lkl__metatable(L, key, mark == LKL_ARRAY ? "kube.array" : "kube.object"))
        lkl__keep_metatable(L, key);
    lua_setmetatable(L, idx);
}

lkl_mark lkl__marked(lua_State *L, int idx)
{
    if (!lua_getmetatable(L, idx))
        return LKL_PLAIN;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &array_mt);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &object_mt);
    lkl_mark mark = lua_rawequal(L, -3, -2) ? LKL_ARRAY : lua_rawequal(L, -3, -1) ? LKL_OBJECT : LKL_FOREIGN;
    lua_pop(L, 3);
    return mark;
}

static int mark_as(lua_State *L, lkl_mark mark)
{
    if (lua_isnoneornil(L, 1))
        lua_newtable(L);
    else {
        luaL_checktype(L, 1, LUA_TTABLE);
        lua_settop(L, 1);
        if (lkl__marked(L, 1) == LKL_FOREIGN)
            return luaL_argerror(L, 1, "this table has its own metatable; pass a plain table");
    }
    lkl__mark(L, -1, mark);
    return 1;
}

static int make_array(lua_State *L) { return mark_as(L, LKL_ARRAY); }
static int make_object(lua_State *L) { return mark_as(L, LKL_OBJECT); }

bool lkl__push_scalar(lua_State *L, const kl_value *v)
{
    int64_t i = 0;
    size_t n;
    switch (kl_value_type(v)) {
    case KL_NULL: lua_pushnil(L); return true;
    case KL_BOOL: lua_pushboolean(L, kl_value_bool(v, false)); return true;
    case KL_INT:
        if (kl_value_int(v, &i))
            lua_pushinteger(L, i);
        else
            lua_pushnil(L);
        return true;
    case KL_UINT: lkl__push_uint64(L, kl_value_uint(v)); return true;
    case KL_DOUBLE: lua_pushnumber(L, kl_value_double(v, 0)); return true;
    case KL_STRING: {
        const char *s = kl_value_strn(v, &n);
        lua_pushlstring(L, s, n);
        return true;
    }
    default: return false;
    }
}

void lkl__open_scalars(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"uint64", make_uint64},
        {"array", make_array},
        {"object", make_object},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
    lkl__push_null(L);
    lua_setfield(L, -2, "null");
}
