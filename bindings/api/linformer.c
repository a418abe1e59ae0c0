/* linformer.c - shared informers in any Lua state (lua/kubelua/informers.lua gives them their shape).
 *
 *   client:informers() --> set:informer{...} --> informer:feed(id...) ... set:start() ... set:take() gives one event after the other
 *
 * Stores are read in place. Events wait in the set's inbox until the state asks for them, so handlers run
 * in the host's own thread. Closing the client stops its sets; their stores can still be read. */
#include <string.h>
#include "api/inbox.h"
#include "api/post.h"
#include "base/mem.h"
#include "cache/indexer.h"
#include "model/selector.h"
#include "informers/informers.h"

/* The informers of one factory. Each box that uses the set holds a reference. State's thread. */
typedef struct lkl_set {
    struct lkl_set *next, **at; /* in the hub's list, while informers is not NULL */
    int refs;
    kl_informers *informers; /* NULL once the set or its client was closed */
    lkl_inbox *inbox;
} lkl_set;

typedef struct one {
    lkl_set *set;
    kl_informer *informer;
} one; /* references to both */

extern const lkl_class lkl__set_class, lkl__informer_class, lkl__feed_class, lkl__inbox_class;

/* --- sets --------------------------------------------------------------------------------- */

static void set_stop(lkl_set *s)
{
    kl_informers *f = s->informers;
    if (!f)
        return;
    *s->at = s->next;
    if (s->next)
        s->next->at = s->at;
    s->informers = NULL;
    kl_informers_free(f);
}

static void set_unref(lkl_set *s)
{
    if (--s->refs)
        return;
    set_stop(s);
    lkl__inbox_unref(s->inbox);
    kl_free(s);
}

static void set_free(void *ptr)
{
    set_stop(ptr);
    set_unref(ptr);
}

void lkl__sets_stop(lkl_hub *h)
{
    while (h->sets)
        set_stop(h->sets);
}

static void on_trouble(void *arg, kl_informer *i) { lkl__inbox_trouble(((lkl_set *)arg)->inbox, i); }

/* client:informers(stream): a set of informers. Its user value is the client. */
int lkl__client_informers(lua_State *L)
{
    lkl_hub *h = lkl_box_check(L, 1, &lkl__client_class);
    lua_settop(L, 2);
    lkl_box *box = lkl_box_new(L, &lkl__set_class, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lkl_set *s = kl_new(lkl_set);
    box->ptr = s;
    s->refs = 1;
    s->inbox = lkl__inbox_new();
    s->informers = kl_informers_new(&(kl_informers_options){
        .client = h->client, .stream = lua_toboolean(L, 2), .on_trouble = on_trouble, .arg = s});
    s->next = h->sets;
    s->at = &h->sets;
    if (s->next)
        s->next->at = &s->next;
    h->sets = s;
    return 1;
}

static lkl_set *check_set(lua_State *L)
{
    lkl_set *s = lkl_box_check(L, 1, &lkl__set_class);
    if (!s->informers)
        lkl__error(L, "the client of these informers was closed");
    return s;
}

static const char *text(lua_State *L, const char *field)
{
    lua_getfield(L, 2, field);
    const char *s = lua_tostring(L, -1);
    lua_pop(L, 1); /* the table keeps it */
    return s;
}

static void projection_free(void *p) { kl_projection_unref(p); }
static const lkl_class projection_class = {.name = "kubelua.projection", .free = projection_free};

/* A box with the projection that the list {"spec.nodeName", ...} on top of the stack names; true: everything
 * but managedFields; nil: everything. */
static kl_projection *read_keep(lua_State *L)
{
    lkl_box *box = lkl_box_new(L, &projection_class, 0);
    lua_insert(L, -2);
    if (lua_isboolean(L, -1))
        return box->ptr = lua_toboolean(L, -1) ? kl_projection_without_managed_fields() : NULL;
    if (!lua_istable(L, -1))
        return NULL;
    size_t n = lua_rawlen(L, -1);
    const char **paths = lua_newuserdatauv(L, (n + 1) * sizeof *paths, 0);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        paths[i] = lkl__text(L, -1);
        lua_pop(L, 1);
    }
    kl_projection *p = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_projection_new(paths, n, &p, &err))
        lkl__fail(L, &err);
    return box->ptr = p;
}

