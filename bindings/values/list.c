/* list.c - objects out of a cache as Lua sees them: a snapshot of references; a view is made when its
 * object is looked at.
 *
 *   read-only, views on demand --first write (table.sort, table.remove, list[i] = x)--> a table of its own
 *
 * References stand in keepers of at most KEEP each, and views of objects keep their keeper alive. So a
 * script that keeps one object of a list keeps few others, and no object needs a finaliser of its own. */
#include "base/mem.h"
#include "state/border.h"
#include "state/budget.h"

/* Large enough that a finaliser costs little per object, small enough that one kept object holds few
 * others. */
#define KEEP 64

static const char list_tag, list_mt, keeper_tag, keeper_mt;

typedef struct list {
    const void *tag;
    size_t n;
} list;

/* User values of a list: a table of its keepers; and the table that it became, or nil. */
enum { LIST_KEEPERS = 1, LIST_OWN };

/* --- keepers ------------------------------------------------------------------------------ */

/* The content of a keeper's box. */
typedef struct kept {
    size_t n;
    const kl_value *v[];
} kept;

typedef struct keeper {
    lkl__view head; /* what views of its objects have as root; head.v: the first object */
    lkl_box *box;   /* NULL once finalised */
    lkl_box within;
} keeper;

static void free_kept(void *ptr)
{
    kept *all = ptr;
    for (size_t i = 0; i < all->n; i++)
        kl_value_unref(all->v[i]);
    kl_free(all);
}

static int keeper_gc(lua_State *L)
{
    keeper *k = lkl__tagged(L, 1, &keeper_tag, sizeof *k);
    lkl_box *box = k ? k->box : NULL;
    if (box) {
        k->head.v = NULL; /* views of it see now that it has ended */
        k->box = NULL;
        lkl__box_release(L, box);
    }
    return 0;
}

/* The i-th object; NULL: there is none, or the keeper was finalised before its user. */
static const kl_value *kept_at(const keeper *k, size_t i)
{
    const kept *all = k && k->box ? k->box->ptr : NULL;
    return all && i < all->n ? all->v[i] : NULL;
}

/* Pushes an empty keeper. */
static keeper *push_keeper(lua_State *L)
{
    keeper *k = lua_newuserdatauv(L, sizeof *k, 0);
    *k = (keeper){.head = {&keeper_tag, NULL, &k->head}};
    if (lkl__metatable(L, &keeper_mt, "kubelua.keeper")) {
        lua_pushcfunction(L, keeper_gc);
        lua_setfield(L, -2, "__gc");
        lkl__keep_metatable(L, &keeper_mt);
    }
    lua_setmetatable(L, -2);
    k->box = lkl__box_hold(L, &k->within, free_kept);
    return k;
}

/* Pushes a table of keepers; they take over o's references. */
static void push_keepers(lua_State *L, kl_objects *o)
{
    lua_createtable(L, (int)((o->len + KEEP - 1) / KEEP), 0);
    for (size_t at = 0; at < o->len; at += KEEP) {
        size_t n = o->len - at < KEEP ? o->len - at : KEEP;
        keeper *k = push_keeper(L);
        kept *all = k->box->ptr = kl_zalloc(sizeof *all + n * sizeof *all->v);
        for (; all->n < n; all->n++) {
            all->v[all->n] = o->v[at + all->n];
            o->v[at + all->n] = NULL;
        }
        k->head.v = all->v[0];
        lkl_box_charge(L, k->box, sizeof *all + n * sizeof *all->v);
        lua_rawseti(L, -2, (lua_Integer)(at / KEEP) + 1);
    }
}

/* --- each --------------------------------------------------------------------------------- */

enum { EACH_KEEPERS = 1, EACH_AT, EACH_MT };

