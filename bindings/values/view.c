/* view.c - a value as Lua sees it: a userdata over the shared, immutable tree; nothing is copied.
 *
 * The root view holds the one reference; a view of something below holds its parent (user value 1) and its
 * own key in it (user value 2), so it lives as long as the root and can say where it stands. Every string
 * key is a field: a view has no methods. Absent fields and JSON null read as nil.
 *
 * Reading allocates little: a place that was read a moment ago gives the same userdata again, from a small
 * weak table of the state; an object in that table is not held twice either. The metamethods have the
 * border and the tables as upvalues, so a read does not use the registry. */
#include "values/view.h"

#include <string.h>

#include "state/ceiling.h"

static const char view_tag, root_mt, child_mt;

/* A view that holds the reference: its box does. */
typedef struct root_view {
    lkl_view view;
    lkl_box *box;
    lkl_box within;
} root_view;

static void free_reference(void *ptr) { kl_value_unref(ptr); }

static uintptr_t word_of(const void *string, int how) { return (uintptr_t)string | (uintptr_t)how; }
static uintptr_t word_of_index(size_t i, int how) { return (uintptr_t)i << 2 | (uintptr_t)how; }

lkl_view *lkl__get_view(lua_State *L, int idx) { return lkl__tagged(L, idx, &view_tag, sizeof(lkl_view)); }

const kl_value *lkl_view_value(lua_State *L, int idx)
{
    lkl_view *view = lkl__get_view(L, idx);
    return view && view->root->v ? view->v : NULL;
}

static lkl_view *check_view(lua_State *L, int idx)
{
    lkl_view *view = lkl__get_view(L, idx);
    if (!view)
        luaL_typeerror(L, idx, "kubelua.view");
    if (!view->root->v)
        luaL_argerror(L, idx, "this view was finalised before its user");
    return view;
}

/* --- making ------------------------------------------------------------------------------- */

/* What the metamethods have as upvalues. */
enum { UP_BORDER = 1, UP_SEEN, UP_TEXTS, UP_NAMES, UP_CHILD_MT, UP_NEXT, UPVALUES = UP_NEXT };

/* Texts of these lengths are made once and found again: Lua hashes each byte of a short string, and copies a
 * long one. */
#define TEXT_MIN 16
#define TEXT_MAX 256

static size_t set_of(const void *a, uintptr_t b)
{
    uint64_t h = ((uint64_t)(uintptr_t)a ^ (uint64_t)b << 1 ^ (uint64_t)b >> 13) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 59) * LKL__WAYS;
}

/* The slot in the table, or 0: the table may have lost the entry since. */
static lua_Integer slot_find(const lkl__slots *s, const void *a, uintptr_t b)
{
    size_t at = set_of(a, b);
    for (size_t way = 0; way < LKL__WAYS; way++)
        if (s->word[at + way].a == a && s->word[at + way].b == b)
            return (lua_Integer)(at + way) + 1;
    return 0;
}

/* The slot for a new entry, which replaces an older one. */
static lua_Integer slot_take(lkl__slots *s, const void *a, uintptr_t b)
{
    size_t at = set_of(a, b);
    at += s->next[at / LKL__WAYS]++ % LKL__WAYS;
    s->word[at].a = a;
    s->word[at].b = b;
    return (lua_Integer)at + 1;
}

static void push_metatables(lua_State *L);

/* Pushes a view of `child`, which is part of the userdata at parent_idx; the addresses of that userdata and
 * its root are given. key_idx 0: the view keeps no key. The metatable is at mt_idx. */
static void new_child(lua_State *L, const kl_value *child, int parent_idx, const void *parent,
    const lkl_view *root, uintptr_t key, int key_idx, int mt_idx)
{
    child_view *c = lua_newuserdatauv(L, sizeof *c, key_idx ? VIEW_KEY : VIEW_PARENT);
    *c = (child_view){{&view_tag, NULL, root}, parent, key};
    lua_pushvalue(L, parent_idx);
    lua_setiuservalue(L, -2, VIEW_PARENT);
    if (key_idx) {
        lua_pushvalue(L, key_idx);
        lua_setiuservalue(L, -2, VIEW_KEY);
    }
    lua_pushvalue(L, mt_idx);
    lua_setmetatable(L, -2);
    c->view.v = child; /* only now: the parent keeps it alive */
}

