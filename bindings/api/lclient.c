/* lclient.c - a client for any Lua state: requests that are begun, and waited for in slices.
 *
 *   client:begin(op) --> call:poll() --> false (nothing yet) ... then true and the answer, or a raised error
 *
 * Waiting is cut into slices: the loop around poll is Lua (client.lua), so ^C and other hooks work.
 * Closing the client, or the state, joins its threads: nothing runs after that. Watches are in lwatch.c. */
#include <stdlib.h>
#include <string.h>
#include "api/post.h"
#include "api/stream.h"
#include "base/mem.h"
#include "base/shelf.h"

static lkl_hub *self(lua_State *L) { return lkl_box_check(L, 1, &lkl__client_class); }

/* Whether the field is false; an absent field is on. */
static bool is_off(lua_State *L, int idx, const char *field)
{
    bool off = lua_getfield(L, idx, field) == LUA_TBOOLEAN && !lua_toboolean(L, -1);
    lua_pop(L, 1);
    return off;
}

static double number_field(lua_State *L, int idx, const char *field)
{
    lua_getfield(L, idx, field);
    double n = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return n;
}

/* core.connect{ options }: lua/kubelua/client.lua has the options and their types. quiet: warnings are not
 * logged */
static int connect_client(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lkl_box *box = lkl_box_new(L, &lkl__client_class, 0);
    kl_config_sources sources;
    lkl__connect_sources(L, 1, &sources);
    kl_client_options options = {
        .user_agent = lkl__field_text(L, 1, "user_agent"),
        .field_manager = lkl__field_text(L, 1, "field_manager"),
        .http1 = lkl__field_flag(L, 1, "http1"),
        .allow_http = lkl__field_flag(L, 1, "allow_http"),
        .no_protobuf = is_off(L, 1, "protobuf"),
        .no_check = is_off(L, 1, "check"),
    };
    options.qps = number_field(L, 1, "qps");
    options.burst = (int)number_field(L, 1, "burst");
    bool quiet = lkl__field_flag(L, 1, "quiet");
    kl_err err = KL_ERR_INIT;
    kl_client *client = NULL;
    if (lua_getfield(L, 1, "cache_ttl") != LUA_TNIL)
        options.cache_ttl = lkl_check_duration(L, lua_gettop(L), "cache_ttl");
    /* false: no cache on disk */
    char *cache = lua_getfield(L, 1, "cache_dir") == LUA_TNIL ? kl_shelf_home() : NULL;
    options.cache_dir = cache ? cache : lua_tostring(L, -1);
    lua_pop(L, 2); /* the table keeps them */
    lkl_warnings *warnings = lkl__warnings_new(!quiet);
    options.on_warning = lkl__warnings_add;
    options.on_warning_arg = warnings;
    kl_status st = kl_config_load(&sources, &options.config, &err);
    if (!st) {
        st = kl_client_new(&options, &client, &err);
        if (st)
            kl_config_fini(&options.config);
    }
    kl_free(cache);
    if (st)
        lkl__warnings_free(warnings);
    if (st)
        return lkl_raise(L, &err, "connect", NULL, NULL);
    lkl_hub *h = kl_new(lkl_hub);
    h->client = client;
    h->warnings = warnings;
    box->ptr = h;
    lua_settop(L, 2); /* keeps the box; drops what the sources pointed to */
    return 1;
}

/* client:namespace(): the context's, or "default" */
static int client_namespace(lua_State *L)
{
    lua_pushstring(L, kl_client_config(self(L)->client)->context_namespace);
    return 1;
}

static int client_server(lua_State *L)
{
    lua_pushstring(L, kl_client_config(self(L)->client)->server);
    return 1;
}

/* --- calls -------------------------------------------------------------------------------- */

