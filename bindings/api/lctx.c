/* lctx.c - ctx is a userdata that refers to its run: methods come from lua/kubelua/context.lua, fields come
 * from the run when they are read.
 *
 * A ctx is valid while its run is under way. A script that uses a ctx after its run gets an error, not
 * another key's fields. */
#include <string.h>
#include "model/object.h"
#include "run/params.h"
#include "state/state.h"

static const char ctx_tag, ctx_mt, params_key;

typedef struct ctx {
    const void *tag;
    uint64_t serial;
} ctx;

enum { CTX_OBJECT = 1 };

/* The table of methods holds each field as one of these numbers. */
enum {
    FIELD_KEY = 1,
    FIELD_NAMESPACE,
    FIELD_NAME,
    FIELD_PARAMS,
    FIELD_ATTEMPT,
    FIELD_GENERATION,
    FIELD_ID,
    FIELD_OBJECT,
    FIELD_EPOCH,
    FIELD_CLUSTER,
    FIELD_TRIGGER,
    FIELD_MEMO,
    FIELD_TRY
};
static const struct {
    const char *name;
    int field;
} fields[] = {
    {"key", FIELD_KEY},
    {"namespace", FIELD_NAMESPACE},
    {"name", FIELD_NAME},
    {"params", FIELD_PARAMS},
    {"attempt", FIELD_ATTEMPT},
    {"generation", FIELD_GENERATION},
    {"id", FIELD_ID},
    {"object", FIELD_OBJECT},
    {"epoch", FIELD_EPOCH},
    {"cluster", FIELD_CLUSTER},
    {"trigger", FIELD_TRIGGER},
    {"memo", FIELD_MEMO},
    {"try", FIELD_TRY},
};

/* The params of a generation do not change, so all its runs share one view of them. */
static void push_params(lua_State *L, lkl_state *s)
{
    const kl_value *params = kl_run_params(s->run);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &params_key) == LUA_TUSERDATA && s->params == params)
        return;
    lua_pop(L, 1);
    lkl_box *box = lkl_value_box(L);
    box->ptr = (void *)kl_params_plain(kl_run_spec(s->run), params);
    if (!box->ptr) {
        box->ptr = (void *)kl_value_empty(KL_OBJECT);
    }
    lkl_push_object(L, box->ptr);
    lua_remove(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &params_key);
    s->params = params;
}

static void push_secret_names(lua_State *L, const kl_controller_spec *spec)
{
    lua_Integer n = 0;
    lua_newtable(L);
    for (size_t i = 0; i < kl_value_len(spec->param_rules); i++) {
        const char *name;
        (void)kl_value_member(spec->param_rules, i, &name, NULL);
        if (!kl_param_is_secret(spec, name))
            continue;
        lua_pushstring(L, name);
        lua_rawseti(L, -2, ++n);
    }
}

/* run.secret(name): a secret param, or nil when it has no value. For any other name: false, the type of the
 * param with that name or nil, and the names of the secrets. */
static int secret(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    const char *name = lkl__text(L, 1);
    if (!s->run)
        return lkl__error(L, "ctx.secret: the reconcile of this ctx is over");
    const kl_controller_spec *spec = kl_run_spec(s->run);
    if (!kl_param_is_secret(spec, name)) {
        lua_pushboolean(L, false);
        lua_pushstring(L, kl_param_type(spec, name));
        push_secret_names(L, spec);
        return 3;
    }
    size_t n;
    const char *text = kl_value_strn(kl_value_get(kl_run_params(s->run), name), &n);
    if (text)
        (void)lkl__push_secret(L, text, n);
    else
        lua_pushnil(L);
    return 1;
}

static void set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

/* Pushes ctx.trigger, what woke the key: a plain table, made on demand. */
static void push_trigger(lua_State *L, const kl_run *r)
{
    const kl_value *o;
    unsigned events;
    kl_why why = kl_run_cause(r, &o, &events);
    lua_createtable(L, 0, 7);
    set_text(L, "reason", kl_why_name(why));
    lua_pushinteger(L, events);
    lua_setfield(L, -2, "events");
    if (!o)
        return;
    lua_pushfstring(L, "%s/%s", kl_object_api_version(o), kl_object_kind(o));
    lua_setfield(L, -2, "kind");
    const char *ns = kl_object_namespace(o);
    if (ns)
        lua_pushfstring(L, "%s/%s", ns, kl_object_name(o));
    else
        lua_pushstring(L, kl_object_name(o));
    lua_setfield(L, -2, "key");
    set_text(L, "namespace", ns);
    set_text(L, "name", kl_object_name(o));
    set_text(L, "resourceVersion", kl_value_str_at(o, "metadata", "resourceVersion", NULL));
}

