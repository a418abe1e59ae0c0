/* lpatch.c - what controllers compute about objects: patches between two objects, names, percentages.
 *
 * The types that strategic merge patches need are made once per state, on first use. */
#include <string.h>
#include "base/mem.h"
#include "base/clock.h"
#include "base/random.h"
#include "state/border.h"
#include "model/names.h"
#include "model/object.h"
#include "value/patch.h"
#include "value/share.h"
#include "schema/kinds.h"
#include "schema/smp.h"

/* --- patches ------------------------------------------------------------------------------ */

typedef struct builtin {
    kl__types *types;
    kl__kinds *kinds;
} builtin;

static void builtin_free(void *ptr)
{
    builtin *b = ptr;
    kl__kinds_free(b->kinds);
    kl__types_free(b->types);
    kl_free(b);
}

static const lkl_class builtin_class = {"kubelua.builtin", builtin_free, NULL, NULL};
static char builtin_key;

static builtin *builtin_of(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &builtin_key) != LUA_TUSERDATA) {
        lua_pop(L, 1);
        lkl_box *box = lkl_box_new(L, &builtin_class, 0);
        builtin *b = kl_new(builtin);
        b->types = kl__types_builtin();
        b->kinds = kl__kinds_new(b->types);
        box->ptr = b;
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &builtin_key);
    }
    builtin *b = lkl_box_check(L, -1, &builtin_class);
    lua_pop(L, 1);
    return b;
}

/* The schema of an object's kind; NULL for a kind that is not built in. Raises for an object without a
 * kind. */
static const kl__schema *known_schema(lua_State *L, int arg, const kl_value *v)
{
    const char *api = kl_value_str_at(v, "apiVersion", NULL), *kind = kl_value_str_at(v, "kind", NULL),
               *slash = api ? strchr(api, '/') : NULL;
    if (!api || !kind)
        luaL_argerror(L, arg, "the object has no apiVersion and kind");
    const char *group = slash ? lua_pushlstring(L, api, (size_t)(slash - api)) : "";
    kl__kind *k = kl__kinds_by_kind(builtin_of(L)->kinds, group, slash ? slash + 1 : api, kind);
    return k ? k->schema : NULL;
}

/* The same, but raises for a kind that is not built in. */
static const kl__schema *schema_of(lua_State *L, int arg, const kl_value *v)
{
    const kl__schema *s = known_schema(L, arg, v);
    if (!s)
        luaL_argerror(L, arg,
            lua_pushfstring(L,
                "%s %s is not a built-in kind, and servers accept strategic merge patches only for "
                "those: use a merge patch",
                kl_value_str_at(v, "apiVersion", NULL), kl_value_str_at(v, "kind", NULL)));
    return s;
}

/* Pushes a view of the patch. The box on top of the stack owns the patch. */
static int push_patch(lua_State *L, lkl_box *box, const kl_value *patch)
{
    box->ptr = (void *)patch;
    lkl__check_made(L, patch, "the patch");
    lkl_push_value(L, patch);
    return 1;
}

/* core.merge_patch(from, to) */
static int merge_patch(lua_State *L)
{
    lua_settop(L, 2);
    const kl_value *from = lkl__value_at(L, 1, "from"), *to = lkl__value_at(L, 2, "to");
    lkl_box *box = lkl_value_box(L);
    return push_patch(L, box, kl_merge_patch_create(from, to));
}

/* core.json_patch(from, to): a JSON patch; the second may be a draft */
static int json_patch(lua_State *L)
{
    lua_settop(L, 2);
    const kl_value *from = lkl__value_at(L, 1, "from"), *to = lkl__value_at(L, 2, "to");
    lkl_box *box = lkl_value_box(L);
    return push_patch(L, box, kl_json_patch_create(from, to));
}

/* A strategic merge patch is built field by field, and the cost of a field grows with those before it: so
 * many fields take some ten milliseconds. */
#define FIELDS_MAX 1000

static bool too_wide(const kl_value *v)
{
    bool object = kl_value_type(v) == KL_OBJECT, wide = object && kl_value_len(v) > FIELDS_MAX;
    if (object || kl_value_type(v) == KL_ARRAY)
        for (size_t i = 0; !wide && i < kl_value_len(v); i++)
            wide = too_wide(object ? kl_value_member(v, i, NULL, NULL) : kl_value_item(v, i));
    return wide;
}

