/* draft.c - an object being edited, as Lua sees it: reads like a view, and can be written.
 *
 *   open --core.draft_close--> sent (writing raises: what is written now would be lost)
 *
 * The root owns the kl_draft; a draft of something below holds its parent and its key, as views do. Absent
 * fields read as nil; assigning below them creates the maps between (nil.c). Assigning nil removes; in a
 * list the rest moves up. */
#include <string.h>
#include "state/border.h"
#include "state/ceiling.h"

static const char draft_tag, root_mt, child_mt;

typedef struct lkl_draft {
    const void *tag;
    kl_draft_node *node;
    lkl_box *box; /* root: has our kl_draft; NULL once finalised */
    lkl_box within;
    struct lkl_draft *root; /* itself for the root */
    bool sent;              /* root */
} lkl_draft;

/* User values. The root's parent is the view it began with. */
enum { DRAFT_PARENT = 1, DRAFT_KEY };

static lkl_draft *get_draft(lua_State *L, int idx)
{
    lkl_draft *d = lkl__tagged(L, idx, &draft_tag, sizeof *d);
    return d && d->root->box ? d : NULL;
}

static lkl_draft *check_draft(lua_State *L, int idx)
{
    lkl_draft *d = get_draft(L, idx);
    if (!d)
        luaL_typeerror(L, idx, "kubelua.draft");
    return d;
}

bool lkl__is_draft(lua_State *L, int idx) { return get_draft(L, idx) != NULL; }

bool lkl__draft_same(lua_State *L, int a, int b)
{
    lkl_draft *x = get_draft(L, a), *y = get_draft(L, b);
    return x && y && x->node == y->node;
}

bool lkl__draft_kin(lua_State *L, int a, int b)
{
    lkl_draft *x = get_draft(L, a), *y = get_draft(L, b);
    return x && y && x->root == y->root;
}

const kl_value *lkl__draft_value(lua_State *L, int idx)
{
    lkl_draft *d = get_draft(L, idx);
    return d ? kl_draft_value(d->node) : NULL;
}

static void set_draft_metatable(lua_State *L, bool root);

static lkl_draft *new_draft(lua_State *L, lkl_draft *root)
{
    lkl_draft *d = lua_newuserdatauv(L, sizeof *d, DRAFT_KEY);
    *d = (lkl_draft){.tag = &draft_tag, .root = root ? root : d};
    set_draft_metatable(L, !root);
    return d;
}

/* --- where a draft stands ----------------------------------------------------------------- */

void lkl__draft_describe(lua_State *L, int idx, int key_idx)
{
    idx = lua_absindex(L, idx);
    if (key_idx)
        key_idx = lua_absindex(L, key_idx);
    lua_newtable(L);
    int keys = lua_gettop(L), n = 0;
    lua_pushvalue(L, idx);
    lkl_draft *d;
    while ((d = get_draft(L, -1)) && d->root != d) {
        lua_getiuservalue(L, -1, DRAFT_KEY);
        lua_rawseti(L, keys, ++n);
        lua_getiuservalue(L, -1, DRAFT_PARENT);
        lua_remove(L, -2);
    }
    if (d)
        lua_getiuservalue(L, -1, DRAFT_PARENT); /* the view it began with */
    lkl__describe_keys(L, lkl_view_value(L, -1), keys, key_idx);
    lua_replace(L, keys);
    lua_settop(L, keys);
}

/* --- reading ------------------------------------------------------------------------------ */

/* What is at the key: a node, or NULL and *scalar. */
static kl_draft_node *child_of(lua_State *L, kl_draft_node *node, int key_idx, const kl_value **scalar)
{
    *scalar = NULL;
    bool list = kl_draft_type(node) == KL_ARRAY;
    if (lua_type(L, key_idx) == LUA_TSTRING && !list) {
        size_t n;
        const char *key = lua_tolstring(L, key_idx, &n);
        return kl_draft_get(node, key, n, scalar);
    }
    int whole;
    lua_Integer i = lua_tointegerx(L, key_idx, &whole);
    if (list && whole && lua_type(L, key_idx) == LUA_TNUMBER && i >= 1)
        return kl_draft_item(node, (size_t)i - 1, scalar);
    return NULL;
}

/* Charges the draft again, after something that may have made it grow; the draft is on the stack. */
static void charge(lua_State *L, lkl_draft *d)
{
    lkl_box_charge(L, d->root->box, kl_draft_bytes(d->root->box->ptr));
}