static int ctx_index(lua_State *L)
{
    ctx *c = lkl__tagged(L, 1, &ctx_tag, sizeof *c);
    if (!c)
        return luaL_typeerror(L, 1, "kubelua.Context");
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    int t = lua_rawget(L, lua_upvalueindex(1));
    if (t == LUA_TNIL) {
        lua_pushvalue(L, lua_upvalueindex(2));
        lua_pushvalue(L, 2);
        lua_call(L, 1, 1); /* raises */
        return 1;
    }
    lkl_state *s = lkl_state_of(L);
    kl_run *r = s->run;
    if (!r && t != LUA_TNUMBER)
        /* variables that close after the run may log; methods that need a run raise by themselves */
        return 1;
    if (!r || s->serial != c->serial)
        return lkl__error(L,
            "ctx.%s: the reconcile of this ctx is over; a ctx is good until its reconcile returns, do not "
            "keep it",
            lua_tostring(L, 2));
    if (t != LUA_TNUMBER)
        return 1;
    switch (lua_tointeger(L, 3)) {
    case FIELD_KEY: lua_pushstring(L, kl_run_key(r)); break;
    case FIELD_NAMESPACE: lua_pushstring(L, kl_run_namespace(r)); break;
    case FIELD_NAME: lua_pushstring(L, kl_run_name(r)); break;
    case FIELD_PARAMS: push_params(L, s); break;
    case FIELD_ATTEMPT: lua_pushinteger(L, kl_run_attempt(r)); break;
    case FIELD_GENERATION: lua_pushinteger(L, kl_run_generation(r)); break;
    case FIELD_EPOCH: lua_pushinteger(L, kl_run_epoch(r)); break;
    case FIELD_CLUSTER:
        lua_pushstring(L, kl_run_fleet(r) ? kl_fleet_name(kl_run_fleet(r), kl_run_cluster(r)) : NULL);
        break;
    case FIELD_TRIGGER: push_trigger(L, r); break;
    case FIELD_MEMO: lkl__push_memo(L, c->serial); break;
    case FIELD_ID: lua_pushstring(L, kl_run_id(r)); break;
    case FIELD_TRY:
        lua_pushvalue(L, lua_upvalueindex(3));
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        break;
    default: lua_getiuservalue(L, 1, CTX_OBJECT);
    }
    return 1;
}

static int ctx_newindex(lua_State *L)
{
    return lkl__error(L,
        "ctx.%s cannot be set: keep a value of one run in a local, and a lasting value in the object",
        lkl__shown(L, 2, NULL));
}

/* run.context(methods, missing, try): defines ctx. `missing` is called with a name that is neither a method
 * nor a field; `try` makes ctx.try of a ctx. */
static int context(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    lua_settop(L, 3);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        lua_pushinteger(L, fields[i].field);
        lua_setfield(L, 1, fields[i].name);
    }
    if (lkl__metatable(L, &ctx_mt, "kubelua.Context")) {
        lua_pushvalue(L, 1);
        lua_pushvalue(L, 2);
        lua_pushvalue(L, 3);
        lua_pushcclosure(L, ctx_index, 3);
        lua_setfield(L, 4, "__index");
        lua_pushcfunction(L, ctx_newindex);
        lua_setfield(L, 4, "__newindex");
        lkl__keep_metatable(L, &ctx_mt);
    }
    return 0;
}

void lkl__push_context(lua_State *L, uint64_t serial, int object_idx)
{
    object_idx = lua_absindex(L, object_idx);
    ctx *c = lua_newuserdatauv(L, sizeof *c, CTX_OBJECT);
    *c = (ctx){&ctx_tag, serial};
    lua_pushvalue(L, object_idx);
    lua_setiuservalue(L, -2, CTX_OBJECT);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &ctx_mt);
    lua_setmetatable(L, -2);
}

void lkl__open_context(lua_State *L)
{
    static const luaL_Reg functions[] = {{"context", context}, {"secret", secret}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
