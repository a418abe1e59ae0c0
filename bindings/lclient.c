/* lclient.c - a client for any Lua state: requests that are begun, waited for in slices, and watches read one event at a time.
 *
 *   client --begin--> call --poll--> (nothing yet) ... --> an object, or a raised error
 *   client --watch--> watch --next--> (nothing yet), type and object ... --> the end, or a raised error
 *
 * Waiting is cut into slices so that the host keeps its say: the loop around poll is Lua, where ^C and other hooks work.
 * A call or a watch whose userdata goes away is cancelled and left with the client as an orphan, until the client's thread is
 * done with it; a finaliser never waits for the network. Closing the client joins its threads, so nothing runs after that. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/sync.h"
#include "border.h"

#define SLICE KL_MILLISECONDS(200)       /* how long ^C may have to wait */

/* --- a call or a watch: a queue of what happened ---------------------------------------------------------------------------------------- */

typedef struct start start;
typedef struct item { struct item *next; char *type; const kl_value *v; } item;
typedef struct post post;

/* What a client's box owns. `posts` are its calls and watches, orphans too; the state's thread alone reads the list. */
typedef struct hub { kl_client *client; post *posts; } hub;

struct post {
    hub *hub;                   /* NULL once the client was closed; state's thread, as the next five */
    post *next, **at;
    bool watch, cancelled;
    bool orphan;                /* no userdata knows it any more */
    kl_client *client;          /* any thread; set once */
    start *start;               /* a watch until it was begun on the watch thread */
    uint64_t id;                /* calls: state's thread; watches: watch thread */

    kl_mutex mu;                /* guards the rest */
    kl_cond cond;
    bool done;                  /* nothing will be added */
    int pending;                /* functions posted to the watch thread that have not ended */
    kl_status st;
    kl_err err;
    item *head, **tail;
    size_t queued;
};

/* A watch whose reader is this far behind is ended, with an error: memory is not endless and HTTP/2 streams cannot be paused. */
#define QUEUE_MAX 100000

static post *post_new(hub *h)
{
    post *p = kl_new(post);
    kl_mutex_init(&p->mu);
    kl_cond_init(&p->cond);
    p->tail = &p->head;
    p->hub = h;
    p->client = h->client;
    p->next = h->posts;
    p->at = &h->posts;
    if (p->next)
        p->next->at = &p->next;
    h->posts = p;
    return p;
}

static void free_item(item *i)
{
    kl_value_unref(i->v);
    kl_free(i->type);
    kl_free(i);
}

/* Client's threads. */
static kl_status post_add(post *p, const char *type, const kl_value *taken, kl_err *err)
{
    item *i = kl_new(item);
    i->type = kl_strdup(type);
    i->v = taken;
    kl_lock(&p->mu);
    bool full = p->queued >= QUEUE_MAX;
    *p->tail = i;
    p->tail = &i->next;
    p->queued++;
    kl_cond_broadcast(&p->cond);
    kl_unlock(&p->mu);
    if (full)
        return kl_fail(err, KL_ETOOBIG, "the watch was ended because its reader is %d events behind; read faster, or select fewer objects", QUEUE_MAX);
    return KL_OK;
}

/* Client's threads. */
static void post_done(post *p, kl_status st, kl_err *err)
{
    kl_lock(&p->mu);
    p->done = true;
    p->st = st;
    if (st && err)
        kl_err_move(&p->err, err);
    kl_cond_broadcast(&p->cond);
    kl_unlock(&p->mu);
}

/* The next thing that happened, waited for one slice; NULL when there is none. *done: nothing will follow. */
static item *post_take(post *p, bool *done)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + SLICE;
    kl_lock(&p->mu);
    while (!p->head && !p->done && kl_cond_wait_until(&p->cond, &p->mu, deadline))
        continue;
    item *i = p->head;
    if (i) {
        p->head = i->next;
        if (!p->head)
            p->tail = &p->head;
        p->queued--;
    }
    *done = !i && p->done;
    kl_unlock(&p->mu);
    return i;
}

static kl_status post_status(post *p, kl_err *err)
{
    kl_lock(&p->mu);
    kl_status st = p->st;
    kl_err_copy(err, &p->err);
    kl_unlock(&p->mu);
    return st;
}

/* fn runs on the watch thread and ends with posted_done, its last touch. */
static void post_there(post *p, void (*fn)(void *))
{
    kl_lock(&p->mu);
    p->pending++;
    kl_unlock(&p->mu);
    kl_http_post(kl_client_watch_http(p->client), fn, p);
}

static void posted_done(post *p)
{
    kl_lock(&p->mu);
    p->pending--;
    kl_cond_broadcast(&p->cond);
    kl_unlock(&p->mu);
}

