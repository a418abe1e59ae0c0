/* post.c - what passes between a client's threads and the state's (post.h). */
#include <string.h>
#include "api/post.h"
#include "base/mem.h"

/* A watch whose reader is this far behind ends with an error: memory is limited, and HTTP/2 streams cannot be
 * paused. */
#define QUEUE_MAX 100000

static void free_item(lkl_item *i)
{
    kl_value_unref(i->v);
    kl_free(i);
}

const kl_value *lkl__item_value(lkl_item *taken)
{
    const kl_value *v = taken->v;
    taken->v = NULL;
    free_item(taken);
    return v;
}

static lkl_item *item_new(const char *type, const kl_value *taken)
{
    lkl_item *i = kl_new(lkl_item);
    if (type)
        strncpy(i->type, type, sizeof i->type - 1);
    i->v = taken;
    return i;
}

static void push_locked(lkl_post *p, lkl_item *i) KL_REQUIRES(p->mu);
static void push_locked(lkl_post *p, lkl_item *i)
{
    *p->tail = i;
    p->tail = &i->next;
    p->queued++;
    kl_cond_broadcast(&p->cond);
}

kl_status lkl__post_add(lkl_post *p, const char *type, const kl_value *taken, kl_err *err)
{
    lkl_item *i = item_new(type, taken);
    kl_lock(&p->mu);
    bool full = p->queued >= QUEUE_MAX;
    push_locked(p, i);
    kl_unlock(&p->mu);
    if (full)
        return kl_fail(err, KL_ETOOBIG,
            "the watch was ended because its reader is %d events behind; read faster, or select fewer "
            "objects",
            QUEUE_MAX);
    return KL_OK;
}

/* Adds the item (unless NULL) and the end in one step. */
static void done(lkl_post *p, lkl_item *i, kl_status st, kl_err *err)
{
    kl_lock(&p->mu);
    if (i)
        push_locked(p, i);
    p->done = true;
    p->st = st;
    if (st && err)
        kl_err_move(&p->err, err);
    kl_cond_broadcast(&p->cond);
    kl_unlock(&p->mu);
}

void lkl__post_done(lkl_post *p, kl_status st, kl_err *err) { done(p, NULL, st, err); }

/* At once: who has seen the answer cancels nothing any more, and of a stream it is the beginning. */
void lkl__post_reply(void *post, kl_status st, int code, const kl_value *body, kl_err *err)
{
    (void)code;
    done(post, !st && body ? item_new(NULL, kl_value_ref(body)) : NULL, st, err);
}

lkl_item *lkl__post_take(lkl_post *p, bool *done)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + LKL_SLICE;
    kl_lock(&p->mu);
    while (!p->head && !p->done && kl_cond_wait_until(&p->cond, &p->mu, deadline))
        continue;
    lkl_item *i = p->head;
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

kl_status lkl__post_status(lkl_post *p)
{
    kl_lock(&p->mu);
    kl_status st = p->st;
    kl_unlock(&p->mu);
    return st;
}

void lkl__post_there(lkl_post *p, void (*fn)(void *))
{
    kl_lock(&p->mu);
    p->pending++;
    kl_unlock(&p->mu);
    kl_http_post(kl_client_watch_http(p->client), fn, p);
}

void lkl__post_was_there(lkl_post *p)
{
    kl_lock(&p->mu);
    p->pending--;
    kl_cond_broadcast(&p->cond);
    kl_unlock(&p->mu);
}

static void cancel_watch(void *arg)
{
    lkl_post *p = arg;
    if (p->id)
        kl_client_stream_cancel(p->client, p->id);
    lkl__post_was_there(p);
}

static void post_destroy(lkl_post *p)
{
    if (p->hub) {
        *p->at = p->next;
        if (p->next)
            p->next->at = p->at;
    }
    if (p->start)
        lkl__watch_start_free(p->start);
    for (lkl_item *i = p->head, *next; i; i = next) {
        next = i->next;
        free_item(i);
    }
    kl_err_fini(&p->err);
    kl_mutex_fini(&p->mu);
    kl_cond_fini(&p->cond);
    kl_free(p);
}