static const kl_value *patchable(lua_State *L, int arg, const char *what)
{
    const kl_value *v = lkl__value_at(L, arg, what);
    if (lkl__border(L)->counted && too_wide(v))
        luaL_argerror(L, arg,
            lua_pushfstring(L, "an object in it has more than %d fields: make a merge patch", FIELDS_MAX));
    return v;
}

/* core.strategic_patch(from, to [, original [, overwrite]]) */
static int strategic_patch(lua_State *L)
{
    lua_settop(L, 4);
    bool three = !lua_isnil(L, 3), overwrite = lua_toboolean(L, 4);
    const kl_value *from = patchable(L, 1, "from"), *to = patchable(L, 2, "to"),
                   *original = three ? patchable(L, 3, "original") : NULL;
    const kl__schema *s = schema_of(L, 2, to);
    lkl_box *box = lkl_value_box(L);
    const kl_value *patch = NULL;
    kl_err err = KL_ERR_INIT;
    kl_status st = three ? kl__smp_three_way(s, original, to, from, overwrite, &patch, &err)
                         : kl__smp_diff(s, from, to, &patch, &err);
    if (st)
        return lkl_raise(L, &err, "patch", NULL, NULL);
    return push_patch(L, box, patch);
}

/* core.patched(object, patch): a view of the object after the strategic merge patch. For a kind that is not
 * built in, lists are replaced, as by a merge patch */
static int patched(lua_State *L)
{
    lua_settop(L, 2);
    const kl_value *o = lkl__value_at(L, 1, "object"), *patch = lkl__value_at(L, 2, "patch"), *out = NULL;
    const kl__schema *s = known_schema(L, 1, o);
    lkl_box *box = lkl_value_box(L);
    kl_err err = KL_ERR_INIT;
    if (kl__smp_apply(s, o, patch, &out, &err))
        return lkl_raise(L, &err, "patch", NULL, NULL);
    return push_patch(L, box, out);
}

/* --- names -------------------------------------------------------------------------------- */

/* core.name_problem(rule, text): nil, or what is wrong with the text; nil and false when there is no such
 * rule */
static int name_problem(lua_State *L)
{
    size_t n;
    kl_name_check *check = kl_name_rule(lkl__text(L, 1));
    const char *text = luaL_checklstring(L, 2, &n);
    if (!check) {
        lua_pushnil(L);
        lua_pushboolean(L, false);
        return 2;
    }
    lua_pushstring(L, strlen(text) == n ? check(text) : "must not have a NUL character in it");
    return 1;
}

/* core.name_rules(): their names */
static int name_rules(lua_State *L)
{
    lua_newtable(L);
    for (const char *const *r = kl_name_rules(); *r; r++) {
        lua_pushstring(L, *r);
        lua_rawseti(L, -2, (lua_Integer)(r - kl_name_rules()) + 1);
    }
    return 1;
}

static unsigned roll(void *arg, unsigned below) { return (unsigned)(kl_random_next(arg) % below); }

/* core.generate_name(base): the base, shortened if it is too long, and five random characters */
static int generate_name(lua_State *L)
{
    char name[KL_NAME_GENERATED_MAX];
    kl_random r = {(uint64_t)kl_clock_now(kl_clock_real()) ^ (uint64_t)(uintptr_t)L};
    lua_pushstring(L, kl_name_generate(lkl__text(L, 1), roll, &r, name));
    return 1;
}

/* core.share(x, total, up) */
static int share(lua_State *L)
{
    lua_settop(L, 3);
    lua_Integer total = luaL_checkinteger(L, 2);
    const kl_value *v = lkl__value_at(L, 1, "x");
    int64_t out;
    kl_err err = KL_ERR_INIT;
    if (kl_share_of(v, total, lua_toboolean(L, 3), &out, &err))
        return lkl__argerror(L, 1, &err);
    lua_pushinteger(L, out);
    return 1;
}

void lkl__open_patch(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"merge_patch", merge_patch},
        {"json_patch", json_patch},
        {"strategic_patch", strategic_patch},
        {"name_problem", name_problem},
        {"name_rules", name_rules},
        {"generate_name", generate_name},
        {"share", share},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}

void lkl__open_patched(lua_State *L)
{
    lua_pushcfunction(L, patched);
    lua_setfield(L, -2, "patched");
}
