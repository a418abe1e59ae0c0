/* place.c - a view's place in words: "spec.containers[1].name of Pod default/a". It is found through the
 * views' own parents and keys, and only when a message needs it. */
#include <stdio.h>

#include "model/object.h"
#include "values/view.h"

static bool plain_name(const char *s, size_t n)
{
    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (s[i] == '.' || s[i] == '[' || s[i] == ']' || s[i] == '\0')
            return false;
    return true;
}

void lkl__path_step(lua_State *L, luaL_Buffer *b, int key_idx, bool first)
{
    char number[40];
    size_t n;
    if (lua_type(L, key_idx) != LUA_TSTRING) {
        if (lua_isinteger(L, key_idx))
            luaL_addlstring(b, number,
                (size_t)snprintf(number, sizeof number, "[%lld]", (long long)lua_tointeger(L, key_idx)));
        else
            luaL_addstring(b, "[?]");
        return;
    }
    const char *s = lua_tolstring(L, key_idx, &n);
    if (plain_name(s, n)) {
        if (!first)
            luaL_addchar(b, '.');
        luaL_addlstring(b, s, n);
    } else {
        luaL_addchar(b, '[');
        luaL_addlstring(b, s, n);
        luaL_addchar(b, ']');
    }
}

/* Collects the keys from the view at idx up to its root into a new table on the stack; returns the root's
 * value. A path is kept as {path}, for it is not a single key. */
const kl_value *lkl__view_keys(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    lua_newtable(L);
    int keys = lua_gettop(L), n = 0;
    lua_pushvalue(L, idx);
    lkl_view *view;
    while ((view = lkl__get_view(L, -1)) && view->root != view) {
        uintptr_t key = ((child_view *)view)->key;
        if ((key & KEY_BITS) == KEY_TOP)
            break;
        bool path = (key & KEY_BITS) == KEY_PATH;
        if (path)
            lua_createtable(L, 1, 0);
        lua_getiuservalue(L, path ? -2 : -1, VIEW_KEY);
        if (path)
            lua_rawseti(L, -2, 1);
        lua_rawseti(L, keys, ++n);
        lua_getiuservalue(L, -1, VIEW_PARENT);
        lua_remove(L, -2);
    }
    lua_pop(L, 1);
    return view ? view->v : NULL;
}

static void add_path(lua_State *L, luaL_Buffer *b, int path_idx, bool first)
{
    size_t n;
    const char *s = lua_tolstring(L, path_idx, &n);
    if (!first && !(n > 0 && s[0] == '['))
        luaL_addchar(b, '.');
    luaL_addlstring(b, s, n);
}

void lkl__describe_value(lua_State *L, const kl_value *root)
{
    const char *kind = kl_object_kind(root), *name = kl_object_name(root), *ns = kl_object_namespace(root);
    if (!kind && !name)
        lua_pushliteral(L, "the value");
    else
        lua_pushfstring(L, "%s %s%s%s", kind ? kind : "object", ns ? ns : "", ns ? "/" : "",
            name ? name : "without a name");
}

void lkl__describe_keys(lua_State *L, const kl_value *root, int keys_idx, int key_idx)
{
    int keys = lua_absindex(L, keys_idx);
    lua_Integer n = (lua_Integer)lua_rawlen(L, keys);
    if (key_idx)
        key_idx = lua_absindex(L, key_idx);
    if (n == 0 && !key_idx) {
        lkl__describe_value(L, root);
        return;
    }
    lua_pushnil(L); /* the step's slot, below the buffer */
    int slot = lua_gettop(L);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    bool first = true;
    for (lua_Integer i = n; i > 0; i--, first = false) {
        bool path = lua_rawgeti(L, keys, i) == LUA_TTABLE;
        if (path) {
            lua_rawgeti(L, -1, 1);
            lua_remove(L, -2);
        }
        lua_replace(L, slot);
        if (path)
            add_path(L, &b, slot, first);
        else
            lkl__path_step(L, &b, slot, first);
    }
    if (key_idx)
        lkl__path_step(L, &b, key_idx, first);
    luaL_pushresult(&b);
    lua_replace(L, slot);
    lkl__describe_value(L, root);
    lua_pushfstring(L, "%s of %s", lua_tostring(L, slot), lua_tostring(L, -1));
    lua_replace(L, slot);
    lua_settop(L, slot);
}

void lkl__view_describe(lua_State *L, int view_idx, int key_idx)
{
    if (key_idx)
        key_idx = lua_absindex(L, key_idx);
    const kl_value *root = lkl__view_keys(L, view_idx);
    lkl__describe_keys(L, root, -1, key_idx);
    lua_remove(L, -2);
}