/* In a metamethod: pushes the text of a string. It is found by its handle and compared by its bytes. */
static void push_text(lua_State *L, lkl_border *b, const kl_value *v)
{
    size_t n, have;
    const char *s = kl_value_strn(v, &n);
    if (n < TEXT_MIN || n > TEXT_MAX) {
        lua_pushlstring(L, s, n);
        return;
    }
    lua_Integer slot = slot_find(&b->texts, v, 0);
    if (slot) {
        lua_rawgeti(L, lua_upvalueindex(UP_TEXTS), slot);
        const char *there = lua_tolstring(L, -1, &have);
        if (there && have == n && memcmp(there, s, n) == 0)
            return;
        lua_pop(L, 1);
    } else {
        slot = slot_take(&b->texts, v, 0);
    }
    lua_pushlstring(L, s, n);
    lua_pushvalue(L, -1);
    lua_rawseti(L, lua_upvalueindex(UP_TEXTS), slot);
}

/* In a metamethod: pushes the scalar or the view at a key of the view at 1. key_idx is absolute. */
static void push_child(
    lua_State *L, const lkl_view *parent, const kl_value *child, uintptr_t key, int key_idx)
{
    kl_type type = kl_value_type(child);
    lkl_border *b = lkl__border_at(L, lua_upvalueindex(UP_BORDER));
    if (type == KL_STRING) {
        push_text(L, b, child);
        return;
    }
    if (type < KL_ARRAY) {
        (void)lkl__push_scalar(L, child);
        return;
    }
    lua_Integer slot = slot_find(&b->seen, parent, key);
    if (slot) {
        lua_rawgeti(L, lua_upvalueindex(UP_SEEN), slot);
        const child_view *c = lua_touserdata(L, -1);
        if (c && c->view.root != &c->view && c->parent == parent && c->key == key)
            return;
        lua_pop(L, 1);
    }
    new_child(L, child, 1, parent, parent->root, key, key_idx, lua_upvalueindex(UP_CHILD_MT));
    if (!slot)
        slot = slot_take(&b->seen, parent, key);
    lua_pushvalue(L, -1);
    lua_rawseti(L, lua_upvalueindex(UP_SEEN), slot);
}

/* The border keeps an empty root ready, so that a reference from C has a place that cannot fail. */
void lkl__view_prepare(lua_State *L)
{
    lkl__border_push(L);
    if (lua_getiuservalue(L, -1, BORDER_SPARE) != LUA_TUSERDATA) {
        root_view *r = lua_newuserdatauv(L, sizeof *r, 0);
        *r = (root_view){.view = {&view_tag, NULL, &r->view}};
        push_metatables(L);
        lua_pop(L, 1);
        lua_setmetatable(L, -2);
        r->box = lkl__box_hold(L, &r->within, free_reference);
        lua_setiuservalue(L, -3, BORDER_SPARE);
    }
    lua_pop(L, 2);
}

void lkl__push_taken(lua_State *L, const kl_value *taken)
{
    if (!taken) {
        lua_pushnil(L);
        return;
    }
    lkl_border *b = lkl__border_push(L);
    lua_getiuservalue(L, -1, BORDER_SEEN);
    lua_Integer slot = slot_find(&b->seen, NULL, (uintptr_t)taken);
    lua_rawgeti(L, -1, slot); /* nil at 0 */
    const lkl_view *there = lua_touserdata(L, -1);
    if (there && there->root == there && there->v == taken) {
        kl_value_unref(taken); /* the view has one */
    } else {
        lua_pop(L, 1);
        lua_getiuservalue(L, -2, BORDER_SPARE);
        root_view *r = lua_touserdata(L, -1);
        r->view.v = taken;
        r->box->ptr = (void *)taken;
        lua_pushvalue(L, -1);
        lua_rawseti(L, -3, slot ? slot : slot_take(&b->seen, NULL, (uintptr_t)taken));
        lua_pushnil(L);
        lua_setiuservalue(L, -4, BORDER_SPARE);
    }
    lua_replace(L, -3);
    lua_pop(L, 1);
}

