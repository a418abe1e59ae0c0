/* view.c - a value as Lua sees it: a userdata over the shared, immutable tree; nothing is copied.
 *
 * The root view holds the one reference; a view of something below holds its parent (user value 1) and its own key in it
 * (user value 2), so it lives as long as the root and can say where it stands. Every string key is a field: a view has no
 * methods. Absent fields and JSON null read as nil. */
#include <stdio.h>
#include "border.h"
#include "model/object.h"

static const char view_tag, root_mt, child_mt;

typedef struct lkl_view {
    const void *tag;
    const kl_value *v;              /* the root: a reference of ours, NULL once finalised; else borrowed from the root */
    const struct lkl_view *root;    /* itself for the root; its memory outlives every view below, whatever the collector's order */
} lkl_view;

enum { VIEW_PARENT = 1, VIEW_KEY };

/* The key of a view that was reached by a path begins with this byte; field names from JSON have it only after an escape. */
#define PATH_MARK '\0'

static lkl_view *get_view(lua_State *L, int idx)
{
    return lkl__tagged(L, idx, &view_tag, sizeof(lkl_view));
}

const kl_value *lkl_view_value(lua_State *L, int idx)
{
    lkl_view *view = get_view(L, idx);
    return view && view->root->v ? view->v : NULL;
}

static const kl_value *check_view(lua_State *L, int idx)
{
    lkl_view *view = get_view(L, idx);
    if (!view)
        luaL_typeerror(L, idx, "kubelua.view");
    if (!view->root->v)
        luaL_argerror(L, idx, "this view was finalised before its user");
    return view->v;
}

/* --- making ------------------------------------------------------------------------------------------------------------------ */

static void set_view_metatable(lua_State *L, bool root);

static lkl_view *new_view(lua_State *L, const lkl_view *root)
{
    lkl_view *view = lua_newuserdatauv(L, sizeof *view, root ? VIEW_KEY : 0);
    *view = (lkl_view){ &view_tag, NULL, root ? root : view };
    set_view_metatable(L, !root);
    return view;
}

void lkl_push_value(lua_State *L, const kl_value *v)
{
    if (lkl__push_scalar(L, v))
        return;
    lkl_view *view = new_view(L, NULL);     /* may raise: take the reference afterwards */
    view->v = kl_value_ref(v);
}

void lkl_push_object(lua_State *L, const kl_value *v)
{
    lkl_push_value(L, v);
}

void lkl__push_child(lua_State *L, int idx, const kl_value *child, int key_idx)
{
    if (lkl__push_scalar(L, child))
        return;
    idx = lua_absindex(L, idx);
    key_idx = lua_absindex(L, key_idx);
    lkl_view *view = new_view(L, get_view(L, idx)->root);
    lua_pushvalue(L, idx);
    lua_setiuservalue(L, -2, VIEW_PARENT);
    lua_pushvalue(L, key_idx);
    lua_setiuservalue(L, -2, VIEW_KEY);
    view->v = child;        /* only now: the parent keeps it alive */
}

/* --- where a view stands ---------------------------------------------------------------------------------------------------- */

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
            luaL_addlstring(b, number, (size_t)snprintf(number, sizeof number, "[%lld]", (long long)lua_tointeger(L, key_idx)));
        else
            luaL_addstring(b, "[?]");
        return;
    }
    const char *s = lua_tolstring(L, key_idx, &n);
    bool path = n > 0 && s[0] == PATH_MARK;
    if (path) {
        s++;
        n--;
    }
    if (path || plain_name(s, n)) {
        if (!first && !(n > 0 && s[0] == '['))
            luaL_addchar(b, '.');
        luaL_addlstring(b, s, n);
    } else {
        luaL_addchar(b, '[');
        luaL_addlstring(b, s, n);
        luaL_addchar(b, ']');
    }
}

/* Collects the keys from the root down to the view at idx into a new table on the stack; returns the root's value. */
static const kl_value *keys_of(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    lua_newtable(L);
    int keys = lua_gettop(L), n = 0;
    lua_pushvalue(L, idx);
    lkl_view *view;
    while ((view = get_view(L, -1)) && view->root != view) {
        lua_getiuservalue(L, -1, VIEW_KEY);
        lua_rawseti(L, keys, ++n);
        lua_getiuservalue(L, -1, VIEW_PARENT);
        lua_remove(L, -2);
    }
    lua_pop(L, 1);
    return view ? view->v : NULL;
}

