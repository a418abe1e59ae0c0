/* play.c - the thread and state of `--play`. */
#include "cli/play.h"

#include <stdio.h>
#include <unistd.h>

#include <lualib.h>

#include "state/lkl.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

/* How long a play may go on after a signal, before it is ended; and how often that is looked at. */
#define END_WITHIN KL_SECONDS(2)
#define LOOK_EVERY 100000 /* instructions of Lua */

struct cli_play {
    char *path, *server;
    kl_manager *m;
    const cli_list *scripts;
    kl_thread *thread;
    kl_mutex mu;
    kl_cond cond;
    bool stopping KL_GUARDED_BY(mu), over KL_GUARDED_BY(mu);
    kl_time end_at KL_GUARDED_BY(mu); /* when stopping */
    int code KL_GUARDED_BY(mu);
};

static cli_play *self(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

static int dev_idle(lua_State *L)
{
    lua_pushboolean(L, kl_manager_idle(self(L)->m));
    return 1;
}

static void field_string(lua_State *L, const char *k, const char *v)
{
    lua_pushstring(L, v);
    lua_setfield(L, -2, k);
}

static void field_integer(lua_State *L, const char *k, lua_Integer v)
{
    lua_pushinteger(L, v);
    lua_setfield(L, -2, k);
}

static int dev_controllers(lua_State *L)
{
    kl_controller_state *v;
    size_t n = kl_manager_controllers(self(L)->m, &v);
    lua_createtable(L, (int)n, 0); /* not a script's state: running out of memory ends the process */
    for (size_t i = 0; i < n; i++) {
        lua_createtable(L, 0, 8);
        field_string(L, "name", v[i].name);
        field_string(L, "state", v[i].state);
        field_string(L, "message", v[i].message);
        field_integer(L, "generation", v[i].generation);
        field_integer(L, "ready", (lua_Integer)v[i].ready);
        field_integer(L, "running", (lua_Integer)v[i].running);
        field_integer(L, "runs", (lua_Integer)v[i].runs);
        field_integer(L, "errors", (lua_Integer)v[i].errors);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    kl_controller_states_free(v, n);
    return 1;
}

/* The outcome of reloads, the latest first. */
static int dev_reloads(lua_State *L)
{
    const kl_value *v = kl_reloads_value(kl_manager_reloads(self(L)->m));
    lua_createtable(L, (int)kl_value_len(v), 0);
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const kl_value *r = kl_value_item(v, i);
        lua_createtable(L, 0, 3);
        field_string(L, "script", kl_value_str_at(r, "script", NULL));
        field_string(L, "result", kl_value_str_at(r, "result", NULL));
        field_string(L, "message", kl_value_str_at(r, "message", NULL));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    kl_value_unref(v);
    return 1;
}

static int dev_wait(lua_State *L)
{
    cli_play *p = self(L);
    kl_time until = kl_clock_now(kl_clock_real()) + (kl_time)(luaL_checknumber(L, 1) * 1e9);
    kl_lock(&p->mu);
    while (!p->stopping && kl_cond_wait_until(&p->cond, &p->mu, until))
        ;
    lua_pushboolean(L, !p->stopping);
    kl_unlock(&p->mu);
    return 1;
}

static bool must_end(cli_play *p)
{
    kl_lock(&p->mu);
    bool must = p->stopping && kl_clock_now(kl_clock_real()) >= p->end_at;
    kl_unlock(&p->mu);
    return must;
}

/* Ends a play that neither returns nor waits. From then on each instruction fails, also those after a
 * pcall. */
static void look(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_rawgetp(L, LUA_REGISTRYINDEX, (const void *)look);
    cli_play *p = lua_touserdata(L, -1);
    lua_pop(L, 1);
    if (!must_end(p))
        return;
    lua_sethook(L, look, LUA_MASKCOUNT, 1);
    luaL_error(L, "the process must stop");
}

static void push_dev(lua_State *L, cli_play *p)
{
    static const luaL_Reg functions[] = {{"idle", dev_idle}, {"controllers", dev_controllers},
        {"reloads", dev_reloads}, {"wait", dev_wait}, {NULL, NULL}};
    lua_newtable(L);
    lua_pushlightuserdata(L, p);
    luaL_setfuncs(L, functions, 1);
    field_string(L, "server", p->server);
    lua_pushboolean(L, isatty(1));
    lua_setfield(L, -2, "tty");
    lua_createtable(L, (int)p->scripts->n, 0);
    for (size_t i = 0; i < p->scripts->n; i++) {
        lua_pushstring(L, p->scripts->v[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "scripts");
}

static int traceback(lua_State *L)
{
    luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
    return 1;
}

/* Modules beside the file take precedence. */
static void set_path(lua_State *L, const char *path)
{
    const char *slash = NULL;
    for (const char *c = path; *c; c++)
        if (*c == '/')
            slash = c;
    lua_getglobal(L, "package");
    lua_getfield(L, 1, "path");
    if (slash)
        lua_pushlstring(L, path, (size_t)(slash - path));
    else
        lua_pushliteral(L, ".");
    lua_pushfstring(L, "%s/?.lua;%s", lua_tostring(L, 3), lua_tostring(L, 2));
    lua_setfield(L, 1, "path");
    lua_settop(L, 0);
}

static int play(lua_State *L)
{
    cli_play *p = lua_touserdata(L, 1);
    lua_settop(L, 0);
    luaL_openlibs(L);
    luaL_requiref(L, "kubelua.core", luaopen_kubelua_core, 0);
    lua_settop(L, 0);
    lkl_preload_embedded(L);
    lua_settop(L, 0);
    set_path(L, p->path);
    push_dev(L, p);
    lua_setglobal(L, "dev");
    lua_pushlightuserdata(L, p);
    lua_rawsetp(L, LUA_REGISTRYINDEX, (const void *)look);
    lua_sethook(L, look, LUA_MASKCOUNT, LOOK_EVERY);
    lua_pushcfunction(L, traceback);
    int code = 0;
    if (luaL_loadfilex(L, p->path, "t") || lua_pcall(L, 0, 1, 1)) {
        if (must_end(p))
            kl_warn("the play did not end by itself", "play=%s", p->path);
        else
            code = cli_fail(1, "dev", "%s", lua_tostring(L, -1));
    } else if (lua_isinteger(L, -1)) {
        code = (int)lua_tointeger(L, -1);
    }
    lua_pushinteger(L, code);
    return 1;
}

static void play_main(void *arg)
{
    cli_play *p = arg;
    int code = 1;
    lua_State *L = luaL_newstate();
    if (L) {
        lua_pushcfunction(L, play);
        lua_pushlightuserdata(L, p);
        if (!lua_pcall(L, 1, 1, 0))
            code = (int)lua_tointeger(L, -1);
        else
            cli_fail(1, "dev", "%s", lua_tostring(L, -1));
        lua_close(L);
    }
    kl_lock(&p->mu);
    p->over = true;
    p->code = code;
    kl_unlock(&p->mu);
    cli_poke();
}

cli_play *cli_play_start(const char *path, kl_manager *m, const char *server, const cli_list *scripts)
{
    cli_play *p = kl_new(cli_play);
    p->path = kl_strdup(path);
    p->server = kl_strdup(server);
    p->m = m;
    p->scripts = scripts;
    kl_mutex_init(&p->mu);
    kl_cond_init(&p->cond);
    p->thread = kl_thread_start("kl-play", play_main, p);
    return p;
}

bool cli_play_over(cli_play *p, int *code)
{
    kl_lock(&p->mu);
    bool over = p->over;
    if (over)
        *code = p->code;
    kl_unlock(&p->mu);
    return over;
}

void cli_play_stop(cli_play *p)
{
    if (!p)
        return;
    kl_lock(&p->mu);
    p->stopping = true;
    p->end_at = kl_clock_now(kl_clock_real()) + END_WITHIN;
    kl_cond_broadcast(&p->cond);
    kl_unlock(&p->mu);
    kl_thread_join(p->thread);
    kl_cond_fini(&p->cond);
    kl_mutex_fini(&p->mu);
    kl_free(p->path);
    kl_free(p->server);
    kl_free(p);
}
