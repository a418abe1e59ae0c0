/* op.c - a request as a Lua table (lua/kubelua/request.lua makes them) becomes a kl_op. */
#include <stddef.h>
#include <string.h>
#include "state/border.h"
#include "model/object.h"

static const char *const verbs[] = {
    "get", "list", "watch", "create", "update", "patch", "apply", "delete", "deletecollection", "http", NULL};
static const kl_verb verb_of[] = {KL_GET, KL_LIST, KL_WATCH, KL_CREATE, KL_UPDATE, KL_PATCH, KL_APPLY,
    KL_DELETE, KL_DELETE_COLLECTION, KL_HTTP};
static const char *const patch_types[] = {"merge", "json", "strategic", NULL};
static const kl_patch_type patch_type_of[] = {KL_PATCH_MERGE, KL_PATCH_JSON, KL_PATCH_STRATEGIC};

static const char *const forms[] = {"object", "metadata", "table", NULL};
static const kl_form form_of[] = {KL_AS_OBJECT, KL_AS_METADATA, KL_AS_TABLE};

static size_t word(lua_State *L, int idx, const char *field, const char *const *words)
{
    const char *s = lua_tostring(L, -1);
    for (size_t i = 0; s && words[i]; i++)
        if (strcmp(s, words[i]) == 0)
            return i;
    luaL_argerror(
        L, idx, lua_pushfstring(L, "op.%s: unknown value '%s'", field, s ? s : luaL_typename(L, -1)));
    return 0;
}

static const char *string(lua_State *L, int idx, const char *field)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_argerror(
            L, idx, lua_pushfstring(L, "op.%s: expected a string, got %s", field, luaL_typename(L, -1)));
    if (lkl__has_nul(L, -1))
        luaL_argerror(L, idx, lua_pushfstring(L, "op.%s: expected a string without NUL characters", field));
    return lua_tostring(L, -1);
}

static int64_t integer(lua_State *L, int idx, const char *field)
{
    int isint;
    lua_Integer i = lua_tointegerx(L, -1, &isint);
    if (!isint || lua_type(L, -1) != LUA_TNUMBER)
        luaL_argerror(
            L, idx, lua_pushfstring(L, "op.%s: expected an integer, got %s", field, luaL_typename(L, -1)));
    return i;
}

static kl_time timeout(lua_State *L)
{
    kl_time t = lkl_check_duration(L, lua_gettop(L), "timeout");
    if (t < 0)
        lkl__error(
            L, "`timeout` must not be negative: it limits the time of the call, such as \"30s\" or 30");
    return t;
}