static void cancel_watch(void *arg)
{
    post *p = arg;
    if (p->id)
        kl_client_stream_cancel(p->client, p->id);
    posted_done(p);
}

static void free_start(start *s);

static void post_destroy(post *p)
{
    if (p->hub) {
        *p->at = p->next;
        if (p->next)
            p->next->at = p->at;
    }
    if (p->start)
        free_start(p->start);
    for (item *i = p->head, *next; i; i = next) {
        next = i->next;
        free_item(i);
    }
    kl_err_fini(&p->err);
    kl_mutex_fini(&p->mu);
    kl_cond_fini(&p->cond);
    kl_free(p);
}

static bool post_over(post *p)
{
    kl_lock(&p->mu);
    bool over = p->done && !p->pending;
    kl_unlock(&p->mu);
    return over;
}

static void post_cancel(post *p)
{
    if (p->cancelled || post_over(p))
        return;
    p->cancelled = true;
    if (p->watch)
        post_there(p, cancel_watch);
    else
        kl_client_cancel(p->client, p->id);
}

/* The userdata goes away. */
static void post_free(void *ptr)
{
    post *p = ptr;
    if (p->hub)
        post_cancel(p);
    if (!p->hub || post_over(p))
        post_destroy(p);
    else
        p->orphan = true;
}

static void reap_orphans(hub *h)
{
    for (post *p = h->posts, *next; p; p = next) {
        next = p->next;
        if (p->orphan && post_over(p))
            post_destroy(p);
    }
}

/* --- the client -------------------------------------------------------------------------------------------------------------------- */

static void free_hub(void *ptr)
{
    hub *h = ptr;
    kl_client_free(h->client);
    /* Its threads have ended: what they were still to do will not happen. */
    for (post *p = h->posts, *next; p; p = next) {
        next = p->next;
        if (p->orphan) {
            post_destroy(p);
        } else {
            p->hub = NULL;
            p->done = true;
        }
    }
    kl_free(h);
}

extern const lkl_class lkl__client_class, lkl__call_class, lkl__watch_class;

static hub *self(lua_State *L)
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
    hub *h = kl_new(hub);
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
        (void)post_add(arg, NULL, kl_value_ref(body), NULL);
    post_done(arg, st, err);
}

/* core.begin(client, op): a call. Its user value 1 is the client, 2 the op's table, for messages. */
static int begin(lua_State *L)
{
    hub *h = self(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    kl_op op;
    lkl_op_from_table(L, 2, &op);
    if (op.verb == KL_WATCH)
        return luaL_argerror(L, 2, "a watch is begun with core.watch");
    lkl_box *box = lkl_box_new(L, &lkl__call_class, 2);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, 2);
    reap_orphans(h);
    post *p = post_new(h);
    box->ptr = p;
    p->id = kl_client_do(h->client, &op, on_reply, p);
    return 1;
}

/* Raises err with what the op in user value 2 of the userdata at idx says. */
static int raise_for(lua_State *L, int idx, kl_err *err)
{
    lua_getiuservalue(L, idx, 2);
    int op = lua_gettop(L);
    const char *verb = opt_field(L, op, "verb"), *kind = opt_field(L, op, "kind"), *name = opt_field(L, op, "name"), *ns = opt_field(L, op, "ns");
    const char *key = !name ? ns : ns ? lua_pushfstring(L, "%s/%s", ns, name) : name;
    return lkl_raise(L, err, verb, kind, key);
}

static post *open_post(lua_State *L, const lkl_class *c)
{
    post *p = lkl_box_check(L, 1, c);
    if (!p->hub)
        luaL_error(L, "the client of this request was closed");
    return p;
}

/* call:poll(): false while nothing came; then true and the body (nil when there is none), or a raised error */
static int poll(lua_State *L)
{
    post *p = open_post(L, &lkl__call_class);
    lua_settop(L, 1);
    bool done;
    lkl_box *box = lkl_value_box(L);
    item *i = post_take(p, &done);
    if (i) {
        box->ptr = (void *)i->v;
        i->v = NULL;
        free_item(i);
        lua_pushboolean(L, true);
        lkl_push_value(L, box->ptr);
        return 2;
    }
    lua_pushboolean(L, done);
    if (!done)
        return 1;
    kl_err err = KL_ERR_INIT;
    if (post_status(p, &err))
        return raise_for(L, 1, &err);
    kl_err_fini(&err);
    return 1;
}

/* --- watches ----------------------------------------------------------------------------------------------------------------------------- */

static kl_status on_event(void *arg, const char *type, const kl_value *object, kl_err *err)
{
    return post_add(arg, type, object, err);
}

static void on_end(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    (void)code;
    (void)envelope;
    post_done(arg, st, err);
}