/* set:informer{ kind =, ns =, labels =, fields =, keep = }: the informer for these; equal arguments give the
 * same one. */
static int set_informer(lua_State *L)
{
    lkl_set *s = check_set(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    kl_informer_want w = {.kind = text(L, "kind"),
        .ns = text(L, "ns"),
        .labels = text(L, "labels"),
        .fields = text(L, "fields")};
    luaL_argcheck(L, w.kind, 2, "kind is missing");
    lua_getfield(L, 2, "keep");
    w.keep = read_keep(L);
    lkl_box *box = lkl_box_new(L, &lkl__informer_class, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    one *o = kl_new(one);
    kl_err err = KL_ERR_INIT;
    if (kl_informers_acquire(s->informers, &w, &o->informer, &err)) {
        kl_free(o);
        return lkl__fail(L, &err);
    }
    kl_informer_ref(o->informer);
    o->set = s;
    s->refs++;
    box->ptr = o;
    return 1;
}

static int set_start(lua_State *L)
{
    kl_informers_start(check_set(L)->informers);
    return 0;
}

/* The end of a wait: after the seconds at 2, and after one slice at most. */
static kl_time slice_end(lua_State *L)
{
    lua_Number seconds = luaL_optnumber(L, 2, (lua_Number)LKL_SLICE);
    kl_time wait = seconds >= (lua_Number)LKL_SLICE / 1e9 ? LKL_SLICE
        : seconds > 0                                     ? (kl_time)(seconds * 1e9)
                                                          : 0;
    return kl_clock_now(kl_clock_real()) + wait;
}

/* set:wait(seconds): whether all informers that were started are synced; waits for one slice at most */
static int set_wait(lua_State *L)
{
    lua_pushboolean(L, kl_informers_wait(check_set(L)->informers, slice_end(L)));
    return 1;
}

/* --- what happens ------------------------------------------------------------------------- */

static int push_event(lua_State *L, lkl_inbox *b, kl_time deadline)
{
    static const char *const names[] = {"change", "synced", "trouble"};
    lkl_box *old = lkl_value_box(L), *now = lkl_value_box(L);
    lkl_event e;
    if (!lkl__inbox_take(b, deadline, &e))
        return 0;
    old->ptr = (void *)e.old;
    now->ptr = (void *)e.now;
    if (e.informer) {
        void *who = e.informer;
        kl_informer_unref(e.informer);
        lua_pushlightuserdata(L, who); /* for telling informers apart */
    } else {
        lua_pushinteger(L, e.feed);
    }
    lua_pushstring(L, names[e.news]);
    lkl_push_object(L, e.old);
    lkl_push_object(L, e.now);
    lua_pushboolean(L, e.initial);
    return 5;
}

/* set:take(seconds): nothing, or the next event: feed, "change", old, now, initial; or feed, "synced"; or
 * informer (as informer:id()), "trouble". Waits for one slice at most. */
static int set_take(lua_State *L) { return push_event(L, check_set(L)->inbox, slice_end(L)); }

/* set:ring(bell): from now on each event rings the bell; nil: no bell */
static int set_ring(lua_State *L)
{
    lkl_bell *bell = lua_isnoneornil(L, 2) ? NULL : lkl_box_check(L, 2, &lkl__bell_class);
    lkl__inbox_set_bell(check_set(L)->inbox, bell);
    return 0;
}

static int set_pending(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)lkl__inbox_len(check_set(L)->inbox));
    return 1;
}

static void inbox_free(void *b) { lkl__inbox_unref(b); }

/* core.inbox(): an inbox for feeds that are read on their own */
static int inbox(lua_State *L)
{
    lkl_box *box = lkl_box_new(L, &lkl__inbox_class, 0);
    box->ptr = lkl__inbox_new();
    return 1;
}

