/* lua.c - commands that are written in Lua. kubelua NAME runs the embedded module kubelua.cli.NAME, which
 * returns
 *
 *   { options = { { "--selector", "SELECTOR", "what it is for", type = "string", brief = "-l" }, ... },
 *     run = function(env) ... return status end }
 *
 * (values = "plain json": what may stand there; { heading = "..." } stands over those that follow;
 * no_cluster = true: it takes no options that say which cluster) with type string, flag, count, duration
 * (seconds), list or maybe. env.options has what was given (selector = ..., dashes are underscores),
 * env.words the words, env.connect what kube.connect takes, env.tty whether a person reads, env.tty_err
 * whether one reads stderr. A raised structured error, or a raised text, is the command's message and its
 * status 1; { usage = "..." } is a mistake on the command line and 2. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lualib.h>

#include "state/flaws.h"
#include "state/lkl.h"
#include "script/program.h"
#include "base/mem.h"
#include "base/packed.h"
#include "base/version.h"
#include "cli/check.h"
#include "cli/cli.h"
#include "cli/control.h"
#include "terminal/converse.h"
#include "terminal/shell.h"

#define OWN_MAX 32

typedef union any {
    const char *text;
    bool flag;
    long count;
    kl_time duration;
    cli_list list;
} any;

typedef struct invocation {
    const cli_command *command;
    int argc;
    char **argv;
    cli_cluster cluster;
    size_t n_cluster, n_own;
    cli_option options[CLI_CLUSTER_MAX + OWN_MAX + 3]; /* the command's own, --log-level, and the cluster's
                                                          with their heading */
    cli_option *of_cluster;                            /* the cluster's options among them */
    any own[OWN_MAX];
    cli_list words;
    const char *level;
    int code;
} invocation;

static const char *const type_names[] = {"string", "flag", "count", "duration", "list", "maybe", NULL};
static const cli_type types[] = {CLI_STRING, CLI_FLAG, CLI_COUNT, CLI_DURATION, CLI_LIST, CLI_MAYBE};

/* Strings of the module's table live as long as the module does. */
static const char *field(lua_State *L, int idx, lua_Integer i, const char *name)
{
    if (name)
        lua_getfield(L, idx, name);
    else
        lua_rawgeti(L, idx, i);
    const char *s = lua_tostring(L, -1);
    lua_pop(L, 1);
    return s;
}

static void read_options(lua_State *L, invocation *v, int module)
{
    lua_getfield(L, module, "options");
    lua_Integer n = lua_istable(L, -1) ? luaL_len(L, -1) : 0;
    if (n > OWN_MAX)
        luaL_error(L, "kubelua %s has more options than there is room for", v->command->name);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, i);
        int t = lua_gettop(L);
        const char *heading = field(L, t, 0, "heading");
        if (heading) {
            v->options[v->n_own++] = (cli_option)CLI_HEADING(heading);
            lua_pop(L, 1);
            continue;
        }
        const char *type = field(L, t, 0, "type"), *arg = field(L, t, 2, NULL);
        size_t k = 0;
        while (type && type_names[k] && strcmp(type_names[k], type))
            k++;
        v->options[v->n_own] = (cli_option){field(L, t, 1, NULL), arg && *arg ? arg : NULL,
            field(L, t, 3, NULL), type_names[k] ? types[k] : CLI_STRING, &v->own[v->n_own],
            field(L, t, 0, "brief"), field(L, t, 0, "values")};
        if (v->options[v->n_own].type == CLI_COUNT || v->options[v->n_own].type == CLI_DURATION)
            v->own[v->n_own].count = -1;
        v->n_own++;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    cli_option *next = v->options + v->n_own;
    lua_getfield(L, module, "no_cluster");
    v->level = "warn";
    *next++ = (cli_option){"--log-level", "LEVEL", "debug, info, warn, error or off (warn)", CLI_STRING,
        &v->level, NULL, CLI_LEVELS};
    if (!lua_toboolean(L, -1)) {
        *next++ = (cli_option)CLI_HEADING(CLI_CLUSTER_HEADING);
        v->of_cluster = next;
        v->n_cluster = cli_cluster_options(&v->cluster, next);
    }
    lua_pop(L, 1);
    next += v->n_cluster;
    *next = (cli_option){0};
}

