/* convert.c - the two real copies: a Lua value into an immutable one (lkl_to_value), and a view into plain
 * tables (kube.copy).
 *
 * Tables are read raw, without metamethods, and a table with a metatable of its own is refused: C would not
 * read what the script makes of it. A table whose keys are 1..n is a list, one with string keys an object, an
 * empty one an object unless it was marked by kube.array or kube.copy. Keys are sorted, so equal tables
 * encode equally.
 *
 * A script's tables may share parts, and so do the values made of them: a few tables can stand for 10^12
 * nodes. So every walk counts each part each time it meets it, against one limit per value (lkl__room),
 * and checks the budget. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "state/border.h"
#include "state/budget.h"

/* Where we are in the value, for messages: a chain of frames on the C stack. */
typedef struct place {
    const struct place *up;
    const char *key; /* NULL for a list item */
    size_t keylen;
    lua_Integer index;
    int depth;
} place;

typedef struct convert {
    lua_State *L;
    kl_builder *b;
    const char *what; /* how the caller calls the root */
    bool counted;     /* by a script: bounds hold, and its budget is asked */
    kl_room room;     /* what is left of them */
    size_t steps;     /* since the budget was asked */
} convert;

#define PLACE_STEPS_MAX 12

static void add_place(lua_State *L, luaL_Buffer *buf, const place *p, const char *what)
{
    char number[32];
    if (!p->up) {
        luaL_addstring(buf, what);
        return;
    }
    if (p->depth > PLACE_STEPS_MAX) { /* a chain that long is a cycle or nonsense, so its end is enough */
        const place *from = p;
        while (from->depth > PLACE_STEPS_MAX)
            from = from->up;
        add_place(L, buf, from, what);
        luaL_addstring(buf, "...");
        return;
    }
    add_place(L, buf, p->up, what);
    if (p->key) {
        bool plain = p->keylen > 0 && !memchr(p->key, '.', p->keylen) && !memchr(p->key, '[', p->keylen);
        if (!plain || p->up->up || *what)
            luaL_addchar(buf, plain ? '.' : '[');
        luaL_addlstring(buf, p->key, p->keylen);
        if (!plain)
            luaL_addchar(buf, ']');
    } else {
        luaL_addlstring(buf, number, (size_t)snprintf(number, sizeof number, "[%lld]", (long long)p->index));
    }
}

static void refuse(convert *c, const place *p, const char *fmt, ...)
{
    lua_State *L = c->L;
    va_list ap;
    va_start(ap, fmt);
    lua_pushvfstring(L, fmt, ap);
    va_end(ap);
    int why = lua_gettop(L);
    luaL_Buffer buf;
    luaL_buffinit(L, &buf);
    add_place(L, &buf, p, c->what);
    luaL_addstring(&buf, ": ");
    luaL_addstring(&buf, lua_tostring(L, why));
    luaL_pushresult(&buf);
    lkl__where(L);
    lua_insert(L, -2);
    lua_concat(L, 2);
    lua_error(L);
}

/* --- bounds ------------------------------------------------------------------------------- */

kl_room lkl__room(void)
{
    return (kl_room){.nodes = LKL_NODES_MAX, .bytes = LKL_BYTES_MAX, .depth = KL_VALUE_DEPTH_MAX};
}

static void refuse_unfit(convert *c, const place *p, kl_fit fit)
{
    if (fit == KL_FIT_DEEP)
        refuse(c, p, "nested deeper than %d; does a table contain itself?", KL_VALUE_DEPTH_MAX);
    if (fit == KL_FIT_MANY)
        refuse(c, p,
            "more than %d parts in one value, those that are shared counted each time; does a table contain "
            "others many times?",
            LKL_NODES_MAX);
    if (fit == KL_FIT_LONG)
        refuse(c, p, "more than %d MiB of text in one value", (int)(LKL_BYTES_MAX >> 20));
}

/* Steps between two checks of the budget: a check per step would cost too much. */
#define STEPS_EACH 512

static void spend(convert *c, size_t steps)
{
    c->steps += steps;
    if (!c->counted || c->steps < STEPS_EACH)
        return;
    size_t n = c->steps * LKL_NODE_STEPS;
    c->steps = 0;
    lkl_budget_spend(c->L, n);
}

/* Counts one more part, with so many bytes of text. */
static void count(convert *c, const place *p, size_t bytes)
{
    if (!c->counted)
        return;
    if (!c->room.nodes)
        refuse_unfit(c, p, KL_FIT_MANY);
    if (bytes > c->room.bytes)
        refuse_unfit(c, p, KL_FIT_LONG);
    c->room.nodes--;
    c->room.bytes -= bytes;
    spend(c, 1 + bytes / LKL_BYTES_EACH);
}