/* inbox:take(): as set:take, without waiting */
static int inbox_take(lua_State *L) { return push_event(L, lkl_box_check(L, 1, &lkl__inbox_class), 0); }

/* --- informers ---------------------------------------------------------------------------- */

static void one_free(void *ptr)
{
    one *o = ptr;
    if (o->set->informers)
        kl_informers_release(o->set->informers, o->informer);
    kl_informer_unref(o->informer);
    set_unref(o->set);
    kl_free(o);
}

static one *self(lua_State *L) { return lkl_box_check(L, 1, &lkl__informer_class); }

static one *running(lua_State *L)
{
    one *o = self(L);
    if (!o->set->informers)
        lkl__error(
            L, "these informers were shut down; their caches can still be read, but are no longer updated");
    return o;
}

static int one_id(lua_State *L)
{
    lua_pushlightuserdata(L, self(L)->informer);
    return 1;
}

/* informer:feed(inbox or nil): puts the informer's events into the inbox (nil: the set's). Returns the feed
 * and its number there. */
static int one_feed(lua_State *L)
{
    one *o = running(L);
    lkl_inbox *b = lua_isnoneornil(L, 2) ? o->set->inbox : lkl_box_check(L, 2, &lkl__inbox_class);
    lkl_box *box = lkl_box_new(L, &lkl__feed_class, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lkl_feed *f = lkl__feed_new(b, o->informer);
    box->ptr = f;
    lua_pushinteger(L, f->id);
    return 2;
}

static int one_synced(lua_State *L)
{
    lua_pushboolean(L, kl_informer_synced(self(L)->informer));
    return 1;
}

static int one_len(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)kl_informer_count(self(L)->informer));
    return 1;
}

/* informer:get(key): the object or nil */
static int one_get(lua_State *L)
{
    one *o = self(L);
    const char *key = lkl__text(L, 2);
    lkl__view_prepare(L);
    lkl__push_taken(L, kl_informer_lookup(o->informer, key));
    return 1;
}

typedef struct found {
    kl_objects objects;
    kl_selector *labels;
} found;

static void found_free(void *ptr)
{
    found *f = ptr;
    kl_objects_fini(&f->objects);
    kl_selector_free(f->labels);
    kl_free(f);
}

static const lkl_class found_class = {.name = "kubelua.objects", .free = found_free};

/* Pushes a box with what the query {ns, labels, index, value, terms, limit} at 2 (or none) finds, sorted by
 * key. */
static found *find(lua_State *L)
{
    one *o = self(L);
    kl_query q = {0};
    const char *labels = NULL;
    if (!lua_isnoneornil(L, 2)) {
        luaL_checktype(L, 2, LUA_TTABLE);
        lua_settop(L, 2);
        q.ns = text(L, "ns");
        labels = text(L, "labels");
        q.index = text(L, "index");
        q.value = text(L, "value");
        lua_getfield(L, 2, "limit");
        q.limit = (size_t)luaL_optinteger(L, -1, 0);
        if (lua_getfield(L, 2, "terms") == LUA_TTABLE)
            q.terms = lkl__read_terms(L, &q.n_terms);
    }
    lkl_box *box = lkl_box_new(L, &found_class, 0);
    found *f = kl_new(found);
    box->ptr = f;
    kl_err err = KL_ERR_INIT;
    if (labels && kl_selector_parse(labels, &f->labels, &err))
        lkl__fail(L, &err);
    q.labels = f->labels;
    if (kl_informer_list(o->informer, &q, &f->objects, &err))
        lkl__fail(L, &err);
    return f;
}

static int one_list(lua_State *L)
{
    lkl__push_list(L, &find(L)->objects);
    lkl_box_close(L, -2);
    return 1;
}

