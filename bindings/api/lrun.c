/* lrun.c - core.run: what ctx is made of. Each function asks the run under way (or the reader, for the
 * functions that map events); lua/kubelua/context.lua gives them their shape. */
#include <stdio.h>
#include <string.h>

#include "state/border.h"
#include "base/mem.h"
#include "run/witness.h"
#include "state/state.h"

/* A run whose lease is lost ends at its next call, whatever call that is: a new leader may be at work
 * already. */
static void end_if_deposed(lua_State *L, kl_run *r)
{
    if (!kl_run_deposed(r))
        return;
    kl_err err = KL_ERR_INIT;
    if (kl_fail(&err, KL_ENOTLEADER,
            "this process does not hold the lease (any more), so this run is over; the leader will do its "
            "work"))
        lkl_raise(L, &err, NULL, NULL, NULL);
}

static kl_run *run_of(lua_State *L)
{
    kl_run *r = lkl_state_of(L)->run;
    if (r)
        end_if_deposed(L, r);
    else
        lkl__error(L,
            "this works only during a reconcile: mapping, index and `when` functions may only read the "
            "cache, and the top level of a script may not even do that");
    return r;
}

static kl_reader *reader_of(lua_State *L)
{
    kl_reader *r = lkl_state_of(L)->reader;
    if (lkl_state_of(L)->run)
        end_if_deposed(L, lkl_state_of(L)->run);
    if (!r)
        lkl__error(L, "the cache can be read only while a key is reconciled or an event is mapped");
    return r;
}

/* A text in the table at idx, or NULL; the table keeps it alive. Raw: no metamethod may raise while an error
 * is held. */
static const char *raw_text(lua_State *L, int idx, const char *name)
{
    const char *text = NULL;
    if (lua_istable(L, idx)) {
        lua_pushstring(L, name);
        if (lua_rawget(L, idx) == LUA_TSTRING)
            text = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    return text;
}

/* --- requests ----------------------------------------------------------------------------- */

/* Raises the reply's error, described by the op table at idx. */
static int raise_reply(lua_State *L, kl_err *err, int idx)
{
    char verb[32] = "", kind[128] = "", key[512] = "";
    const char *s;
    if ((s = raw_text(L, idx, "verb")) && !strcmp(s, "http")) {
        /* the URL may contain secrets; the message has the form that may be shown */
        snprintf(verb, sizeof verb, "%s", (s = raw_text(L, idx, "subresource")) ? s : "");
        return lkl_raise(L, err, verb, NULL, NULL);
    }
    snprintf(verb, sizeof verb, "%s", s ? s : "");
    snprintf(kind, sizeof kind, "%s", (s = raw_text(L, idx, "kind")) ? s : "");
    const char *ns = raw_text(L, idx, "ns");
    if ((s = raw_text(L, idx, "name")))
        snprintf(key, sizeof key, "%s%s%s", ns ? ns : "", ns ? "/" : "", s);
    return lkl_raise(L, err, verb, kind, *key ? key : NULL);
}

/* Waiting means yielding to the worker. Below a C function that calls back nothing can yield, and a sleeping
 * thread would block all other keys of its worker. */
static void must_wait(lua_State *L, const char *what, const char *kind)
{
    if (!lkl__may_wait(L))
        lkl__error(L,
            "%s%s%s cannot wait inside a function that a library function calls (a comparator of table.sort, "
            "a replacement of string.gsub, a message handler of xpcall, a metamethod that tostring calls): "
            "call it earlier, and use its result there",
            what, kind ? " " : "", kind ? kind : "");
}

static int call_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)status, (void)ctx;
    const kl_value *body;
    kl_err *err;
    if (kl_run_reply(run_of(L), &body, &err)) {
        kl_err mine = KL_ERR_INIT;
        kl_err_copy(&mine, err);
        return raise_reply(L, &mine, 1);
    }
    lkl_push_value(L, body);
    return 1;
}

/* The cluster number at idx; raises an error if no cluster has it. */
static size_t cluster_at(lua_State *L, const kl_run *r, int idx)
{
    lua_Integer n = luaL_checkinteger(L, idx);
    luaL_argcheck(L, n >= 0 && (size_t)n < kl_fleet_size(kl_run_fleet(r)), idx, "no such cluster");
    return (size_t)n;
}

