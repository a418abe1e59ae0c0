/* lsim.c - simulations in Lua; lua/kubelua/sim gives them their shape. For any state but a script's. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"
#include "model/resource.h"
#include "script/nodes.h"
#include "script/program.h"
#include "script/stage.h"
#include "server/documents.h"
#include "sim/sim.h"
#include "state/border.h"
#include "value/edited.h"

/* Failed runs that are reported one by one; further ones are only counted. */
#define TOLD_MAX 1000

/* Kinds that core.objects leaves out. */
#define MOST_SKIPPED 16

/* Stands for a key: the runs of every key are reported, and their writes with the content. */
#define ALL "*"

typedef struct news { /* a change of a kind that somebody follows */
    const char *type;
    const kl_value *now;
} news;

typedef struct lkl_sim {
    kl_sim *sim;
    lkl_journal told, failed;
    char *about;    /* the key whose runs are reported, ALL, or NULL */
    char *writes;   /* of the run that goes on, a line each; NULL: none, or nobody asks */
    char **follows; /* "group/plural" */
    size_t n_follows;
    news *news;
    size_t n_news, cap_news;
    lkl__reports *reports; /* NULL: none yet */
} lkl_sim;

static void sim_free(void *p)
{
    lkl_sim *s = p;
    kl_sim_free(s->sim);
    lkl__journal_fini(&s->told);
    lkl__stage_about(s, NULL);
    kl_free(s->about);
    kl_free(s->writes);
    lkl__journal_fini(&s->failed);
    for (size_t i = 0; i < s->n_follows; i++)
        kl_free(s->follows[i]);
    for (size_t i = 0; i < s->n_news; i++)
        kl_value_unref(s->news[i].now);
    kl_free(s->follows);
    kl_free(s->news);
    lkl__reports_free(s->reports);
    kl_free(s);
}

extern const lkl_class lkl__sim_class;
static lkl_sim *self(lua_State *L) { return lkl_box_check(L, 1, &lkl__sim_class); }

/* --- what is heard ------------------------------------------------------------------------ */

static void changed(void *arg, const kl_server_change *c)
{
    lkl_sim *s = arg;
    bool followed = false;
    for (size_t i = 0; i < s->n_follows && !followed; i++) {
        const char *slash = strchr(s->follows[i], '/');
        size_t n = (size_t)(slash - s->follows[i]);
        followed = strlen(c->group) == n && !strncmp(c->group, s->follows[i], n)
            && !strcmp(c->plural, slash + 1);
    }
    if (!followed)
        return;
    if (s->n_news == s->cap_news) {
        s->cap_news = s->cap_news ? 2 * s->cap_news : 64;
        s->news = kl_realloc(s->news, s->cap_news * sizeof *s->news);
    }
    s->news[s->n_news++] = (news){c->type, kl_value_ref(c->now)};
}

static bool all(const lkl_sim *s) { return s->about && !strcmp(s->about, ALL); }

static void wrote(void *arg, const kl_sim_wrote *w)
{
    lkl_sim *s = arg;
    if (!s->about)
        return;
    char *content = all(s) && w->op->body ? kl_value_to_json(w->op->body) : NULL;
    const char *name = w->op->name ? w->op->name
        : w->answer                ? kl_object_name(w->answer)
                                   : kl_object_name(w->op->body);
    char *kind = kl_gvk_text(w->resource->group, w->resource->version, w->resource->kind);
    const char *sub = w->op->subresource;
    char *lines = kl_sprintf("%s%s%s %s%s%s %s%s%s%s%s%s%s", s->writes ? s->writes : "",
        s->writes ? "\n" : "", kl_verb_name(w->op->verb), kind, sub ? "/" : "", sub ? sub : "",
        w->ns ? w->ns : "", w->ns ? "/" : "", name ? name : "", w->status ? ": " : "",
        w->status ? kl_err_message(w->err) : "", content ? " " : "", content ? content : "");
    kl_free(content);
    kl_free(kind);
    kl_free(s->writes);
    s->writes = lines;
}

/* The writes since the last run ended are attributed to this run. Runs that overlap are rare here, since
 * calls are answered at once. */