static int each_next(lua_State *L)
{
    size_t at = (size_t)lua_tointeger(L, lua_upvalueindex(EACH_AT));
    lua_settop(L, 0);
    lua_rawgeti(L, lua_upvalueindex(EACH_KEEPERS), (lua_Integer)(at / KEEP) + 1);
    const keeper *k = lua_touserdata(L, 1);
    const kl_value *object = kept_at(k, at % KEEP);
    if (!object) {
        lua_pushnil(L);
        return 1;
    }
    lkl__push_kept(L, object, &k->head, 1, at % KEEP, lua_upvalueindex(EACH_MT));
    if ((at + 1) % KEEP == 0) { /* views that a script kept keep the passed objects alive */
        lua_pushnil(L);
        lua_rawseti(L, lua_upvalueindex(EACH_KEEPERS), (lua_Integer)(at / KEEP) + 1);
    }
    lua_pushinteger(L, (lua_Integer)at + 1);
    lua_replace(L, lua_upvalueindex(EACH_AT));
    return 1;
}

void lkl__push_each(lua_State *L, kl_objects *o)
{
    push_keepers(L, o);
    lua_pushinteger(L, 0);
    lkl__push_view_metatable(L);
    lua_pushcclosure(L, each_next, EACH_MT);
}

/* --- lists -------------------------------------------------------------------------------- */

static list *check_list(lua_State *L, int idx)
{
    list *l = lkl__tagged(L, idx, &list_tag, sizeof *l);
    if (!l)
        luaL_typeerror(L, idx, "kubelua.list");
    return l;
}

/* Pushes the table that the list at 1 became, or pushes nothing. */
static bool push_own(lua_State *L)
{
    if (lua_getiuservalue(L, 1, LIST_OWN) == LUA_TTABLE)
        return true;
    lua_pop(L, 1);
    return false;
}

/* Pushes the i-th view, from 0; the list is at 1 and has as many. */
static void push_item(lua_State *L, size_t i)
{
    lua_getiuservalue(L, 1, LIST_KEEPERS);
    lua_rawgeti(L, -1, (lua_Integer)(i / KEEP) + 1);
    lua_replace(L, -2);
    int at = lua_gettop(L);
    const keeper *k = lua_touserdata(L, at);
    const kl_value *object = kept_at(k, i % KEEP);
    lkl__push_view_metatable(L);
    if (object)
        lkl__push_kept(L, object, &k->head, at, i % KEEP, at + 1);
    else
        lua_pushnil(L);
    lua_replace(L, at);
    lua_settop(L, at);
}

static int list_index(lua_State *L)
{
    list *l = check_list(L, 1);
    lua_settop(L, 2);
    if (push_own(L)) {
        lua_pushvalue(L, 2);
        lua_rawget(L, 3);
        return 1;
    }
    int whole;
    lua_Integer i = lua_tointegerx(L, 2, &whole);
    if (!whole || lua_type(L, 2) != LUA_TNUMBER || i < 1 || (size_t)i > l->n)
        lua_pushnil(L);
    else
        push_item(L, (size_t)i - 1);
    return 1;
}

static int list_len(lua_State *L)
{
    list *l = check_list(L, 1);
    lua_pushinteger(L, push_own(L) ? (lua_Integer)lua_rawlen(L, -1) : (lua_Integer)l->n);
    return 1;
}

static int list_newindex(lua_State *L)
{
    list *l = check_list(L, 1);
    lua_settop(L, 3);
    if (!push_own(L)) {
        lua_createtable(L, (int)l->n, 0);
        for (size_t i = 0; i < l->n; i++) {
            push_item(L, i);
            lua_rawseti(L, 4, (lua_Integer)i + 1);
        }
        lua_pushvalue(L, 4);
        lua_setiuservalue(L, 1, LIST_OWN);
    }
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_settable(L, 4);
    return 0;
}

/* next(list, i): places from 1. */
static int list_next(lua_State *L)
{
    lua_Integer i = (lua_Integer)((lua_Unsigned)luaL_optinteger(L, 2, 0) + 1);
    lua_settop(L, 1);
    lua_pushinteger(L, i);
    lua_pushinteger(L, i);
    if (lua_gettable(L, 1) != LUA_TNIL)
        return 2;
    return 1; /* nil */
}

static int list_pairs(lua_State *L)
{
    check_list(L, 1);
    lua_pushcfunction(L, list_next);
    lua_pushvalue(L, 1);
    return 2;
}

