/* environment.c - what a script can see: its globals, its copies of Lua's libraries, and the functions that
 * replace Lua's own where those reach too far.
 *
 *   globals       the library's Lua files run in them; scripts never see them
 *   environment   the script's, with copies of the libraries
 *
 * In the environment, reading or writing a global that does not exist is an error: this finds the
 * commonest mistake in Lua at once. A script sees only the metatables that it set itself, and cannot
 * change a table that has another one. */
#include "state/environment.h"

#include <string.h>

#include <lualib.h>

#include "base/log.h"
#include "state/bounds.h"
#include "state/flaws.h"
#include "state/mend.h"
#include "state/require.h"
#include "state/scan.h"
#include "state/state.h"

static const char env_key, metatables_key;

void lkl__push_env(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &env_key); }

/* --- globals ------------------------------------------------------------------------------ */

/* Why a name that people expect does not exist here. */
static const char *missing(const char *name)
{
    static const struct {
        const char *name, *why;
    } known[] = {
        {"io", "scripts do no I/O: read objects with ctx, and log with ctx.log"},
        {"package", "modules come from the script's directory through require"},
        {"dofile", "use require: modules come from the script's directory"},
        {"loadfile", "use require: modules come from the script's directory"},
        {"loadstring", "use load(text)"},
        {"debug", "it would bypass the sandbox"},
        {"module", "a module returns a table"},
        {"setfenv", "Lua 5.4 has no setfenv"},
        {"unpack", "it is table.unpack"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name))
            return known[i].why;
    return NULL;
}

static int no_global(lua_State *L)
{
    const char *name = lkl__shown(L, 2, NULL), *why = missing(name);
    if (why)
        return lkl__error(L, "'%s' is not available to scripts: %s", name, why);
    return lkl__error(L, "undefined global '%s': declare it with `local`, or is it a typo?", name);
}

static int no_new_global(lua_State *L)
{
    return lkl__error(L,
        "assignment to undefined global '%s': write `local %s = ...` (globals would leak between keys)",
        lkl__shown(L, 2, NULL), lkl__shown(L, 2, NULL));
}

static int print_to_log(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    luaL_Buffer b;
    int n = lua_gettop(L);
    luaL_buffinit(L, &b);
    for (int i = 1; i <= n; i++) {
        if (i > 1)
            luaL_addchar(&b, '\t');
        lkl__shown(L, i, NULL);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    if (s->run)
        kl_run_log(s->run, KL_LOG_INFO, lua_tostring(L, -1));
    else
        kl_log(KL_LOG_INFO, lua_tostring(L, -1), "script=%s", s->bundle->sources[0].path);
    return 0;
}

/* --- metatables --------------------------------------------------------------------------- */

/* Whether the metatable on top of the stack is one that the script set. The weak keys of the table at upvalue
 * 1 are those metatables. */
static bool is_scripts_own(lua_State *L)
{
    lua_pushvalue(L, -1);
    bool own = lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL;
    lua_pop(L, 1);
    return own;
}

/* Whether the table at 1 has a metatable of the runtime: then the script may not change how it works. */
static bool is_runtimes(lua_State *L)
{
    if (!lua_getmetatable(L, 1))
        return false;
    bool own = is_scripts_own(L) || lkl__marked(L, 1) != LKL_FOREIGN;
    lua_pop(L, 1);
    return !own;
}

/* getmetatable(x): the metatable if the script made it; of any other its __metatable field, or false. */
static int get_metatable(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL || !lua_getmetatable(L, 1))
        lua_settop(L, 2); /* returns the __metatable field, or nil without a metatable */
    else if (!is_scripts_own(L))
        lua_pushboolean(L, false);
    return 1;
}

/* Raises when the metatable at 2 has a field that Lua handles wrongly. Such a field that is set later is
 * ignored (flaws.h). */
static void check_flaws(lua_State *L)
{
    for (const lkl_closed_field *f = lkl_flaws_fields; f->name; f++) {
        lua_pushstring(L, f->name);
        if (lua_rawget(L, 2) != LUA_TNIL)
            lkl__error(L, "a metatable of a script may not have %s: %s", f->name, f->why);
        lua_pop(L, 1);
    }
}

