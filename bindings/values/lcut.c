/* lcut.c - objects of which the cache keeps only some fields (`fields` and `metadata` of a controller), as
 * scripts meet them.
 *
 * A cut field reads as absent, so a script that reads one would go wrong unnoticed: a strict read of it
 * raises and says what to do. An update would erase the cut fields, and so would a merge patch of a list
 * whose items were cut: both are refused. An object that came whole from the server (ctx.live, answers to
 * writes) is recognised by fields beyond the kept ones. */
#include <string.h>

#include "base/mem.h"
#include "state/border.h"
#include "model/object.h"
#include "run/spec.h"
#include "state/state.h"

/* What the controller keeps of objects like v, or NULL for all. */
static const kl_fields_spec *fields_of(const kl_controller_spec *s, const kl_value *v)
{
    const char *api_version = kl_value_str_at(v, "apiVersion", NULL), *kind = kl_object_kind(v);
    for (size_t i = 0; api_version && kind && i < s->n_fields; i++) {
        const char *k = s->fields[i].kind, *slash = strrchr(k, '/');
        if (slash && !strcmp(slash + 1, kind) && strlen(api_version) == (size_t)(slash - k)
            && !strncmp(k, api_version, (size_t)(slash - k)))
            return &s->fields[i];
    }
    return NULL;
}

typedef struct steps {
    const char **v;
    size_t n, cap;
} steps;

static void add_step(steps *s, const char *key)
{
    if (s->n == s->cap)
        s->v = kl_realloc(s->v, (s->cap = s->cap ? 2 * s->cap : 16) * sizeof *s->v);
    s->v[s->n++] = key;
}

/* Adds names only: an index of a list means any of its items. The texts belong to Lua, or are in `paths`. */
static void add_steps(lua_State *L, int idx, steps *s, kl_path **path)
{
    if (lua_type(L, idx) == LUA_TSTRING) {
        add_step(s, lua_tostring(L, idx));
    } else if (lua_istable(L, idx)) {
        lua_rawgeti(L, idx, 1);
        if (lua_isstring(L, -1) && !kl_path_parse(lua_tostring(L, -1), path, NULL))
            for (size_t i = 0, len, at; i < kl_path_len(*path); i++) {
                const char *key = kl_path_step(*path, i, &len, &at);
                if (key)
                    add_step(s, key);
            }
        lua_pop(L, 1);
    }
}

static bool was_cut(lua_State *L, const kl_fields_spec *f, const kl_value *root, int keys_idx, int key_idx)
{
    lua_Integer n = (lua_Integer)lua_rawlen(L, keys_idx);
    kl_path **paths = kl_new_array(kl_path *, (size_t)n + 1);
    steps s = {0};
    for (lua_Integer i = n; i > 0; i--) {
        lua_rawgeti(L, keys_idx, i);
        add_steps(L, lua_gettop(L), &s, &paths[i - 1]);
        lua_pop(L, 1); /* the table keeps it */
    }
    add_steps(L, key_idx, &s, &paths[n]);
    bool cut = !kl_projection_keeps(f->keep, s.v, s.n) && kl_projection_covers(f->keep, root);
    for (lua_Integer i = 0; i <= n; i++)
        kl_path_free(paths[i]);
    kl_free(paths);
    kl_free(s.v);
    return cut;
}

static void push_kept(lua_State *L, const kl_fields_spec *f)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (char **p = f->paths; *p; p++) {
        if (p != f->paths)
            luaL_addstring(&b, ", ");
        luaL_addstring(&b, *p);
    }
    luaL_pushresult(&b);
}

void lkl__cut_check(lua_State *L, const kl_controller_spec *spec, int view_idx, int key_idx)
{
    view_idx = lua_absindex(L, view_idx);
    key_idx = lua_absindex(L, key_idx);
    int top = lua_gettop(L);
    const kl_value *root = lkl__view_keys(L, view_idx);
    const kl_fields_spec *f = lua_type(L, key_idx) == LUA_TSTRING ? fields_of(spec, root) : NULL;
    if (f && was_cut(L, f, root, lua_gettop(L), key_idx)) {
        lkl__view_describe(L, view_idx, key_idx);
        push_kept(L, f);
        if (kl_controller_spec_metadata(spec, f->kind))
            lkl__error(L,
                "%s was not fetched: controller \"%s\" lists %s in `metadata`, so only metadata is fetched; "
                "remove it there, or read it with ctx.live",
                lua_tostring(L, -2), spec->name, f->kind);
        lkl__error(L,
            "%s was not kept in the cache: `fields` of controller \"%s\" keep only these of %s: %s; add what "
            "you need",
            lua_tostring(L, -2), spec->name, f->kind,
            *lua_tostring(L, -1) ? lua_tostring(L, -1) : "what every object has");
    }
    lua_settop(L, top);
}

/* run.kept(kind): the kept fields of a kind as text, or nil for all. */
static int kept(lua_State *L)
{
    const kl_controller_spec *s = lkl_state_of(L)->spec;
    const kl_fields_spec *f = s ? kl_controller_spec_fields(s, lkl__text(L, 1)) : NULL;
    if (!f)
        return 0;
    if (kl_controller_spec_metadata(s, f->kind))
        lua_pushliteral(L, "metadata");
    else
        push_kept(L, f);
    return 1;
}

/* run.cut_list(kind, object, patch): the path of a list that the patch would replace although its items were
 * cut, or nil. */
static int cut_list(lua_State *L)
{
    const kl_controller_spec *s = lkl_state_of(L)->spec;
    const kl_fields_spec *f = s ? kl_controller_spec_fields(s, lkl__text(L, 1)) : NULL;
    const kl_value *object = f ? lkl_view_value(L, 2) : NULL;
    if (!object || !kl_projection_covers(f->keep, object))
        return 0;
    char *path = kl_projection_cut_list(f->keep, lkl__value_at(L, 3, "the patch"));
    if (!path)
        return 0;
    lkl__push_text(L, path);
    return 1;
}

void lkl__open_cut(lua_State *L)
{
    static const luaL_Reg functions[] = {{"kept", kept}, {"cut_list", cut_list}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
