/* lclient.c - a client for any Lua state: requests that are begun, and waited for in slices.
 *
 *   client:begin(op) --> call:poll() --> false (nothing yet) ... then true and the answer, or a raised error
 *
 * Waiting is cut into slices so that the host keeps its say: the loop around poll is Lua (client.lua), where ^C and other hooks
 * work. Closing the client, or the state, joins its threads: nothing runs after that. Watches are in lwatch.c. */
#include <stdlib.h>
#include <string.h>
#include "post.h"
#include "base/mem.h"

static lkl_hub *self(lua_State *L)
{
    return lkl_box_check(L, 1, &lkl__client_class);
}

static const char *opt_field(lua_State *L, int idx, const char *field)
{
    if (lua_getfield(L, idx, field) == LUA_TNIL) {
        lua_pop(L, 1);
        return NULL;
    }
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_argerror(L, idx, lua_pushfstring(L, "%s: expected a string, got %s", field, luaL_typename(L, -1)));
    const char *s = lua_tostring(L, -1);
    lua_pop(L, 1);          /* the table keeps it */
    return s;
}

static bool flag_field(lua_State *L, int idx, const char *field)
{
    lua_getfield(L, idx, field);
    bool on = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return on;
}

/* core.connect{ server =, kubeconfig =, context =, cluster =, user =, namespace =, token =, as =, tls_server_name =, timeout =,
 * insecure =, http1 =, user_agent =, field_manager = }; options are checked by lua/kubelua/client.lua */
static int connect_client(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lkl_box *box = lkl_box_new(L, &lkl__client_class, 0);
    kl_config_sources sources;
    kl_config_sources_default(&sources);
    kl_client_options options = {
        .user_agent = opt_field(L, 1, "user_agent"),
        .field_manager = opt_field(L, 1, "field_manager"),
        .http1 = flag_field(L, 1, "http1"),
    };
    const char *server = opt_field(L, 1, "server");
    sources.explicit_file = opt_field(L, 1, "kubeconfig");
    sources.o.context = opt_field(L, 1, "context");
    sources.o.cluster = opt_field(L, 1, "cluster");
    sources.o.user = opt_field(L, 1, "user");
    sources.o.ns = opt_field(L, 1, "namespace");
    sources.o.server = server;
    sources.o.token = opt_field(L, 1, "token");
    sources.o.impersonate = opt_field(L, 1, "as");
    sources.o.tls_server_name = opt_field(L, 1, "tls_server_name");
    sources.o.timeout = opt_field(L, 1, "timeout");
    if (flag_field(L, 1, "insecure"))
        sources.o.insecure = 1;
    /* A server alone, without any file or context, needs none of what the environment offers. */
    if (server && !sources.explicit_file && !sources.o.context) {
        sources.env = NULL;
        sources.home_file = NULL;
        sources.try_in_cluster = false;
    }
    kl_err err = KL_ERR_INIT;
    kl_client *client = NULL;
    kl_status st = kl_config_load(&sources, &options.config, &err);
    if (!st) {
        st = kl_client_new(&options, &client, &err);
        if (st)
            kl_config_fini(&options.config);
    }
    if (st)
        return lkl_raise(L, &err, "connect", NULL, NULL);
    lkl_hub *h = kl_new(lkl_hub);
    h->client = client;
    box->ptr = h;
    return 1;
}

/* client:namespace(): of the context, or "default" */
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

/* --- calls ----------------------------------------------------------------------------------------------------------------------------- */

static void on_reply(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    (void)code;
    if (!st && body)
        (void)lkl__post_add(arg, NULL, kl_value_ref(body), NULL);
    lkl__post_done(arg, st, err);
}

/* core.begin(client, op): a call. Its user value 1 is the client, 2 the op's table, for messages. */
static int begin(lua_State *L)
{
    lkl_hub *h = self(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    kl_op op;
    lkl_op_from_table(L, 2, &op);
    if (op.verb == KL_WATCH)
        return luaL_argerror(L, 2, "a watch is begun with core.watch");
    lkl_box *box = lkl__post_box(L, &lkl__call_class);
    lkl_post *p = lkl__post_new(h);
    box->ptr = p;
    p->id = kl_client_do(h->client, &op, on_reply, p);
    return 1;
}

/* call:poll(): false while nothing came; then true and the body (nil when there is none), or a raised error */
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

/* client:pause(seconds): waits for one slice at most; what is left of the seconds */
static int pause_client(lua_State *L)
{
    self(L);
    kl_time until = kl_clock_now(kl_clock_real()) + lkl_check_duration(L, 2, "pause");
    kl_mutex mu;
    kl_cond never;
    kl_mutex_init(&mu);
    kl_cond_init(&never);
    kl_time slice = kl_clock_now(kl_clock_real()) + LKL_SLICE;
    kl_lock(&mu);
    while (kl_cond_wait_until(&never, &mu, slice < until ? slice : until))
        continue;
    kl_unlock(&mu);
    kl_cond_fini(&never);
    kl_mutex_fini(&mu);
    lua_pushnumber(L, (double)(until - kl_clock_now(kl_clock_real())) / 1e9);
    return 1;
}

/* --- discovery ---------------------------------------------------------------------------------------------------------------------------- */

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
    const char *kind = luaL_checkstring(L, 2);
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

/* core.resource(client, kind): what discovery says, or nil when it is not known yet */
static int resource(lua_State *L)
{
    const kl_resource *r = kl_client_resolve_cached(self(L)->client, luaL_checkstring(L, 2));
    if (!r)
        return 0;
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
    return 1;
}

/* client:forget(): the next resolve asks the server again */
static int forget(lua_State *L)
{
    kl_client_discovery_forget(self(L)->client);
    return 0;
}

/* core.raw(client, method, path, content_type or nil, body or nil): the answer's JSON. Waits without slices. */
static int raw(lua_State *L)
{
    lkl_hub *h = self(L);
    const char *method = luaL_checkstring(L, 2), *path = luaL_checkstring(L, 3), *type = luaL_optstring(L, 4, NULL);
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

/* --- classes -------------------------------------------------------------------------------------------------------------------------------- */

static const luaL_Reg client_methods[] = {
    { "close", lkl__box_close }, { "namespace", client_namespace }, { "server", client_server }, { "forget", forget },
    { "pause", pause_client }, { "begin", begin }, { "watch", lkl__client_watch }, { "resolve", resolve }, { "resource", resource }, { "raw", raw }, { NULL, NULL },
};
static const luaL_Reg call_methods[] = { { "poll", poll }, { "close", lkl__box_close }, { NULL, NULL } };

const lkl_class lkl__client_class = { "kubelua.client", lkl__hub_free, client_methods, NULL };
const lkl_class lkl__call_class = { "kubelua.call", lkl__post_free, call_methods, NULL };

void lkl__open_client(lua_State *L)
{
    static const luaL_Reg functions[] = { { "connect", connect_client }, { NULL, NULL } };
    luaL_setfuncs(L, functions, 0);
}
