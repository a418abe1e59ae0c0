/* dig.c - reads deep into values: what a path leads to, in one value or in each item of a list. No view is
 * made for the steps between, as long as the path ends in a scalar. */
#include <string.h>

#include "model/quantity.h"
#include "state/budget.h"
#include "state/border.h"
#include "values/view.h"

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
    /* A step of a view is absent; i is 2 if x is no view. */
    if (!v && i > 2 && !lkl__border(L)->cuts) {
        lkl__absent_forget(L);
        lua_pushnil(L);
        return 1;
    }
    /* Views decide about the end of a path, and about fields that a cache may have left out. */
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

typedef struct column {
    kl_path *path;
    int path_idx;         /* its text */
    int keys;             /* the first of the steps of the path on the stack, one a slot */
    bool tables;          /* the list is a table */
    const kl_value *list; /* what is at 1, or NULL: a table, or a list out of a cache */
    bool cut;             /* a cache may have left fields out: then a view has to raise for them */
    bool counted;         /* reads count for the budget */
    lua_Integer n;
} column;

/* Of the list at 1. */
static column column_open(lua_State *L)
{
    luaL_argcheck(L, has_parts(L, 1), 1, "expected a list");
    const lkl_border *b = lkl__border(L);
    column c = {.list = lkl_view_value(L, 1), .cut = b->cuts, .counted = b->counted, .n = luaL_len(L, 1)};
    if (kl_value_type(c.list) != KL_ARRAY)
        c.list = NULL;
    c.tables = lua_istable(L, 1);
    return c;
}

/* Chooses the path at idx, and pushes what keeps it and its steps. */
static void column_choose(lua_State *L, column *c, int idx)
{
    c->path_idx = idx;
    c->path = lkl__path(L, idx);
    c->keys = lua_gettop(L) + 1;
    /* for the steps, and for what follow pushes */
    luaL_checkstack(L, 2 * (int)kl_path_len(c->path) + 8, "a long path");
    for (size_t i = 0, n, index; i < kl_path_len(c->path); i++) {
        const char *key = kl_path_step(c->path, i, &n, &index);
        if (key)
            lua_pushlstring(L, key, n);
        else
            lua_pushinteger(L, (lua_Integer)index);
    }
}

/* Follows the path from the value on top of the stack, and replaces it by what is at the end. */
static void follow(lua_State *L, const column *c)
{
    int at = lua_gettop(L);
    for (int i = 0, n = (int)kl_path_len(c->path); i < n && !lua_isnil(L, -1); i++) {
        if (has_parts(L, -1)) {
            lua_pushvalue(L, c->keys + i);
            lua_gettable(L, -2);
        } else {
            lua_pushnil(L);
        }
    }
    lua_replace(L, at);
    lua_settop(L, at);
}

/* Pushes what the path at idx leads to from the value at 1, as tables and views tell. */
static void push_below(lua_State *L, int idx)
{
    column c = {0};
    int at = lua_gettop(L) + 1;
    column_choose(L, &c, idx);
    lua_pushvalue(L, 1);
    follow(L, &c);
    lua_replace(L, at);
    lua_settop(L, at);
}

/* core.pick(x, path...): what each path leads to, nil where a step is absent or leads into a scalar */
static int pick(lua_State *L)
{
    int top = lua_gettop(L);
    luaL_checkstack(L, top + 8, "too many paths");
    lkl_border *b = lkl__border(L);
    const kl_value *v = lkl_view_value(L, 1);
    for (int idx = 2; idx <= top; idx++) {
        const kl_value *found = v ? kl_path_find(lkl__path_now(L, b, idx), v) : NULL;
        if (found && lkl__push_scalar(L, found))
            continue;
        if (v && !found && !b->cuts)
            lua_pushnil(L);
        else /* a table, a container, or a field that a cache may have left out */
            push_below(L, idx);
    }
    lkl__absent_forget(L);
    return top - 1;
}

/* Finds what the path leads to in an item. False: only a view can tell. */
static bool find_in(const column *c, const kl_value *item, const kl_value **v)
{
    *v = item ? kl_path_find(c->path, item) : NULL;
    return *v || (item && !c->cut);
}

/* The same of the i-th item, from 1. False: only push_cell can tell. */
static bool find_cell(lua_State *L, const column *c, lua_Integer i, const kl_value **v)
{
    size_t at = (size_t)i - 1;
    if (c->counted)
        lkl_budget_spend(L, LKL_NODE_STEPS);
    if (c->tables)
        return false;
    return find_in(c, c->list ? kl_value_item(c->list, at) : lkl__list_item(L, 1, at), v);
}

/* Pushes a scalar, or nil for NULL. False, and nothing pushed: it is neither. */
static bool push_found(lua_State *L, const kl_value *v)
{
    if (v)
        return lkl__push_scalar(L, v);
    lua_pushnil(L);
    return true;
}

