/* specs.c - turns the tables that a script declared at its load into specs that C keeps.
 *
 * Scripts never see these tables (lua/kubelua/checks.lua seals them). They are not trusted all the same: a
 * value of the wrong type raises. */
#include "script/specs.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "run/params.h"
#include "state/state.h"

static void mistyped(lua_State *L, const char *k, const char *expected)
{
    luaL_error(L, "a controller's %s: expected %s, got %s", k, expected, luaL_typename(L, -1));
}

/* Pushes field k of the table at idx, which is of that type or nil; says whether it is there. */
static bool push_field(lua_State *L, int idx, const char *k, int type)
{
    lua_pushstring(L, k);
    int t = lua_rawget(L, idx);
    if (t != LUA_TNIL && t != type)
        mistyped(L, k, lua_typename(L, type));
    return t != LUA_TNIL;
}

/* Takes the text on top of the stack, the value of k. */
static char *take_string(lua_State *L, const char *k)
{
    if (lua_type(L, -1) != LUA_TSTRING || lkl__has_nul(L, -1))
        mistyped(L, k, "a string without NUL characters");
    return kl_strdup(lua_tostring(L, -1));
}

/* May be absent. */
static char *string_field(lua_State *L, int idx, const char *k)
{
    char *s = push_field(L, idx, k, LUA_TSTRING) ? take_string(L, k) : NULL;
    lua_pop(L, 1);
    return s;
}

static char *needed_field(lua_State *L, int idx, const char *k)
{
    (void)push_field(L, idx, k, LUA_TSTRING);
    char *s = take_string(L, k);
    lua_pop(L, 1);
    return s;
}

static int64_t integer_field(lua_State *L, int idx, const char *k, int64_t dflt)
{
    bool there = push_field(L, idx, k, LUA_TNUMBER);
    if (there
        && (!lua_isinteger(L, -1) || lua_tointeger(L, -1) > LUA_MAXINTEGER / 2
            || lua_tointeger(L, -1) < LUA_MININTEGER / 2))
        mistyped(L, k, "an integer");
    int64_t n = there ? lua_tointeger(L, -1) : dflt;
    lua_pop(L, 1);
    return n;
}

static int int_field(lua_State *L, int idx, const char *k)
{
    int64_t n = integer_field(L, idx, k, 0);
    if (n < -INT_MAX || n > INT_MAX)
        luaL_error(L, "a controller's %s: expected a small integer", k);
    return (int)n;
}

static size_t size_field(lua_State *L, int idx, const char *k)
{
    int64_t n = integer_field(L, idx, k, 0);
    if (n < 0)
        luaL_error(L, "a controller's %s: expected an integer above zero", k);
    return (size_t)n;
}

static size_t fn_field(lua_State *L, int idx) { return size_field(L, idx, "fn"); /* 0 is KL_NO_FN */ }

static kl_time duration_field(lua_State *L, int idx, const char *k)
{
    kl_time d = push_field(L, idx, k, LUA_TNUMBER) ? lkl__seconds(lua_tonumber(L, -1)) : 0;
    lua_pop(L, 1);
    return d;
}

/* Pushes the list in field k (an empty one stands for nil) and gives its length. */
static size_t push_list(lua_State *L, int idx, const char *k)
{
    if (!push_field(L, idx, k, LUA_TTABLE)) {
        lua_pop(L, 1);
        lua_newtable(L);
    }
    return lua_rawlen(L, -1);
}

/* Pushes item i, from 0, of the list on top of the stack, which is a table; where it stands. */
static int push_item(lua_State *L, const char *k, size_t i)
{
    if (lua_rawgeti(L, -1, (lua_Integer)i + 1) != LUA_TTABLE)
        mistyped(L, k, "a list of tables");
    return lua_gettop(L);
}

