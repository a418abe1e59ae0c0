/* lstage.c - the stage in Lua; lua/kubelua/testing.lua gives it its shape. For any state but a script's. */
#include <string.h>

#include "state/border.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "faults/faults.h"
#include "run/params.h"
#include "script/program.h"
#include "script/simulate.h"
#include "script/stage.h"
#include "script/states.h"

static void stage_free(void *p) { lkl__stage_free(p); }
extern const lkl_class lkl__stage_class;
static lkl_stage *self(lua_State *L) { return lkl_box_check(L, 1, &lkl__stage_class); }

/* --- what the runtime logs, of all stages of the process ---------------------------------- */

static lkl_journal logs = {.mu = KL_MUTEX_INIT_AS(KL_LOCK_SINK)};

static const void *about_for; /* the caller that set `about` */
static char *about; /* lines for debugging with this text are kept: "key=NAME ", "key=" for all, or NULL */

static bool is_about(const char *fields)
{
    const char *at = about ? strstr(fields, about) : NULL;
    return at && (at == fields || at[-1] == ' ');
}

static void note(void *arg, kl_log_level level, const char *message, const char *fields)
{
    static const char *const words[] = {"debug", "info", "warn", "error", "off"};
    (void)arg;
    if (level == KL_LOG_DEBUG && !is_about(fields))
        return;
    lkl__journal_add(&logs, "level", kl_strdup(words[level]), "message", kl_strdup(message), "fields",
        kl_strdup(fields), (char *)NULL);
}

void lkl__stage_listen(void)
{
    kl_log_set_level(KL_LOG_INFO);
    kl_log_set_sink(note, NULL);
}

void lkl__stage_about(const void *who, const char *key)
{
    if (!key && who != about_for)
        return;
    about_for = who;
    kl_free(about);
    about = !key ? NULL : strcmp(key, "*") ? kl_sprintf("key=%s ", key) : kl_strdup("key=");
    kl_log_set_level(key ? KL_LOG_DEBUG : KL_LOG_INFO);
}

static void entries_free(void *p)
{
    lkl__journal_fini(p);
    kl_free(p);
}

static const lkl_class entries_class = {.name = "kubelua.entries", .free = entries_free};

/* A list of {name = text, ...}: everything in the journal, which is empty then. */
int lkl__push_journal(lua_State *L, lkl_journal *j)
{
    lua_newtable(L);
    int list = lua_gettop(L);
    lkl_box *box = lkl_box_new(L, &entries_class, 0);
    lkl_journal *taken = box->ptr = kl_new(lkl_journal);
    kl_mutex_init(&taken->mu);
    kl_lock(&j->mu);
    taken->v = j->v;
    taken->n = j->n;
    j->v = NULL;
    j->n = 0;
    kl_unlock(&j->mu);
    for (size_t k = 0; k < taken->n; k++) {
        const lkl_entry *e = &taken->v[k];
        lua_createtable(L, 0, (int)e->n);
        for (size_t i = 0; i < e->n; i++) {
            lua_pushstring(L, e->text[i]);
            lua_setfield(L, -2, e->name[i]);
        }
        lua_rawseti(L, list, (lua_Integer)k + 1);
    }
    lua_settop(L, list);
    return 1;
}

static int take_runs(lua_State *L) { return lkl__push_journal(L, &self(L)->runs); }
static int take_calls(lua_State *L) { return lkl__push_journal(L, &self(L)->calls); }

/* core.stage_logs(): the records since the last call */
static int take_logs(lua_State *L) { return lkl__push_journal(L, &logs); }

/* --- life --------------------------------------------------------------------------------- */

/* core.stage(wall seconds) */
static int stage(lua_State *L)
{
    kl_time wall = lkl__seconds(luaL_checknumber(L, 1));
    lkl_box *box = lkl_box_new(L, &lkl__stage_class, 2);
    lkl_stage *s = NULL;
    kl_err err = KL_ERR_INIT;
    lkl__stage_listen();
    if (lkl__stage_new(wall, &s, &err))
        return lkl__fail(L, &err);
    box->ptr = s;
    return 1;
}

static int url(lua_State *L)
{
    lua_pushstring(L, kl_server_url(self(L)->server));
    return 1;
}

/* s:load(view, tables); s:load_path(path): how many */
static int load(lua_State *L)
{
    lkl_stage *s = self(L);
    const kl_value *v = lkl_view_value(L, 2);
    luaL_argcheck(L, v, 2, "expected a view");
    kl_err err = KL_ERR_INIT;
    return lkl__given(L, kl_server_load_strict(s->server, v, lua_toboolean(L, 3), &err), &err);
}

static int load_path(lua_State *L)
{
    lkl_stage *s = self(L);
    size_t n = 0;
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_server_load_path(s->server, luaL_checkstring(L, 2), &n, &err);
    if (st)
        return lkl__fail(L, &err);
    lua_pushinteger(L, (lua_Integer)n);
    return 1;
}