/* Pushes the value in the i-th item. */
static void push_cell(lua_State *L, const column *c, lua_Integer i)
{
    const kl_value *v;
    if (find_cell(L, c, i, &v) && push_found(L, v))
        return;
    lua_geti(L, 1, i);
    if (!lua_istable(L, -1) && find_in(c, lkl_view_value(L, -1), &v) && push_found(L, v)) {
        lua_replace(L, -2);
        return;
    }
    follow(L, c);
    if (lua_type(L, -1) != LUA_TSTRING && has_parts(L, -1))
        luaL_argerror(L, c->path_idx,
            lua_pushfstring(L,
                "a column has strings, numbers and booleans; \"%s\" of item %I is none of them",
                lua_tostring(L, c->path_idx), (LUAI_UACINT)i));
}

/* Returns a table for each path, filled by `push`. */
static int push_columns(lua_State *L, void (*push)(lua_State *L, const column *c, lua_Integer i))
{
    int top = lua_gettop(L);
    luaL_checkstack(L, top + 8, "too many columns");
    column c = column_open(L);
    for (int idx = 2; idx <= top; idx++) {
        lua_createtable(L, c.n < 0 ? 0 : c.n < COLUMN_AT_ONCE ? (int)c.n : COLUMN_AT_ONCE, 0);
        int made = lua_gettop(L);
        column_choose(L, &c, idx);
        for (lua_Integer i = 1; i <= c.n; i++) {
            push(L, &c, i);
            lua_rawseti(L, made, i);
        }
        lua_settop(L, made);
    }
    return top - 1;
}

/* core.columns(list, path...): for each path a table with its value in each item, nil where an item has
 * none */
static int columns(lua_State *L) { return push_columns(L, push_cell); }

/* Pushes a quantity in thousandths. False, and nothing pushed: they do not fit, or it is not a quantity. */
static bool push_thousandths(lua_State *L, const char *text, size_t n)
{
    int64_t milli;
    if (!kl_quantity_read_milli(text, n, &milli))
        return false;
    lua_pushinteger(L, milli);
    return true;
}

/* Replaces the quantity on top of the stack by its thousandths; nil and null become nil. */
static void push_as_milli(lua_State *L)
{
    if (lua_isnil(L, -1) || lkl__is_null(L, -1)) {
        lua_pushnil(L);
    } else {
        size_t n;
        const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &n) : NULL;
        if (!text || !push_thousandths(L, text, n)) {
            lua_pushcfunction(L, lkl__to_milli);
            lua_pushvalue(L, -2);
            lua_call(L, 1, 1);
        }
    }
    lua_replace(L, -2);
}

/* The quantity in the i-th item in thousandths, 0 where there is none. */
static int64_t milli_of(lua_State *L, const column *c, lua_Integer i)
{
    const kl_value *v;
    size_t n;
    int64_t milli;
    if (find_cell(L, c, i, &v) && kl_value_type(v) == KL_STRING) {
        const char *text = kl_value_strn(v, &n);
        if (kl_quantity_read_milli(text, n, &milli))
            return milli;
    }
    push_cell(L, c, i);
    push_as_milli(L);
    milli = lua_tointeger(L, -1); /* nil is 0 */
    lua_pop(L, 1);
    return milli;
}

static void push_milli(lua_State *L, const column *c, lua_Integer i)
{
    lua_pushinteger(L, milli_of(L, c, i));
}

/* core.milli_columns(list, path...): as columns, with quantities in thousandths, and 0 where there is none */
static int milli_columns(lua_State *L) { return push_columns(L, push_milli); }

/* core.milli_sums(list, path...): the sum of each column of milli_columns */
static int milli_sums(lua_State *L)
{
    int top = lua_gettop(L);
    luaL_checkstack(L, top + 8, "too many sums");
    column c = column_open(L);
    for (int idx = 2; idx <= top; idx++) {
        int64_t sum = 0;
        int made = lua_gettop(L) + 1;
        column_choose(L, &c, idx);
        for (lua_Integer i = 1; i <= c.n; i++) {
            if (__builtin_add_overflow(sum, milli_of(L, &c, i), &sum))
                return luaL_argerror(L, idx, "the sum does not fit 64 bits");
        }
        lua_pushinteger(L, sum);
        lua_replace(L, made);
        lua_settop(L, made);
    }
    return top - 1;
}