static void push_child(lua_State *L, int idx, kl_draft_node *node, int key_idx)
{
    idx = lua_absindex(L, idx);
    key_idx = lua_absindex(L, key_idx);
    lkl_draft *d = new_draft(L, get_draft(L, idx)->root);
    d->node = node;
    lua_pushvalue(L, idx);
    lua_setiuservalue(L, -2, DRAFT_PARENT);
    lua_pushvalue(L, key_idx);
    lua_setiuservalue(L, -2, DRAFT_KEY);
}

/* Pushes what stands at the key: a draft, a scalar, or nil. */
static void push_at(lua_State *L, int idx, int key_idx)
{
    const kl_value *scalar;
    lkl_draft *d = get_draft(L, idx);
    kl_draft_node *node = child_of(L, d->node, key_idx, &scalar);
    if (node) {
        charge(L, d);
        push_child(L, idx, node, key_idx);
    } else
        (void)lkl__push_scalar(L, scalar);
}

static int draft_index(lua_State *L)
{
    check_draft(L, 1);
    lua_settop(L, 2);
    push_at(L, 1, 2);
    if (lua_isnil(L, 3))
        lkl__draft_absent(L, 1, 2);
    return 1;
}

static int draft_len(lua_State *L)
{
    lkl_draft *d = check_draft(L, 1);
    lua_pushinteger(L, kl_draft_type(d->node) == KL_ARRAY ? (lua_Integer)kl_draft_len(d->node) : 0);
    return 1;
}

/* Upvalues: the keys as they were when the loop began, and the position. So a loop may remove the fields that
 * it visits. */
static int draft_next(lua_State *L)
{
    check_draft(L, 1);
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(2));
    for (;;) {
        lua_settop(L, 1);
        i++;
        if (lua_rawgeti(L, lua_upvalueindex(1), i) == LUA_TNIL)
            return 1;
        push_at(L, 1, 2);
        if (!lua_isnil(L, 3))
            break;
    }
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(2));
    return 2;
}

static int draft_pairs(lua_State *L)
{
    lkl_draft *d = check_draft(L, 1);
    size_t n = kl_draft_len(d->node);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        if (kl_draft_type(d->node) == KL_ARRAY) {
            lua_pushinteger(L, (lua_Integer)i + 1);
        } else {
            size_t len;
            const char *key = kl_draft_key(d->node, i, &len);
            lua_pushlstring(L, key, len);
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, draft_next, 2);
    lua_pushvalue(L, 1);
    return 2;
}

static int draft_tostring(lua_State *L)
{
    lkl_draft *d = check_draft(L, 1);
    lkl_box *box = lkl_value_box(L);
    const kl_value *v = kl_draft_value(d->node);
    box->ptr = (void *)v;
    lkl__check_made(L, v, "the draft");
    lkl__push_json(L, v, false);
    lkl_box_close(L, -2);
    return 1;
}

/* n("a.b[1].c", key...): nil-safe, as on views; the result can be written. */
static int draft_call(lua_State *L)
{
    check_draft(L, 1);
    lkl__text(L, 2);
    int top = lua_gettop(L);
    kl_path *path = lkl__path(L, 2);
    lua_pushvalue(L, 1);
    int at = lua_gettop(L);
    size_t steps = kl_path_len(path);
    for (size_t i = 0; i < steps + (size_t)(top - 2); i++) {
        if (!get_draft(L, at)) { /* a scalar has nothing below it */
            lua_pushnil(L);
            return 1;
        }
        if (i < steps) {
            size_t n, index;
            const char *key = kl_path_step(path, i, &n, &index);
            if (key)
                lua_pushlstring(L, key, n);
            else
                lua_pushinteger(L, (lua_Integer)index);
        } else {
            lua_pushvalue(L, (int)(i - steps) + 3);
        }
        push_at(L, at, -1);
        lua_replace(L, at);
        lua_settop(L, at);
    }
    return 1;
}

/* --- writing ------------------------------------------------------------------------------ */

static int refuse(lua_State *L, int idx, int key_idx, const char *why)
{
    lkl__draft_describe(L, idx, key_idx);
    return lkl__error(L, "cannot set %s: %s", lua_tostring(L, -1), why);
}