static int keep(lua_State *L)
{
    kl_server_keep(self(L)->server);
    return 0;
}

static int reset(lua_State *L)
{
    lkl_stage *s = self(L);
    lkl__stage_stop(s);
    lua_pushboolean(L, kl_server_reset(s->server));
    return 1;
}

static void program_free(void *p) { kl_program_unref(p); }
static const lkl_class program_class = {.name = "kubelua.program", .free = program_free};

/* Every name has to be a param of some controller: a param with a typing mistake would test nothing. */
static void override(lua_State *L, kl_program **programs, size_t n, const kl_value *params)
{
    kl_err err = KL_ERR_INIT;
    char *near = NULL;
    const char *unknown = kl_programs_unknown_param(programs, n, params, &near);
    if (unknown)
        (void)kl_fail(&err, KL_EINVAL, "params: %s %s %s%s",
            n == 1 ? programs[0]->name : "none of the scripts", n == 1 ? "has no param" : "has a param",
            unknown, near);
    kl_free(near);
    if (unknown)
        (void)lkl__fail(L, &err);
    for (size_t i = 0; i < n; i++)
        if (kl_program_set_params(programs[i], params, KL_PARAMS_VALUES, &err))
            (void)lkl__fail(L, &err);
}

kl_program **lkl__programs(lua_State *L, int list, const kl_value *params, size_t *count)
{
    luaL_checktype(L, list, LUA_TTABLE);
    size_t n = *count = lua_rawlen(L, list);
    luaL_checkstack(L, (int)n + 16, "scripts");
    kl_program **programs = lua_newuserdatauv(L, (n + 1) * sizeof *programs, 0);
    kl_program **given = lua_newuserdatauv(L, (n + 1) * sizeof *given, 0); /* without the stand-ins */
    size_t ngiven = 0;
    kl_err err = KL_ERR_INIT;
    for (size_t i = 0; i < n; i++) {
        lkl_box *box = lkl_box_new(L, &program_class, 0);
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        lua_getfield(L, -1, "path");
        lua_getfield(L, -2, "text");
        lua_getfield(L, -3, "simulated");
        kl_program *p = NULL;
        size_t len;
        const char *path = luaL_checkstring(L, -3), *text = lua_tolstring(L, -2, &len);
        bool simulated = lua_toboolean(L, -1);
        kl_status st = simulated ? lkl_simulate_load(path, &p, &err)
            : text               ? lkl_program_load_text(path, text, len, &p, &err)
                                 : lkl_program_load(path, &p, &err);
        if (st)
            (void)lkl__fail(L, &err);
        box->ptr = programs[i] = p;
        lua_pop(L, 4);
        if (!simulated)
            given[ngiven++] = p;
    }
    if (params && ngiven)
        override(L, given, ngiven, params);
    for (size_t i = 0; i < n; i++)
        if (kl_program_params_there(programs[i], &err))
            (void)lkl__fail(L, &err);
    return programs;
}

/* s:define({ { path = [, text =] } ... }, params view or nil): the server has the kinds that they bring */
static int define(lua_State *L)
{
    lkl_stage *s = self(L);
    const kl_value *params = lkl_view_value(L, 3);
    size_t n;
    kl_program **programs = lkl__programs(L, 2, params, &n);
    kl_err err = KL_ERR_INIT;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < kl_value_len(programs[i]->crds); k++)
            if (kl_server_load(s->server, kl_value_item(programs[i]->crds, k), &err))
                return lkl__fail(L, &err);
    return 0;
}

/* s:start({ { path = [, text =] } ... }, params view or nil, namespace or nil) */
static int start(lua_State *L)
{
    lkl_stage *s = self(L);
    const kl_value *params = lkl_view_value(L, 3);
    const char *ns = luaL_optstring(L, 4, NULL);
    size_t n;
    kl_program **programs = lkl__programs(L, 2, params, &n);
    kl_err err = KL_ERR_INIT;
    return lkl__given(L, lkl__stage_start(s, programs, n, ns, &err), &err);
}

static int stop(lua_State *L)
{
    lkl__stage_stop(self(L));
    return 0;
}

/* --- time --------------------------------------------------------------------------------- */

/* An error of the test's own function goes before one of settling, since it explains it. */
static void leave(lua_State *L, lkl_stage *s, kl_err *err)
{
    if (s->web.raised)
        kl_err_fini(err);
    lkl__stage_web_leave(L, s);
}

/* s:web(function(method, url, order) or nil): who answers ctx.http (stage_web.c) */
static int web(lua_State *L)
{
    lkl__stage_web_function(L, self(L));
    return 0;
}

/* s:settle(): seconds until a key runs by itself, or nil; keys that failed; controllers that wait for
 * something missing */
