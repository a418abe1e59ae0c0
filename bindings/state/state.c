/* state.c - a script's state: what the script can see, how its modules are found, and its load.
 *
 * The state is a closed set: nothing that is reachable in it touches files, processes or the network. The API
 * is reached through ctx, while a key is reconciled. spec/bindings/closed_spec.lua walks through everything
 * reachable and knows it by name.
 *
 *   globals       the library's Lua files run in them; scripts never see them
 *   environment   the script's, with copies of the libraries
 *
 * In the environment, reading or writing a global that does not exist is an error: this finds the
 * commonest mistake in Lua at once. A script sees only the metatables that it set itself, and cannot
 * change a table that has another one. */
#include "state/state.h"

#include <stdio.h>
#include <string.h>

#include <lualib.h>

#include "base/log.h"
#include "base/mem.h"
#include "state/bounds.h"
#include "state/depth.h"
#include "state/flaws.h"
#include "state/mend.h"
#include "state/scan.h"

/* The processor time for a load, which runs a script's top level: tables and functions, milliseconds. The
 * wall clock limits it too, for a machine that has no processor to give. */
static _Atomic kl_time load_max = KL_SECONDS(2);
#define LOAD_WALL_MAX KL_SECONDS(60)

static const char env_key, loaded_key, library_key, metatables_key, script_key, controllers_key;

/* The word beside each coroutine: the address of its state, and in the lowest bits its tags (lkl_tag). A new
 * coroutine copies the main thread's. */
static uintptr_t *word(lua_State *L) { return lua_getextraspace(L); }

lkl_state *lkl_state_of(lua_State *L)
{
    return (lkl_state *)(*word(L) & ~(uintptr_t)LKL_TAGS); /* NOLINT(performance-no-int-to-ptr) */
}

void lkl__tag(lua_State *co, lkl_tag tag, bool on)
{
    *word(co) = on ? *word(co) | tag : *word(co) & ~(uintptr_t)tag;
}

bool lkl__has_tag(lua_State *co, lkl_tag tag) { return *word(co) & tag; }

bool lkl__is_key(lua_State *L) { return lkl__has_tag(L, LKL_TAG_KEY) || L == lkl_state_of(L)->L; }

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
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
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
        lua_rawgetp(L, LUA_REGISTRYINDEX, &env_key);
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

bool lkl__was_too_deep(lua_State *L)
{
    char *text = lkl_ceiling_tell_other(&lkl_state_of(L)->ceiling);
    if (!text)
        return false;
    char copy[256]; /* Lua may have no memory for a copy of its own */
    snprintf(copy, sizeof copy, "%s", text);
    kl_free(text);
    lua_pop(L, 1);
    lua_pushstring(L, copy);
    return true;
}

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

/* --- modules ------------------------------------------------------------------------------ */

static void push_env(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &env_key); }

/* `return kube.controller { ... }` is a tail call: its frame, and with it the line that a message should
 * name, would be gone. A block with a variable to be closed has no tail calls, so the script's own block
 * begins with one. */
static const char NO_TAIL_CALLS[] = "local _ <close> = nil ";

/* The text goes to the parser line by line, so the line is known when the parser's message has none. */
typedef struct chunk_parts {
    const lkl_source *source;
    bool begun;
    const char *at;
    size_t left;
    int line;
} chunk_parts;

static const char *next_part(lua_State *L, void *arg, size_t *n)
{
    (void)L;
    chunk_parts *p = arg;
    bool first = !p->begun;
    p->begun = true;
    if (first)
        p->at = lkl_source_code(p->source, &p->left);
    if (first && !*p->source->module) {
        *n = sizeof NO_TAIL_CALLS - 1;
        return NO_TAIL_CALLS;
    }
    const char *line = p->at;
    const char *newline = p->left ? memchr(line, '\n', p->left) : NULL;
    *n = newline ? (size_t)(newline - line) + 1 : p->left;
    p->at += *n;
    p->left -= *n;
    p->line++;
    return *n ? line : NULL;
}

