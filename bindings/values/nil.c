/* nil.c - what indexing nil means in a state of ours: a message that names what was absent, and writing
 * below absent fields.
 *
 * Absent fields read as nil, in views and in drafts, so `x or 0` and `if not x` mean what they always
 * mean. Each absent read is remembered, and nil has a metatable:
 *
 *   pod.spec.nodeSelector.zone      raises "... the last absent field is spec.nodeSelector of Pod default/a"
 *   n.status.counts.ready = 1       (a draft, no status.counts) creates status.counts
 *
 * For the second, a *chain* is remembered per absent read of a draft: the draft and the keys below it.
 * Reading below nil makes the chain longer, assigning below nil uses it up. Lua does not tell which
 * expression gave the nil, so a chain counts only for the same line of the same function in the same
 * coroutine, and only when it is the only one there: a line that reads two absent fields and assigns below
 * one is refused, never guessed. */
#include <string.h>
#include "state/border.h"

static const char nil_mt;

/* --- remembering -------------------------------------------------------------------------- */

void lkl__absent_at(lua_State *L, int border_idx, int in_idx, int key_idx)
{
    lua_pushvalue(L, in_idx);
    lua_setiuservalue(L, border_idx, BORDER_ABSENT_IN);
    lua_pushvalue(L, key_idx);
    lua_setiuservalue(L, border_idx, BORDER_ABSENT_KEY);
}

void lkl__absent(lua_State *L, int in_idx, int key_idx)
{
    in_idx = lua_absindex(L, in_idx);
    key_idx = lua_absindex(L, key_idx);
    lkl_border *b = lkl__border_push(L);
    if (b->nil_index)
        lkl__absent_at(L, lua_gettop(L), in_idx, key_idx);
    lua_pop(L, 1);
}

/* Pushes the table from coroutine (weakly) to its chains. */
static void push_all_chains(lua_State *L)
{
    lkl__border_push(L);
    if (lua_getiuservalue(L, -1, BORDER_CHAINS) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "k");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, -3, BORDER_CHAINS);
    }
    lua_remove(L, -2);
}

/* Pushes the chains of the present line, a list with `fn` and `line`, or pushes nothing and says false.
 * With `make` older ones give way to a new list. Level 1 is the Lua function that indexes. */
static bool push_chains(lua_State *L, bool make)
{
    int top = lua_gettop(L);
    lua_Debug ar;
    if (!lua_getstack(L, 1, &ar))
        return false;
    lua_getinfo(L, "lf", &ar);
    const void *fn = lua_topointer(L, -1);
    if (ar.currentline <= 0) {
        lua_settop(L, top);
        return false;
    }
    push_all_chains(L);
    lua_pushthread(L);
    lua_rawget(L, -2);
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "fn");
        lua_getfield(L, -2, "line");
        bool here = lua_touserdata(L, -2) == fn && lua_tointeger(L, -1) == ar.currentline;
        lua_pop(L, 2);
        if (here) {
            lua_replace(L, top + 1);
            lua_settop(L, top + 1);
            return true;
        }
    }
    if (!make) {
        lua_settop(L, top);
        return false;
    }
    lua_pop(L, 1);
    lua_createtable(L, 1, 2);
    lua_pushlightuserdata(L, (void *)fn);
    lua_setfield(L, -2, "fn");
    lua_pushinteger(L, ar.currentline);
    lua_setfield(L, -2, "line");
    lua_pushthread(L);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return true;
}

void lkl__forget_chains(lua_State *L)
{
    push_all_chains(L);
    lua_pushthread(L);
    lua_pushnil(L);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* A chain is {draft, key, key...}; the same read twice is one chain. */
void lkl__draft_absent(lua_State *L, int draft_idx, int key_idx)
{
    draft_idx = lua_absindex(L, draft_idx);
    key_idx = lua_absindex(L, key_idx);
    if (!lkl__border(L)->nil_index || lua_isnil(L, key_idx))
        return;
    lkl__absent(L, draft_idx, key_idx);
    if (!push_chains(L, true))
        return;
    lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, i);
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        bool same = lkl__draft_same(L, -2, draft_idx) && lua_rawequal(L, -1, key_idx);
        lua_pop(L, 3);
        if (same) {
            lua_pop(L, 1);
            return;
        }
    }
    lua_createtable(L, 2, 0);
    lua_pushvalue(L, draft_idx);
    lua_rawseti(L, -2, 1);
    lua_pushvalue(L, key_idx);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, n + 1);
    lua_pop(L, 1);
}