/* The cluster whose number is at idx, or our own. */
static void aim(lua_State *L, kl_run *r, int idx)
{
    kl_run_at(r, lua_isnoneornil(L, idx) ? KL_FLEET_NONE : cluster_at(L, r, idx));
}

/* run.call(op [, cluster]): the server's answer as a view, or nil when it is empty. */
static int call(lua_State *L)
{
    kl_run *r = run_of(L);
    kl_op op;
    lua_settop(L, 2);
    lkl_op_from_table(L, 1, &op);
    aim(L, r, 2);
    if (op.verb == KL_HTTP)
        must_wait(L, "ctx.http", NULL);
    else
        must_wait(L, kl_verb_name(op.verb), op.kind);
    kl_run_call(r, &op);
    return lkl__wait(L, 0, call_done);
}

static int nothing(lua_State *L, int status, lua_KContext ctx)
{
    (void)L, (void)status, (void)ctx;
    return 0;
}

static int sleep_for(lua_State *L)
{
    kl_run *r = run_of(L);
    kl_time d = lkl_check_duration(L, 1, "ctx:sleep");
    must_wait(L, "ctx:sleep", NULL);
    kl_run_sleep(r, d);
    return lkl__wait(L, 0, nothing);
}

/* --- kinds -------------------------------------------------------------------------------- */

static void push_kind(lua_State *L, const kl_resource *r)
{
    if (*r->group)
        lua_pushfstring(L, "%s/%s/%s", r->group, r->version, r->kind);
    else
        lua_pushfstring(L, "%s/%s", r->version, r->kind);
}

static int push_resource(lua_State *L, const kl_resource *r)
{
    if (!r)
        return 0;
    lua_createtable(L, 0, 4);
    push_kind(L, r);
    lua_setfield(L, -2, "kind");
    lua_pushboolean(L, r->namespaced);
    lua_setfield(L, -2, "namespaced");
    lua_pushboolean(L, kl_resource_has_subresource(r, "status"));
    lua_setfield(L, -2, "status");
    lua_pushstring(L, r->plural);
    lua_setfield(L, -2, "plural");
    return 1;
}

/* Of the cluster whose number is second on the stack, or our own. */
static const kl_resource *known(lua_State *L, const char *kind)
{
    lkl_state *s = lkl_state_of(L);
    if (!lua_isnil(L, 2))
        return kl_run_resource_at(run_of(L), cluster_at(L, run_of(L), 2), kind);
    const kl_resource *r = s->reader ? kl_reader_resource(s->reader, kind) : NULL;
    return r || !s->run ? r : kl_run_resource(s->run, kind);
}

/* run.kind(word): the kind in full, as far as the cache or discovery knows it by now; else nil. */
static int kind(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushnil(L);
    const kl_resource *r = known(L, lkl__text(L, 1));
    if (!r)
        return 0;
    push_kind(L, r);
    return 1;
}

static int resource_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)status, (void)ctx;
    kl_err *err;
    const char *kind = lua_tostring(L, 1);
    if (kl_run_reply(run_of(L), NULL, &err)) {
        kl_err mine = KL_ERR_INIT;
        kl_err_copy(&mine, err);
        return lkl_raise(L, &mine, "discover", kind, NULL);
    }
    return push_resource(L, known(L, kind));
}

/* run.resource(kind [, cluster]): {kind, namespaced, status, plural}, by discovery when it is not known yet.
 */
static int resource(lua_State *L)
{
    const char *kind = lkl__text(L, 1);
    lua_settop(L, 2);
    if (known(L, kind))
        return push_resource(L, known(L, kind));
    kl_run *r = run_of(L);
    aim(L, r, 2);
    must_wait(L, "discovery of", kind);
    kl_run_resolve(r, kind);
    return lkl__wait(L, 0, resource_done);
}

/* owns(kind) -> whether the controller owns it, and whether an apply of that kind takes fields from other
 * managers. */
static int owns(lua_State *L)
{
    const kl_owned_spec *owned = kl_run_owned(run_of(L), lkl__text(L, 1));
    lua_pushboolean(L, owned != NULL);
    lua_pushboolean(L, owned && !owned->unforced);
    return 2;
}

/* --- the cache ---------------------------------------------------------------------------- */