/* An empty object turns into a list when a first item is assigned: Lua has one word, {}, for both. */
static void become_list(lua_State *L, int idx, int key_idx)
{
    lkl_draft *d = get_draft(L, idx);
    if (d == d->root)
        refuse(L, idx, key_idx, "an object is not a list");
    lua_getiuservalue(L, idx, DRAFT_PARENT);
    lua_getiuservalue(L, idx, DRAFT_KEY);
    lkl_draft *parent = check_draft(L, -2);
    lkl_box *box = lkl_value_box(L);
    box->ptr = (void *)kl_value_empty(KL_ARRAY);
    kl_err err = KL_ERR_INIT;
    int key = lua_gettop(L) - 1;
    size_t n;
    if (lua_type(L, key) == LUA_TSTRING) {
        const char *name = lua_tolstring(L, key, &n);
        kl_draft_set(parent->node, name, n, box->ptr);
    } else if (kl_draft_set_item(parent->node, (size_t)lua_tointeger(L, key) - 1, box->ptr, &err)) {
        lkl__argerror(L, 2, &err);
    }
    const kl_value *scalar;
    kl_draft_node *node = child_of(L, parent->node, key, &scalar);
    if (!node)
        refuse(L, idx, key_idx, "this part of the draft no longer exists");
    d->node = node;
    lua_pop(L, 3);
}

/* Raises when the value would be too deep at the key of the draft at idx. No object is deeper, so code that
 * walks one has enough stack. */
static void check_depth(lua_State *L, int idx, int key_idx, const kl_value *value)
{
    unsigned above = kl_draft_depth(get_draft(L, idx)->node) + 1;
    kl_room room = {.nodes = SIZE_MAX,
        .bytes = SIZE_MAX,
        .depth = above < KL_VALUE_DEPTH_MAX ? KL_VALUE_DEPTH_MAX - above : 0};
    if (kl_value_fit(value, &room) != KL_FIT)
        refuse(L, idx, key_idx, lua_pushfstring(L, "nested deeper than %d", KL_VALUE_DEPTH_MAX));
}

/* Sets `value` (NULL removes) at the key of the draft at idx. */
static void set_value(lua_State *L, int idx, int key_idx, const kl_value *value)
{
    lkl_draft *d = get_draft(L, idx);
    kl_err err = KL_ERR_INIT;
    check_depth(L, idx, key_idx, value);
    if (lua_type(L, key_idx) == LUA_TSTRING) {
        size_t n;
        const char *key = lua_tolstring(L, key_idx, &n);
        if (kl_draft_type(d->node) == KL_ARRAY)
            refuse(L, idx, key_idx, "the items of a list are numbered");
        kl_draft_set(d->node, key, n, value);
        return;
    }
    int whole;
    lua_Integer i = lua_tointegerx(L, key_idx, &whole);
    if (!whole || lua_type(L, key_idx) != LUA_TNUMBER)
        refuse(L, idx, key_idx, "a key is a name, or a place in a list");
    if (kl_draft_type(d->node) == KL_OBJECT) {
        if (!value)
            return;
        if (kl_draft_len(d->node) > 0)
            refuse(L, idx, key_idx, "this is an object, its fields have names");
        become_list(L, idx, key_idx);
    }
    lua_Integer len = (lua_Integer)kl_draft_len(d->node);
    if (!value && (i < 1 || i > len))
        return; /* as table.remove does on an empty list */
    if (i < 1 || i > len + 1) {
        lua_pushfstring(L, "the list has %d items; the next is [%d]", (int)len, (int)len + 1);
        refuse(L, idx, key_idx, lua_tostring(L, -1));
    }
    if (kl_draft_set_item(d->node, (size_t)i - 1, value, &err))
        lkl__argerror(L, 2, &err);
}

static void check_open(lua_State *L, int idx, int key_idx)
{
    if (check_draft(L, idx)->root->sent)
        refuse(L, idx, key_idx, "this draft has been sent; edit inside the function that was given to patch");
}

/* A scalar that every object accepts, so an error needs no name for it. */
static bool is_plain(lua_State *L, int idx)
{
    switch (lua_type(L, idx)) {
    case LUA_TNIL:
    case LUA_TBOOLEAN: return true;
    case LUA_TNUMBER: return lua_isinteger(L, idx);
    case LUA_TSTRING: return kl_utf8_valid(lua_tostring(L, idx), lua_rawlen(L, idx));
    default: return false;
    }
}

static int draft_newindex(lua_State *L)
{
    lua_settop(L, 3);
    check_open(L, 1, 2);
    lkl__statement_over(L);
    lkl_box *box = lkl_value_box(L); /* 4 */
    if (is_plain(L, 3))
        lua_pushliteral(L, "the value");
    else
        lkl__draft_describe(L, 1, 2);
    set_value(L, 1, 2, lkl__to_box(L, box, 3, lua_tostring(L, -1)));
    charge(L, get_draft(L, 1));
    lkl_box_close(L, 4);
    return 0;
}

/* Pushes the container at the key of the draft at idx, made when there is none: a list when the next key
 * is a number. */