/* core.milli_pick(x, path...): as pick, with quantities in thousandths */
static int milli_pick(lua_State *L)
{
    int top = lua_gettop(L);
    luaL_checkstack(L, top + 8, "too many paths");
    lkl_border *b = lkl__border(L);
    const kl_value *v = lkl_view_value(L, 1);
    for (int idx = 2; idx <= top; idx++) {
        const kl_value *found = v ? kl_path_find(lkl__path_now(L, b, idx), v) : NULL;
        size_t n;
        const char *text = kl_value_type(found) == KL_STRING ? kl_value_strn(found, &n) : NULL;
        if (text && push_thousandths(L, text, n))
            continue;
        if (v && !found && !b->cuts)
            lua_pushnil(L);
        else if (!found || !lkl__push_scalar(L, found))
            push_below(L, idx);
        push_as_milli(L);
    }
    lkl__absent_forget(L);
    return top - 1;
}

/* Whether the i-th item has what the table at 3 has there. */
static bool is_cell(lua_State *L, const column *c, lua_Integer i)
{
    const kl_value *v;
    size_t n, len;
    int type = lua_rawgeti(L, 3, i);
    bool same;
    if (type == LUA_TSTRING && find_cell(L, c, i, &v) && kl_value_type(v) == KL_STRING) {
        const char *text = kl_value_strn(v, &n), *other = lua_tolstring(L, -1, &len);
        same = n == len && !memcmp(text, other, n);
    } else {
        push_cell(L, c, i);
        same = lua_rawequal(L, -1, -2);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return same;
}

/* core.is_column(list, path, column): whether columns(list, path) would be equal to the table */
static int is_column(lua_State *L)
{
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_settop(L, 3);
    luaL_checkstack(L, 8, "a column");
    column c = column_open(L);
    column_choose(L, &c, 2);
    bool same = lua_rawgeti(L, 3, (lua_Integer)((lua_Unsigned)c.n + 1)) == LUA_TNIL;
    lua_pop(L, 1);
    for (lua_Integer i = 1; same && i <= c.n; i++)
        same = is_cell(L, &c, i);
    lua_pushboolean(L, same);
    return 1;
}

/* Parts of a text that places() joins without Lua. */
#define PARTS_MAX 8
#define JOINED_MAX 256

/* Pushes the values of the i-th item as one text, with "/" between them. */
static void push_joined(lua_State *L, const column *c, int n, lua_Integer i)
{
    char text[JOINED_MAX];
    size_t len = 0, more;
    int k = 0;
    for (const kl_value *v; k < n && find_cell(L, &c[k], i, &v) && (!v || kl_value_type(v) == KL_STRING);
         k++) {
        const char *part = v ? kl_value_strn(v, &more) : "";
        if (!v)
            more = 0;
        if (len + more + 1 > sizeof text)
            break;
        if (k)
            text[len++] = '/';
        memcpy(text + len, part, more);
        len += more;
    }
    if (k == n) {
        lua_pushlstring(L, text, len);
        return;
    }
    for (k = 0; k < n; k++) {
        if (k)
            lua_pushliteral(L, "/");
        push_cell(L, &c[k], i);
        if (lua_isnil(L, -1) || lkl__is_null(L, -1)) {
            lua_pop(L, 1);
            lua_pushliteral(L, "");
        } else if (!lua_tostring(L, -1)) { /* in place: a number becomes its text */
            luaL_argerror(L, c[k].path_idx, "a place is found by strings and numbers, not by booleans");
        }
    }
    lua_concat(L, 2 * n - 1);
}

/* core.places(list, path...): for the text at a path, or those at several paths with "/" between them, the
 * place of the item; how many texts there are */
static int places(lua_State *L)
{
    int n = lua_gettop(L) - 1;
    luaL_argcheck(L, n >= 1 && n <= PARTS_MAX, 2, "expected 1 to 8 paths");
    column c[PARTS_MAX] = {column_open(L)};
    for (int k = 0; k < n; k++) {
        c[k] = c[0];
        column_choose(L, &c[k], k + 2);
    }
    luaL_checkstack(L, 2 * n + LUA_MINSTACK, "places"); /* push_joined pushes that many texts */
    lua_Integer len = c[0].n, texts = 0;
    lua_createtable(L, 0, len < 0 ? 0 : len < COLUMN_AT_ONCE ? (int)len : COLUMN_AT_ONCE);
    int made = lua_gettop(L);
    for (lua_Integer i = 1; i <= len; i++) {
        push_joined(L, c, n, i);
        lua_pushvalue(L, -1);
        texts += lua_rawget(L, made) == LUA_TNIL;
        lua_pop(L, 1);
        lua_pushinteger(L, i);
        lua_rawset(L, made);
    }
    lua_pushinteger(L, texts);
    return 2;
}

void lkl__open_dig(lua_State *L)
{
    static const luaL_Reg functions[] = {{"dig", dig}, {"pick", pick}, {"columns", columns},
        {"milli_columns", milli_columns}, {"milli_sums", milli_sums}, {"milli_pick", milli_pick},
        {"is_column", is_column}, {"places", places}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
