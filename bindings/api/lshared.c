/* lshared.c - kube.shared and ctx.memo over run/shared.h. Values go in as JSON-like data and come out as
 * views: every state sees the same ones. */
#include "base/mem.h"
#include "run/shared.h"
#include "state/state.h"

static const char memo_tag, memo_mt;

typedef struct memo {
    const void *tag;
    uint64_t serial;
} memo;

/* The run under way; `what` is what it is needed for. */
static kl_run *run_for(lua_State *L, const char *what)
{
    kl_run *r = lkl_state_of(L)->run;
    if (!r)
        lkl__error(L,
            "%s is available only during a reconcile, not in mapping, index and `when` functions or at the "
            "top level of a script",
            what);
    return r;
}

/* Pushes a value whose reference goes into the box. */
static int push_boxed(lua_State *L, lkl_box *box, const kl_value *v)
{
    box->ptr = (void *)v;
    lkl_push_value(L, v);
    return 1;
}

/* --- kube.shared: core.run.shared_* ------------------------------------------------------- */

static kl_shared *shared_of(lua_State *L) { return kl_run_shared(run_for(L, "kube.shared")); }

static int shared_get(lua_State *L)
{
    kl_shared *s = shared_of(L);
    const char *name = lkl__text(L, 1);
    lkl_box *box = lkl_value_box(L);
    return push_boxed(L, box, kl_shared_get(s, name));
}

/* The value at idx, owned by a box that is pushed; NULL for nil. */
static const kl_value *given(lua_State *L, int idx, const char *what)
{
    if (!lua_isnoneornil(L, idx))
        return lkl__value_at(L, idx, what);
    lua_pushnil(L);
    return NULL;
}

static int shared_set(lua_State *L)
{
    kl_shared *s = shared_of(L);
    const char *name = lkl__text(L, 1);
    lua_settop(L, 2);
    kl_err err = KL_ERR_INIT;
    return kl_shared_set(s, name, given(L, 2, "the value"), &err) ? lkl__fail(L, &err) : 0;
}

static int shared_add(lua_State *L)
{
    kl_shared *s = shared_of(L);
    const char *name = lkl__text(L, 1);
    luaL_checknumber(L, 2);
    lkl_box *box = lkl_value_box(L);
    const kl_value *by = lkl__value_at(L, 2, "the number"), *sum = NULL;
    kl_err err = KL_ERR_INIT;
    return kl_shared_add(s, name, by, &sum, &err) ? lkl__fail(L, &err) : push_boxed(L, box, sum);
}

static int shared_swap(lua_State *L)
{
    kl_shared *s = shared_of(L);
    const char *name = lkl__text(L, 1);
    lua_settop(L, 3);
    lkl_box *box = lkl_value_box(L);
    const kl_value *was = given(L, 2, "the old value"), *v = given(L, 3, "the new value"), *is = NULL;
    bool done = false;
    kl_err err = KL_ERR_INIT;
    if (kl_shared_swap(s, name, was, v, &done, &is, &err))
        return lkl__fail(L, &err);
    box->ptr = (void *)is;
    lua_pushboolean(L, done);
    lkl_push_value(L, is);
    return 2;
}

static void free_names(void *p)
{
    for (char **name = p; *name; name++)
        kl_free(*name);
    kl_free(p);
}
static const lkl_class names_class = {.name = "kubelua.names", .free = free_names};