/* --- nil's metatable ---------------------------------------------------------------------- */

static int complain(lua_State *L, const char *doing)
{
    const char *key = luaL_tolstring(L, 2, NULL);
    lkl__border_push(L);
    lua_getiuservalue(L, -1, BORDER_ABSENT_KEY);
    lua_getiuservalue(L, -2, BORDER_ABSENT_IN);
    if (lua_isnil(L, -2))
        return lkl__error(L, "attempt to %s a nil value (key '%s')", doing, key);
    if (lkl_view_value(L, -1))
        lkl__view_describe(L, -1, -2);
    else
        lkl__draft_describe(L, -1, -2);
    return lkl__error(L,
        "attempt to %s a nil value (key '%s'); the last absent field is %s; object(\"a.b.c\") reads nil-safe",
        doing, key, lua_tostring(L, -1));
}

static int nil_index(lua_State *L)
{
    lua_settop(L, 2);
    if (!lua_isnil(L, 1)) /* called by hand */
        return luaL_argerror(L, 1, "nil expected");
    if (!push_chains(L, false) || lua_rawlen(L, 3) == 0)
        return complain(L, "index");
    lua_rawgeti(L, 3, (lua_Integer)lua_rawlen(L, 3)); /* the read just made */
    lua_pushvalue(L, 2);
    lua_rawseti(L, 4, (lua_Integer)lua_rawlen(L, 4) + 1);
    lua_pushnil(L);
    return 1;
}

static int nil_newindex(lua_State *L)
{
    lua_settop(L, 3);
    if (!lua_isnil(L, 1))
        return luaL_argerror(L, 1, "nil expected");
    if (!push_chains(L, false) || lua_rawlen(L, 4) == 0)
        return complain(L, "set a field of");
    if (lua_rawlen(L, 4) > 1)
        return lkl__error(L,
            "this line reads more than one absent field of a draft and assigns '%s' below one of them; "
            "use two lines, or assign the whole map: n.status.x = { y = 1 }",
            luaL_tolstring(L, 2, NULL));
    lua_rawgeti(L, 4, 1); /* 5: {draft, key...} */
    lua_pushvalue(L, 2);
    lua_rawseti(L, 5, (lua_Integer)lua_rawlen(L, 5) + 1);
    lkl__forget_chains(L);
    lkl__draft_assign(L, 5, 3);
    return 0;
}

void lkl_install_nil_index(lua_State *L)
{
    lkl__border(L)->nil_index = true;
    lua_pushnil(L);
    if (lkl__metatable(L, &nil_mt, "nil")) {
        lua_pushcfunction(L, nil_index);
        lua_setfield(L, -2, "__index");
        lua_pushcfunction(L, nil_newindex);
        lua_setfield(L, -2, "__newindex");
        lkl__keep_metatable(L, &nil_mt);
    }
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    push_all_chains(L); /* while there are weak tables (flaws.h) */
    lua_pop(L, 1);
}

/* --- a state that is not ours: for the time of one function ------------------------------- */

/* core.nil_swap(x): gives nil our metatable (true), the table x, or none (false), and returns what it had
 * in the same words, so that a second call gives it back. */
static int nil_swap(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &nil_mt); /* 2 */
    lua_pushnil(L);
    if (!lua_getmetatable(L, 3))
        lua_pushboolean(L, false); /* 4: what it has */
    if (lua_istable(L, 2) && lua_rawequal(L, 2, 4)) {
        lua_pushboolean(L, true);
        lua_replace(L, 4);
    }
    if (lua_isboolean(L, 1) && lua_toboolean(L, 1)) {
        lkl_install_nil_index(L);
    } else {
        lkl__border(L)->nil_index = false;
        lkl__forget_chains(L);
        if (lua_istable(L, 1))
            lua_pushvalue(L, 1);
        else
            lua_pushnil(L);
        lua_setmetatable(L, 3);
    }
    lua_settop(L, 4);
    return 1;
}

void lkl__open_nil(lua_State *L)
{
    static const luaL_Reg functions[] = {{"nil_swap", nil_swap}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