void lkl__view_charge(lua_State *L)
{
    root_view *r = (root_view *)lkl__get_view(L, -1);
    size_t max = lkl_ceiling_max(L);
    if (r && !r->box->charged && max < SIZE_MAX)
        lkl_box_charge(L, r->box, kl_value_held(r->view.v, max));
}

void lkl_push_object(lua_State *L, const kl_value *v)
{
    if (lkl__push_scalar(L, v))
        return;
    lkl__view_prepare(L); /* may raise: take the reference afterwards */
    lkl__push_taken(L, kl_value_ref(v));
}

void lkl_push_value(lua_State *L, const kl_value *v)
{
    lkl_push_object(L, v);
    lkl__view_charge(L);
}

void lkl__push_kept(
    lua_State *L, const kl_value *object, const lkl_view *head, int keeper_idx, size_t i, int mt_idx)
{
    new_child(L, object, keeper_idx, head, head, word_of_index(i, KEY_TOP), 0, mt_idx);
}

/* --- reading ------------------------------------------------------------------------------ */

/* The child that the key at idx names, or NULL, and the key as a word. Lists count from 1. */
static const kl_value *child_of(lua_State *L, const kl_value *v, int idx, uintptr_t *word)
{
    *word = 0;
    switch (lua_type(L, idx)) {
    case LUA_TSTRING: {
        if (kl_value_type(v) != KL_OBJECT)
            return NULL;
        size_t n;
        const char *key = lua_tolstring(L, idx, &n);
        *word = word_of(key, KEY_STRING);
        return kl_value_getn(v, key, n);
    }
    case LUA_TNUMBER: {
        int whole;
        lua_Integer i = lua_tointegerx(L, idx, &whole);
        if (!whole || kl_value_type(v) != KL_ARRAY || i < 1)
            return NULL;
        *word = word_of_index((size_t)i, KEY_INDEX);
        return kl_value_item(v, (size_t)i - 1);
    }
    default: return NULL;
    }
}

/* The word under which a view was found; the same for all items of a list. */
static uintptr_t below(const lkl_view *view)
{
    if (view->root == view)
        return KEY_TOP;
    uintptr_t key = ((const child_view *)view)->key;
    return (key & KEY_BITS) == KEY_STRING || (key & KEY_BITS) == KEY_PATH ? key : key & KEY_BITS;
}

/* In a metamethod: the field of the view's object that the string at 2 names, or NULL. */
static const kl_value *field_of(lua_State *L, lkl_border *b, const lkl_view *view, const char *name, size_t n)
{
    uintptr_t at = below(view);
    size_t i = (size_t)(((uint64_t)(uintptr_t)name ^ (uint64_t)at << 3) * 0x9e3779b97f4a7c15u
        >> (64 - LKL__FIELD_BITS));
    lkl__field *f = &b->fields[i];
    if (f->name != name || f->below != at) {
        if (b->closing)
            return kl_value_getn(view->v, name, n);
        lua_pushvalue(L, 2);
        lua_rawseti(L, lua_upvalueindex(UP_NAMES), (lua_Integer)i + 1);
        if (f->name)
            kl_lookup_fini(&f->lookup);
        *f = (lkl__field){.name = name, .below = at};
        kl_lookup_init(&f->lookup, name, n);
    }
    return kl_value_find(view->v, &f->lookup);
}

static int view_index(lua_State *L)
{
    const lkl_view *view = check_view(L, 1);
    uintptr_t key;
    const kl_value *child;
    size_t n;
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &n) : NULL;
    if (name) {
        key = word_of(name, KEY_STRING);
        child = field_of(L, lkl__border_at(L, lua_upvalueindex(UP_BORDER)), view, name, n);
    } else {
        child = child_of(L, view->v, 2, &key);
    }
    if (kl_value_type(child) == KL_NULL) {
        lkl_border *b = lkl__border_at(L, lua_upvalueindex(UP_BORDER));
        if (b->cuts && !child)
            lkl__cut_check(L, b->cuts, 1, 2);
        if (b->nil_index)
            lkl__absent_at(L, lua_upvalueindex(UP_BORDER), 1, 2);
        lua_pushnil(L);
    } else {
        push_child(L, view, child, key, 2);
    }
    return 1;
}