/* Whether idx is a text that is not empty. */
static bool is_text(lua_State *L, int idx) { return lua_type(L, idx) == LUA_TSTRING && *lkl__text(L, idx); }

#define NAMESPACE_MAX 256 /* 63 bytes on every server */

static void tell_get(kl_run *run, const char *kind, const char *ns, const char *name, const kl_value *found)
{
    kl_run_saw(run, &(kl_saw){.kind = kind, .ns = ns, .name = name, .found = &found, .n = found != NULL});
}

/* run.get(kind, key) and (kind, namespace, name): the object or nil; false when these are not the words of
 * a get (context.lua says why then). A name alone means the key's own namespace. */
static int get(lua_State *L)
{
    kl_reader *rd = reader_of(L);
    kl_run *run = lkl_state_of(L)->run;
    char own[NAMESPACE_MAX];
    const char *ns = NULL, *name;
    lua_settop(L, 4);
    if (!is_text(L, 1) || !is_text(L, 2) || !(is_text(L, 3) || lua_isnil(L, 3)) || !lua_isnil(L, 4)) {
        lua_pushboolean(L, false);
        return 1;
    }
    const char *a = lua_tostring(L, 2), *slash = lua_isnil(L, 3) ? strchr(a, '/') : NULL;
    if (slash) {
        if (slash == a || (size_t)(slash - a) >= sizeof own || !slash[1] || strchr(slash + 1, '/')) {
            lua_pushboolean(L, false);
            return 1;
        }
        memcpy(own, a, (size_t)(slash - a));
        own[slash - a] = '\0';
        ns = own;
        name = slash + 1;
    } else if (lua_isnil(L, 3)) {
        ns = run ? kl_run_namespace(run) : NULL;
        name = a;
    } else {
        ns = a;
        name = lua_tostring(L, 3);
    }
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    lkl__view_prepare(L);
    if (kl_reader_get(rd, lua_tostring(L, 1), ns, name, &v, &err))
        return lkl__fail(L, &err);
    if (run && kl_run_watched(run))
        tell_get(run, lua_tostring(L, 1), ns, name, v);
    lkl__push_taken(L, v);
    return 1;
}

static void objects_free(void *p)
{
    kl_objects_fini(p);
    kl_free(p);
}

static const lkl_class objects_class = {.name = "kubelua.objects", .free = objects_free};

static const char *opt(lua_State *L, const char *field)
{
    lua_getfield(L, 2, field);
    if (lua_type(L, -1) == LUA_TSTRING && lkl__has_nul(L, -1))
        luaL_argerror(L, 2, lua_pushfstring(L, "%s: expected a string without NUL characters", field));
    const char *s = lua_tostring(L, -1);
    lua_pop(L, 1); /* the table keeps it */
    return s;
}

/* What (kind, {ns, labels, fields, index, value, terms, limit}) finds, sorted by key, in a box on the
 * stack. */