static void make_at(lua_State *L, int idx, int key_idx, bool list)
{
    push_at(L, idx, key_idx);
    if (get_draft(L, -1))
        return;
    lua_pop(L, 1);
    lkl_box *box = lkl_value_box(L);
    kl_builder *b = kl_builder_new();
    if (list)
        kl_build_array(b);
    else
        kl_build_object(b);
    kl_build_end(b);
    box->ptr = (void *)kl_builder_done(b);
    set_value(L, idx, key_idx, box->ptr);
    charge(L, get_draft(L, idx));
    lua_pop(L, 1);
    push_at(L, idx, key_idx);
    if (!get_draft(L, -1))
        refuse(L, idx, key_idx, "no map or list can be created here");
}

void lkl__draft_assign(lua_State *L, int chain_idx, int value_idx)
{
    int chain = lua_absindex(L, chain_idx), value = lua_absindex(L, value_idx);
    lua_Integer n = (lua_Integer)lua_rawlen(L, chain);
    luaL_checkstack(L, 12, "too many keys");
    lua_rawgeti(L, chain, 1);
    int at = lua_gettop(L);
    lua_rawgeti(L, chain, 2);
    check_open(L, at, at + 1);
    lkl_box *box = lkl_value_box(L); /* at + 2 */
    const kl_value *v = lkl__to_box(L, box, value, "the value");
    if (!v)
        return;                           /* nothing to remove below an absent field */
    for (lua_Integer i = 2; i < n; i++) { /* key i at at + 1 */
        lua_rawgeti(L, chain, i + 1);
        bool list = lua_type(L, -1) == LUA_TNUMBER;
        make_at(L, at, at + 1, list);
        lua_replace(L, at);
        lua_replace(L, at + 1);
    }
    set_value(L, at, at + 1, v);
    charge(L, get_draft(L, at));
}

/* --- life --------------------------------------------------------------------------------- */

static void free_draft(void *ptr) { kl_draft_free(ptr); }

static int draft_gc(lua_State *L)
{
    lkl_draft *d = lkl__tagged(L, 1, &draft_tag, sizeof *d);
    lkl_box *box = d && d->root == d ? d->box : NULL;
    if (box) {
        d->box = NULL;
        lkl__box_release(L, box);
    }
    return 0;
}

static void set_draft_metatable(lua_State *L, bool root)
{
    static const luaL_Reg meta[] = {
        {"__index", draft_index},
        {"__newindex", draft_newindex},
        {"__len", draft_len},
        {"__pairs", draft_pairs},
        {"__tostring", draft_tostring},
        {"__eq", lkl__eq},
        {"__call", draft_call},
        {NULL, NULL},
    };
    if (lkl__metatable(L, root ? &root_mt : &child_mt, "kubelua.draft")) {
        luaL_setfuncs(L, meta, 0);
        if (root) {
            lua_pushcfunction(L, draft_gc);
            lua_setfield(L, -2, "__gc");
        }
        lkl__keep_metatable(L, root ? &root_mt : &child_mt);
    }
    lua_setmetatable(L, -2);
}

/* core.draft(view) */
static int make_draft(lua_State *L)
{
    const kl_value *base = lkl_view_value(L, 1);
    if (!base)
        return luaL_typeerror(L, 1, "kubelua.view");
    lkl__forget_chains(L);
    lkl_draft *d = new_draft(L, NULL);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, DRAFT_PARENT);
    d->box = lkl__box_hold(L, &d->within, free_draft);
    d->box->ptr = kl_draft_new(base);
    d->node = kl_draft_root(d->box->ptr);
    return 1;
}

/* core.draft_close(draft): from now on writing raises */
static int close_draft(lua_State *L)
{
    check_draft(L, 1)->root->sent = true;
    lkl__forget_chains(L);
    return 0;
}

/* core.draft_patch(draft): the merge patch as a view; or nil when nothing changed. Then whether a list
 * changed. */
static int draft_patch(lua_State *L)
{
    lkl_draft *d = check_draft(L, 1)->root;
    bool lists;
    lkl__view_prepare(L);
    const kl_value *patch = kl_draft_result(d->box->ptr, &lists);
    lkl__push_taken(L, patch);
    lkl__view_charge(L);
    if (!patch)
        return 1;
    lkl__check_made(L, patch, "the patch");
    lua_pushboolean(L, lists);
    return 2;
}

/* core.is_draft(x) */
static int is_draft(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, lkl__is_draft(L, 1));
    return 1;
}

void lkl__open_draft(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"draft", make_draft},
        {"draft_close", close_draft},
        {"draft_patch", draft_patch},
        {"is_draft", is_draft},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