/* Finalisers run where no budget can stop them, so there are none. */
static int set_metatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    lua_settop(L, 2);
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            return lkl__error(L,
                "a metatable of a script may not have __gc: finalisers run out of order and cannot be "
                "stopped; use a <close> variable");
        lua_settop(L, 2);
        check_flaws(L);
    }
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL || is_runtimes(L))
        return luaL_error(L, "cannot change a protected metatable");
    lua_settop(L, 2);
    if (lua_istable(L, 2) && !is_scripts_own(L)) {
        lua_pushvalue(L, 2);
        lua_pushboolean(L, true);
        lua_rawset(L, lua_upvalueindex(1));
    }
    lua_setmetatable(L, 1);
    return 1;
}

static int raw_set(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    if (is_runtimes(L))
        return lkl__error(L, "rawset: this table belongs to kubelua and cannot be changed");
    lua_rawset(L, 1);
    return 1;
}

/* Pushes the table whose weak keys are the metatables that the script set. */
static void push_metatables(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &metatables_key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lkl__weaken(L, "k");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &metatables_key);
}

/* --- load --------------------------------------------------------------------------------- */

/* Compiling is C and takes time: the text is handed over in pieces, and each piece is counted. */
#define LOAD_PIECE 4096
typedef struct text_rest {
    const char *at;
    size_t n;
} text_rest;

static const char *next_piece(lua_State *L, void *arg, size_t *n)
{
    text_rest *rest = arg;
    const char *piece = rest->at;
    lkl_budget_spend(L, LKL_BUDGET_STEPS);
    *n = rest->n < LOAD_PIECE ? rest->n : LOAD_PIECE;
    rest->at += *n;
    rest->n -= *n;
    return piece;
}

/* load(text [, name [, mode [, env]]]): text only; without env, the script's own. */
static int load_text(lua_State *L)
{
    if (lua_isfunction(L, 1))
        return lkl__error(L, "load takes a string here, not a function");
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n), *name = luaL_optstring(L, 2, text);
    bool own_env = lua_gettop(L) >= 4;
    size_t line;
    const char *fault = lkl_scan(text, n, &line);
    if (fault) {
        luaL_pushfail(L);
        lua_pushfstring(L, "%s:%d: %s", lua_isnoneornil(L, 2) ? "load" : name, (int)line, fault);
        return 2;
    }
    if (lua_load(L, next_piece, &(text_rest){text, n}, name, "t")) {
        lkl_budget_check(L);
        luaL_pushfail(L);
        lua_insert(L, -2);
        return 2;
    }
    int wrong;
    fault = lkl_mend(L, name, &wrong);
    if (fault) {
        luaL_pushfail(L);
        lua_pushfstring(L, "%s:%d: %s", lua_isnoneornil(L, 2) ? "load" : name, wrong, fault);
        return 2;
    }
    if (own_env)
        lua_pushvalue(L, 4);
    else
        lkl__push_env(L);
    lua_setupvalue(L, -2, 1);
    return 1;
}

static int collect(lua_State *L)
{
    static const char *const options[] = {"count", "step", "collect", NULL};
    switch (luaL_checkoption(L, 1, "collect", options)) {
    case 0: lua_pushnumber(L, lua_gc(L, LUA_GCCOUNT) + lua_gc(L, LUA_GCCOUNTB) / 1024.0); return 1;
    case 1: lua_pushboolean(L, lua_gc(L, LUA_GCSTEP, 0)); return 1;
    default: lua_pushinteger(L, lua_gc(L, LUA_GCCOLLECT)); return 1;
    }
}

/* --- pcall and xpcall -------------------------------------------------------------------- */

/* Raises again what a script may not catch because it ends the key: a spent budget, whatever was raised
 * meanwhile, and a full state. A stack overflow may be caught. */
static void pass_on(lua_State *L, int status)
{
    lkl_budget_check(L);
    if (status == LUA_ERRMEM && !lkl__was_too_deep(L))
        lua_error(L);
}

static int pcall_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)ctx;
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L); /* the true that was pushed before, and the results */
    pass_on(L, status);
    lua_pushboolean(L, false);
    lua_insert(L, -2);
    return 2;
}

static int safe_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, true);
    lua_insert(L, 1);
    return pcall_done(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, pcall_done), 0);
}