static void push_list(lua_State *L, const cli_list *l)
{
    lua_createtable(L, (int)l->n, 0);
    for (size_t i = 0; i < l->n; i++) {
        lua_pushstring(L, l->v[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* The value of an option, or nil when it was not given. */
static void push_value(lua_State *L, const cli_option *o)
{
    switch (o->type) {
    case CLI_FLAG:
        if (*(bool *)o->out)
            lua_pushboolean(L, true);
        else
            lua_pushnil(L);
        break;
    case CLI_COUNT:
        if (*(long *)o->out >= 0)
            lua_pushinteger(L, *(long *)o->out);
        else
            lua_pushnil(L);
        break;
    case CLI_DURATION:
        if (*(kl_time *)o->out >= 0)
            lua_pushnumber(L, (double)*(kl_time *)o->out / 1e9);
        else
            lua_pushnil(L);
        break;
    case CLI_LIST:
        if (((cli_list *)o->out)->n)
            push_list(L, o->out);
        else
            lua_pushnil(L);
        break;
    default: lua_pushstring(L, *(const char **)o->out);
    }
}

/* env.absolute(path): relative to the present directory, which the variable PWD may not name. */
static int absolute(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    char *here = *path == '/' ? NULL : realpath(".", NULL);
    if (here)
        lua_pushfstring(L, "%s/%s", here, path);
    else
        lua_settop(L, 1);
    free(here);
    return 1;
}

/* env.make_dir(path, private): makes the directory and those above it, readable by the owner alone if
 * private; an existing one is fine. true, or nil and why */
static int make_dir(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    mode_t mode = lua_toboolean(L, 2) ? 0700 : 0777;
    for (const char *p = path; *path; p++) {
        if (p > path && (!*p || *p == '/')) {
            lua_pushlstring(L, path, (size_t)(p - path));
            if (mkdir(lua_tostring(L, -1), mode) && errno != EEXIST) {
                lua_pushnil(L);
                lua_pushfstring(L, "cannot make the directory %s: %s", lua_tostring(L, -2), strerror(errno));
                return 2;
            }
            lua_pop(L, 1);
        }
        if (!*p)
            break;
    }
    lua_pushboolean(L, true);
    return 1;
}

/* env.controllers(path): the controllers of a script, loaded as `run` would: a list of { name, manager,
 * resource, finalizer or nil }, and one of its webhooks: { name, mutating, converts }; or nil and why it does
 * not load. */
static int controllers(lua_State *L)
{
    kl_program *p = NULL;
    kl_err err = KL_ERR_INIT;
    if (lkl_program_load(luaL_checkstring(L, 1), &p, &err)) {
        lua_pushnil(L);
        lua_pushstring(L, kl_err_message(&err));
        kl_err_fini(&err);
        return 2;
    }
    lua_createtable(L, (int)p->n_specs, 0);
    for (size_t i = 0; i < p->n_specs; i++) {
        const kl_controller_spec *c = &p->specs[i];
        lua_createtable(L, 0, 4);
        lua_pushstring(L, c->name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, kl_controller_spec_manager(c));
        lua_setfield(L, -2, "manager");
        lua_pushstring(L, c->resource);
        lua_setfield(L, -2, "resource");
        lua_pushstring(L, c->finalizer);
        lua_setfield(L, -2, "finalizer");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_createtable(L, (int)p->n_hooks, 0);
    for (size_t i = 0; i < p->n_hooks; i++) {
        lua_createtable(L, 0, 3);
        lua_pushstring(L, p->hooks[i].as.name);
        lua_setfield(L, -2, "name");
        lua_pushboolean(L, p->hooks[i].mutating);
        lua_setfield(L, -2, "mutating");
        lua_pushboolean(L, p->hooks[i].converts);
        lua_setfield(L, -2, "converts");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    kl_program_unref(p);
    return 2;
}

extern const kl_packed cli_annotations;

/* env.annotations(): the annotated library, as bindings/annotations.lua packs it. */
static int annotations(lua_State *L)
{
    char *text = kl_packed_text(&cli_annotations);
    lua_pushlstring(L, text, cli_annotations.plain);
    kl_free(text);
    return 1;
}

/* Pushes the version of Lua that runs scripts, and what is known of it. */
static void push_interpreter(lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_pushliteral(L, LUA_VERSION_MAJOR "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE);
    lua_setfield(L, -2, "version");
    lua_newtable(L);
    for (const lkl_flaw *f = lkl_flaws; f->what; f++) {
        lua_createtable(L, 0, 3);
        lua_pushstring(L, f->what);
        lua_setfield(L, -2, "bug");
        lua_pushstring(L, f->mended);
        lua_setfield(L, -2, "mended");
        lua_pushstring(L, f->answer);
        lua_setfield(L, -2, "here");
        lua_rawseti(L, -2, f - lkl_flaws + 1);
    }
    lua_setfield(L, -2, "bugs");
}

static void push_env(lua_State *L, invocation *v)
{
    lua_newtable(L);
    lua_newtable(L);
    for (size_t i = 0; i < v->n_own; i++) {
        if (!*v->options[i].name)
            continue;
        char key[64];
        snprintf(key, sizeof key, "%s", v->options[i].name + 2);
        for (char *p = key; *p; p++)
            if (*p == '-')
                *p = '_';
        push_value(L, &v->options[i]);
        lua_setfield(L, -2, key);
    }
    lua_setfield(L, -2, "options");
    lua_newtable(L);
    for (size_t i = 0; i < v->n_cluster; i++) {
        push_value(L, &v->of_cluster[i]);
        lua_setfield(L, -2, cli_cluster_key(i));
    }
    lua_setfield(L, -2, "connect");
    push_list(L, &v->words);
    lua_setfield(L, -2, "words");
    lua_pushboolean(L, isatty(1));
    lua_setfield(L, -2, "tty");
    lua_pushboolean(L, isatty(2));
    lua_setfield(L, -2, "tty_err");
    lua_pushboolean(L, isatty(0) && isatty(1));
    lua_setfield(L, -2, "interactive");
    lua_pushstring(L, v->command->name);
    lua_setfield(L, -2, "command");
    lua_pushliteral(L, KL_VERSION);
    lua_setfield(L, -2, "version");
    push_interpreter(L);
    lua_setfield(L, -2, "lua");
    cli_shell_push(L);
    lua_setfield(L, -2, "terminal");
    lua_pushcfunction(L, make_dir);
    lua_setfield(L, -2, "make_dir");
    lua_pushcfunction(L, absolute);
    lua_setfield(L, -2, "absolute");
    lua_pushcfunction(L, annotations);
    lua_setfield(L, -2, "annotations");
    lua_pushcfunction(L, controllers);
    lua_setfield(L, -2, "controllers");
    cli_check_push(L);
    lua_setfield(L, -2, "programs");
    cli_control_push(L);
    lua_setfield(L, -2, "control");
    lua_pushcfunction(L, cli_converse);
    lua_setfield(L, -2, "converse");
}

/* Structured errors stay as they are; in an error text of our own modules the position is for developers. */
static int on_error(lua_State *L)
{
    if (lkl_is_error(L, 1) || lua_istable(L, 1))
        return 1;
    const char *text = luaL_tolstring(L, 1, NULL);
    if (getenv("KUBELUA_TRACEBACK"))
        luaL_traceback(L, L, text, 1);
    return 1;
}

/* "kubelua/cli/get.lua:12: message" */
static const char *without_position(const char *text)
{
    while (!strncmp(text, "kubelua/", 8)) {
        const char *p = strchr(text, ':');
        size_t digits = p ? strspn(p + 1, "0123456789") : 0;
        if (!digits || strncmp(p + 1 + digits, ": ", 2))
            break;
        text = p + 1 + digits + 2;
    }
    return text;
}

static int tell(lua_State *L, invocation *v)
{
    if (lua_istable(L, -1) && !lkl_is_error(L, -1)) {
        const char *usage = field(L, lua_gettop(L), 0, "usage");
        if (usage) {
            cli_fail(2, v->command->name, "%s", usage);
            fprintf(stderr, "(kubelua %s --help lists the options)\n", v->command->name);
            return 2;
        }
    }
    return cli_fail(1, v->command->name, "%s", without_position(luaL_tolstring(L, -1, NULL)));
}

/* Output contains texts of scripts and servers: their escape codes must not reach a terminal. */
static void guard(lua_State *L)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "kubelua.cli.common");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "guard");
    lua_call(L, 0, 0);
    lua_pop(L, 1);
}

static int run(lua_State *L)
{
    invocation *v = lua_touserdata(L, 1);
    lua_settop(L, 0);
    luaL_openlibs(L);
    luaL_requiref(L, "kubelua.core", luaopen_kubelua_core, 0);
    lua_settop(L, 0);
    lkl_preload_embedded(L);
    lua_pushcfunction(L, on_error);
    lua_getglobal(L, "require");
    lua_pushfstring(L, "kubelua.cli.%s", v->command->name);
    lua_call(L, 1, 1);
    int module = lua_gettop(L);
    read_options(L, v, module);
    cli_parse(v->command, v->options, v->argc, v->argv, &v->words);
    if (!cli_log(v->command->name, v->level, NULL)) {
        v->code = 2;
        return 0;
    }
    if (isatty(1))
        guard(L);
    lua_getfield(L, module, "run");
    push_env(L, v);
    if (lua_pcall(L, 1, 1, 1))
        v->code = tell(L, v);
    else if (lua_isinteger(L, -1))
        v->code = (int)lua_tointeger(L, -1);
    return 0;
}

int cli_lua(int argc, char **argv)
{
    /* A reader that closes our output early ends us, as any other tool. */
    signal(SIGPIPE, SIG_DFL);
    invocation v = {.command = cli_command_named(argv[0]), .argc = argc, .argv = argv};
    lua_State *L = luaL_newstate();
    if (!L)
        kl_mem_die("a Lua state");
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, &v);
    if (lua_pcall(L, 1, 0, 0))
        v.code = cli_fail(1, v.command->name, "%s", lua_tostring(L, -1));
    lua_close(L);
    for (size_t i = 0; i < v.n_own; i++)
        if (v.options[i].type == CLI_LIST)
            kl_free(v.own[i].list.v);
    cli_cluster_free(&v.cluster);
    kl_free(v.words.v);
    if ((fflush(stdout) || ferror(stdout)) && !v.code)
        v.code = cli_fail(1, v.command->name, "cannot write the output: %s", strerror(errno));
    return v.code;
}