static int settle(lua_State *L)
{
    lkl_stage *s = self(L);
    kl_outlook o;
    kl_err err = KL_ERR_INIT;
    lkl__stage_web_enter(L, s);
    kl_status st = lkl__stage_settle(s, &o, &err);
    leave(L, s, &err);
    if (st)
        return lkl__fail(L, &err);
    if (!s->manager || o.next_key == KL_NEVER)
        lua_pushnil(L);
    else
        lua_pushnumber(L, (double)(o.next_key - kl_clock_now(s->clock)) / 1e9);
    lua_pushinteger(L, (lua_Integer)o.failing);
    lua_pushinteger(L, (lua_Integer)o.parked);
    return 3;
}

static int advance(lua_State *L)
{
    kl_time d = lkl_check_duration(L, 2, "advance");
    luaL_argcheck(L, d >= 0, 2, "time runs forward");
    lkl_stage *s = self(L);
    kl_err err = KL_ERR_INIT;
    lkl__stage_web_enter(L, s);
    kl_status st = lkl__stage_advance(s, d, &err);
    leave(L, s, &err);
    return lkl__given(L, st, &err);
}

static int rest(lua_State *L)
{
    lkl_stage *s = self(L);
    kl_time most = lkl_check_duration(L, 2, "until_idle");
    kl_err err = KL_ERR_INIT;
    lkl__stage_web_enter(L, s);
    kl_status st = lkl__stage_rest(s, most, &err);
    leave(L, s, &err);
    return lkl__given(L, st, &err);
}

static int now(lua_State *L)
{
    lua_pushnumber(L, (double)kl_clock_wall(self(L)->clock) / 1e9);
    return 1;
}

static int set_now(lua_State *L)
{
    kl_clock_set_wall(self(L)->clock, lkl__seconds(luaL_checknumber(L, 2)));
    return 0;
}

/* --- the rest ----------------------------------------------------------------------------- */

/* s:add_faults(rules), as core/faults reads them: what is wrong with them, or nothing */
static int add_faults(lua_State *L)
{
    lkl_stage *s = self(L);
    const kl_value *rules = lkl__value_at(L, 2, "the rules");
    kl_err err = KL_ERR_INIT;
    if (!kl_faults_add(kl_server_faults(s->server), rules, &err))
        return 0;
    lua_pushstring(L, kl_err_message(&err));
    kl_err_fini(&err);
    return 1;
}

/* s:faults(): the rules and their hits; what is left of those with `times` */
static int faults(lua_State *L)
{
    kl_faults *f = kl_server_faults(self(L)->server);
    lkl_box *box = lkl_value_box(L);
    box->ptr = (void *)kl_faults_list(f);
    lkl_push_value(L, box->ptr);
    lua_pushinteger(L, (lua_Integer)kl_faults_left(f));
    return 2;
}

static int clear_faults(lua_State *L)
{
    kl_faults_clear(kl_server_faults(self(L)->server));
    return 0;
}

/* s:metric(name, labels or nil): a script's counter, or how often a histogram observed; nil: no series has
 * these labels. */
static int metric(lua_State *L)
{
    lkl_stage *s = self(L);
    kl_figure f = {.name = lkl__text(L, 2)};
    double value;
    uint64_t n = 0;
    lua_settop(L, 3);
    if (!lua_isnil(L, 3))
        f.labels = lkl__value_at(L, 3, "the labels");
    if (!s->manager || !kl_custom_metrics_get(kl_manager_custom_metrics(s->manager), &f, &value, &n))
        return 0;
    lua_pushnumber(L, value);
    lua_pushinteger(L, (lua_Integer)n);
    return 2;
}

static int controllers(lua_State *L)
{
    lkl__push_states(L, self(L)->manager);
    return 1;
}

static const luaL_Reg methods[] = {{"url", url}, {"load", load}, {"load_path", load_path}, {"keep", keep},
    {"reset", reset}, {"define", define}, {"start", start}, {"stop", stop}, {"settle", settle},
    {"advance", advance}, {"rest", rest}, {"now", now}, {"set_now", set_now}, {"runs", take_runs},
    {"calls", take_calls}, {"add_faults", add_faults}, {"faults", faults}, {"clear_faults", clear_faults},
    {"controllers", controllers}, {"metric", metric}, {"web", web}, {NULL, NULL}};
const lkl_class lkl__stage_class = {"kubelua.stage", stage_free, methods, NULL};

/* core.simulated("nodes,pods"): the names of stand-ins as a list, of all for "" */
static int simulated(lua_State *L)
{
    const char *names[LKL_SIMULATE_MOST];
    size_t n = 0;
    kl_err err = KL_ERR_INIT;
    if (lkl_simulate_chosen(lkl__text(L, 1), names, &n, &err))
        return lkl__fail(L, &err);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

void lkl__open_stage(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"stage", stage}, {"stage_logs", take_logs}, {"simulated", simulated}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
