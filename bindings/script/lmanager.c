/* lmanager.c - a manager in a program (lua/kubelua/manager.lua gives it its shape): controllers from files,
 * on threads of their own, as a guest of a client.
 *
 *   core.manager(client, bell, { options }) --> m:add(list) --> m:start() ... m:stop()
 *
 * The bell rings when the result of m:controllers() may have changed. m:stop() waits in slices, while a
 * thread of its own stops the manager: so the program can be interrupted. A client that is closed stops
 * its manager; calls on the userdata then say so. */
#include <stdatomic.h>
#include <string.h>

#include "api/bell.h"
#include "api/post.h"
#include "base/log.h"
#include "base/mem.h"
#include "manager/manager.h"
#include "observe/flight.h"
#include "run/params.h"
#include "script/program.h"
#include "script/states.h"
#include "state/border.h"

typedef struct script {
    char *path;
    bool file; /* it can be loaded again */
    int slot;
    uint64_t digest;
} script;

typedef struct manager {
    lkl_guest guest; /* first */
    lkl_hub *hub;    /* NULL once it has stopped */
    kl_manager *m;   /* likewise */
    lkl_bell *bell;
    atomic_bool changed;
    kl_thread *stopper; /* stops the manager, which then gets no more calls; or NULL */
    kl_mutex mu;        /* guards `stopped` */
    kl_cond over;
    bool stopped;
    const kl_value *params; /* or NULL */
    script *v;
    size_t n;
} manager;

static void on_changed(void *arg)
{
    manager *w = arg;
    atomic_store(&w->changed, true);
    lkl__bell_ring(w->bell);
}

static void stop_there(void *arg)
{
    manager *w = arg;
    kl_manager_stop(w->m);
    kl_lock(&w->mu);
    w->stopped = true;
    kl_cond_signal(&w->over);
    kl_unlock(&w->mu);
}

/* Waits for the stop. If the program was interrupted while it waited, the grace period is cut short. */
static void leave(lkl_guest *g)
{
    manager *w = (manager *)g;
    lkl__guest_gone(g);
    if (w->stopper) {
        kl_manager_hurry(w->m);
        kl_thread_join(w->stopper);
        w->stopper = NULL;
    }
    if (w->hub)
        w->hub->managed = false;
    w->hub = NULL;
    kl_manager_free(w->m);
    w->m = NULL;
}

static void manager_free(void *p)
{
    manager *w = p;
    leave(&w->guest);
    kl_cond_fini(&w->over);
    kl_mutex_fini(&w->mu);
    for (size_t i = 0; i < w->n; i++)
        kl_free(w->v[i].path);
    kl_free(w->v);
    kl_value_unref(w->params);
    lkl__bell_unref(w->bell);
    kl_free(w);
}

static const lkl_class manager_class;

static manager *self(lua_State *L) { return lkl_box_check(L, 1, &manager_class); }

static manager *running(lua_State *L)
{
    manager *w = self(L);
    if (!w->m)
        luaL_argerror(L, 1, "the manager has stopped, or its client was closed");
    if (w->stopper)
        luaL_argerror(L, 1, "the manager is stopping");
    return w;
}

/* For questions that can be answered at any time; NULL when the manager has ended. */
static kl_manager *asked(lua_State *L)
{
    manager *w = self(L);
    return w->stopper ? NULL : w->m;
}

/* --- options ------------------------------------------------------------------------------ */

static kl_time duration_field(lua_State *L, int t, const char *name)
{
    kl_time d = 0;
    if (lua_getfield(L, t, name) != LUA_TNIL)
        d = lkl_check_duration(L, lua_gettop(L), name);
    lua_pop(L, 1);
    return d;
}

/* Texts are borrowed from the table at t. */
static kl_election_options election_of(lua_State *L, int t, const kl_client *c)
{
    kl_election_options e = {0};
    if (lua_getfield(L, t, "election") == LUA_TTABLE) {
        int at = lua_gettop(L);
        const char *ns = lkl__field_text(L, at, "namespace");
        e = (kl_election_options){.enabled = true,
            .name = lkl__field_text(L, at, "name"),
            .ns = ns ? ns : kl_client_config(c)->context_namespace,
            .identity = lkl__field_text(L, at, "identity"),
            .lease = duration_field(L, at, "lease"),
            .renew = duration_field(L, at, "renew"),
            .retry = duration_field(L, at, "retry")};
    }
    lua_pop(L, 1);
    return e;
}

static kl_dry dry_of(lua_State *L, int t)
{
    const char *word = lkl__field_text(L, t, "dry_run");
    return word ? KL_DRY_SERVER : lkl__field_flag(L, t, "dry_run") ? KL_DRY_HERE : KL_DRY_NOT;
}