/* Puts in a whole value of ours, which may share parts with itself. */
static void build_value(convert *c, const kl_value *v, const place *p)
{
    if (c->counted) {
        size_t before = c->room.nodes;
        kl_room room = c->room;
        room.depth = p->depth < KL_VALUE_DEPTH_MAX ? KL_VALUE_DEPTH_MAX - (unsigned)p->depth : 0;
        refuse_unfit(c, p, kl_value_fit(v, &room));
        c->room = room;
        spend(c, before - room.nodes);
    }
    kl_build_value(c->b, v);
}

/* --- scalars and values of ours ----------------------------------------------------------- */

static void convert_any(convert *c, int idx, const place *p);
static void convert_table(convert *c, int idx, const place *p, bool list);

static void convert_string(convert *c, int idx, const place *p)
{
    size_t n;
    const char *s = lua_tolstring(c->L, idx, &n);
    count(c, p, n);
    if (!kl_utf8_valid(s, n))
        refuse(c, p,
            "a string with bytes that are not UTF-8 cannot be sent; encode it first, as Secrets do with "
            "base64");
    kl_build_strn(c->b, s, n);
}

static void convert_number(convert *c, int idx, const place *p)
{
    if (lua_isinteger(c->L, idx)) {
        kl_build_int(c->b, lua_tointeger(c->L, idx));
        return;
    }
    double d = lua_tonumber(c->L, idx);
    if (!isfinite(d))
        refuse(c, p, "%f is not a number that JSON can hold", d);
    kl_build_double(c->b, d);
}

/* Puts in the value that a box on the stack holds, and closes the box. */
static void build_boxed(convert *c, lkl_box *box, const place *p)
{
    build_value(c, box->ptr, p);
    lkl_box_close(c->L, -1);
    lua_pop(c->L, 1);
}

static void convert_userdata(convert *c, int idx, const place *p)
{
    lua_State *L = c->L;
    const kl_value *v = lkl_view_value(L, idx);
    uint64_t u;
    if (v) {
        build_value(c, v, p);
        return;
    }
    if (lkl__list_own(L, idx)) {
        convert_table(c, lua_gettop(L), p, true);
        lua_pop(L, 1);
        return;
    }
    lkl_box *box = lkl_value_box(L);
    if ((box->ptr = (void *)lkl__draft_value(L, idx)) || (box->ptr = (void *)lkl__list_value(L, idx))) {
        build_boxed(c, box, p);
        return;
    }
    lua_pop(L, 1);
    count(c, p, 0);
    if (lkl__is_null(L, idx))
        kl_build_null(c->b);
    else if (lkl__uint64(L, idx, &u))
        kl_build_uint(c->b, u);
    else if (lkl__quantity_text(L, idx) || lkl__time_text(L, idx)) {
        kl_build_str(c->b, lua_tostring(L, -1));
        lua_pop(L, 1);
    } else {
        size_t n;
        if (lkl__secret_text(L, idx, &n))
            refuse(c, p,
                "a secret may go into headers and tls of ctx.http, and into data and stringData of a "
                "v1/Secret written as a table; here it would be readable by others");
        refuse(c, p, "%s cannot be sent", lkl__shown(L, idx, NULL));
    }
}

/* --- tables ------------------------------------------------------------------------------- */

/* Raises for the key on top of the stack. A key that is not a scalar is shown as its type: making its text
 * could call a function of the script. */
static void refuse_key(convert *c, const place *p)
{
    int t = lua_type(c->L, -1);
    bool scalar = t == LUA_TNUMBER || t == LUA_TBOOLEAN;
    refuse(c, p, "the key %s is neither a name nor a place in a list",
        scalar ? lkl__shown(c->L, -1, NULL) : lua_typename(c->L, t));
}

typedef struct shape {
    lua_Integer strings, integers, top;
} shape;

/* Counts the keys; refuses keys that JSON cannot express. */
static shape measure(convert *c, int idx, const place *p)
{
    lua_State *L = c->L;
    shape s = {0, 0, 0};
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        lua_pop(L, 1);
        spend(c, 1);
        if (lua_type(L, -1) == LUA_TSTRING) {
            s.strings++;
        } else if (lua_isinteger(L, -1) && lua_tointeger(L, -1) > 0) {
            s.integers++;
            if (lua_tointeger(L, -1) > s.top)
                s.top = lua_tointeger(L, -1);
        } else {
            refuse_key(c, p);
        }
    }
    return s;
}

static void convert_list(convert *c, int idx, const place *p, lua_Integer n)
{
    kl_build_array(c->b);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(c->L, idx, i);
        place item = {p, NULL, 0, i, p->depth + 1};
        convert_any(c, lua_gettop(c->L), &item);
        lua_pop(c->L, 1);
    }
    kl_build_end(c->b);
}