/* Compiles a source with the script's environment; raises a syntax error. */
static void push_chunk(lua_State *L, const lkl_source *s)
{
    chunk_parts parts = {.source = s};
    size_t line;
    const char *fault = lkl_scan(s->text, s->len, &line);
    if (fault)
        luaL_error(L, "%s:%d: %s", s->path, (int)line, fault);
    lua_pushfstring(L, "@%s", s->path);
    int st = lua_load(L, next_part, &parts, lua_tostring(L, -1), "t");
    if (st == LUA_ERRRUN) /* the parser's own stack is used up: this message has no position */
        lua_pushfstring(L, "%s:%d: nested too deep: %s", s->path, parts.line, lua_tostring(L, -1));
    if (st)
        lua_error(L);
    int wrong;
    fault = lkl_mend(L, lua_tostring(L, -2), &wrong);
    if (fault)
        luaL_error(L, "%s:%d: %s", s->path, wrong, fault);
    lua_remove(L, -2);
    push_env(L);
    lua_setupvalue(L, -2, 1);
}

static const lkl_source *module_source(lua_State *L, const char *name)
{
    lkl_state *s = lkl_state_of(L);
    const lkl_source *src = lkl_bundle_find(s->bundle, name);
    if (src)
        return src;
    if (!s->loading) {
        lkl__error(L,
            "module \"%s\" was not required while the script loaded: require it at the top of the script, so "
            "that it is part of the generation",
            name);
        return NULL;
    }
    kl_err err = KL_ERR_INIT;
    if (lkl_bundle_read(s->bundle, name, &src, &err))
        lkl__fail(L, &err);
    return src;
}

static bool is_ours(const char *name) { return !strcmp(name, "kubelua") || !strncmp(name, "kubelua.", 8); }

static bool is_in(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names))
        names++;
    return *names != NULL;
}

/* Scripts may require these modules; the rest of the library is internal. */
static bool is_public(const char *name)
{
    static const char *const names[] = {"kubelua", "kubelua.object", "kubelua.quantity",
        "kubelua.koordinator", "kubelua.kubernetes", "kubelua.typed", NULL};
    return is_in(name, names);
}

static bool begins_with(const char *s, const char *prefix) { return !strncmp(s, prefix, strlen(prefix)); }

/* The library's files that scripts' states contain. The others, which reach further, are for programs and the
 * command line. */
static bool is_for_scripts(const char *name)
{
    static const char *const names[] = {"kubelua.adopt", "kubelua.checks", "kubelua.claim", "kubelua.client",
        "kubelua.clock", "kubelua.compute", "kubelua.conditions", "kubelua.context", "kubelua.controller",
        "kubelua.conversion", "kubelua.crd", "kubelua.crd_schema", "kubelua.discovery", "kubelua.drain",
        "kubelua.edit", "kubelua.extract", "kubelua.fields", "kubelua.finalizer", "kubelua.helpers",
        "kubelua.http", "kubelua.kinds", "kubelua.metrics", "kubelua.news", "kubelua.options",
        "kubelua.owner", "kubelua.pager", "kubelua.patch", "kubelua.peer", "kubelua.request",
        "kubelua.params", "kubelua.result", "kubelua.saying", "kubelua.scheduling", "kubelua.script",
        "kubelua.shared", "kubelua.suggest", "kubelua.tables", "kubelua.upsert", "kubelua.verbs",
        "kubelua.wait", "kubelua.webhook", NULL};
    return is_public(name) || is_in(name, names) || begins_with(name, "kubelua.koordinator.")
        || begins_with(name, "kubelua.kubernetes.");
}

/* require of the library's own files. Upvalue: what is loaded. */
static int library_require(lua_State *L)
{
    const char *name = lkl__text(L, 1);
    lua_settop(L, 1);
    if (lua_getfield(L, lua_upvalueindex(1), name) != LUA_TNIL)
        return 1;
    if (!is_for_scripts(name) || !lkl__push_embedded(L, name))
        return lkl__error(
            L, "module \"%s\" is for standalone programs; a controller reaches the API through ctx", name);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, lua_upvalueindex(1), name);
    return 1;
}

/* Pushes a shallow copy of the table at idx. */
static void push_copy(lua_State *L, int idx)
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

/* Replaces the plain library table on top by a copy; the library itself goes on using the original. */
static void give_away(lua_State *L)
{
    if (!lua_istable(L, -1))
        return;
    if (lua_getmetatable(L, -1)) {
        lua_pop(L, 1); /* it has a metatable that guards it */
        return;
    }
    push_copy(L, -1);
    lua_remove(L, -2);
}

