/* tally.c - kube.tally: sums of quantities over a list of objects, by the class of each object.
 *
 *   same texts at the key paths as last time --> the class of last time
 *   the very same value at an amount's path  --> the number of last time
 *
 * So a list that is counted again and again costs only what changed in it. Values are compared by their
 * numbers, which are good as long as the last list is referenced. Lists of another form are not counted: the
 * caller then reads them with kube.columns and kube.places, which know all forms. */
#include <string.h>

#include "base/mem.h"
#include "model/quantity.h"
#include "state/border.h"
#include "state/budget.h"
#include "state/ceiling.h"

/* Few: an item has room for all of them. */
#define KEYS_MAX 2
#define AMOUNTS_MAX 2
#define CLASSES 8
#define JOINED_MAX 512

/* User values: the text of each item's key; the table of classes that was used last. */
enum { KEYS = 1, TABLE = 2 };

typedef struct item {
    uint32_t key[KEYS_MAX], amount[AMOUNTS_MAX]; /* numbers of values */
    int64_t milli[AMOUNTS_MAX];
    int class;
} item;

typedef struct sums {
    uint64_t n;
    int64_t milli[AMOUNTS_MAX];
} sums;

typedef struct tally {
    kl_path *paths[KEYS_MAX + AMOUNTS_MAX]; /* those of the key first */
    size_t n_keys, n_amounts;
    const kl_value *list; /* counted last; NULL: none */
    item *items;
    size_t n, cap;
    sums sums[CLASSES];
} tally;

static void tally_free(void *p)
{
    tally *t = p;
    for (size_t i = 0; i < t->n_keys + t->n_amounts; i++)
        kl_path_free(t->paths[i]);
    kl_value_unref(t->list);
    kl_free(t->items);
    kl_free(t);
}

extern const lkl_class lkl__tally_class;