/* core.manager(client, bell, options): what there is, and their types: lua/kubelua/manager.lua. */
static int new_manager(lua_State *L)
{
    lkl_hub *h = lkl_box_check(L, 1, &lkl__client_class);
    lkl_bell *bell = lkl_box_check(L, 2, &lkl__bell_class);
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_settop(L, 3);
    if (h->managed)
        return lkl__error(L, "kube.manager: this client has a manager; give each its own client");
    lkl_box *box = lkl_box_new(L, &manager_class, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    manager *w = kl_new(manager);
    box->ptr = w;
    w->guest.leave = leave;
    kl_mutex_init(&w->mu);
    kl_cond_init(&w->over);
    w->bell = lkl__bell_ref(bell);
    lua_getfield(L, 3, "params");
    w->params = kl_value_ref(lkl_view_value(L, -1));
    lua_getfield(L, 3, "workers");
    kl_dry dry = dry_of(L, 3);
    kl_manager_options o = {.client = h->client,
        .ns = lkl__field_text(L, 3, "namespace"),
        .workers = (int)lua_tointeger(L, -1),
        .workers_forced = !lua_isnil(L, -1),
        .grace = duration_field(L, 3, "grace"),
        .rollback_window = -1,
        .flight_bytes = KL_FLIGHT_OFF,
        .drop_managed_fields = dry == KL_DRY_NOT,
        .dry_run = dry,
        .election = election_of(L, 3, h->client),
        .metrics_address = lkl__field_text(L, 3, "metrics"),
        .health_address = lkl__field_text(L, 3, "health"),
        .changed = on_changed,
        .changed_arg = w};
    kl_err err = KL_ERR_INIT;
    if (kl_manager_new(&o, &w->m, &err))
        return lkl__fail(L, &err);
    w->hub = h;
    h->managed = true;
    lkl__guest_enter(h, &w->guest);
    lua_settop(L, 4);
    return 1;
}

/* --- scripts ------------------------------------------------------------------------------ */

static void program_free(void *p) { kl_program_unref(p); }
static const lkl_class program_class = {.name = "kubelua.program", .free = program_free};

/* Loads a script with those of the given params that it has. */
static kl_status load(
    const manager *w, const char *path, const char *text, size_t len, kl_program **out, kl_err *err)
{
    kl_program *p = NULL;
    kl_status st = text ? lkl_program_load_text(path, text, len, &p, err) : lkl_program_load(path, &p, err);
    if (!st && p->n_hooks)
        st = kl_fail(err, KL_EINVAL,
            "%s has webhooks: kubelua run serves them, kube.manager runs controllers alone", path);
    if (!st && w->params)
        st = kl_program_set_params(p, w->params, KL_PARAMS_VALUES, err);
    if (!st)
        st = kl_program_params_there(p, err);
    if (st)
        kl_program_unref(p);
    else
        *out = p;
    return st;
}

static kl_status know_params(const manager *w, kl_program *const *programs, size_t n, kl_err *err)
{
    char *near = NULL;
    const char *unknown = kl_programs_unknown_param(programs, n, w->params, &near);
    kl_status st = unknown
        ? kl_fail(err, KL_EINVAL, "params: no controller here has a param %s%s", unknown, near)
        : KL_OK;
    kl_free(near);
    return st;
}

static kl_status add_all(manager *w, kl_program *const *programs, const bool *files, size_t n, kl_err *err)
{
    kl_status st = w->params ? know_params(w, programs, n, err) : KL_OK;
    w->v = kl_new_array(script, n + 1);
    for (size_t i = 0; i < n && !st; i++) {
        script *s = &w->v[w->n];
        st = kl_manager_add(w->m, programs[i], &s->slot, err);
        if (st)
            continue;
        s->path = kl_strdup(programs[i]->name);
        s->file = files[i];
        s->digest = lkl_program_digest(programs[i]);
        w->n++;
    }
    return st;
}

/* m:add({ { path =, text = or nil }, ... }), once. */
static int add(lua_State *L)
{
    manager *w = running(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    size_t n = lua_rawlen(L, 2);
    luaL_checkstack(L, (int)n + 16, "controllers");
    kl_program **programs = lua_newuserdatauv(L, (n + 1) * sizeof *programs, 0);
    bool *files = lua_newuserdatauv(L, n + 1, 0);
    kl_err err = KL_ERR_INIT;
    for (size_t i = 0; i < n; i++) {
        lkl_box *box = lkl_box_new(L, &program_class, 0);
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        lua_getfield(L, -1, "path");
        lua_getfield(L, -2, "text");
        size_t len;
        const char *text = lua_tolstring(L, -1, &len);
        files[i] = !text;
        if (load(w, luaL_checkstring(L, -2), text, len, &programs[i], &err))
            return lkl__fail(L, &err);
        box->ptr = programs[i];
        lua_pop(L, 3);
    }
    return lkl__given(L, add_all(w, programs, files, n, &err), &err);
}

/* Pushes { script =, result =, message = } of a script that is loaded again. */
static void reload_one(lua_State *L, manager *w, script *s)
{
    kl_program *p = NULL;
    kl_err err = KL_ERR_INIT;
    kl_status st = load(w, s->path, NULL, 0, &p, &err);
    bool same = !st && lkl_program_digest(p) == s->digest;
    if (!st && !same)
        st = kl_manager_replace(w->m, s->slot, p, &err);
    if (!same)
        kl_manager_reloaded(w->m,
            &(kl_reload){.script = s->path,
                .result = st ? KL_RELOAD_REFUSED : KL_RELOAD_TAKEN,
                .message = st ? kl_err_message(&err) : NULL},
            NULL);
    if (!st)
        s->digest = lkl_program_digest(p);
    kl_program_unref(p);
    lua_createtable(L, 0, 3);
    lua_pushstring(L, s->path);
    lua_setfield(L, -2, "script");
    lua_pushstring(L, st ? "refused" : same ? "unchanged" : "taken");
    lua_setfield(L, -2, "result");
    if (st) {
        lkl__push_message(L, &err);
        lua_setfield(L, -2, "message");
    }
}

/* m:reload(): what became of each file */
static int reload(lua_State *L)
{
    manager *w = running(L);
    lua_createtable(L, (int)w->n, 0);
    for (size_t i = 0, k = 0; i < w->n; i++) {
        if (!w->v[i].file)
            continue;
        reload_one(L, w, &w->v[i]);
        lua_rawseti(L, -2, (lua_Integer)++k);
    }
    return 1;
}

/* --- life --------------------------------------------------------------------------------- */

static int start(lua_State *L)
{
    kl_err err = KL_ERR_INIT;
    return lkl__given(L, kl_manager_start(running(L)->m, &err), &err);
}

/* m:stop(): whether the manager has stopped; waits for that, one slice at most */
static int stop(lua_State *L)
{
    manager *w = self(L);
    if (w->m && !w->stopper)
        w->stopper = kl_thread_start("manager-stop", stop_there, w);
    if (w->stopper) {
        kl_time until = kl_clock_now(kl_clock_real()) + LKL_SLICE;
        kl_lock(&w->mu);
        while (!w->stopped && kl_cond_wait_until(&w->over, &w->mu, until))
            ;
        bool over = w->stopped;
        kl_unlock(&w->mu);
        if (!over) {
            lua_pushboolean(L, false);
            return 1;
        }
    }
    leave(&w->guest);
    lua_pushboolean(L, true);
    return 1;
}

/* m:changed(): whether its controllers may have changed since the last call */
static int changed(lua_State *L)
{
    lua_pushboolean(L, atomic_exchange(&self(L)->changed, false));
    return 1;
}

static int ready(lua_State *L)
{
    kl_manager *m = asked(L);
    lua_pushboolean(L, m && kl_manager_ready(m));
    return 1;
}

static int leading(lua_State *L)
{
    kl_manager *m = asked(L);
    lua_pushboolean(L, m && kl_manager_leading(m));
    return 1;
}

static int controllers(lua_State *L)
{
    lkl__push_states(L, asked(L));
    return 1;
}

static int metrics(lua_State *L)
{
    lkl__push_text(L, kl_manager_metrics(running(L)->m));
    return 1;
}

/* m:addresses(): the addresses of metrics and health, as bound; nil where there is none */
static int addresses(lua_State *L)
{
    kl_manager *m = running(L)->m;
    lua_pushstring(L, kl_manager_metrics_address(m));
    lua_pushstring(L, kl_manager_health_address(m));
    return 2;
}

static const luaL_Reg methods[] = {{"add", add}, {"reload", reload}, {"start", start}, {"stop", stop},
    {"changed", changed}, {"ready", ready}, {"leading", leading}, {"controllers", controllers},
    {"metrics", metrics}, {"addresses", addresses}, {NULL, NULL}};
static const lkl_class manager_class = {"kubelua.manager", manager_free, methods, NULL};

/* core.log_to_stderr(level): logs what the runtime and its scripts say, from that level on. It is a setting
 * of the process. */
static int log_to_stderr(lua_State *L)
{
    kl_log_level level;
    kl_err err = KL_ERR_INIT;
    if (kl_log_level_parse(luaL_checkstring(L, 1), &level, &err))
        return lkl__fail(L, &err);
    kl_log_set_level(level);
    kl_log_set_sink(kl_log_file_sink, NULL);
    return 0;
}

void lkl__open_manager(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"manager", new_manager}, {"log_to_stderr", log_to_stderr}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
