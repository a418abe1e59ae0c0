/* lselector.c - label selectors in Lua: from text ("app in (a,b), !old"), or from a metav1.LabelSelector. */
#include <string.h>
#include "base/mem.h"
#include "state/border.h"
#include "state/ceiling.h"
#include "model/selector.h"

static void free_selector(void *ptr) { kl_selector_free(ptr); }

extern const lkl_class lkl__selector_class;

static kl_selector *self(lua_State *L) { return lkl_box_check(L, 1, &lkl__selector_class); }

/* s:matches(labels): a view or table of labels, an object with metadata.labels, or nil */
static int matches(lua_State *L)
{
    kl_selector *s = self(L);
    const kl_value *v = lkl__value_at(L, 2, "labels");
    const kl_value *meta = kl_value_get(v, "metadata");
    if (kl_value_type(meta) == KL_OBJECT)
        v = kl_value_get(meta, "labels");
    lua_pushboolean(L, kl_selector_matches(s, v));
    return 1;
}

static int is_empty(lua_State *L)
{
    lua_pushboolean(L, kl_selector_empty(self(L)));
    return 1;
}

static int tostring(lua_State *L)
{
    lkl__push_text(L, kl_selector_text(self(L)));
    return 1;
}

static int eq(lua_State *L)
{
    kl_selector *a = lkl_box_get(L, 1, &lkl__selector_class), *b = lkl_box_get(L, 2, &lkl__selector_class);
    bool equal = false;
    if (a && b) {
        char *x = kl_selector_text(a), *y = kl_selector_text(b);
        equal = kl_selector_selectable(a) == kl_selector_selectable(b) && x && y && strcmp(x, y) == 0;
        kl_free(x);
        kl_free(y);
    }
    lua_pushboolean(L, equal);
    return 1;
}

static const luaL_Reg methods[] = {{"matches", matches}, {"is_empty", is_empty}, {NULL, NULL}};
static const luaL_Reg meta[] = {{"__tostring", tostring}, {"__eq", eq}, {NULL, NULL}};
const lkl_class lkl__selector_class = {"kubelua.selector", free_selector, methods, meta};

/* {app = "x"} is probably a mistake: as a LabelSelector it would select everything. */
static void check_fields(lua_State *L, const kl_value *v)
{
    if (v && kl_value_type(v) != KL_OBJECT)
        luaL_argerror(L, 1, "a selector is a string, or a table with matchLabels and matchExpressions");
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key = NULL;
        (void)kl_value_member(v, i, &key, NULL);
        if (strcmp(key, "matchLabels") != 0 && strcmp(key, "matchExpressions") != 0)
            luaL_argerror(L, 1,
                lua_pushfstring(
                    L, "unknown field '%s'; a selector has matchLabels and matchExpressions", key));
    }
}

/* Bytes that a selector takes for each byte of its text: a value is at least "a,", and has its own block. */
#define TAKES 16

/* kube.selector(x): a text, or a table or view {matchLabels =, matchExpressions =}; nil selects nothing,
 * as in Kubernetes */
static int selector(lua_State *L)
{
    lua_settop(L, 1);
    if (lkl_box_get(L, 1, &lkl__selector_class))
        return 1;
    kl_err err = KL_ERR_INIT;
    kl_selector *s = NULL;
    size_t bytes;
    lkl_box *box = lkl_box_new(L, &lkl__selector_class, 0);
    if (lua_type(L, 1) == LUA_TSTRING) {
        bytes = TAKES * (lua_rawlen(L, 1) + 16);
        lkl_ceiling_ask(L, bytes);
        if (kl_selector_parse(lkl__text(L, 1), &s, &err))
            return lkl__argerror(L, 1, &err);
    } else {
        const kl_value *v = lkl__to_box(L, lkl_value_box(L), 1, "selector");
        check_fields(L, v);
        bytes = TAKES * (kl_value_held(v, lkl_ceiling_max(L)) + 16);
        lkl_ceiling_ask(L, bytes);
        if (kl_selector_from_struct(v, &s, &err))
            return lkl__argerror(L, 1, &err);
        lua_pop(L, 1);
    }
    box->ptr = s;
    lkl_box_charge(L, box, bytes);
    return 1;
}

/* core.field_selector_problem(text): what is wrong with it, or nil */
static int field_selector_problem(lua_State *L)
{
    kl_field_selector *f;
    kl_err err = KL_ERR_INIT;
    if (!kl_field_selector_parse(lkl__text(L, 1), &f, &err)) {
        kl_field_selector_free(f);
        return 0;
    }
    lkl__push_message(L, &err);
    return 1;
}

void lkl__open_selector(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"selector", selector}, {"field_selector_problem", field_selector_problem}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