static kl_objects *find(lua_State *L)
{
    kl_reader *rd = reader_of(L);
    const char *kind = lkl__text(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    kl_read_query q = {.ns = opt(L, "ns"),
        .labels = opt(L, "labels"),
        .fields = opt(L, "fields"),
        .index = opt(L, "index"),
        .value = opt(L, "value")};
    lua_getfield(L, 2, "limit");
    q.limit = (size_t)luaL_optinteger(L, -1, 0);
    if (lua_getfield(L, 2, "terms") == LUA_TTABLE)
        q.terms = lkl__read_terms(L, &q.n_terms);
    lkl_box *box = lkl_box_new(L, &objects_class, 0);
    kl_objects *o = kl_new(kl_objects);
    box->ptr = o;
    kl_err err = KL_ERR_INIT;
    if (kl_reader_list(rd, kind, &q, o, &err))
        lkl__fail(L, &err);
    kl_run *run = lkl_state_of(L)->run;
    if (run && kl_run_watched(run))
        kl_run_saw(run, &(kl_saw){.kind = kind, .ns = q.ns, .query = &q, .found = o->v, .n = o->len});
    return o;
}

/* run.list(kind, query): a list of views. */
static int list(lua_State *L)
{
    lkl__push_list(L, find(L));
    lkl_box_close(L, -2);
    return 1;
}

/* run.each(kind, query): a function that gives one view after the other. */
static int each(lua_State *L)
{
    lkl__push_each(L, find(L));
    lkl_box_close(L, -2);
    return 1;
}

/* --- about the run ------------------------------------------------------------------------ */

/* run.event(type, reason, message [, about [, action [, related]]]) */
static int event(lua_State *L)
{
    kl_run_record(run_of(L),
        &(kl_news){.type = lkl__text(L, 1),
            .reason = lkl__text(L, 2),
            .note = lkl__text(L, 3),
            .about = lkl_view_value(L, 4),
            .action = lkl__opt_text(L, 5, NULL),
            .related = lkl_view_value(L, 6)});
    return 0;
}

/* run.answer(decision): the answer of a webhook (kubelua/webhook.lua) */
static int answer(lua_State *L)
{
    kl_run_answer(run_of(L), lkl__value_at(L, 1, "the decision"));
    return 0;
}

/* run.clusters(): the names of all clusters, in the order of their numbers, which begin with 0; nothing
 * where there is one. */
static int clusters(lua_State *L)
{
    const kl_fleet *f = kl_run_fleet(run_of(L));
    lua_createtable(L, (int)kl_fleet_size(f), 0);
    for (size_t i = 0; i < kl_fleet_size(f); i++) {
        lua_pushstring(L, kl_fleet_name(f, i));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static const char *const levels[] = {"debug", "info", "warn", "error", NULL};

/* run.logs(level): whether anybody reads records of this level. */
static int logs(lua_State *L)
{
    lua_pushboolean(L, kl_log_enabled((kl_log_level)luaL_checkoption(L, 1, NULL, levels)));
    return 1;
}

/* run.log(level, message [, fields, types]): fields as text that lua/kubelua/context.lua made, their types
 * as kl_log_text wants them. */
static int log_line(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    kl_log_level level = (kl_log_level)luaL_checkoption(L, 1, NULL, levels);
    const char *message = luaL_checkstring(L, 2), *fields = luaL_optstring(L, 3, ""),
               *types = luaL_optstring(L, 4, "");
    if (s->run)
        kl_run_log_with(s->run, level, message, types, fields);
    else if (*fields)
        kl_log(level, message, "controller=%s %s", s->controller, fields);
    else
        kl_log(level, message, "controller=%s", s->controller);
    return 0;
}

/* run.priority(n): the key's priority when it is queued again. */
static int priority(lua_State *L)
{
    kl_run_set_priority(run_of(L), (int)luaL_checkinteger(L, 1));
    return 0;
}

/* run.quote(text): as kl_log_quote. */
static int quote(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    char *out = lua_newuserdatauv(L, 4 * n + 3, 0);
    lua_pushstring(L, kl_log_quote(text, out, 4 * n + 3));
    return 1;
}

/* run.believed(kind, namespace or nil, name): the cached object, if no later state of it is known; else
 * nil. */
static int believed(lua_State *L)
{
    kl_run *r = run_of(L);
    const char *kind = lkl__text(L, 1), *ns = lkl__opt_text(L, 2, NULL), *name = lkl__text(L, 3);
    lkl__view_prepare(L);
    lkl__push_taken(L, kl_run_believed(r, kind, ns, name));
    return 1;
}

/* run.elided(): counts a change that was not sent. */
static int elided(lua_State *L)
{
    kl_run_elided(run_of(L));
    return 0;
}

static int now(lua_State *L)
{
    kl_time wall = kl_run_wall(run_of(L));
    lkl_push_time(L, wall / KL_SECONDS(1), (int32_t)(wall % KL_SECONDS(1)));
    return 1;
}

void lkl__push_run(lua_State *L)
{
    static const luaL_Reg functions[] = {{"call", call}, {"sleep", sleep_for}, {"resource", resource},
        {"kind", kind}, {"owns", owns}, {"get", get}, {"list", list}, {"each", each}, {"event", event},
        {"answer", answer}, {"log", log_line}, {"logs", logs}, {"quote", quote}, {"now", now},
        {"clusters", clusters}, {"priority", priority}, {"believed", believed}, {"elided", elided},
        {NULL, NULL}};
    luaL_newlib(L, functions);
    lkl__open_cut(L);
    lkl__open_context(L);
    lkl__open_shared(L);
}