/* What the watch thread needs to begin; the strings are its own. */
struct start { kl_op op; char *ns, *name, *labels, *fields, *rv; };

static void free_start(start *s)
{
    kl_free(s->ns);
    kl_free(s->name);
    kl_free(s->labels);
    kl_free(s->fields);
    kl_free(s->rv);
    kl_free(s);
}

static void begin_watch(void *arg)
{
    post *p = arg;
    start *s = p->start;
    kl_stream_call call = { .event = on_event, .done = on_end, .arg = p };
    p->start = NULL;
    p->id = kl_client_stream(p->client, &s->op, &call);
    free_start(s);
    posted_done(p);
}

/* core.watch(client, op): a watch of the resource that the op names. The kind must be known (core.resource). */
static int watch(lua_State *L)
{
    hub *h = self(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    kl_op op;
    lkl_op_from_table(L, 2, &op);
    const kl_resource *r = kl_client_resolve_cached(h->client, op.kind ? op.kind : "");
    if (!r)
        return luaL_argerror(L, 2, "the kind is not resolved yet");
    lkl_box *box = lkl_box_new(L, &lkl__watch_class, 2);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, 2);
    reap_orphans(h);
    post *p = post_new(h);
    box->ptr = p;
    p->watch = true;
    start *s = p->start = kl_new(start);
    kl_op_init(&s->op, KL_WATCH, NULL);
    s->op.resource = r;
    s->op.ns = s->ns = kl_strdup(op.ns);
    s->op.name = s->name = kl_strdup(op.name);
    s->op.labels = s->labels = kl_strdup(op.labels);
    s->op.fields = s->fields = kl_strdup(op.fields);
    s->op.rv = s->rv = kl_strdup(op.rv);
    s->op.timeout_seconds = op.timeout_seconds;
    s->op.bookmarks = op.bookmarks;
    s->op.initial_events = op.initial_events;
    post_there(p, begin_watch);
    return 1;
}

/* watch:next(): false while nothing came; an event's type and object; nil when it ended; or a raised error */
static int next_event(lua_State *L)
{
    post *p = open_post(L, &lkl__watch_class);
    lua_settop(L, 1);
    bool done;
    lkl_box *box = lkl_value_box(L);
    item *i = post_take(p, &done);
    if (i) {
        char type[32];
        strncpy(type, i->type, sizeof type - 1);
        type[sizeof type - 1] = '\0';
        box->ptr = (void *)i->v;
        i->v = NULL;
        free_item(i);
        lua_pushstring(L, type);
        lkl_push_value(L, box->ptr);
        return 2;
    }
    if (!done) {
        lua_pushboolean(L, false);
        return 1;
    }
    kl_err err = KL_ERR_INIT;
    kl_status st = post_status(p, &err);
    if (st && st != KL_ECANCELLED)
        return raise_for(L, 1, &err);
    kl_err_fini(&err);
    lua_pushnil(L);
    return 1;
}

static int close_box(lua_State *L)
{
    lkl_box_close(L, 1);
    return 0;
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
    kl_time slice = kl_clock_now(kl_clock_real()) + SLICE;
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
    post_done(arg, st, err);
}

/* core.resolve(client, kind): a call that ends when the kind is known. */
static int resolve(lua_State *L)
{
    hub *h = self(L);
    const char *kind = luaL_checkstring(L, 2);
    lua_settop(L, 2);
    lkl_box *box = lkl_box_new(L, &lkl__call_class, 2);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_newtable(L);
    lua_pushliteral(L, "resolve");
    lua_setfield(L, -2, "verb");
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, "kind");
    lua_setiuservalue(L, -2, 2);
    box->ptr = post_new(h);
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
    hub *h = self(L);
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
    { "close", close_box }, { "namespace", client_namespace }, { "server", client_server }, { "forget", forget },
    { "pause", pause_client }, { "begin", begin }, { "watch", watch }, { "resolve", resolve }, { "resource", resource }, { "raw", raw }, { NULL, NULL },
};
static const luaL_Reg call_methods[] = { { "poll", poll }, { "close", close_box }, { NULL, NULL } };
static const luaL_Reg watch_methods[] = { { "next", next_event }, { "close", close_box }, { NULL, NULL } };

const lkl_class lkl__client_class = { "kubelua.client", free_hub, client_methods, NULL };
const lkl_class lkl__call_class = { "kubelua.call", post_free, call_methods, NULL };
const lkl_class lkl__watch_class = { "kubelua.watch", post_free, watch_methods, NULL };

void lkl__open_client(lua_State *L)
{
    static const luaL_Reg functions[] = { { "connect", connect_client }, { NULL, NULL } };
    luaL_setfuncs(L, functions, 0);
}