static void tell(lkl_sim *s, const kl_ran *r)
{
    if (s->about && (all(s) || !strcmp(r->key, s->about))) {
        lkl__journal_add(&s->told, "controller", kl_strdup(r->controller), "key", kl_strdup(r->key), "result",
            kl_strdup(kl_result_name(r->result)), "message", kl_strdup(r->message), "writes", s->writes,
            (char *)NULL);
        s->writes = NULL;
    }
    kl_free(s->writes);
    s->writes = NULL;
}

static void ran(void *arg, const kl_ran *r)
{
    lkl_sim *s = arg;
    tell(s, r);
    if (r->result != KL_RESULT_ERROR && r->result != KL_RESULT_FAIL)
        return;
    kl_lock(&s->failed.mu);
    bool room = s->failed.n < TOLD_MAX;
    kl_unlock(&s->failed.mu);
    if (room)
        lkl__journal_add(&s->failed, "controller", kl_strdup(r->controller), "key", kl_strdup(r->key),
            "message", kl_strdup(r->message), (char *)NULL);
}

/* s:failed(): runs that failed since the last call */
static int take_failed(lua_State *L) { return lkl__push_journal(L, &self(L)->failed); }

/* s:about(key): from now on s:told has each run of the key, and core.stage_logs what it logs for debugging;
 * s:about("*"[, logs]): each run, and its writes with their content; what it logs only with `logs` */
static int about(lua_State *L)
{
    lkl_sim *s = self(L);
    const char *key = luaL_checkstring(L, 2);
    kl_free(s->about);
    s->about = kl_strdup(key);
    if (!all(s) || lua_toboolean(L, 3))
        lkl__stage_about(s, key);
    return 0;
}

/* s:told(): { controller, key, result, message, writes } since the last call; writes: a line each, or nil */
static int take_told(lua_State *L) { return lkl__push_journal(L, &self(L)->told); }

/* s:follow(kind): from now on s:news reports the kind's changes */
static int follow(lua_State *L)
{
    lkl_sim *s = self(L);
    kl_gvk g;
    kl_server_kind k = {0};
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_gvk_parse(luaL_checkstring(L, 2), &g, &err);
    if (st)
        return lkl__fail(L, &err);
    bool found = kl_server_find(kl_sim_server(s->sim), g.group, g.version, g.kind, &k);
    kl_gvk_fini(&g);
    if (!found)
        return lkl__error(L, "the simulated cluster has no kind %s", lua_tostring(L, 2));
    s->follows = kl_realloc(s->follows, (s->n_follows + 1) * sizeof *s->follows);
    s->follows[s->n_follows++] = kl_sprintf("%s/%s", k.group, k.plural);
    return 0;
}

