/* walk.c - what is in a script's state, seen from outside: every function and every bare pointer that can
 * be come by from anywhere in it.
 *
 *   walk [--plant] WALKER.lua SCRIPT.lua FILE...
 *
 * SCRIPT runs as in a test, against an API server of its own that holds the objects of the FILEs. Whenever
 * it says print "walk PHASE" the walker (spec/support/walker.lua) goes through the state under way, on the
 * coroutine that runs, with the real `debug`. What it finds goes to standard output: `PHASE KIND NAME` a
 * line. With --plant something hides in the state that does not belong there, behind a metatable and two
 * upvalues. */
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/program.h"
#include "script/stage.h"
#include "state/state.h"
#include "base/log.h"
#include "base/mem.h"

#define WALK "walk "

static const char *walker;
static bool planting;

static int planted(lua_State *L)
{
    (void)L;
    return 0;
}

/* In the user value of a userdata that a closure holds, which is in the metatable of a table of the
 * globals. */
static void plant(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    lua_newuserdatauv(L, 1, 1);
    lua_pushcfunction(L, planted);
    lua_setiuservalue(L, -2, 1);
    lua_pushcclosure(L, planted, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_setglobal(L, "innocent");
}

/* Lua remembers texts of C by their address, in 53 places of two: whichever place it is looked for in, an
 * empty text is empty. */
static void check_empty(lua_State *L)
{
    static const char zeros[64];
    for (size_t i = 0; i < sizeof zeros; i++) {
        lua_pushstring(L, zeros + i);
        if (lua_rawlen(L, -1)) {
            fprintf(stderr, "walk: an empty text has %d bytes\n", (int)lua_rawlen(L, -1));
            exit(1);
        }
        lua_pop(L, 1);
    }
}

/* walker(debug, phase, what runs, its own coroutine) -> text. The state counts for nothing meanwhile:
 * neither memory nor time. */
static void walk(lkl_state *s, const char *phase)
{
    lua_State *L = atomic_load(&s->budget.running);
    bool counted = s->ceiling.on;
    s->ceiling.on = false;
    lua_sethook(L, NULL, 0, 0);
    check_empty(L);
    if (planting)
        plant(L);
    /* of its own: the walker's stack is not part of what it sees */
    lua_State *co = lua_newthread(L);
    if (luaL_loadfile(co, walker)) {
        fprintf(stderr, "walk: %s\n", lua_tostring(co, -1));
    } else {
        luaopen_debug(co);
        lua_pushstring(co, phase);
        lua_pushthread(L);
        lua_xmove(L, co, 1);
        lua_pushthread(co);
        if (lua_pcall(co, 4, 1, 0))
            fprintf(stderr, "walk: %s\n", lua_tostring(co, -1));
        else
            fputs(lua_tostring(co, -1), stdout);
    }
    fflush(stdout);
    lua_pop(L, 1);
    lkl_budget_clean(s, L);
    s->ceiling.on = counted;
}

static void sink(void *arg, kl_log_level level, const char *message, const char *fields)
{
    (void)arg;
    lkl_state *s = lkl_budget_here();
    if (s && !strncmp(message, WALK, strlen(WALK)))
        walk(s, message + strlen(WALK));
    else if (level >= KL_LOG_WARN)
        fprintf(stderr, "%s %s\n", message, fields);
}

static kl_status run(const char *script, char **files, int n, kl_err *err)
{
    lkl_stage *stage = NULL;
    kl_program *program = NULL;
    kl_status st = lkl__stage_new(KL_SECONDS(1767225600), &stage, err);
    for (int i = 0; !st && i < n; i++)
        st = kl_server_load_path(stage->server, files[i], &(size_t){0}, err);
    if (!st)
        st = lkl_program_load(script, &program, err);
    if (!st)
        st = lkl__stage_start(stage, &program, 1, NULL, err);
    if (!st)
        st = lkl__stage_rest(stage, KL_SECONDS(600), err);
    kl_program_unref(program);
    if (stage)
        lkl__stage_free(stage);
    return st;
}

int main(int argc, char **argv)
{
    planting = argc > 1 && !strcmp(argv[1], "--plant");
    argv += planting;
    argc -= planting;
    if (argc < 3) {
        fprintf(stderr, "usage: walk [--plant] WALKER.lua SCRIPT.lua FILE...\n");
        return 2;
    }
    walker = argv[1];
    kl_log_set_level(KL_LOG_INFO);
    kl_log_set_sink(sink, NULL);
    kl_err err = KL_ERR_INIT;
    kl_status st = run(argv[2], argv + 3, argc - 3, &err);
    if (st)
        fprintf(stderr, "walk: %s\n", kl_err_message(&err));
    kl_err_fini(&err);
    return st ? 1 : 0;
}