static int require(lua_State *L)
{
    const char *name = lkl__text(L, 1);
    lua_settop(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &loaded_key);
    if (lua_getfield(L, 2, name) != LUA_TNIL) {
        if (lua_islightuserdata(L, 3))
            return lkl__error(L, "module \"%s\" requires itself, directly or through others", name);
        return 1;
    }
    lua_pop(L, 1);
    if (is_ours(name)) {
        if (!is_public(name))
            return lkl__error(L,
                "module \"%s\" is not there for scripts: they require \"kubelua\", \"kubelua.object\", "
                "\"kubelua.quantity\", \"kubelua.koordinator\" and \"kubelua.kubernetes\"",
                name);
        lua_pushvalue(L, lua_upvalueindex(1)); /* library_require */
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        give_away(L);
    } else {
        const lkl_source *src = module_source(L, name);
        lua_pushlightuserdata(L, (void *)src); /* under way */
        lua_setfield(L, 2, name);
        push_chunk(L, src);
        lua_pushvalue(L, 1);
        lua_pushstring(L, src->path);
        if (lua_pcall(L, 2, 1, 0)) {
            lua_pushnil(L);
            lua_setfield(L, 2, name);
            return lua_error(L);
        }
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            lua_pushboolean(L, true);
        }
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
    return 1;
}

/* --- making a state ----------------------------------------------------------------------- */

static void remove_names(lua_State *L, const char *const *names)
{
    for (; *names; names++) {
        lua_pushnil(L);
        lua_setfield(L, -2, *names);
    }
}

/* The globals: what the library's files need of Lua, and nothing that reads files, writes to the terminal,
 * runs bytecode or ends the process. */
static void open_globals(lua_State *L)
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

/* The library's require, and the core that it finds. Pushes the require. */
static void push_library(lua_State *L)
{
    lua_newtable(L);
    lkl__push_script_core(L);
    lkl__push_run(L);
    lua_setfield(L, -2, "run");
    lkl__open_again(L);
    lua_setfield(L, -2, "kubelua.core");
    lua_pushcclosure(L, library_require, 1);
    lua_pushvalue(L, -1);
    lua_setglobal(L, "require");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &library_key);
}

/* Gives the script copies of the libraries: a script that changes its copy does not change the one that the
 * runtime calls. */
static void copy_libraries(lua_State *L)
{
    static const char *const names[] = {"string", "table", "math", "utf8", "os", NULL};
    for (const char *const *name = names; *name; name++) {
        lua_getglobal(L, *name);
        push_copy(L, -1);
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

static void push_environment(lua_State *L)
{
    lua_newtable(L);
    copy_functions(L);
    copy_libraries(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &library_key);
    lua_pushcclosure(L, require, 1);
    lua_setfield(L, -2, "require");
    lkl__push_coroutines(L);
    lua_setfield(L, -2, "coroutine");
    guard_environment(L);
}

typedef struct loading {
    lkl_state *state;
    lua_CFunction describe;
    void *arg;
    bool loaded; /* the script has run; its controllers are being described */
} loading;

/* Everything in a new state, protected: libraries, environment, the script, its controllers. */
static int setup(lua_State *L)
{
    loading *load = lua_touserdata(L, 1);
    lkl_state *s = load->state;
    open_globals(L);
    push_library(L);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &loaded_key);
    push_environment(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &env_key);
    lua_pushliteral(L, "kubelua.script");
    lua_call(L, 1, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script_key);
    lua_settop(L, 1);
#ifdef KL_DEBUG
    lkl_stress_stuck(s->bundle->sources[0].text);
#endif
    lkl__push_view_metatable(L); /* the last of our own weak tables */
    lua_settop(L, 1);
    lkl_flaws_close(L);
    lkl_state_push(L, "controllers");
    push_chunk(L, &s->bundle->sources[0]);
    lua_call(L, 0, 1);
    lua_pushstring(L, s->bundle->sources[0].path);
    lua_call(L, 2, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &controllers_key);
    load->loaded = true;
    if (load->describe) {
        lua_pushcfunction(L, load->describe);
        lua_pushlightuserdata(L, load->arg);
        lua_call(L, 1, 0);
    }
    return 0;
}

void lkl_state_push(lua_State *L, const char *what)
{
    if (!strcmp(what, "list")) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &controllers_key);
        return;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &script_key);
    lua_getfield(L, -1, what);
    lua_remove(L, -2);
}

