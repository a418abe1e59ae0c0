/* dig.c - reads deep into values: what a path leads to, in one value or in each item of a list. No view is
 * made for the steps between, as long as the path ends in a scalar. */
#include "state/budget.h"
#include "state/border.h"

/* Slots of a column that are allocated at once: a list may claim any length. */
#define COLUMN_AT_ONCE 1024

/* --- dig ---------------------------------------------------------------------------------- */

/* The field or the item that the key at idx names, or NULL. Lists count from 1. */
static const kl_value *step(lua_State *L, const kl_value *v, int idx)
{
    if (lua_type(L, idx) == LUA_TSTRING) {
        size_t n;
        const char *name = lua_tolstring(L, idx, &n);
        return kl_value_type(v) == KL_OBJECT ? kl_value_getn(v, name, n) : NULL;
    }
    int whole;
    lua_Integer i = lua_tointegerx(L, idx, &whole);
    return whole && kl_value_type(v) == KL_ARRAY && i >= 1 ? kl_value_item(v, (size_t)i - 1) : NULL;
}

/* Whether the value at idx has parts to look into. */
static bool has_parts(lua_State *L, int idx)
{
    if (lua_istable(L, idx) || lkl_view_value(L, idx))
        return true;
    if (lua_type(L, idx) != LUA_TUSERDATA || luaL_getmetafield(L, idx, "__pairs") == LUA_TNIL)
        return false;
    lua_pop(L, 1);
    return true;
}

/* core.dig(x, key...): nil where a step is absent or leads into a scalar */
static int dig(lua_State *L)
{
    if (lua_gettop(L) == 0)
        lua_pushnil(L);
    int top = lua_gettop(L), i = 2;
    const kl_value *v = lkl_view_value(L, 1);
    for (; v && i <= top && !lua_isnil(L, i); i++)
        v = step(L, v, i);
    if (v && i > 2 && lkl__push_scalar(L, v))
        return 1;
    /* Views decide about the end of a path, and about reads of absent fields. */
    lua_pushvalue(L, 1);
    for (i = 2; i <= top && !lua_isnil(L, i); i++) {
        if (!has_parts(L, -1)) {
            lua_pushnil(L);
            return 1;
        }
        lua_pushvalue(L, i);
        lua_gettable(L, -2);
        lua_replace(L, -2);
    }
    return 1;
}

/* --- columns ------------------------------------------------------------------------------ */

/* Follows the path from the value on top of the stack, and replaces it by what is at the end. */
static void follow(lua_State *L, const kl_path *path)
{
    for (size_t i = 0, n, index; i < kl_path_len(path) && !lua_isnil(L, -1); i++) {
        const char *key = kl_path_step(path, i, &n, &index);
        if (!has_parts(L, -1)) {
            lua_pushnil(L);
        } else if (key) {
            lua_pushlstring(L, key, n);
            lua_gettable(L, -2);
        } else {
            lua_geti(L, -1, (lua_Integer)index);
        }
        lua_replace(L, -2);
    }
}

typedef struct column {
    const kl_path *path;
    int path_idx;         /* its text */
    const kl_value *list; /* what is at 1, or NULL: a table, or a list out of a cache */
    bool cut;             /* a cache may have left fields out: then a view has to raise for them */
} column;

/* Pushes what the path leads to in the value. False, and nothing pushed: only a view can tell. */
static bool push_of(lua_State *L, const column *c, const kl_value *v)
{
    if (!v)
        return false;
    v = kl_path_get(c->path, v);
    if (v)
        return lkl__push_scalar(L, v);
    if (!c->cut)
        lua_pushnil(L);
    return !c->cut;
}

/* Pushes what the path leads to in the i-th item, from 1. */
static void push_cell(lua_State *L, const column *c, lua_Integer i)
{
    size_t at = (size_t)i - 1;
    if (push_of(L, c, c->list ? kl_value_item(c->list, at) : lkl__list_item(L, 1, at)))
        return;
    lua_geti(L, 1, i);
    if (push_of(L, c, lkl_view_value(L, -1))) {
        lua_replace(L, -2);
        return;
    }
    follow(L, c->path);
    if (has_parts(L, -1))
        luaL_argerror(L, c->path_idx,
            lua_pushfstring(L, "a column has texts, numbers and booleans; \"%s\" of item %I is none of them",
                lua_tostring(L, c->path_idx), (LUAI_UACINT)i));
}

/* core.columns(list, path...): for each path a table with its value in each item, nil where an item has
 * none */
static int columns(lua_State *L)
{
    int top = lua_gettop(L);
    luaL_argcheck(L, has_parts(L, 1), 1, "expected a list");
    lua_Integer n = luaL_len(L, 1);
    luaL_checkstack(L, top + 8, "too many columns");
    const lkl_border *b = lkl__border(L);
    bool counted = b->counted;
    column c = {.list = lkl_view_value(L, 1), .cut = b->cuts};
    if (kl_value_type(c.list) != KL_ARRAY)
        c.list = NULL;
    for (c.path_idx = 2; c.path_idx <= top; c.path_idx++) {
        lua_createtable(L, n < 0 ? 0 : n < COLUMN_AT_ONCE ? (int)n : COLUMN_AT_ONCE, 0);
        c.path = lkl__path(L, c.path_idx); /* the stack keeps it */
        for (lua_Integer i = 1; i <= n; i++) {
            if (counted)
                lkl_budget_spend(L, LKL_NODE_STEPS);
            push_cell(L, &c, i);
            lua_rawseti(L, -3, i);
        }
        lua_pop(L, 1);
    }
    return top - 1;
}

void lkl__open_dig(lua_State *L)
{
    static const luaL_Reg functions[] = {{"dig", dig}, {"columns", columns}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