/* Appends the paths of the list in the field `name` of the table at 1. */
static void read_paths(lua_State *L, tally *t, const char *name, size_t most)
{
    size_t at = t->n_keys + t->n_amounts;
    lua_getfield(L, 1, name);
    lua_Unsigned n = lua_istable(L, -1) ? lua_rawlen(L, -1) : 0;
    if (n < 1 || n > most)
        luaL_argerror(L, 1, lua_pushfstring(L, "%s must be a list of 1 to %d paths", name, (int)most));
    for (lua_Unsigned i = 0; i < n; i++) {
        kl_err err = KL_ERR_INIT;
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_argerror(L, 1, lua_pushfstring(L, "%s must be a list of paths", name));
        if (kl_path_parse(lkl__text(L, -1), &t->paths[at + i], &err))
            lkl__argerror(L, 1, &err);
        if (at)
            t->n_amounts++;
        else
            t->n_keys = i + 1;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* core.tally { key = { path... }, amounts = { path... } } */
static int tally_new(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lkl_box *box = lkl_box_new(L, &lkl__tally_class, 2);
    tally *t = box->ptr = kl_new(tally);
    lkl_box_charge(L, box, sizeof *t);
    read_paths(L, t, "key", KEYS_MAX);
    read_paths(L, t, "amounts", AMOUNTS_MAX);
    return 1;
}

static void grow(lua_State *L, tally *t, size_t n)
{
    if (n <= t->cap)
        return;
    size_t bytes = n * sizeof *t->items;
    lkl_ceiling_ask(L, bytes);
    t->items = kl_realloc(t->items, bytes);
    t->cap = n;
    lkl_box_charge(L, lkl_box_at(L, 1), sizeof *t + bytes);
}

/* Forgets the last list. */
static void forget(tally *t)
{
    const kl_value *list = t->list;
    t->list = NULL;
    t->n = 0;
    memset(t->sums, 0, sizeof t->sums);
    kl_value_unref(list);
}

/* Reads the amounts of an item. With `last` the item still has those of the last list, and an equal one is
 * not read again. Returns false if an amount is not a plain quantity. */
static bool read_amounts(const tally *t, item *it, const kl_value *v, bool last)
{
    for (size_t k = 0; k < t->n_amounts; k++) {
        const kl_value *q = kl_path_find(t->paths[t->n_keys + k], v);
        uint32_t id = kl_value_id(q);
        if (last && id == it->amount[k])
            continue;
        size_t n;
        const char *text = kl_value_type(q) == KL_STRING ? kl_value_strn(q, &n) : NULL;
        it->amount[k] = id;
        it->milli[k] = 0;
        if (text ? !kl_quantity_read_milli(text, n, &it->milli[k]) : kl_value_type(q) != KL_NULL)
            return false;
    }
    return true;
}

/* Reads the key of an item, and clears *same if it differs from the one in the last list. Returns false if a
 * part is not a text. */
static bool read_key(const tally *t, item *it, const kl_value *v, bool *same)
{
    for (size_t k = 0; k < t->n_keys; k++) {
        const kl_value *part = kl_path_find(t->paths[k], v);
        if (kl_value_type(part) != KL_STRING && kl_value_type(part) != KL_NULL)
            return false;
        if (kl_value_type(part) == KL_NULL)
            part = NULL;
        *same = *same && it->key[k] == kl_value_id(part);
        it->key[k] = kl_value_id(part);
    }
    return true;
}

/* Pushes the parts of an item's key with "/" between them. False, and nothing pushed: it is too long. */
static bool push_key(lua_State *L, const tally *t, const kl_value *v)
{
    char text[JOINED_MAX];
    size_t len = 0;
    for (size_t k = 0; k < t->n_keys; k++) {
        size_t n = 0;
        const char *part = kl_value_strn(kl_path_find(t->paths[k], v), &n);
        if (len + n + 1 > sizeof text)
            return false;
        if (k)
            text[len++] = '/';
        if (part)
            memcpy(text + len, part, n);
        len += n;
    }
    lua_pushlstring(L, text, len);
    return true;
}

/* Keeps the text of each key. False: one is too long, or two are the same. */
static bool name_items(lua_State *L, const tally *t, const kl_value *list)
{
    int room = (int)(t->n < 1024 ? t->n : 1024);
    lua_createtable(L, room, 0);
    lua_createtable(L, 0, room);
    for (size_t i = 0; i < t->n; i++) {
        if (!push_key(L, t, kl_value_item(list, i)))
            return false;
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) != LUA_TNIL)
            return false;
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_rawseti(L, -4, (lua_Integer)i + 1);
        lua_pushboolean(L, true);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
    lua_setiuservalue(L, 1, KEYS);
    return true;
}

/* Finds the class of each item in the table at 3. */
static void class_items(lua_State *L, tally *t)
{
    lua_getiuservalue(L, 1, KEYS);
    for (size_t i = 0; i < t->n; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        lua_rawget(L, 3);
        lua_Integer class = lua_tointeger(L, -1);
        t->items[i].class = class > 0 && class < CLASSES ? (int)class : 0;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, 1, TABLE);
}

static bool same_table(lua_State *L)
{
    lua_getiuservalue(L, 1, TABLE);
    bool same = lua_rawequal(L, -1, 3);
    lua_pop(L, 1);
    return same;
}

/* Whether each sum fits. */
static bool add_up(tally *t)
{
    memset(t->sums, 0, sizeof t->sums);
    for (size_t i = 0; i < t->n; i++) {
        const item *it = &t->items[i];
        sums *of = &t->sums[it->class];
        of->n++;
        for (size_t k = 0; k < t->n_amounts; k++)
            if (__builtin_add_overflow(of->milli[k], it->milli[k], &of->milli[k]))
                return false;
    }
    return true;
}

/* t:count(list, classes): whether the list could be counted: it is a list of an object, whole, with a key of
 * its own and plain quantities in each item, whose sums fit 64 bits. classes: a number from 1 to 7 by key,
 * and 0 for all others; nobody may change the table. */
static int count(lua_State *L)
{
    tally *t = lkl_box_check(L, 1, &lkl__tally_class);
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_settop(L, 3);
    luaL_checkstack(L, 8, "a tally");
    const kl_value *list = lkl_view_value(L, 2);
    const lkl_border *b = lkl__border(L);
    if (kl_value_type(list) != KL_ARRAY || b->cuts) {
        forget(t);
        return 0;
    }
    if (list == t->list && same_table(L)) {
        lua_pushboolean(L, true);
        return 1;
    }
    size_t n = kl_value_len(list);
    bool fits = true, named = t->list && n == t->n, classed = named && same_table(L);
    if (b->counted)
        lkl_budget_spend(L, LKL_NODE_STEPS * n * (t->n_keys + t->n_amounts));
    grow(L, t, n);
    for (size_t i = 0; i < n && fits; i++) {
        const kl_value *v = kl_value_item(list, i);
        bool had = t->list && i < t->n;
        fits = read_key(t, &t->items[i], v, &named) && read_amounts(t, &t->items[i], v, had);
    }
    forget(t); /* only now: the numbers of values were those of the last list */
    t->n = n;
    if (!fits || (!named && !name_items(L, t, list))) {
        t->n = 0;
        return 0;
    }
    if (!named || !classed)
        class_items(L, t);
    if (!add_up(t)) {
        forget(t);
        return 0;
    }
    t->list = kl_value_ref(list); /* only now: nothing raises any more */
    lua_pushboolean(L, true);
    return 1;
}

/* t:sum(class): how many items of the list that was counted last are of the class, and the sum of each
 * amount in thousandths */
static int sum(lua_State *L)
{
    const tally *t = lkl_box_check(L, 1, &lkl__tally_class);
    lua_Integer class = luaL_checkinteger(L, 2);
    luaL_argcheck(L, class >= 0 && class < CLASSES, 2, "expected a class from 0 to 7");
    lua_pushinteger(L, (lua_Integer)t->sums[class].n);
    for (size_t k = 0; k < t->n_amounts; k++)
        lua_pushinteger(L, t->sums[class].milli[k]);
    return 1 + (int)t->n_amounts;
}

static const luaL_Reg methods[] = {{"count", count}, {"sum", sum}, {NULL, NULL}};
const lkl_class lkl__tally_class = {"kubelua.tally", tally_free, methods, NULL};

void lkl__open_tally(lua_State *L)
{
    static const luaL_Reg functions[] = {{"tally", tally_new}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