static int one_keys(lua_State *L)
{
    lua_settop(L, 1);
    found *f = find(L);
    lua_createtable(L, (int)f->objects.len, 0);
    char key[KL_KEY_MAX];
    for (size_t i = 0; i < f->objects.len; i++)
        if (kl_indexer_key(f->objects.v[i], key)) {
            lua_pushstring(L, key);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
    return 1;
}

/* informer:add_index(name, path) */
static int one_add_index(lua_State *L)
{
    one *o = self(L);
    kl_err err = KL_ERR_INIT;
    if (kl_informer_add_index_path(o->informer, lkl__text(L, 2), lkl__text(L, 3), &err))
        lkl__fail(L, &err);
    return 0;
}

static int one_kick(lua_State *L)
{
    kl_informer_kick(running(L)->informer);
    return 0;
}

static void set_text(lua_State *L, const char *field, const char *s)
{
    lua_pushstring(L, s);
    lua_setfield(L, -2, field);
}

static void set_count(lua_State *L, const char *field, uint64_t n)
{
    lua_pushinteger(L, (lua_Integer)n);
    lua_setfield(L, -2, field);
}

static void stats_free(void *ptr)
{
    kl_informer_stats_fini(ptr);
    kl_free(ptr);
}

static const lkl_class stats_class = {.name = "kubelua.stats", .free = stats_free};

/* informer:stats(): state, synced, parked, message and failure (kind) of the last failure or nil,
 * resourceVersion, objects, bytes, lists, watches, events, errors */
static int one_stats(lua_State *L)
{
    one *o = self(L);
    lkl_box *box = lkl_box_new(L, &stats_class, 0);
    kl_informer_stats *s = kl_new(kl_informer_stats);
    box->ptr = s;
    kl_informer_stats_get(o->informer, s);
    lua_createtable(L, 0, 11);
    set_text(L, "state", s->state);
    set_text(L, "message", s->message);
    set_text(L, "failure", s->failure ? kl_status_name(s->failure) : NULL);
    set_text(L, "resourceVersion", s->rv);
    set_count(L, "objects", s->objects);
    set_count(L, "bytes", s->bytes);
    set_count(L, "lists", s->lists);
    set_count(L, "watches", s->watches);
    set_count(L, "events", s->events);
    set_count(L, "errors", s->errors);
    lua_pushboolean(L, s->synced);
    lua_setfield(L, -2, "synced");
    lua_pushboolean(L, s->parked);
    lua_setfield(L, -2, "parked");
    return 1;
}

/* feed:resync(): an update for every object that there is */
static int feed_resync(lua_State *L)
{
    lkl_feed *f = lkl_box_check(L, 1, &lkl__feed_class);
    lua_getiuservalue(L, 1, 1);
    one *o = lkl_box_get(L, -1, &lkl__informer_class);
    if (o && o->set->informers)
        kl_informer_resync(f->informer, f->sub);
    return 0;
}

/* --- classes ------------------------------------------------------------------------------ */

static const luaL_Reg set_methods[] = {
    {"informer", set_informer},
    {"start", set_start},
    {"wait", set_wait},
    {"take", set_take},
    {"pending", set_pending},
    {"ring", set_ring},
    {"close", lkl__box_close},
    {NULL, NULL},
};
static const luaL_Reg informer_methods[] = {
    {"id", one_id},
    {"feed", one_feed},
    {"synced", one_synced},
    {"len", one_len},
    {"get", one_get},
    {"list", one_list},
    {"keys", one_keys},
    {"add_index", one_add_index},
    {"kick", one_kick},
    {"stats", one_stats},
    {"close", lkl__box_close},
    {NULL, NULL},
};
static const luaL_Reg feed_methods[] = {{"resync", feed_resync}, {"close", lkl__box_close}, {NULL, NULL}};
static const luaL_Reg inbox_methods[] = {{"take", inbox_take}, {"close", lkl__box_close}, {NULL, NULL}};

const lkl_class lkl__set_class = {"kubelua.informers", set_free, set_methods, NULL};
const lkl_class lkl__informer_class = {"kubelua.informer", one_free, informer_methods, NULL};
const lkl_class lkl__feed_class = {"kubelua.feed", lkl__feed_free, feed_methods, NULL};
const lkl_class lkl__inbox_class = {"kubelua.inbox", inbox_free, inbox_methods, NULL};

void lkl__open_informer(lua_State *L)
{
    static const luaL_Reg functions[] = {{"inbox", inbox}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
