/* lwatch.c - a watch in any Lua state: begun on the watch thread, read one event at a time.
 *
 *   client:watch(op) --> watch:next() --> false (nothing yet), type and object ..., then nil (the end) or a raised error
 */
#include <string.h>
#include "api/post.h"
#include "base/mem.h"

static kl_status on_event(void *arg, const char *type, const kl_value *object, kl_err *err)
{
    return lkl__post_add(arg, type, object, err);
}

static void on_end(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    (void)code;
    (void)envelope;
    lkl__post_done(arg, st, err);
}

/* What the watch thread needs to begin; the strings are its own. */
struct lkl_watch_start {
    kl_op op;
    char *ns, *name, *labels, *fields, *rv;
};

void lkl__watch_start_free(lkl_watch_start *s)
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
    lkl_post *p = arg;
    lkl_watch_start *s = p->start;
    kl_stream_call call = {.event = on_event, .done = on_end, .arg = p};
    p->start = NULL;
    p->id = kl_client_stream(p->client, &s->op, &call);
    lkl__watch_start_free(s);
    lkl__post_was_there(p);
}

/* core.watch(client, op): a watch of the resource that the op names. The kind must be known
 * (core.resource). */
int lkl__client_watch(lua_State *L)
{
    lkl_hub *h = lkl_box_check(L, 1, &lkl__client_class);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    kl_op op;
    lkl_op_from_table(L, 2, &op);
    const kl_resource *r = kl_client_resolve_cached(h->client, op.kind ? op.kind : "");
    if (!r)
        return luaL_argerror(L, 2, "the kind is not resolved yet");
    lkl_box *box = lkl__post_box(L, &lkl__watch_class);
    lkl_post *p = lkl__post_new(h);
    box->ptr = p;
    p->watch = true;
    lkl_watch_start *s = p->start = kl_new(lkl_watch_start);
    kl_op_init(&s->op, KL_WATCH, NULL);
    s->op.form = op.form;
    s->op.resource = r;
    s->op.ns = s->ns = kl_strdup(op.ns);
    s->op.name = s->name = kl_strdup(op.name);
    s->op.labels = s->labels = kl_strdup(op.labels);
    s->op.fields = s->fields = kl_strdup(op.fields);
    s->op.rv = s->rv = kl_strdup(op.rv);
    s->op.timeout_seconds = op.timeout_seconds;
    s->op.bookmarks = op.bookmarks;
    s->op.initial_events = op.initial_events;
    lkl__post_there(p, begin_watch);
    return 1;
}

/* watch:next(): false while nothing came; an event's type and object; nil when it ended; or a raised error */
static int next_event(lua_State *L)
{
    lkl_post *p = lkl__post_check(L, &lkl__watch_class);
    lua_settop(L, 1);
    bool done;
    lkl_box *box = lkl_value_box(L);
    lkl_item *i = lkl__post_take(p, &done);
    if (i) {
        char type[sizeof i->type];
        memcpy(type, i->type, sizeof type);
        box->ptr = (void *)lkl__item_value(i);
        lua_pushstring(L, type);
        lkl_push_value(L, box->ptr);
        return 2;
    }
    if (!done) {
        lua_pushboolean(L, false);
        return 1;
    }
    kl_status st = lkl__post_status(p);
    if (st && st != KL_ECANCELLED)
        return lkl__post_raise(L, p);
    lua_pushnil(L);
    return 1;
}

static const luaL_Reg methods[] = {{"next", next_event}, {"close", lkl__box_close}, {NULL, NULL}};
const lkl_class lkl__watch_class = {"kubelua.watch", lkl__post_free, methods, NULL};