static int view_newindex(lua_State *L)
{
    check_view(L, 1);
    lkl__view_describe(L, 1, 2);
    return luaL_error(L,
        "read-only: cannot set %s; change it with ctx:patch(object, function(o) ... end), or work on "
        "kube.copy(object)",
        lua_tostring(L, -1));
}

/* Objects have no sequence, so their length is 0, as with a Lua table of named fields. */
static int view_len(lua_State *L)
{
    const kl_value *v = check_view(L, 1)->v;
    lua_pushinteger(L, kl_value_type(v) == KL_ARRAY ? (lua_Integer)kl_value_len(v) : 0);
    return 1;
}

/* The position after the key at 2, from 0. Loops remember their position; for any other key the object is
 * searched. */
static size_t place_after(lua_State *L, const lkl_view *view, const lkl__loop *loop)
{
    if (lua_isnoneornil(L, 2))
        return 0;
    if (kl_value_type(view->v) == KL_ARRAY)
        return (size_t)luaL_checkinteger(L, 2);
    size_t n, keylen;
    const char *name = luaL_checklstring(L, 2, &n), *key;
    if (loop->view == view && loop->key == name)
        return loop->next;
    for (size_t i = 0, len = kl_value_len(view->v); i < len; i++) {
        kl_value_member(view->v, i, &key, &keylen);
        if (keylen == n && memcmp(key, name, n) == 0)
            return i + 1;
    }
    return (size_t)luaL_error(L, "next: '%s' is not a field of this object", name);
}

/* next(view, key): key order of the text; lists from 1. A null gives its key and nil. */
static int view_next(lua_State *L)
{
    const lkl_view *view = check_view(L, 1);
    lkl__loop *loop =
        &lkl__border_at(L, lua_upvalueindex(UP_BORDER))->loops[((uintptr_t)view >> 4) % LKL__LOOPS];
    size_t i = place_after(L, view, loop);
    const kl_value *child;
    uintptr_t word;
    lua_settop(L, 1);
    if (i >= kl_value_len(view->v)) {
        lua_pushnil(L);
        return 1;
    }
    if (kl_value_type(view->v) == KL_ARRAY) {
        child = kl_value_item(view->v, i);
        lua_pushinteger(L, (lua_Integer)i + 1);
        word = word_of_index(i + 1, KEY_INDEX);
    } else {
        const char *key;
        size_t n;
        child = kl_value_member(view->v, i, &key, &n);
        key = lua_pushlstring(L, key, n);
        word = word_of(key, KEY_STRING);
        *loop = (lkl__loop){view, key, i + 1};
    }
    push_child(L, view, child, word, 2);
    return 2;
}

static int view_pairs(lua_State *L)
{
    check_view(L, 1);
    lua_pushvalue(L, lua_upvalueindex(UP_NEXT));
    lua_pushvalue(L, 1);
    return 2;
}

static int view_tostring(lua_State *L)
{
    lkl__push_json(L, check_view(L, 1)->v, false);
    return 1;
}

/* The present value of a view or a draft, or NULL; for a draft, a box that keeps it is pushed. */
static const kl_value *value_of(lua_State *L, int idx)
{
    const kl_value *v = lkl_view_value(L, idx);
    if (v || !lkl__is_draft(L, idx))
        return v;
    lkl_box *box = lkl_value_box(L);
    v = box->ptr = (void *)lkl__draft_value(L, idx);
    lkl__check_made(L, v, "the draft");
    return v;
}

/* Compares views and drafts by value. Lua calls this only when both are userdata. */
int lkl__eq(lua_State *L)
{
    lua_settop(L, 2);
    const kl_value *a = value_of(L, 1), *b = value_of(L, 2);
    bool equal = a && b && kl_value_equal(a, b);
    for (int i = lua_gettop(L); i > 2; i--)
        lkl_box_close(L, i); /* at once: a box that is made while a state closes is not collected */
    lua_pushboolean(L, equal);
    return 1;
}

/* o("a.b[1].c") and o("metadata.labels", "app.kubernetes.io/name"): a path, then keys as they stand. Nil
 * as soon as a step is absent. */