/* One field: its value is on top of the stack. */
static void set_field(lua_State *L, int idx, kl_op *op, const char *f)
{
    static const struct {
        const char *name;
        size_t at;
    } strings[] = {
        {"kind", offsetof(kl_op, kind)},
        {"ns", offsetof(kl_op, ns)},
        {"default_ns", offsetof(kl_op, default_ns)},
        {"name", offsetof(kl_op, name)},
        {"subresource", offsetof(kl_op, subresource)},
        {"field_manager", offsetof(kl_op, field_manager)},
        {"field_validation", offsetof(kl_op, field_validation)},
        {"propagation", offsetof(kl_op, propagation)},
        {"uid", offsetof(kl_op, uid)},
        {"precondition_rv", offsetof(kl_op, precondition_rv)},
        {"labels", offsetof(kl_op, labels)},
        {"fields", offsetof(kl_op, fields)},
        {"continue_token", offsetof(kl_op, continue_token)},
        {"rv", offsetof(kl_op, rv)},
        {"rv_match", offsetof(kl_op, rv_match)},
        {"include", offsetof(kl_op, include)},
    };
    static const struct {
        const char *name;
        size_t at;
    } integers[] = {
        {"limit", offsetof(kl_op, limit)},
        {"grace_seconds", offsetof(kl_op, grace_seconds)},
        {"timeout_seconds", offsetof(kl_op, timeout_seconds)},
    };
    static const struct {
        const char *name;
        size_t at;
    } flags[] = {
        {"force", offsetof(kl_op, force)},
        {"check", offsetof(kl_op, check)},
        {"dry_run", offsetof(kl_op, dry_run)},
        {"always", offsetof(kl_op, always)},
        {"unread", offsetof(kl_op, unread)},
        {"bookmarks", offsetof(kl_op, bookmarks)},
        {"initial_events", offsetof(kl_op, initial_events)},
    };
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        if (strcmp(f, strings[i].name) == 0) {
            *(const char **)((char *)op + strings[i].at) = string(L, idx, f);
            return;
        }
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (strcmp(f, integers[i].name) == 0) {
            *(int64_t *)((char *)op + integers[i].at) = integer(L, idx, f);
            return;
        }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(f, flags[i].name) == 0) {
            *(bool *)((char *)op + flags[i].at) = lua_toboolean(L, -1);
            return;
        }
    if (strcmp(f, "verb") == 0)
        op->verb = verb_of[word(L, idx, f, verbs)];
    else if (strcmp(f, "patch_type") == 0)
        op->patch_type = patch_type_of[word(L, idx, f, patch_types)];
    else if (strcmp(f, "form") == 0)
        op->form = form_of[word(L, idx, f, forms)];
    else if (strcmp(f, "timeout") == 0)
        op->timeout = timeout(L);
    else if (strcmp(f, "body") == 0) {
        if (!(op->body = lkl_view_value(L, -1)))
            luaL_argerror(L, idx, "op.body: expected a view; make one with core.value");
    } else
        luaL_argerror(L, idx, lua_pushfstring(L, "op.%s: a request has no such field", f));
}

void lkl_op_from_table(lua_State *L, int idx, kl_op *op)
{
    idx = lua_absindex(L, idx);
    luaL_checktype(L, idx, LUA_TTABLE);
    kl_op_init(op, KL_GET, NULL);
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_argerror(L, idx, "op: a request has only named fields");
        set_field(L, idx, op, lua_tostring(L, -2));
        lua_pop(L, 1);
    }
}

/* core.items(list): the objects of a LIST answer as root views, each with the apiVersion and kind that the
 * list implies; then the continue token and the resourceVersion. */
static int items(lua_State *L)
{
    const kl_value *list = lkl_view_value(L, 1);
    if (!list)
        return luaL_typeerror(L, 1, "kubelua.view");
    const kl_value *array = kl_value_get(list, "items");
    const char *kind = kl_value_str(kl_value_get(list, "kind")),
               *api = kl_value_str(kl_value_get(list, "apiVersion"));
    char item_kind[256] = "";
    size_t n = kl_value_len(array), len = kind ? strlen(kind) : 0;
    if (len > 4 && len - 4 < sizeof item_kind && strcmp(kind + len - 4, "List") == 0)
        memcpy(item_kind, kind, len - 4);
    lua_createtable(L, (int)n, 0);
    lkl_box *box = lkl_value_box(L);
    for (size_t i = 0; i < n; i++) {
        const kl_value *o = kl_value_item(array, i);
        if (*item_kind && api)
            box->ptr = (void *)kl_object_with_type(o, api, item_kind);
        lkl_push_value(L, box->ptr ? box->ptr : o);
        lua_rawseti(L, 2, (lua_Integer)i + 1);
        kl_value_unref(box->ptr);
        box->ptr = NULL;
    }
    lua_settop(L, 2);
    lua_pushstring(L, kl_value_str_at(list, "metadata", "continue", NULL));
    lua_pushstring(L, kl_value_str_at(list, "metadata", "resourceVersion", NULL));
    return 3;
}

void lkl__open_op(lua_State *L)
{
    static const luaL_Reg functions[] = {{"items", items}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