typedef struct name {
    const char *s;
    size_t n;
} name;

static int by_name(const void *a, const void *b)
{
    const name *x = a, *y = b;
    int order = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
    return order ? order : x->n < y->n ? -1 : x->n > y->n;
}

/* The names are an array in a userdata. Their bytes belong to the table, which does not change meanwhile: no
 * code of the script runs. */
static void convert_object(convert *c, int idx, const place *p, lua_Integer n)
{
    lua_State *L = c->L;
    name *names = lua_newuserdatauv(L, (size_t)(n ? n : 1) * sizeof *names, 0);
    lua_Integer i = 0;
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        lua_pop(L, 1);
        names[i].s = lua_tolstring(L, -1, &names[i].n);
        i++;
    }
    qsort(names, (size_t)n, sizeof *names, by_name);
    spend(c, (size_t)n);
    kl_build_object(c->b);
    for (i = 0; i < n; i++) {
        place member = {p, names[i].s, names[i].n, 0, p->depth + 1};
        if (!kl_utf8_valid(names[i].s, names[i].n))
            refuse(c, &member, "a name with bytes that are not UTF-8 cannot be sent");
        count(c, &member, names[i].n);
        kl_build_keyn(c->b, names[i].s, names[i].n);
        lua_pushlstring(L, names[i].s, names[i].n);
        lua_rawget(L, idx);
        convert_any(c, lua_gettop(L), &member);
        lua_pop(L, 1);
    }
    kl_build_end(c->b);
    lua_pop(L, 1);
}

/* `list`: the table is the present content of a list of ours. */
static void convert_table(convert *c, int idx, const place *p, bool list)
{
    if (p->depth >= KL_VALUE_DEPTH_MAX)
        refuse_unfit(c, p, KL_FIT_DEEP);
    if (!lua_checkstack(c->L, 12))
        refuse(c, p, "nested too deeply for the Lua stack");
    count(c, p, 0);
    lkl_mark mark = list ? LKL_ARRAY : lkl__marked(c->L, idx);
    if (mark == LKL_FOREIGN)
        refuse(c, p,
            "a table with a metatable cannot be sent, since its contents may differ from what it shows; pass "
            "a plain table");
    shape s = measure(c, idx, p);
    if (s.strings && s.integers)
        refuse(c, p, "a table with both names and list items; JSON has objects or lists");
    if (s.integers && s.top != s.integers)
        refuse(c, p, "a list with holes: %d items up to place %d; write kube.null where one is empty",
            (int)s.integers, (int)s.top);
    if (mark == LKL_ARRAY && s.strings)
        refuse(c, p, "a list (kube.array) with names in it");
    if (mark == LKL_OBJECT && s.integers)
        refuse(c, p, "an object (kube.object) with list items in it");
    if (s.integers || mark == LKL_ARRAY)
        convert_list(c, idx, p, s.integers);
    else
        convert_object(c, idx, p, s.strings);
}

static void convert_any(convert *c, int idx, const place *p)
{
    switch (lua_type(c->L, idx)) {
    case LUA_TBOOLEAN:
        count(c, p, 0);
        kl_build_bool(c->b, lua_toboolean(c->L, idx));
        break;
    case LUA_TNUMBER:
        count(c, p, 0);
        convert_number(c, idx, p);
        break;
    case LUA_TSTRING: convert_string(c, idx, p); break;
    case LUA_TTABLE: convert_table(c, idx, p, false); break;
    case LUA_TUSERDATA: convert_userdata(c, idx, p); break;
    default: refuse(c, p, "a %s cannot be sent", luaL_typename(c->L, idx));
    }
}

static void free_builder(void *ptr) { kl_builder_free(ptr); }

static const lkl_class builder_class = {.name = "kubelua.builder", .free = free_builder};

const kl_value *lkl_to_value(lua_State *L, int idx, const char *what)
{
    idx = lua_absindex(L, idx);
    if (lua_isnoneornil(L, idx))
        return NULL;
    const kl_value *v = lkl_view_value(L, idx);
    if (v)
        return kl_value_ref(v);
    luaL_checkstack(L, 12, "too many arguments");
    lkl_box *box = lkl_box_new(L, &builder_class, 0);
    convert c = {.L = L,
        .b = box->ptr = kl_builder_new(),
        .what = what,
        .counted = lkl__border(L)->counted,
        .room = lkl__room()};
    place root = {NULL, NULL, 0, 0, 0};
    convert_any(&c, idx, &root);
    box->ptr = NULL;
    v = kl_builder_done(c.b);
    lua_pop(L, 1);
    return v;
}

const kl_value *lkl__to_box(lua_State *L, lkl_box *box, int idx, const char *what)
{
    const kl_value *v = lkl_to_value(L, idx, what);
    box->ptr = (void *)v;
    lkl_value_charge(L, box);
    return v;
}