static int view_call(lua_State *L)
{
    const lkl_view *view = check_view(L, 1);
    int top = lua_gettop(L);
    const kl_value *v = kl_path_find(
        lkl__path_now(L, lkl__border_at(L, lua_upvalueindex(UP_BORDER)), 2), view->v);
    uintptr_t word;
    for (int i = 3; v && i <= top; i++)
        v = child_of(L, v, i, &word);
    if (!v || kl_value_type(v) == KL_NULL) {
        lua_pushnil(L);
        return 1;
    }
    if (top == 2 || kl_value_type(v) < KL_ARRAY) {
        push_child(L, view, v, word_of(lua_tostring(L, 2), KEY_PATH), 2);
        return 1;
    }
    luaL_Buffer path;
    luaL_buffinit(L, &path);
    luaL_addstring(&path, lua_tostring(L, 2));
    for (int i = 3; i <= top; i++)
        lkl__path_step(L, &path, i, false);
    luaL_pushresult(&path);
    push_child(L, view, v, word_of(lua_tostring(L, -1), KEY_PATH), lua_gettop(L));
    return 1;
}

static int view_gc(lua_State *L)
{
    lkl_view *view = lkl__get_view(L, 1);
    if (view && view->root == view) {
        lkl_box *box = ((root_view *)view)->box;
        view->v = NULL;
        ((root_view *)view)->box = NULL;
        if (box)
            lkl__box_release(L, box);
    }
    return 0;
}

/* Pushes a table whose slots are allocated: filling one allocates nothing. */
static void push_slots(lua_State *L)
{
    lua_createtable(L, LKL__SETS * LKL__WAYS, 0);
    for (int i = 1; i <= LKL__SETS * LKL__WAYS; i++) {
        lua_pushboolean(L, false);
        lua_rawseti(L, -2, i);
    }
}

/* Pushes the metatables of root views and of views below; made on first use, with the table of recent views.
 * Only roots own something: views below have no finaliser, which makes them cheap for the collector. */
static void push_metatables(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__index", view_index},
        {"__newindex", view_newindex},
        {"__len", view_len},
        {"__pairs", view_pairs},
        {"__tostring", view_tostring},
        {"__eq", lkl__eq},
        {"__call", view_call},
        {NULL, NULL},
    };
    lua_rawgetp(L, LUA_REGISTRYINDEX, &root_mt);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &child_mt);
    if (lua_istable(L, -1) && lua_istable(L, -2))
        return;
    lua_pop(L, 2);
    luaL_checkstack(L, 4 * UPVALUES, "views");
    lkl__border_push(L);
    int border = lua_gettop(L);
    push_slots(L);
    lkl__weaken(L, "v");
    push_slots(L);
    push_slots(L);
    (void)lkl__metatable(L, &root_mt, "kubelua.view");
    (void)lkl__metatable(L, &child_mt, "kubelua.view");
    int seen = border + UP_SEEN - 1, root = border + UP_CHILD_MT - 1, child = root + 1;
    for (int up = border; up < root; up++)
        lua_pushvalue(L, up);
    lua_pushvalue(L, child);
    lua_pushcclosure(L, view_next, UP_NEXT - 1);
    for (int mt = root; mt <= child; mt++) {
        lua_pushvalue(L, mt);
        for (int up = border; up < root; up++)
            lua_pushvalue(L, up);
        lua_pushvalue(L, child);
        lua_pushvalue(L, child + 1);
        luaL_setfuncs(L, meta, UPVALUES);
        lua_pop(L, 1);
    }
    lua_pushcfunction(L, view_gc);
    lua_setfield(L, root, "__gc");
    lua_pushvalue(L, seen);
    lua_setiuservalue(L, border, BORDER_SEEN);
    lua_pushvalue(L, root);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &root_mt);
    lua_pushvalue(L, child);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &child_mt);
    lua_settop(L, child);
    lua_replace(L, border + 1);
    lua_replace(L, border);
    lua_settop(L, border + 1);
}

void lkl__push_view_metatable(lua_State *L)
{
    push_metatables(L);
    lua_remove(L, -2);
}

/* kube.is_view(x) */
static int is_view(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, lkl__get_view(L, 1) != NULL);
    return 1;
}

/* core.has_parts(x): whether x is a table, view, draft or list, which can be indexed and iterated */
static int has_parts(lua_State *L)
{
    lua_pushboolean(L, lua_istable(L, 1) || luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL);
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
    static const luaL_Reg functions[] = {
        {"is_view", is_view}, {"has_parts", has_parts}, {"memory", memory}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