static int shared_names(lua_State *L)
{
    kl_shared *s = shared_of(L);
    const char *prefix = lkl__opt_text(L, 1, "");
    lkl_box *box = lkl_box_new(L, &names_class, 0);
    char **names = box->ptr = kl_shared_names(s, prefix);
    lua_newtable(L);
    for (lua_Integer i = 0; names[i]; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* --- what a script counts: core.run.count ------------------------------------------------- */

static int count(lua_State *L)
{
    static const char *const acts[] = {
        [KL_FIGURE_ADD] = "add",
        [KL_FIGURE_SET] = "set",
        [KL_FIGURE_FORGET] = "forget",
        [KL_FIGURE_OBSERVE] = "observe",
        [KL_FIGURE_ACTS] = NULL,
    };
    kl_run *r = run_for(L, "what a metric counts");
    kl_figure f = {.name = lkl__text(L, 1)};
    f.act = (kl_figure_act)luaL_checkoption(L, 2, NULL, acts);
    f.by = luaL_checknumber(L, 3);
    lua_settop(L, 4);
    f.labels = given(L, 4, "the labels");
    kl_run_count(r, &f);
    return 0;
}

/* --- ctx.memo ----------------------------------------------------------------------------- */

static kl_run *memo_run(lua_State *L)
{
    const memo *m = lkl__tagged(L, 1, &memo_tag, sizeof *m);
    if (!m)
        luaL_typeerror(L, 1, "kubelua.Memo");
    lkl_state *s = lkl_state_of(L);
    if (!s->run || s->serial != m->serial)
        lkl__error(L, "ctx.memo: the reconcile of this ctx is over; use the ctx.memo of the next run");
    return s->run;
}

static const char *field_of(lua_State *L)
{
    if (lua_type(L, 2) != LUA_TSTRING)
        lkl__error(L, "ctx.memo: field names must be strings, got a %s; store a list as one field",
            luaL_typename(L, 2));
    return lkl__text(L, 2);
}

static int memo_index(lua_State *L)
{
    kl_run *r = memo_run(L);
    const char *field = field_of(L);
    lkl_box *box = lkl_value_box(L);
    const kl_value *fields = kl_run_memo(r);
    box->ptr = (void *)fields;
    lkl_push_value(L, kl_value_get(fields, field));
    return 1;
}

static int memo_newindex(lua_State *L)
{
    kl_run *r = memo_run(L);
    const char *field = field_of(L);
    lua_settop(L, 3);
    lua_pushfstring(L, "ctx.memo.%s", field);
    kl_err err = KL_ERR_INIT;
    return kl_run_memo_set(r, field, given(L, 3, lua_tostring(L, 4)), &err) ? lkl__fail(L, &err) : 0;
}

/* pairs(ctx.memo): as it is now. */
static int memo_pairs(lua_State *L)
{
    kl_run *r = memo_run(L);
    lkl_box *box = lkl_value_box(L);
    const kl_value *fields = kl_run_memo(r);
    box->ptr = (void *)fields;
    lua_getglobal(L, "next");
    lua_newtable(L);
    for (size_t i = 0; i < kl_value_len(fields); i++) {
        const char *name;
        size_t n;
        const kl_value *v = kl_value_member(fields, i, &name, &n);
        lua_pushlstring(L, name, n);
        lkl_push_value(L, v);
        lua_rawset(L, -3);
    }
    lua_pushnil(L);
    return 3;
}

static int memo_tostring(lua_State *L)
{
    kl_run *r = memo_run(L);
    lkl_box *box = lkl_value_box(L);
    const kl_value *fields = kl_run_memo(r);
    box->ptr = (void *)fields;
    if (fields)
        lkl__push_json(L, fields, false);
    else
        lua_pushliteral(L, "{}");
    return 1;
}

void lkl__push_memo(lua_State *L, uint64_t serial)
{
    static const luaL_Reg meta[] = {{"__index", memo_index}, {"__newindex", memo_newindex},
        {"__pairs", memo_pairs}, {"__tostring", memo_tostring}, {NULL, NULL}};
    memo *m = lua_newuserdatauv(L, sizeof *m, 0);
    *m = (memo){&memo_tag, serial};
    if (lkl__metatable(L, &memo_mt, "kubelua.Memo")) {
        luaL_setfuncs(L, meta, 0);
        lkl__keep_metatable(L, &memo_mt);
    }
    lua_setmetatable(L, -2);
}

void lkl__open_shared(lua_State *L)
{
    static const luaL_Reg functions[] = {{"shared_get", shared_get}, {"shared_set", shared_set},
        {"shared_add", shared_add}, {"shared_swap", shared_swap}, {"shared_names", shared_names},
        {"count", count}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