static bool post_over(lkl_post *p)
{
    kl_lock(&p->mu);
    bool over = p->done && !p->pending;
    kl_unlock(&p->mu);
    return over;
}

static void post_cancel(lkl_post *p)
{
    if (p->cancelled || post_over(p))
        return;
    p->cancelled = true;
    if (p->watch)
        lkl__post_there(p, cancel_watch);
    else if (p->web)
        kl_web_cancel(p->web, p->id);
    else
        kl_client_cancel(p->client, p->id);
}

void lkl__post_free(void *ptr)
{
    lkl_post *p = ptr;
    if (p->hub)
        post_cancel(p);
    if (!p->hub || post_over(p))
        post_destroy(p);
    else
        p->orphan = true;
}

static void reap_orphans(lkl_hub *h)
{
    for (lkl_post *p = h->posts, *next; p; p = next) {
        next = p->next;
        if (p->orphan && post_over(p))
            post_destroy(p);
    }
}

lkl_post *lkl__post_new(lkl_hub *h)
{
    reap_orphans(h);
    lkl_post *p = kl_new(lkl_post);
    kl_mutex_init(&p->mu);
    kl_cond_init(&p->cond);
    p->tail = &p->head;
    p->hub = h;
    p->client = h->client;
    p->web = h->web;
    p->next = h->posts;
    p->at = &h->posts;
    if (p->next)
        p->next->at = &p->next;
    h->posts = p;
    return p;
}

void lkl__guest_enter(lkl_hub *h, lkl_guest *g)
{
    g->next = h->guests;
    g->at = &h->guests;
    if (g->next)
        g->next->at = &g->next;
    h->guests = g;
}

void lkl__guest_gone(lkl_guest *g)
{
    if (!g->at)
        return;
    *g->at = g->next;
    if (g->next)
        g->next->at = g->at;
    g->at = NULL;
}

void lkl__hub_free(void *ptr)
{
    lkl_hub *h = ptr;
    lkl__sets_stop(h);
    while (h->guests)
        h->guests->leave(h->guests);
    kl_client_free(h->client);
    kl_web_free(h->web);
    lkl__warnings_free(h->warnings);
    /* The client's threads have ended, so no post that is still open will be answered. */
    for (lkl_post *p = h->posts, *next; p; p = next) {
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

/* --- Lua ---------------------------------------------------------------------------------- */

enum { POST_CLIENT = 1, POST_OP, POST_SLOTS = POST_OP };

lkl_box *lkl__post_box(lua_State *L, const lkl_class *c)
{
    lkl_box *box = lkl_box_new(L, c, POST_SLOTS);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, POST_CLIENT);
    lua_pushvalue(L, -2);
    lua_setiuservalue(L, -2, POST_OP);
    return box;
}

lkl_post *lkl__post_check(lua_State *L, const lkl_class *c)
{
    lkl_post *p = lkl_box_check(L, 1, c);
    if (!p->hub)
        luaL_error(L, "the client of this request was closed");
    return p;
}

static const char *op_field(lua_State *L, int op, const char *field)
{
    lua_getfield(L, op, field);
    return lua_tostring(L, -1); /* stays on the stack */
}

int lkl__post_raise(lua_State *L, lkl_post *p)
{
    luaL_checkstack(L, 8, NULL);
    lua_getiuservalue(L, 1, POST_OP);
    int op = lua_gettop(L);
    const char *verb = op_field(L, op, "verb"), *kind = op_field(L, op, "kind"),
               *name = op_field(L, op, "name"), *ns = op_field(L, op, "ns");
    const char *key = !name ? ns : ns ? lua_pushfstring(L, "%s/%s", ns, name) : name;
    kl_err err = KL_ERR_INIT;
    kl_lock(&p->mu);
    kl_err_copy(&err, &p->err);
    kl_unlock(&p->mu);
    return lkl_raise(L, &err, verb, kind, key);
}

int lkl__box_close(lua_State *L)
{
    lkl_box_close(L, 1);
    return 0;
}