/* The handler runs after unwinding, as a plain call: a loop in it can be stopped like any other code. */
static int xpcall_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)ctx;
    if (status == LUA_OK || status == LUA_YIELD) {
        lua_pushboolean(L, true);
        lua_replace(L, 1); /* f's place: {true, results...} */
        return lua_gettop(L);
    }
    pass_on(L, status);
    lua_pushvalue(L, 1); /* the handler */
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    lua_pushboolean(L, false);
    lua_insert(L, -2);
    return 2;
}

static int safe_xpcall(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 1);
    lua_copy(L, 2, 1);
    lua_replace(L, 2); /* handler, f, args... */
    return xpcall_done(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, xpcall_done), 0);
}

/* --- globals and environment ---------------------------------------------------------------- */

void lkl__push_copy(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    lua_newtable(L);
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
}

static void remove_names(lua_State *L, const char *const *names)
{
    for (; *names; names++) {
        lua_pushnil(L);
        lua_setfield(L, -2, *names);
    }
}

void lkl__open_globals(lua_State *L)
{
    static const luaL_Reg libs[] = {{LUA_GNAME, luaopen_base}, {LUA_TABLIBNAME, luaopen_table},
        {LUA_STRLIBNAME, luaopen_string}, {LUA_MATHLIBNAME, luaopen_math}, {LUA_UTF8LIBNAME, luaopen_utf8},
        {LUA_OSLIBNAME, luaopen_os}, {NULL, NULL}};
    static const char *const not_base[] = {"dofile", "loadfile", "load", "print", "collectgarbage", "warn",
        NULL},
                             *const not_string[] = {"dump", NULL},
                             *const not_os[] = {"execute", "exit", "getenv", "remove", "rename", "setlocale",
                                 "tmpname", NULL};
    static const luaL_Reg own[] = {{"pcall", safe_pcall}, {"xpcall", safe_xpcall}, {NULL, NULL}};
    for (const luaL_Reg *l = libs; l->name; l++) {
        luaL_requiref(L, l->name, l->func, 1);
        lua_pop(L, 1);
    }
    lua_pushglobaltable(L);
    remove_names(L, not_base);
    luaL_setfuncs(L, own, 0);
    lua_getfield(L, -1, "string");
    remove_names(L, not_string);
    lua_getfield(L, -2, "os");
    remove_names(L, not_os);
    lua_pop(L, 3);
    lkl_install_bounds(L);
    lkl_install_shown(L);
    lkl_install_nil_index(L);
}

/* Gives the script copies of the libraries: a script that changes its copy does not change the one that the
 * runtime calls. */
static void copy_libraries(lua_State *L)
{
    static const char *const names[] = {"string", "table", "math", "utf8", "os", NULL};
    for (const char *const *name = names; *name; name++) {
        lua_getglobal(L, *name);
        lkl__push_copy(L, -1);
        lua_setfield(L, -3, *name);
        lua_pop(L, 1);
    }
}

static void copy_functions(lua_State *L)
{
    static const char *const names[] = {"assert", "error", "ipairs", "next", "pairs", "pcall", "rawequal",
        "rawget", "rawlen", "select", "tonumber", "tostring", "type", "xpcall", "_VERSION", NULL};
    static const luaL_Reg own[] = {
        {"print", print_to_log}, {"load", load_text}, {"collectgarbage", collect}, {NULL, NULL}};
    static const luaL_Reg guarded[] = {
        {"getmetatable", get_metatable}, {"setmetatable", set_metatable}, {"rawset", raw_set}, {NULL, NULL}};
    for (const char *const *name = names; *name; name++) {
        lua_getglobal(L, *name);
        lua_setfield(L, -2, *name);
    }
    luaL_setfuncs(L, own, 0);
    push_metatables(L);
    luaL_setfuncs(L, guarded, 1);
}

/* Reading or writing a name that the environment does not have raises. */
static void guard_environment(lua_State *L)
{
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "_G");
    lua_createtable(L, 0, 3);
    lua_pushcfunction(L, no_global);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, no_new_global);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    push_metatables(L); /* counts as one that the script set */
    lua_pushvalue(L, -2);
    lua_pushboolean(L, true);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    lua_setmetatable(L, -2);
}

void lkl__open_environment(lua_State *L)
{
    lua_newtable(L);
    copy_functions(L);
    copy_libraries(L);
    lkl__push_require(L);
    lua_setfield(L, -2, "require");
    lkl__push_coroutines(L);
    lua_setfield(L, -2, "coroutine");
    guard_environment(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &env_key);
}