/* The library's Lua makes the best text of an error, once it is loaded. */
static int to_text(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &script_key) == LUA_TTABLE
        && lua_getfield(L, -1, "shown") == LUA_TFUNCTION) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
    } else {
        lkl__shown(L, 1, NULL);
    }
    return 1;
}

char *lkl_state_error(lua_State *co)
{
    lua_pushcfunction(co, to_text);
    lua_insert(co, -2);
    char *text;
    if (lua_pcall(co, 1, 1, 0) || !lua_tostring(co, -1))
        text = kl_strdup("an error that cannot be shown");
    else if (!(text = kl_log_cut(lua_tostring(co, -1))))
        text = kl_strdup(lua_tostring(co, -1));
    lua_pop(co, 1);
    return text;
}

static char *too_big(const lkl_state *s)
{
    char *other = lkl_ceiling_tell_other(&s->ceiling);
    if (other)
        return other;
    const char *where = s->ceiling.where;
    return kl_sprintf("%s%sloading needs more than %zuMi of memory: the top level only builds tables and "
                      "functions; do the work in reconcile",
        where, *where ? ": " : "", s->ceiling.max >> 20);
}

/* The message handler of the load: a text names its position; for any other error value this records it. */
static int note_place(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    if (lua_type(L, 1) == LUA_TSTRING || !lkl__place(L, 1, s->raised_at, sizeof s->raised_at))
        *s->raised_at = '\0';
    return 1;
}

static char *load_error(lkl_state *s, const loading *load)
{
    char *text = lkl_state_error(s->L);
    if (!*s->raised_at && !load->loaded)
        return text;
    char *whole = load->loaded ? kl_sprintf("%s: %s", s->bundle->sources[0].path, text)
                               : kl_sprintf("%s: raised %s", s->raised_at, text);
    kl_free(text);
    return whole;
}

void lkl_state_set_load_max(kl_time cpu) { atomic_store(&load_max, cpu); }

kl_status lkl_state_new(lkl_bundle *bundle, lua_CFunction describe, void *arg, lkl_state **out, kl_err *err)
{
    lkl_state *s = kl_new(lkl_state);
    s->bundle = bundle;
    s->loading = describe;
    s->controller = "";
    s->L = luaL_newstate();
    if (!s->L) {
        kl_free(s);
        return kl_fail(err, KL_ESCRIPT, "%s: not enough memory for a Lua state", bundle->sources[0].path);
    }
#ifdef KL_DEBUG
    lkl_stress_start(s->L, &s->stress);
#endif
    *word(s->L) = (uintptr_t)s;
    lkl_budget_open(s);
    if (s->budget.way != LKL_BUDGET_NONE)
        lkl_ceiling_start(s->L, &s->ceiling, LKL_MEMORY_DEFAULT, &s->budget.running);
    (void)lkl_depth_known(s->L);
    (void)lkl_crowd_known(s->L, &s->ceiling.crowd);
    loading load = {.state = s, .describe = describe, .arg = arg};
    lkl_budget_enter(s, s->L,
        &(kl_terms){
            .cpu = atomic_load(&load_max), .deadline = kl_clock_now(kl_clock_real()) + LOAD_WALL_MAX});
    s->ceiling.on = true;
    lua_pushcfunction(s->L, note_place);
    lua_pushcfunction(s->L, setup);
    lua_pushlightuserdata(s->L, &load);
    int failed = lua_pcall(s->L, 1, 0, 1);
    s->ceiling.on = false;
    char *text = failed == LUA_ERRMEM ? too_big(s) : failed ? load_error(s, &load) : NULL;
    kl_over over = lkl_budget_leave(s);
    lkl_budget_clean(s, s->L);
    if (failed || over) {
        kl_status st = kl_fail(err, KL_ESCRIPT, "%s", over ? s->budget.message : text);
        kl_free(text);
        lkl_state_free(s);
        return st;
    }
    lua_settop(s->L, 0);
    s->loading = false;
    *out = s;
    return KL_OK;
}

void lkl_state_free(lkl_state *s)
{
    if (!s)
        return;
    lua_close(s->L);
    lkl__boxes_free(&s->ceiling);
    lkl_ceiling_end(&s->ceiling);
    lkl_budget_close(s);
    kl_free(s->traceback);
    kl_free(s);
}