/* core.begin(client, op): a call. Its user value 1 is the client, 2 the op's table, for messages. */
static int begin(lua_State *L)
{
    lkl_hub *h = self(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    kl_op op;
    lkl_op_from_table(L, 2, &op);
    if (op.verb == KL_WATCH)
        return luaL_argerror(L, 2, "start a watch with core.watch");
    lkl_box *box = lkl__post_box(L, &lkl__call_class);
    lkl_post *p = lkl__post_new(h);
    box->ptr = p;
    p->id = kl_client_do(h->client, &op, lkl__post_reply, p);
    return 1;
}

/* call:poll(): false while nothing came; then true and the body (nil when there is none), or a raised
 * error */
static int poll(lua_State *L)
{
    lkl_post *p = lkl__post_check(L, &lkl__call_class);
    lua_settop(L, 1);
    bool done;
    lkl_box *box = lkl_value_box(L);
    lkl_item *i = lkl__post_take(p, &done);
    if (i) {
        box->ptr = (void *)lkl__item_value(i);
        lua_pushboolean(L, true);
        lkl_push_value(L, box->ptr);
        return 2;
    }
    lua_pushboolean(L, done);
    if (!done)
        return 1;
    return lkl__post_status(p) ? lkl__post_raise(L, p) : 1;
}

/* --- discovery ---------------------------------------------------------------------------- */

static void push_strings(lua_State *L, char **list)
{
    lua_newtable(L);
    for (lua_Integer i = 0; list && list[i]; i++) {
        lua_pushstring(L, list[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

static void on_resolved(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    (void)r;
    lkl__post_done(arg, st, err);
}

/* core.resolve(client, kind): a call that ends when the kind is known. */
static int resolve(lua_State *L)
{
    lkl_hub *h = self(L);
    const char *kind = lkl__text(L, 2);
    lua_settop(L, 2);
    lua_createtable(L, 0, 2);
    lua_pushliteral(L, "resolve");
    lua_setfield(L, -2, "verb");
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, "kind");
    lkl_box *box = lkl__post_box(L, &lkl__call_class);
    box->ptr = lkl__post_new(h);
    kl_client_resolve(h->client, kind, on_resolved, box->ptr);
    return 1;
}

void lkl__push_resource(lua_State *L, const kl_resource *r)
{
    lua_createtable(L, 0, 10);
    lua_pushstring(L, r->group);
    lua_setfield(L, -2, "group");
    lua_pushstring(L, r->version);
    lua_setfield(L, -2, "version");
    lua_pushstring(L, r->kind);
    lua_setfield(L, -2, "kind");
    lua_pushstring(L, r->plural);
    lua_setfield(L, -2, "plural");
    lua_pushstring(L, r->singular);
    lua_setfield(L, -2, "singular");
    lua_pushboolean(L, r->namespaced);
    lua_setfield(L, -2, "namespaced");
    push_strings(L, r->verbs);
    lua_setfield(L, -2, "verbs");
    push_strings(L, r->short_names);
    lua_setfield(L, -2, "short_names");
    push_strings(L, r->categories);
    lua_setfield(L, -2, "categories");
    push_strings(L, r->subresources);
    lua_setfield(L, -2, "subresources");
}

/* core.resource(client, kind): what discovery says, or nil when it is not known yet */
static int resource(lua_State *L)
{
    const kl_resource *r = kl_client_resolve_cached(self(L)->client, lkl__text(L, 2));
    if (!r)
        return 0;
    lkl__push_resource(L, r);
    return 1;
}

static void free_array(void *array) { kl_free(array); }

static void free_strings(void *list)
{
    for (char **s = list; s && *s; s++)
        kl_free(*s);
    kl_free(list);
}

static const lkl_class array_class = {"kubelua.array", free_array, NULL, NULL};
static const lkl_class strings_class = {"kubelua.strings", free_strings, NULL, NULL};

/* core.resources(client): all resources that discovery knows, core and preferred versions first, or nil when
 * it knows none yet; then the failures, { ["group/version"] = why } */
static int resources(lua_State *L)
{
    kl_client *c = self(L)->client;
    lua_settop(L, 1);
    lkl_box *list = lkl_box_new(L, &array_class, 0), *failed = lkl_box_new(L, &strings_class, 0);
    size_t n = 0;
    const kl_resource **r = list->ptr = (void *)kl_client_resources(c, &n);
    if (!r)
        return 0;
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lkl__push_resource(L, r[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    failed->ptr = kl_client_discovery_failures(c);
    lua_newtable(L);
    for (char **s = failed->ptr; *s; s += 2) {
        lua_pushstring(L, s[1]);
        lua_setfield(L, -2, s[0]);
    }
    return 2;
}

/* client:forget(): the next resolve asks the server again */
static int forget(lua_State *L)
{
    kl_client_discovery_forget(self(L)->client);
    return 0;
}

/* core.raw(client, method, path, content_type or nil, body or nil): the answer's JSON. Waits without
 * slices. */
static int raw(lua_State *L)
{
    lkl_hub *h = self(L);
    const char *method = lkl__text(L, 2), *path = lkl__text(L, 3), *type = lkl__opt_text(L, 4, NULL);
    size_t n = 0;
    const char *body = luaL_optlstring(L, 5, NULL, &n);
    lkl_box *box = lkl_value_box(L);
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_client_raw(h->client, method, path, type, body, n, &v, &err))
        return lkl_raise(L, &err, method, path, NULL);
    box->ptr = (void *)v;
    lkl_push_value(L, v);
    return 1;
}

/* --- classes ------------------------------------------------------------------------------ */

static const luaL_Reg client_methods[] = {
    {"close", lkl__box_close},
    {"namespace", client_namespace},
    {"server", client_server},
    {"forget", forget},
    {"warnings", lkl__client_warnings},
    {"begin", begin},
    {"watch", lkl__client_watch},
    {"informers", lkl__client_informers},
    {"resolve", resolve},
    {"resource", resource},
    {"resources", resources},
    {"raw", raw},
    {"session", lkl__client_session},
    {"forward", lkl__client_forward},
    {NULL, NULL},
};
static const luaL_Reg call_methods[] = {{"poll", poll}, {"close", lkl__box_close}, {NULL, NULL}};

const lkl_class lkl__client_class = {"kubelua.client", lkl__hub_free, client_methods, NULL};
const lkl_class lkl__call_class = {"kubelua.call", lkl__post_free, call_methods, NULL};

void lkl__open_client(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"connect", connect_client}, {"recorder", lkl__recorder_new}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
