/* check.c - loads scripts as `run` would, with params, and hands them with their texts to Lua
 * (lua/kubelua/cli/check.lua). */
#include "cli/check.h"

#include <string.h>

#include "base/mem.h"
#include "cli/params.h"
#include "run/params.h"
#include "script/program.h"
#include "state/border.h"

typedef struct loaded {
    kl_program **v; /* n of them; NULL for a script that does not load */
    size_t n;
    cli_params_words words;
    cli_params *params;
} loaded;

static void loaded_free(void *p)
{
    loaded *l = p;
    for (size_t i = 0; i < l->n; i++)
        kl_program_unref(l->v[i]);
    kl_free(l->v);
    cli_params_free(l->params);
    cli_params_words_free(&l->words);
    kl_free(l);
}

static const lkl_class loaded_class = {.name = "kubelua.loaded", .free = loaded_free};

static void set_list(lua_State *L, const char *name, char *const *list)
{
    lua_newtable(L);
    for (size_t i = 0; list && list[i]; i++) {
        lua_pushstring(L, list[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, name);
}

static void add_text(lua_State *L, const char *text)
{
    lua_pushstring(L, text);
    lua_rawseti(L, -2, luaL_len(L, -2) + 1);
}

/* Lists the kinds in the controller's cache. */
static void set_kinds(lua_State *L, const kl_controller_spec *c)
{
    lua_newtable(L);
    if (c->resource)
        add_text(L, c->resource);
    for (size_t i = 0; i < c->n_watches; i++)
        add_text(L, c->watches[i].kind);
    for (size_t i = 0; i < c->n_owns; i++)
        add_text(L, c->owns[i].kind);
    for (size_t i = 0; i < c->n_indexes; i++)
        add_text(L, c->indexes[i].kind);
    for (size_t i = 0; c->reads && c->reads[i]; i++)
        add_text(L, c->reads[i]);
    lua_setfield(L, -2, "kinds");
}

/* Lists the indexes that only the script reads: `via` of a watch reads one, too. */
static void set_indexes(lua_State *L, const kl_controller_spec *c)
{
    lua_newtable(L);
    for (size_t i = 0; i < c->n_indexes; i++) {
        bool via = false;
        for (size_t k = 0; k < c->n_watches; k++)
            via |= c->watches[k].via && !strcmp(c->watches[k].via, c->indexes[i].name);
        if (!via)
            add_text(L, c->indexes[i].name);
    }
    lua_setfield(L, -2, "indexes");
}

static void set_params(lua_State *L, const kl_controller_spec *c)
{
    const kl_value *all[] = {c->params, c->param_rules};
    lua_newtable(L);
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < kl_value_len(all[a]); i++) {
            const char *name;
            (void)kl_value_member(all[a], i, &name, NULL);
            lua_pushstring(L, kl_param_type(c, name));
            lua_setfield(L, -2, name);
        }
    lua_setfield(L, -2, "params");
    lkl_box *box = lkl_value_box(L);
    box->ptr = (void *)kl_params_given(c, c->given);
    lkl_push_value(L, box->ptr);
    lua_setfield(L, -3, "given");
    lua_pop(L, 1);
}

static void add_spec(lua_State *L, const kl_controller_spec *c, bool webhook)
{
    lua_newtable(L);
    lua_pushstring(L, c->name);
    lua_setfield(L, -2, "name");
    lua_pushboolean(L, webhook);
    lua_setfield(L, -2, "webhook");
    set_kinds(L, c);
    set_list(L, "reads", c->reads);
    set_indexes(L, c);
    set_params(L, c);
    set_list(L, "http", c->http);
    lua_rawseti(L, -2, luaL_len(L, -2) + 1);
}

static void set_program(lua_State *L, const kl_program *p)
{
    const lkl_bundle *b = lkl_program_bundle(p);
    char *text = lkl_program_describe(p);
    lua_pushstring(L, text);
    kl_free(text);
    lua_setfield(L, -2, "description");
    lkl_push_value(L, p->crds);
    lua_setfield(L, -2, "crds");
    lkl_push_value(L, lkl_program_tables(p));
    lua_setfield(L, -2, "tables");
    lua_newtable(L);
    for (size_t i = 0; i < p->n_specs; i++)
        add_spec(L, &p->specs[i], false);
    for (size_t i = 0; i < p->n_hooks; i++)
        add_spec(L, &p->hooks[i].as, true);
    lua_setfield(L, -2, "specs");
    lua_newtable(L);
    for (size_t i = 0; i < b->n; i++) {
        size_t len;
        const char *code = lkl_source_code(&b->sources[i], &len);
        lua_newtable(L);
        lua_pushstring(L, b->sources[i].path);
        lua_setfield(L, -2, "path");
        lua_pushlstring(L, code, len);
        lua_setfield(L, -2, "text");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "sources");
}

/* The list of strings options[name], whose strings the table keeps. */
static void take_words(lua_State *L, int options, const char *name, cli_list *out)
{
    if (lua_getfield(L, options, name) == LUA_TTABLE) {
        size_t n = lua_rawlen(L, -1);
        out->v = kl_new_array(const char *, n + 1);
        for (size_t i = 0; i < n; i++) {
            lua_rawgeti(L, -1, (lua_Integer)i + 1);
            out->v[out->n++] = lua_tostring(L, -1);
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
}

static kl_status set_given(loaded *l, kl_err *err)
{
    kl_program **there = kl_new_array(kl_program *, l->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i])
            there[n++] = l->v[i];
    kl_status st = cli_params_new(&l->words, &l->params, err);
    if (!st && cli_params_in_cluster(l->params))
        st = kl_fail(
            err, KL_EINVAL, "--params: a check does not contact a cluster; give the values in a file");
    if (!st)
        st = cli_params_read(l->params, true, err);
    if (!st && n == l->n)
        st = cli_params_known(l->params, there, n, err);
    for (size_t i = 0; i < n && !st; i++)
        st = cli_params_set(l->params, there[i], true, err);
    kl_free(there);
    return st;
}

/* env.programs(paths, { param =, params =, param_env = }): a list of { path, error } or { path, description,
 * specs, sources, crds, tables }, see lua/kubelua/reader/lint.lua; and what is wrong with the params, or nil.
 */
static int programs(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lkl_box *box = lkl_box_new(L, &loaded_class, 0);
    loaded *l = box->ptr = kl_new(loaded);
    size_t n = lua_rawlen(L, 1);
    kl_err err = KL_ERR_INIT;
    l->v = kl_new_array(kl_program *, n + 1);
    take_words(L, 2, "param", &l->words.texts);
    take_words(L, 2, "params", &l->words.from);
    take_words(L, 2, "param_env", &l->words.env);
    lua_createtable(L, (int)n, 0);
    for (; l->n < n; l->n++) {
        lua_newtable(L);
        lua_rawgeti(L, 1, (lua_Integer)l->n + 1);
        if (lkl_program_load(luaL_checkstring(L, -1), &l->v[l->n], &err)) {
            lkl__push_message(L, &err);
            lua_setfield(L, -3, "error");
            kl_err_fini(&err);
        }
        lua_setfield(L, -2, "path");
        lua_rawseti(L, -2, (lua_Integer)l->n + 1);
    }
    bool some = l->words.texts.n || l->words.from.n || l->words.env.n;
    kl_status st = some ? set_given(l, &err) : KL_OK;
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, 4, (lua_Integer)i + 1);
        if (l->v[i])
            set_program(L, l->v[i]);
        lua_pop(L, 1);
    }
    if (!st)
        return 1;
    lkl__push_message(L, &err);
    kl_err_fini(&err);
    return 2;
}

void cli_check_push(lua_State *L) { lua_pushcfunction(L, programs); }