static char **strings_field(lua_State *L, int idx, const char *k)
{
    size_t n = push_list(L, idx, k);
    /* all items are checked before anything is allocated */
    for (size_t i = 0; i < n; i++) {
        if (lua_rawgeti(L, -1, (lua_Integer)i + 1) != LUA_TSTRING || lkl__has_nul(L, -1))
            mistyped(L, k, "a list of strings without NUL characters");
        lua_pop(L, 1);
    }
    char **v = n ? kl_new_array(char *, n + 1) : NULL;
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        v[i] = kl_strdup(lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return v;
}

/* A new reference, or NULL for nil. */
static const kl_value *view_field(lua_State *L, int idx, const char *k)
{
    const kl_value *v = push_field(L, idx, k, LUA_TUSERDATA) ? lkl_view_value(L, -1) : NULL;
    if (!v && !lua_isnil(L, -1))
        mistyped(L, k, "a view");
    kl_value_ref(v);
    lua_pop(L, 1);
    return v;
}

static bool flag_field(lua_State *L, int idx, const char *k)
{
    bool yes = push_field(L, idx, k, LUA_TBOOLEAN) && lua_toboolean(L, -1);
    lua_pop(L, 1);
    return yes;
}

/* Raises when a value could not be converted; the program that holds the spec is freed then. */
static void must(lua_State *L, const kl_controller_spec *s, kl_status st, kl_err *err)
{
    if (!st)
        return;
    lkl__push_message(L, err);
    lua_pushfstring(L, "controller \"%s\": %s", s->name, lua_tostring(L, -1));
    lua_error(L);
}

/* The table at idx has { words, fn, selector } in field k, or nothing. */
static void read_when(lua_State *L, int idx, const char *k, const kl_controller_spec *s, kl_when *out)
{
    kl_err err = KL_ERR_INIT;
    if (push_field(L, idx, k, LUA_TTABLE)) {
        int at = lua_gettop(L);
        out->words = strings_field(L, at, "words");
        out->fn = fn_field(L, at);
        if (push_field(L, at, "selector", LUA_TSTRING))
            must(L, s, kl_selector_parse(lua_tostring(L, -1), &out->selector, &err), &err);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* { path } or { fn } in field k, or nothing. */
static void read_text_of(lua_State *L, int idx, const char *k, const kl_controller_spec *s, kl_text_of *out)
{
    kl_err err = KL_ERR_INIT;
    if (push_field(L, idx, k, LUA_TTABLE)) {
        int at = lua_gettop(L);
        out->fn = fn_field(L, at);
        if (push_field(L, at, "path", LUA_TSTRING))
            must(L, s, kl_path_parse(lua_tostring(L, -1), &out->path, &err), &err);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Which of the words is in field k; 0 for none of them. */
static int word_field(lua_State *L, int idx, const char *k, const char *const *words)
{
    int found = 0;
    bool there = push_field(L, idx, k, LUA_TSTRING);
    for (int i = 0; there && words[i]; i++)
        if (!strcmp(lua_tostring(L, -1), words[i]))
            found = i + 1;
    if (there && !found)
        luaL_error(L, "a controller's %s: unknown value \"%s\"", k, lua_tostring(L, -1));
    lua_pop(L, 1);
    return found;
}

static void read_owns(lua_State *L, int idx, kl_controller_spec *s)
{
    size_t n = push_list(L, idx, "owns");
    int list = lua_gettop(L);
    s->owns = kl_new_array(kl_owned_spec, n + 1);
    for (size_t i = 0; i < n; i++) {
        int at = push_item(L, "owns", i);
        kl_owned_spec *o = &s->owns[s->n_owns++];
        o->kind = needed_field(L, at, "kind");
        read_when(L, at, "when", s, &o->when);
        o->unforced = flag_field(L, at, "unforced");
        lua_settop(L, list);
    }
    lua_pop(L, 1);
}

static void read_selects(lua_State *L, int idx, kl_controller_spec *s)
{
    size_t n = push_list(L, idx, "selects");
    int list = lua_gettop(L);
    s->selects = kl_new_array(kl_select_spec, n + 1);
    for (size_t i = 0; i < n; i++) {
        int at = push_item(L, "selects", i);
        kl_select_spec *x = &s->selects[s->n_selects++];
        x->kind = needed_field(L, at, "kind");
        x->labels = string_field(L, at, "labels");
        x->fields = string_field(L, at, "fields");
        x->namespaces = strings_field(L, at, "namespaces");
        lua_settop(L, list);
    }
    lua_pop(L, 1);
}

/* When and where its keys run (lua/kubelua/scheduling.lua). */
static void read_scheduling(lua_State *L, int at, kl_controller_spec *s)
{
    static const char *const leads[] = {"manager", "own", "none", NULL},
                             *const shards[] = {"key", "namespace", "never", NULL},
                             *const reloads[] = {"all", "failing", "none", NULL};
    s->every = duration_field(L, at, "every");
    s->cron = strings_field(L, at, "cron");
    s->priority = int_field(L, at, "priority");
    read_text_of(L, at, "priority_of", s, &s->priority_of);
    read_text_of(L, at, "serial", s, &s->serial);
    if (push_field(L, at, "backoff", LUA_TTABLE)) {
        int b = lua_gettop(L);
        (void)push_field(L, b, "jitter", LUA_TNUMBER);
        s->backoff = (kl_backoff_policy){.base = duration_field(L, b, "base"),
            .max = duration_field(L, b, "max"),
            .jitter = lua_tonumber(L, b + 1)};
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    s->give_up = int_field(L, at, "give_up");
    s->own_writes = duration_field(L, at, "own_writes");
    int lead = word_field(L, at, "leader", leads);
    s->lead_said = lead;
    s->lead = lead ? (kl_lead)(lead - 1) : KL_LEAD_MANAGER;
    s->shard = (kl_shard_by)word_field(L, at, "shard", shards);
    s->on_reload = (kl_reload_keys)word_field(L, at, "on_reload", reloads);
    s->shard_own = flag_field(L, at, "shard_own");
    s->isolate = flag_field(L, at, "isolate");
    s->memory = size_field(L, at, "memory");
    s->cpu = duration_field(L, at, "cpu");
}

static void read_watches(lua_State *L, int idx, kl_controller_spec *s)
{
    static const char *const how[] = {"owner", "same-name", "via", "function", NULL};
    size_t n = push_list(L, idx, "watches");
    int list = lua_gettop(L);
    s->watches = kl_new_array(kl_watch_spec, n + 1);
    for (size_t i = 0; i < n; i++) {
        int at = push_item(L, "watches", i), way = word_field(L, at, "how", how);
        if (!way)
            luaL_error(L, "a controller's watches: an entry lacks its mapping");
        kl_watch_spec *w = &s->watches[s->n_watches++];
        w->how = (kl_map_how)(way - 1);
        w->fn = fn_field(L, at);
        w->kind = needed_field(L, at, "kind");
        w->via = string_field(L, at, "via");
        read_when(L, at, "when", s, &w->when);
        lua_settop(L, list);
    }
    lua_pop(L, 1);
}

static void read_indexes(lua_State *L, int idx, kl_controller_spec *s)
{
    size_t n = push_list(L, idx, "indexes");
    int list = lua_gettop(L);
    s->indexes = kl_new_array(kl_index_spec, n + 1);
    for (size_t i = 0; i < n; i++) {
        int at = push_item(L, "indexes", i);
        kl_index_spec *x = &s->indexes[s->n_indexes++];
        x->fn = fn_field(L, at);
        x->kind = needed_field(L, at, "kind");
        x->name = needed_field(L, at, "name");
        x->path = string_field(L, at, "path");
        lua_settop(L, list);
    }
    lua_pop(L, 1);
}

static void read_fields(lua_State *L, int idx, kl_controller_spec *s)
{
    size_t n = push_list(L, idx, "fields");
    int list = lua_gettop(L);
    s->fields = kl_new_array(kl_fields_spec, n + 1);
    for (size_t i = 0; i < n; i++) {
        int at = push_item(L, "fields", i);
        kl_fields_spec *f = &s->fields[s->n_fields++];
        f->kind = needed_field(L, at, "kind");
        f->paths = strings_field(L, at, "paths");
        if (!f->paths)
            f->paths = kl_new_array(char *, 1);
        size_t paths = 0;
        while (f->paths[paths])
            paths++;
        kl_err err = KL_ERR_INIT;
        must(L, s, kl_projection_new((const char *const *)f->paths, paths, &f->keep, &err), &err);
        lua_settop(L, list);
    }
    lua_pop(L, 1);
    (void)push_field(L, idx, "managed_fields", LUA_TBOOLEAN);
    s->managed_fields = lua_isnil(L, -1) ? KL_MANAGED_DEFAULT
        : lua_toboolean(L, -1)           ? KL_MANAGED_KEPT
                                         : KL_MANAGED_DROPPED;
    lua_pop(L, 1);
}

/* Defaults have to satisfy their own rules. */
static void read_params(lua_State *L, int idx, kl_controller_spec *s)
{
    kl_err err = KL_ERR_INIT;
    s->params = view_field(L, idx, "params");
    s->param_rules = view_field(L, idx, "param_rules");
    for (size_t i = 0; i < kl_value_len(s->params); i++) {
        const char *name;
        const kl_value *v = kl_value_member(s->params, i, &name, NULL);
        if (kl_value_get(s->param_rules, name))
            must(L, s, kl_param_check(s, name, v, &err), &err);
    }
}

/* The table on top, as lua/kubelua/controller.lua normalises it. */
static void read_spec(lua_State *L, kl_controller_spec *s)
{
    int at = lua_gettop(L);
    s->name = needed_field(L, at, "name");
    s->resource = string_field(L, at, "resource"); /* a webhook has none */
    s->manager = string_field(L, at, "manager");
    s->namespaces = strings_field(L, at, "namespaces");
    s->select_labels = string_field(L, at, "select_labels");
    s->select_fields = string_field(L, at, "select_fields");
    s->finalizer = string_field(L, at, "finalizer");
    s->metadata_only = strings_field(L, at, "metadata");
    read_when(L, at, "when", s, &s->when);
    read_owns(L, at, s);
    read_selects(L, at, s);
    read_scheduling(L, at, s);
    s->reads = strings_field(L, at, "reads");
    s->workers = int_field(L, at, "workers");
    s->concurrency = int_field(L, at, "concurrency");
    s->timeout = duration_field(L, at, "timeout");
    s->resync = duration_field(L, at, "resync");
    read_params(L, at, s);
    s->http = strings_field(L, at, "http");
    read_watches(L, at, s);
    read_indexes(L, at, s);
    read_fields(L, at, s);
}

/* Half of the ceiling is for keys at least. */
static void check_memory(lua_State *L, const kl_controller_spec *s)
{
    lua_gc(L, LUA_GCCOLLECT);
    size_t used = ((size_t)lua_gc(L, LUA_GCCOUNT) << 10) + lkl_state_of(L)->ceiling.held;
    if (s->memory && used > s->memory / 2)
        luaL_error(L,
            "controller \"%s\": memory is %d KiB, of which the loaded script takes %d already: a worker "
            "needs at least twice that",
            s->name, (int)(s->memory >> 10), (int)(used >> 10));
}

/* The table on top, as lua/kubelua/webhook.lua normalises it. */
static void read_hook(lua_State *L, kl_webhook_spec *s)
{
    static const char *const scopes[] = {"*", "Namespaced", "Cluster", NULL};
    int at = lua_gettop(L);
    read_spec(L, &s->as);
    s->mutating = flag_field(L, at, "mutating");
    s->converts = flag_field(L, at, "converts");
    s->ignore = flag_field(L, at, "ignore");
    s->kinds = strings_field(L, at, "kinds");
    s->operations = view_field(L, at, "operations");
    int scope = word_field(L, at, "scope", scopes);
    s->scope = scopes[scope ? scope - 1 : 0];
    s->entry = view_field(L, at, "entry");
}

/* The table on top: a controller's or a webhook's. */
static const kl_controller_spec *read_one(lua_State *L, kl_program *p)
{
    if (!flag_field(L, lua_gettop(L), "webhook")) {
        kl_controller_spec *spec = &p->specs[p->n_specs++];
        read_spec(L, spec);
        return spec;
    }
    kl_webhook_spec *hook = &p->hooks[p->n_hooks++];
    read_hook(L, hook);
    return &hook->as;
}

/* Controllers stand first in the list, webhooks after them (lua/kubelua/script.lua). */
int lkl__read_specs(lua_State *L)
{
    lkl_specs *read = lua_touserdata(L, 1);
    kl_program *p = read->program;
    lkl_state_push(L, "list");
    int list = lua_gettop(L);
    luaL_checktype(L, list, LUA_TTABLE);
    size_t n = lua_rawlen(L, list);
    p->specs = kl_new_array(kl_controller_spec, n + 1);
    p->hooks = kl_new_array(kl_webhook_spec, n + 1);
    for (size_t i = 0; i < n; i++) {
        (void)push_item(L, "list", i);
        check_memory(L, read_one(L, p));
        lua_settop(L, list);
    }
    lkl_state_push(L, "metrics");
    lua_call(L, 0, 1);
    p->metrics = kl_value_ref(lkl_view_value(L, -1));
    lua_pop(L, 1);
    lkl_state_push(L, "crds");
    lua_call(L, 0, 1);
    p->crds = kl_value_ref(lkl_view_value(L, -1));
    lkl_state_push(L, "tables");
    lua_pushvalue(L, list);
    lua_call(L, 1, 1);
    read->tables = kl_value_ref(lkl_view_value(L, -1));
    lkl_state_push(L, "describe");
    lua_pushvalue(L, list);
    lua_call(L, 1, 1);
    read->description = kl_strdup(lua_tostring(L, -1));
    return 0;
}