static const kl_value *value_of(lua_State *L, int idx)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    lua_getiuservalue(L, idx, LIST_KEEPERS);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TUSERDATA; i++, lua_pop(L, 1)) {
        const kl_value *object;
        for (size_t at = 0; (object = kept_at(lua_touserdata(L, -1), at)); at++)
            kl_build_value(b, object);
    }
    lua_pop(L, 2);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Whether a script changed the list at idx: then it has a table of its own. */
static bool is_changed(lua_State *L, int idx)
{
    bool own = lua_getiuservalue(L, idx, LIST_OWN) == LUA_TTABLE;
    lua_pop(L, 1);
    return own;
}

/* Keeper i of the list at idx: it has the objects from place i * KEEP on. */
static const keeper *keeper_of(lua_State *L, int idx, size_t i)
{
    lua_getiuservalue(L, idx, LIST_KEEPERS);
    lua_rawgeti(L, -1, (lua_Integer)i + 1);
    const keeper *k = lua_touserdata(L, -1);
    lua_pop(L, 2);
    return k;
}

const kl_value *lkl__list_item(lua_State *L, int idx, size_t i)
{
    list *l = lkl__tagged(L, idx, &list_tag, sizeof *l);
    return l && i < l->n && !is_changed(L, idx) ? kept_at(keeper_of(L, idx, i / KEEP), i % KEEP) : NULL;
}

bool lkl__list_own(lua_State *L, int idx)
{
    if (!lkl__tagged(L, idx, &list_tag, sizeof(list)))
        return false;
    luaL_checkstack(L, 4, "a list");
    if (lua_getiuservalue(L, idx, LIST_OWN) == LUA_TTABLE)
        return true;
    lua_pop(L, 1);
    return false;
}

const kl_value *lkl__list_value(lua_State *L, int idx)
{
    if (!lkl__tagged(L, idx, &list_tag, sizeof(list)))
        return NULL;
    idx = lua_absindex(L, idx);
    return lkl__list_own(L, idx) ? NULL : value_of(L, idx);
}

static int list_tostring(lua_State *L)
{
    check_list(L, 1);
    lkl__push_json(L, lkl__to_box(L, lkl_value_box(L), 1, "the list"), false);
    return 1;
}

/* Two lists that no script changed: the same number of objects, each equal to the one in its place. */
static int list_eq(lua_State *L)
{
    const list *a = lkl__tagged(L, 1, &list_tag, sizeof *a), *b = lkl__tagged(L, 2, &list_tag, sizeof *b);
    bool equal = a && b && a->n == b->n && !is_changed(L, 1) && !is_changed(L, 2);
    bool counted = lkl__border(L)->counted;
    for (size_t i = 0; equal && i * KEEP < a->n; i++) {
        const keeper *x = keeper_of(L, 1, i), *y = keeper_of(L, 2, i);
        if (counted)
            lkl_budget_spend(L, KEEP * LKL_NODE_STEPS);
        for (size_t at = 0; equal && at < KEEP && i * KEEP + at < a->n; at++) {
            const kl_value *v = kept_at(x, at);
            equal = v && kl_value_equal(v, kept_at(y, at));
        }
    }
    lua_pushboolean(L, equal);
    return 1;
}

void lkl__push_list(lua_State *L, kl_objects *o)
{
    static const luaL_Reg meta[] = {
        {"__eq", list_eq},
        {"__index", list_index},
        {"__newindex", list_newindex},
        {"__len", list_len},
        {"__pairs", list_pairs},
        {"__tostring", list_tostring},
        {NULL, NULL},
    };
    list *l = lua_newuserdatauv(L, sizeof *l, LIST_OWN);
    *l = (list){&list_tag, o->len};
    push_keepers(L, o);
    lua_setiuservalue(L, -2, LIST_KEEPERS);
    if (lkl__metatable(L, &list_mt, "kubelua.list")) {
        luaL_setfuncs(L, meta, 0);
        lkl__keep_metatable(L, &list_mt);
    }
    lua_setmetatable(L, -2);
}
