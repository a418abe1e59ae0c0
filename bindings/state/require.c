/* require.c - how modules are found: a script's own beside it, and the public part of the library.
 *
 *   the script's require    modules of its bundle, each compiled with the script's environment; public
 * modules of the library, as copies the library's require   its own files, embedded in the binary, in the
 * globals */
#include "state/require.h"

#include <string.h>

#include "state/environment.h"
#include "state/mend.h"
#include "state/scan.h"
#include "state/state.h"

static const char loaded_key, library_key;

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

void lkl__push_chunk(lua_State *L, const lkl_source *s)
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
    lkl__push_env(L);
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

/* Replaces the plain library table on top by a copy; the library itself goes on using the original. */
static void give_away(lua_State *L)
{
    if (!lua_istable(L, -1))
        return;
    if (lua_getmetatable(L, -1)) {
        lua_pop(L, 1); /* it has a metatable that guards it */
        return;
    }
    lkl__push_copy(L, -1);
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
                "module \"%s\" is not available to scripts: they can require \"kubelua\", "
                "\"kubelua.object\", "
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
        lkl__push_chunk(L, src);
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

void lkl__open_library(lua_State *L)
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
    lua_rawsetp(L, LUA_REGISTRYINDEX, &library_key);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &loaded_key);
}

void lkl__push_require(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &library_key);
    lua_pushcclosure(L, require, 1);
}