void lkl__describe_value(lua_State *L, const kl_value *root)
{
    const char *kind = kl_object_kind(root), *name = kl_object_name(root), *ns = kl_object_namespace(root);
    if (!kind && !name)
        lua_pushliteral(L, "the value");
    else
        lua_pushfstring(L, "%s %s%s%s", kind ? kind : "object", ns ? ns : "", ns ? "/" : "", name ? name : "without a name");
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
    lua_pushnil(L);                             /* the step's slot, below the buffer */
    int slot = lua_gettop(L);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    bool first = true;
    for (lua_Integer i = n; i > 0; i--, first = false) {
        lua_rawgeti(L, keys, i);
        lua_replace(L, slot);
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
    const kl_value *root = keys_of(L, view_idx);
    lkl__describe_keys(L, root, -1, key_idx);
    lua_remove(L, -2);
}

/* --- reading ------------------------------------------------------------------------------------------------------------------ */

/* The child that the key at idx names, or NULL. Lists count from 1. */
static const kl_value *child_of(lua_State *L, const kl_value *v, int idx)
{
    switch (lua_type(L, idx)) {
    case LUA_TSTRING: {
        if (kl_value_type(v) != KL_OBJECT)
            return NULL;
        size_t n;
        const char *key = lua_tolstring(L, idx, &n);
        return kl_value_getn(v, key, n);
    }
    case LUA_TNUMBER: {
        int whole;
        lua_Integer i = lua_tointegerx(L, idx, &whole);
        if (!whole || kl_value_type(v) != KL_ARRAY || i < 1)
            return NULL;
        return kl_value_item(v, (size_t)i - 1);
    }
    default: return NULL;
    }
}

static int view_index(lua_State *L)
{
    const kl_value *v = check_view(L, 1);
    const kl_value *child = child_of(L, v, 2);
    if (kl_value_type(child) == KL_NULL) {
        lkl__absent(L, 1, 2);
        lua_pushnil(L);
    } else {
        lkl__push_child(L, 1, child, 2);
    }
    return 1;
}

static int view_newindex(lua_State *L)
{
    check_view(L, 1);
    lkl__view_describe(L, 1, 2);
    return luaL_error(L, "read-only: cannot set %s; change it with ctx:patch(object, function(o) ... end), or work on kube.copy(object)",
        lua_tostring(L, -1));
}

/* Objects have no sequence, so their length is 0, as with a Lua table of named fields. */
static int view_len(lua_State *L)
{
    const kl_value *v = check_view(L, 1);
    lua_pushinteger(L, kl_value_type(v) == KL_ARRAY ? (lua_Integer)kl_value_len(v) : 0);
    return 1;
}

/* next(view, _) with the position in an upvalue: key order of the text; lists from 1. A null gives its key and nil. */
static int view_next(lua_State *L)
{
    const kl_value *v = check_view(L, 1);
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(1));
    const kl_value *child;
    lua_settop(L, 1);
    if ((size_t)i >= kl_value_len(v)) {
        lua_pushnil(L);
        return 1;
    }
    if (kl_value_type(v) == KL_ARRAY) {
        child = kl_value_item(v, (size_t)i);
        lua_pushinteger(L, i + 1);
    } else {
        const char *key;
        size_t n;
        child = kl_value_member(v, (size_t)i, &key, &n);
        lua_pushlstring(L, key, n);
    }
    lua_pushinteger(L, i + 1);
    lua_replace(L, lua_upvalueindex(1));
    lkl__push_child(L, 1, child, 2);
    return 2;
}

static int view_pairs(lua_State *L)
{
    check_view(L, 1);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, view_next, 1);
    lua_pushvalue(L, 1);
    return 2;
}

static int view_tostring(lua_State *L)
{
    const kl_value *v = check_view(L, 1);
    lkl__push_json(L, v, false);
    return 1;
}