/* s:news(): { { type, object }, ... } since the last call, each as an array of two */
static int take_news(lua_State *L)
{
    lkl_sim *s = self(L);
    lua_createtable(L, (int)s->n_news, 0);
    for (size_t i = 0; i < s->n_news; i++) {
        lua_createtable(L, 2, 0);
        lua_pushstring(L, s->news[i].type);
        lua_rawseti(L, -2, 1);
        lkl_push_object(L, s->news[i].now);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    for (size_t i = 0; i < s->n_news; i++)
        kl_value_unref(s->news[i].now);
    s->n_news = 0;
    return 1;
}

/* --- the world ---------------------------------------------------------------------------- */

/* core.sim(wall seconds, seed) */
static int sim(lua_State *L)
{
    kl_time wall = lkl__seconds(luaL_checknumber(L, 1));
    uint64_t seed = (uint64_t)luaL_checkinteger(L, 2);
    lkl_box *box = lkl_box_new(L, &lkl__sim_class, 0);
    lkl_sim *s = kl_new(lkl_sim);
    kl_err err = KL_ERR_INIT;
    kl_mutex_init(&s->told.mu);
    kl_mutex_init(&s->failed.mu);
    box->ptr = s;
    lkl__stage_listen();
    kl_status st = kl_sim_new(
        &(kl_sim_options){
            .wall = wall, .seed = seed, .changed = changed, .wrote = wrote, .ran = ran, .arg = s},
        &s->sim, &err);
    return st ? lkl__fail(L, &err) : 1;
}

/* s:load(view): as kubectl create would, with status; s:put(view): a fact, as it is */
static int load(lua_State *L)
{
    const kl_value *v = lkl_view_value(L, 2);
    luaL_argcheck(L, v, 2, "expected a view");
    kl_err err = KL_ERR_INIT;
    return lkl__given(L, kl_server_load(kl_sim_server(self(L)->sim), v, &err), &err);
}

static int put(lua_State *L)
{
    const kl_value *v = lkl_view_value(L, 2);
    luaL_argcheck(L, v, 2, "expected a view");
    kl_err err = KL_ERR_INIT;
    return lkl__given(L, kl_server_put(kl_sim_server(self(L)->sim), kl_value_ref(v), &err), &err);
}

/* The metadata of an object of another cluster as this one has it. A new reference. */
static const kl_value *own_metadata(const kl_value *meta, const char *uid, const char *created)
{
    kl_edited e = {.base = meta};
    const kl_value *given[] = {kl_value_of_str(uid), kl_value_of_str(created)};
    kl_edited_put(&e, "resourceVersion", NULL);
    kl_edited_put(&e, "managedFields", NULL);
    if (!kl_value_get(meta, "uid"))
        kl_edited_put(&e, "uid", given[0]);
    if (!kl_value_get(meta, "creationTimestamp"))
        kl_edited_put(&e, "creationTimestamp", given[1]);
    kl_value_unref(given[0]);
    kl_value_unref(given[1]);
    return kl_edited_done(&e);
}

/* s:put_copy(view, uid, created): puts an object of another cluster, without its resourceVersion and
 * managedFields; uid and creationTimestamp are used if it has none */
static int put_copy(lua_State *L)
{
    const kl_value *v = lkl_view_value(L, 2);
    luaL_argcheck(L, v, 2, "expected a view");
    const char *uid = luaL_checkstring(L, 3), *created = luaL_checkstring(L, 4);
    const kl_value *meta = own_metadata(kl_value_get(v, "metadata"), uid, created);
    const kl_value *o = kl_value_with(v, "metadata", meta);
    kl_value_unref(meta);
    kl_err err = KL_ERR_INIT;
    return lkl__given(L, kl_server_put(kl_sim_server(self(L)->sim), o, &err), &err);
}

/* s:report(i, node, created, updated, { cpu, memory, cpu of the system, memory of the system }, pods,
 * namespaces, names, classes, memories, holds, sums, n): puts the NodeMetric of the i-th node. pods: the rows
 * of its pods in the columns that follow; the cpu of each is its sum (core.sums) over n. Memory is what the
 * trace says (holds), a part of its request for class prod, or all of it. cpu is in thousandths, memory in
 * bytes. */
static int report(lua_State *L)
{
    lkl_sim *s = self(L);
    s->reports = s->reports ? s->reports : lkl__reports_new();
    const kl_value *v = lkl__report(L, s->reports);
    kl_err err = KL_ERR_INIT;
    return lkl__given(L, kl_server_put(kl_sim_server(s->sim), v, &err), &err);
}

/* s:load_path(path): loads a file or a directory; returns how many objects */
static int load_path(lua_State *L)
{
    size_t n = 0;
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_server_load_path(kl_sim_server(self(L)->sim), luaL_checkstring(L, 2), &n, &err);
    if (st)
        return lkl__fail(L, &err);
    lua_pushinteger(L, (lua_Integer)n);
    return 1;
}

/* --- snapshots ---------------------------------------------------------------------------- */

typedef struct objects {
    const kl_value **v;
    size_t n, cap;
    kl_map *skipped; /* "apiVersion/kind" to something */
} objects;

static void objects_free(void *p)
{
    objects *o = p;
    for (size_t i = 0; i < o->n; i++)
        kl_value_unref(o->v[i]);
    kl_free(o->v);
    kl_map_free(o->skipped, NULL);
    kl_free(o);
}
static const lkl_class objects_class = {.name = "kubelua.objects", .free = objects_free};

static void add_object(void *arg, const kl_value *v)
{
    objects *o = arg;
    if (o->n == o->cap) {
        o->cap = o->cap ? 2 * o->cap : 64;
        o->v = kl_realloc(o->v, o->cap * sizeof *o->v);
    }
    o->v[o->n++] = v;
}

static bool is_wanted(void *arg, const kl_value *item)
{
    const objects *o = arg;
    const char *version = kl_value_str_at(item, "apiVersion", NULL),
               *kind = kl_value_str_at(item, "kind", NULL);
    char name[128];
    if (!version || !kind)
        return true;
    snprintf(name, sizeof name, "%s/%s", version, kind);
    size_t *n = kl_map_get(o->skipped, name);
    if (n)
        ++*n;
    return !n;
}

/* core.objects(path, { "v1/Event", ... }): the objects of a file that is read piece by piece, as views; items
 * of lists that are of these kinds are left out at once, and then also { "v1/Event" = how many } */
static int read_objects(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lkl_box *box = lkl_box_new(L, &objects_class, 0);
    objects *o = box->ptr = kl_new(objects);
    kl_err err = KL_ERR_INIT;
    size_t kinds = lua_rawlen(L, 2), left[MOST_SKIPPED] = {0};
    luaL_argcheck(L, kinds <= MOST_SKIPPED, 2, "too many kinds");
    o->skipped = kl_map_new();
    for (size_t i = 0; i < kinds; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        kl_map_set(o->skipped, luaL_checkstring(L, -1), &left[i]);
        lua_pop(L, 1);
    }
    if (kl_documents_each(path, is_wanted, add_object, o, &err))
        return lkl__fail(L, &err);
    lua_createtable(L, (int)o->n, 0);
    for (size_t i = 0; i < o->n; i++) {
        lkl_push_value(L, o->v[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_createtable(L, 0, (int)kinds);
    for (size_t i = 0; i < kinds; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        lua_pushinteger(L, (lua_Integer)left[i]);
        lua_rawset(L, -3);
    }
    return 2;
}

/* s:lose(kind, namespace or nil, name): whether the object was there */
static int lose(lua_State *L)
{
    lkl_sim *s = self(L);
    const kl_resource *r = kl_sim_resource(s->sim, luaL_checkstring(L, 2));
    kl_server_kind k = {0};
    if (!r)
        return lkl__error(L, "the simulated cluster has no kind %s", lua_tostring(L, 2));
    k = (kl_server_kind){.group = r->group,
        .version = r->version,
        .kind = r->kind,
        .plural = r->plural,
        .namespaced = r->namespaced};
    lua_pushboolean(
        L, kl_server_lose(kl_sim_server(s->sim), &k, luaL_optstring(L, 3, NULL), luaL_checkstring(L, 4)));
    return 1;
}

typedef struct answer {
    const kl_value *body;
    kl_status status;
    kl_err err;
} answer;

static void answer_free(void *p)
{
    answer *a = p;
    kl_value_unref(a->body);
    kl_err_fini(&a->err);
    kl_free(a);
}
static const lkl_class answer_class = {.name = "kubelua.answer", .free = answer_free};

static void take_answer(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    answer *a = arg;
    (void)code;
    a->status = st;
    a->body = kl_value_ref(body);
    if (st && err)
        kl_err_copy(&a->err, err);
}

/* s:call(op): the answer's body; raises as a client does */
static int call(lua_State *L)
{
    lkl_sim *s = self(L);
    kl_op op;
    lkl_op_from_table(L, 2, &op);
    lkl_box *box = lkl_box_new(L, &answer_class, 0);
    answer *a = box->ptr = kl_new(answer);
    kl_sim_call(s->sim, &op, take_answer, a);
    if (a->status)
        return lkl_raise(L, &a->err, kl_verb_name(op.verb), op.kind, kl_op_name(&op));
    lkl_push_value(L, a->body);
    return 1;
}

/* --- traces ------------------------------------------------------------------------------- */

/* Pushes the number that a text is for Lua, or pushes nothing. */
static bool push_number(lua_State *L, const kl_value *v)
{
    size_t n;
    const char *text = kl_value_type(v) == KL_STRING ? kl_value_strn(v, &n) : NULL;
    return text && strlen(text) == n && lua_stringtonumber(L, text);
}

/* core.samples(view): a list of [seconds, "number"] pairs, as Prometheus writes samples, as one flat list
 * { seconds, number, ... }; nil if one of them is something else */
static int samples(lua_State *L)
{
    const kl_value *v = lkl_view_value(L, 1);
    luaL_argcheck(L, v, 1, "expected a view");
    size_t n = kl_value_type(v) == KL_ARRAY ? kl_value_len(v) : 0;
    lua_settop(L, 1);
    lua_createtable(L, n < INT_MAX / 2 ? (int)(2 * n) : 0, 0);
    for (size_t i = 0; i < n; i++) {
        const kl_value *pair = kl_value_item(v, i);
        bool two = kl_value_type(pair) == KL_ARRAY && kl_value_len(pair) == 2;
        kl_type t = two ? kl_value_type(kl_value_item(pair, 0)) : KL_NULL;
        if (t != KL_INT && t != KL_DOUBLE)
            return 0;
        (void)lkl__push_scalar(L, kl_value_item(pair, 0));
        int whole;
        lua_Integer at = lua_tointegerx(L, -1, &whole);
        if (whole) { /* as JSON would say it */
            lua_pop(L, 1);
            lua_pushinteger(L, at);
        }
        lua_rawseti(L, 2, (lua_Integer)(2 * i) + 1);
        if (!push_number(L, kl_value_item(pair, 1)))
            return 0;
        lua_rawseti(L, 2, (lua_Integer)(2 * i) + 2);
    }
    return 1;
}

/* s:resource(kind): as a client's, or nil */
static int resource(lua_State *L)
{
    const kl_resource *r = kl_sim_resource(self(L)->sim, luaL_checkstring(L, 2));
    if (!r)
        return 0;
    lkl__push_resource(L, r);
    return 1;
}

/* --- time --------------------------------------------------------------------------------- */

/* s:start({ { path = [, text =] } ... }, params view or nil) */
static int start(lua_State *L)
{
    lkl_sim *s = self(L);
    size_t n;
    kl_program **programs = lkl__programs(L, 2, lkl_view_value(L, 3), &n);
    kl_err err = KL_ERR_INIT;
    return lkl__given(L, kl_sim_start(s->sim, programs, n, &err), &err);
}

/* s:settle(): seconds until something would run by itself, or nil */
static int settle(lua_State *L)
{
    lkl_sim *s = self(L);
    kl_time next;
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_sim_settle(s->sim, &next, &err);
    if (st)
        return lkl__fail(L, &err);
    if (next == KL_NEVER)
        return 0;
    lua_pushnumber(L, (double)(next - kl_clock_now(kl_sim_clock(s->sim))) / 1e9);
    return 1;
}

static int move(lua_State *L)
{
    kl_time by = lkl_check_duration(L, 2, "move");
    luaL_argcheck(L, by >= 0, 2, "time runs forward");
    kl_sim_move(self(L)->sim, by);
    return 0;
}

static int now(lua_State *L)
{
    lua_pushnumber(L, (double)kl_clock_wall(kl_sim_clock(self(L)->sim)) / 1e9);
    return 1;
}

/* s:counts(): {{ name, runs, errors, writes, refused, failing, cpu }, ...} */
static int counts(lua_State *L)
{
    lkl_sim *s = self(L);
    kl_sim_count c;
    lua_newtable(L);
    for (size_t i = 0; kl_sim_count_of(s->sim, i, &c); i++) {
        const struct {
            const char *name;
            uint64_t n;
        } numbers[] = {{"runs", c.runs}, {"errors", c.errors}, {"writes", c.writes}, {"refused", c.refused},
            {"failing", c.failing}};
        lua_createtable(L, 0, 7);
        lua_pushstring(L, c.controller);
        lua_setfield(L, -2, "name");
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            lua_pushinteger(L, (lua_Integer)numbers[k].n);
            lua_setfield(L, -2, numbers[k].name);
        }
        lua_pushnumber(L, (double)c.cpu / 1e9);
        lua_setfield(L, -2, "cpu");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static const luaL_Reg methods[] = {{"load", load}, {"put", put}, {"put_copy", put_copy}, {"report", report},
    {"load_path", load_path}, {"lose", lose}, {"call", call}, {"resource", resource}, {"start", start},
    {"settle", settle}, {"move", move}, {"now", now}, {"counts", counts}, {"follow", follow},
    {"news", take_news}, {"about", about}, {"told", take_told}, {"failed", take_failed}, {NULL, NULL}};
const lkl_class lkl__sim_class = {"kubelua.sim", sim_free, methods, NULL};

void lkl__open_sim(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"sim", sim}, {"samples", samples}, {"objects", read_objects}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