void lkl__check_made(lua_State *L, const kl_value *v, const char *what)
{
    convert c = {.L = L, .what = what, .counted = lkl__border(L)->counted, .room = lkl__room()};
    place root = {NULL, NULL, 0, 0, 0};
    if (!c.counted)
        return;
    refuse_unfit(&c, &root, kl_value_fit(v, &c.room));
    spend(&c, LKL_NODES_MAX - c.room.nodes);
}

const kl_value *lkl__value_at(lua_State *L, int idx, const char *what)
{
    const kl_value *v = lkl_view_value(L, idx);
    luaL_checkstack(L, 12, "too many arguments");
    if (v)
        lua_pushnil(L);
    else
        v = lkl__to_box(L, lkl_value_box(L), idx, what);
    return v;
}

/* --- into plain tables -------------------------------------------------------------------- */

/* Null stays kube.null here, so a copy that is written back has lost nothing. */
static void push_copy(lua_State *L, const kl_value *v)
{
    if (kl_value_type(v) == KL_NULL) {
        lkl__push_null(L);
        return;
    }
    if (lkl__push_scalar(L, v))
        return;
    luaL_checkstack(L, 8, "nested too deeply");
    size_t n = kl_value_len(v);
    if (lkl__border(L)->counted)
        lkl_budget_spend(L, n * LKL_NODE_STEPS);
    bool list = kl_value_type(v) == KL_ARRAY;
    lua_createtable(L, list ? (int)n : 0, list ? 0 : (int)n);
    for (size_t i = 0; i < n; i++) {
        if (list) {
            push_copy(L, kl_value_item(v, i));
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        } else {
            const char *key;
            size_t keylen;
            const kl_value *member = kl_value_member(v, i, &key, &keylen);
            lua_pushlstring(L, key, keylen);
            push_copy(L, member);
            lua_rawset(L, -3);
        }
    }
    lkl__mark(L, -1, list ? LKL_ARRAY : LKL_OBJECT);
}

/* kube.copy(x): plain tables, of one's own, that remember which of them are lists */
static int copy(lua_State *L)
{
    luaL_checkany(L, 1);
    if (lua_type(L, 1) != LUA_TUSERDATA && lua_type(L, 1) != LUA_TTABLE) {
        lua_settop(L, 1);
        return 1;
    }
    push_copy(L, lkl__value_at(L, 1, "the value"));
    return 1;
}

/* Pushes a copy of the table at idx, with copies of the tables in it; other values are shared. */
static void push_plain(convert *c, int idx, const place *p)
{
    lua_State *L = c->L;
    if (p->depth >= KL_VALUE_DEPTH_MAX)
        refuse_unfit(c, p, KL_FIT_DEEP);
    luaL_checkstack(L, 12, "nested too deeply");
    lkl_mark mark = lkl__marked(L, idx);
    if (mark == LKL_FOREIGN)
        refuse(c, p,
            "a table with a metatable is not accepted here, since its contents may differ from what it "
            "shows; pass a plain table");
    lua_newtable(L);
    int into = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        place part = {p, NULL, 0, 0, p->depth + 1};
        if (lua_type(L, -2) == LUA_TSTRING)
            part.key = lua_tolstring(L, -2, &part.keylen);
        else
            part.index = lua_tointeger(L, -2);
        count(c, &part, 0);
        lua_pushvalue(L, -2);
        if (lua_istable(L, -2))
            push_plain(c, lua_gettop(L) - 1, &part);
        else
            lua_pushvalue(L, -2);
        lua_rawset(L, into);
        lua_pop(L, 1);
    }
    lkl__mark(L, into, mark);
}

/* core.plain(t, what): a copy of a table and of the tables in it, read raw and within bounds, for callers
 * that read it more than once */
static int plain(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    convert c = {.L = L,
        .what = lkl__opt_text(L, 2, "the table"),
        .counted = lkl__border(L)->counted,
        .room = lkl__room()};
    place root = {NULL, NULL, 0, 0, 0};
    push_plain(&c, 1, &root);
    return 1;
}

/* core.value(x, what): a view of whatever can be sent; views pass through */
static int value(lua_State *L)
{
    luaL_checkany(L, 1);
    const char *what = luaL_optstring(L, 2, "the value");
    if (lkl_view_value(L, 1)) {
        lua_settop(L, 1);
        return 1;
    }
    lkl_box *box = lkl_value_box(L);
    lkl_push_value(L, lkl__to_box(L, box, 1, what));
    return 1;
}

void lkl__open_convert(lua_State *L)
{
    static const luaL_Reg functions[] = {{"copy", copy}, {"plain", plain}, {"value", value}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