/* A new reference of what a view or a draft is now, or NULL. */
static const kl_value *value_of(lua_State *L, int idx)
{
    const kl_value *v = lkl_view_value(L, idx);
    return v ? kl_value_ref(v) : lkl__draft_value(L, idx);
}

/* A view or a draft against another: by value. Lua asks only when both are userdata. */
int lkl__eq(lua_State *L)
{
    const kl_value *a = value_of(L, 1), *b = value_of(L, 2);
    lua_pushboolean(L, a && b && kl_value_equal(a, b));
    kl_value_unref(a);
    kl_value_unref(b);
    return 1;
}

/* o("a.b[1].c") and o("metadata.labels", "app.kubernetes.io/name"): a path, then keys as they stand. Nil as soon as a step is absent. */
static int view_call(lua_State *L)
{
    const kl_value *v = check_view(L, 1);
    int top = lua_gettop(L);
    luaL_checkstring(L, 2);
    v = kl_path_get(lkl__path(L, 2), v);
    for (int i = 3; v && i <= top; i++)
        v = child_of(L, v, i);
    if (lkl__push_scalar(L, v))
        return 1;
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addchar(&b, PATH_MARK);
    luaL_addstring(&b, lua_tostring(L, 2));
    for (int i = 3; i <= top; i++)
        lkl__path_step(L, &b, i, false);
    luaL_pushresult(&b);
    lkl__push_child(L, 1, v, -1);
    return 1;
}

static int view_gc(lua_State *L)
{
    lkl_view *view = get_view(L, 1);
    if (view && view->root == view) {
        kl_value_unref(view->v);
        view->v = NULL;
    }
    return 0;
}

static const luaL_Reg view_meta[] = {
    { "__index", view_index }, { "__newindex", view_newindex }, { "__len", view_len }, { "__pairs", view_pairs },
    { "__tostring", view_tostring }, { "__eq", lkl__eq }, { "__call", view_call }, { NULL, NULL },
};

/* Only roots own something: views below have no finaliser, which makes them cheap for the collector. */
static void set_view_metatable(lua_State *L, bool root)
{
    if (lkl__metatable(L, root ? &root_mt : &child_mt, "kubelua.view")) {
        luaL_setfuncs(L, view_meta, 0);
        if (root) {
            lua_pushcfunction(L, view_gc);
            lua_setfield(L, -2, "__gc");
        }
        lkl__keep_metatable(L, root ? &root_mt : &child_mt);
    }
    lua_setmetatable(L, -2);
}

/* --- paths -------------------------------------------------------------------------------------------------------------------- */

static void free_path(void *ptr)
{
    kl_path_free(ptr);
}

static const lkl_class path_class = { .name = "kubelua.path", .free = free_path };

/* Compiled paths are kept per state. Scripts write them as literals, so there are few; who makes them on the fly starts the
 * collection over now and then. [1] counts. */
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
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, -3, BORDER_PATHS);
    lua_remove(L, -2);
}

kl_path *lkl__path(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    push_paths(L);
    int paths = lua_gettop(L);
    lua_pushvalue(L, idx);
    lua_rawget(L, paths);
    kl_path *path = lkl_box_get(L, -1, &path_class);
    if (!path) {
        lkl_box *box = lkl_box_new(L, &path_class, 0);
        kl_err err = KL_ERR_INIT;
        if (kl_path_parse(lua_tostring(L, idx), &path, &err))
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
    lua_replace(L, paths);          /* the box stays on the stack: it keeps the path */
    lua_settop(L, paths);
    return path;
}

/* kube.is_view(x) */
static int is_view(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, get_view(L, 1) != NULL);
    return 1;
}

/* core.memory(): nodes and bytes that all values of the process take */
static int memory(lua_State *L)
{
    size_t nodes, bytes;
    kl_value_memory(&nodes, &bytes);
    lua_pushinteger(L, (lua_Integer)nodes);
    lua_pushinteger(L, (lua_Integer)bytes);
    return 2;
}

void lkl__open_values(lua_State *L)
{
    static const luaL_Reg functions[] = { { "is_view", is_view }, { "memory", memory }, { NULL, NULL } };
    luaL_setfuncs(L, functions, 0);
}
