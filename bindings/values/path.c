/* path.c - paths that scripts write, compiled once per state. A view that is called with a path finds the
 * most recent ones without asking Lua. */
#include <string.h>

#include "values/view.h"

static void free_path(void *ptr) { kl_path_free(ptr); }

static const lkl_class path_class = {.name = "kubelua.path", .free = free_path};

/* Compiled paths are kept per state. Scripts write them as literals, so there are few; a script that builds
 * paths makes the collection start over now and then. [1] counts. */
#define PATHS_MAX 512

static void push_paths(lua_State *L)
{
    lkl__border_push(L);
    if (lua_getiuservalue(L, -1, BORDER_PATHS) == LUA_TTABLE) {
        lua_rawgeti(L, -1, 1);
        lua_Integer n = lua_tointeger(L, -1);
        lua_pop(L, 1);
        if (n < PATHS_MAX) {
            lua_remove(L, -2);
            return;
        }
    }
    lua_pop(L, 1);
    lua_newtable(L);
    lkl_border *b = lua_touserdata(L, -2);
    memset(b->recent, 0, sizeof b->recent); /* they live in the old collection */
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, -3, BORDER_PATHS);
    lua_remove(L, -2);
}

/* *made: the text at idx itself is now the key of the collection, which keeps it. */
static kl_path *compiled(lua_State *L, int idx, bool *made)
{
    idx = lua_absindex(L, idx);
    push_paths(L);
    int paths = lua_gettop(L);
    lua_pushvalue(L, idx);
    lua_rawget(L, paths);
    kl_path *path = lkl_box_get(L, -1, &path_class);
    if (!path && !lua_isnil(L, -1))
        /* only a finaliser can call this now */
        luaL_error(L, "the path \"%s\" is used while its state is closed", lua_tostring(L, idx));
    *made = !path;
    if (!path) {
        lkl_box *box = lkl_box_new(L, &path_class, 0);
        kl_err err = KL_ERR_INIT;
        if (kl_path_parse(lkl__text(L, idx), &path, &err))
            lkl__argerror(L, idx, &err);
        box->ptr = path;
        lua_pushvalue(L, idx);
        lua_pushvalue(L, -2);
        lua_rawset(L, paths);
        lua_rawgeti(L, paths, 1);
        lua_pushinteger(L, lua_tointeger(L, -1) + 1);
        lua_rawseti(L, paths, 1);
        lua_pop(L, 1);
    }
    lua_replace(L, paths); /* the box stays on the stack: it keeps the path */
    lua_settop(L, paths);
    return path;
}

kl_path *lkl__path(lua_State *L, int idx)
{
    bool made;
    return compiled(L, idx, &made);
}

/* Lua keeps one copy of each text up to this length, and any number of longer ones. */
#define ONE_COPY 40

/* A path whose box was closed is gone: the state itself is closing. */
kl_path *lkl__path_now(lua_State *L, lkl_border *b, int idx)
{
    bool made;
    const char *text = lkl__text(L, idx);
    lkl__recent *r = &b->recent[((uint64_t)(uintptr_t)text * 0x9e3779b97f4a7c15u >> 32) % LKL__RECENT];
    kl_path *now = r->text == text ? lkl__box_of(r->path) : NULL;
    if (now)
        return now;
    int top = lua_gettop(L);
    /* may start a new collection of paths, and clear the recent ones */
    kl_path *path = compiled(L, idx, &made);
    /* by its address, so only a text that the collection keeps */
    if (made || lua_rawlen(L, idx) <= ONE_COPY)
        *r = (lkl__recent){text, lua_touserdata(L, -1)};
    lua_settop(L, top); /* the collection has the box */
    return path;
}
