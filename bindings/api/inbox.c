/* inbox.c - holds one entry per key and feed, between the watch thread and the state's thread (inbox.h). */
#include <string.h>
#include "state/border.h"
#include "api/inbox.h"
#include "base/heap.h"
#include "base/mem.h"
#include "cache/indexer.h"

typedef struct entry {
    kl_list link;
    lkl_feed *feed; /* NULL for trouble */
    lkl_news news;
    char *key;
    const kl_value *known; /* what the reader knows, or NULL */
    const kl_value *last;  /* last state of an object that the reader knows, deleted since; or NULL */
    const kl_value *now;   /* the present object, or NULL */
    bool initial;
    kl_informer *informer; /* a reference; set for trouble only */
} entry;

lkl_inbox *lkl__inbox_new(void)
{
    lkl_inbox *b = kl_new(lkl_inbox);
    b->refs = 1;
    kl_mutex_init(&b->mu);
    kl_cond_init(&b->cond);
    kl_list_init(&b->ready);
    return b;
}

lkl_inbox *lkl__inbox_ref(lkl_inbox *b)
{
    b->refs++;
    return b;
}

static void entry_free(entry *e)
{
    kl_value_unref(e->known);
    kl_value_unref(e->last);
    kl_value_unref(e->now);
    if (e->informer)
        kl_informer_unref(e->informer);
    kl_free(e->key);
    kl_free(e);
}

void lkl__inbox_unref(lkl_inbox *b)
{
    if (--b->refs)
        return;
    for (kl_list *n; (n = kl_list_shift(&b->ready));)
        entry_free(KL_CONTAINER(n, entry, link));
    lkl__bell_unref(b->bell);
    kl_cond_fini(&b->cond);
    kl_mutex_fini(&b->mu);
    kl_free(b);
}

void lkl__inbox_set_bell(lkl_inbox *b, lkl_bell *bell)
{
    kl_lock(&b->mu);
    lkl_bell *old = b->bell;
    b->bell = bell ? lkl__bell_ref(bell) : NULL;
    if (b->len)
        lkl__bell_ring(bell);
    kl_unlock(&b->mu);
    lkl__bell_unref(old);
}

/* --- the watch thread --------------------------------------------------------------------- */

static void add_locked(lkl_inbox *b, entry *e) KL_REQUIRES(b->mu);
static void add_locked(lkl_inbox *b, entry *e)
{
    kl_list_push(&b->ready, &e->link);
    b->len++;
    kl_cond_signal(&b->cond);
    lkl__bell_ring(b->bell);
}

static void drop_locked(lkl_inbox *b, entry *e) KL_REQUIRES(b->mu);
static void drop_locked(lkl_inbox *b, entry *e)
{
    kl_list_remove(&e->link);
    b->len--;
    if (e->key)
        (void)kl_map_take(e->feed->pending, e->key);
}

static void set(const kl_value **slot, const kl_value *v)
{
    const kl_value *old = *slot;
    *slot = v ? kl_value_ref(v) : NULL;
    kl_value_unref(old);
}

/* A change of a key that has no entry. */
static entry *entry_new(lkl_feed *f, const char *key, const kl_value *old, unsigned flags)
{
    entry *e = kl_new(entry);
    e->feed = f;
    e->key = kl_strdup(key);
    set(&e->known, old);
    e->initial = flags & KL_INITIAL;
    return e;
}

static void on_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    lkl_feed *f = arg;
    lkl_inbox *b = f->inbox;
    char key[KL_KEY_MAX];
    if (!kl_indexer_key(now ? now : old, key))
        return; /* the store has no object without a valid key */
    entry *dropped = NULL;
    kl_lock(&b->mu);
    entry *e = kl_map_get(f->pending, key);
    if (!e) {
        e = entry_new(f, key, type == KL_ADDED ? NULL : old, flags);
        kl_map_set(f->pending, key, e);
        add_locked(b, e);
    }
    if (type == KL_DELETED && e->known && !e->last)
        set(&e->last, old);
    set(&e->now, type == KL_DELETED ? NULL : now);
    if (!e->known && !e->now) {
        drop_locked(b, e);
        dropped = e;
    }
    kl_unlock(&b->mu);
    if (dropped)
        entry_free(dropped);
}

static void on_synced(void *arg)
{
    lkl_feed *f = arg;
    entry *e = kl_new(entry);
    e->feed = f;
    e->news = LKL_SYNCED;
    kl_lock(&f->inbox->mu);
    add_locked(f->inbox, e);
    kl_unlock(&f->inbox->mu);
}

void lkl__inbox_trouble(lkl_inbox *b, kl_informer *i)
{
    entry *e = kl_new(entry);
    e->news = LKL_TROUBLE;
    e->informer = kl_informer_ref(i);
    kl_lock(&b->mu);
    /* trouble is rare, so this search is cheap; one entry per informer is enough */
    bool known = false;
    for (kl_list *n = b->ready.next; !known && n != &b->ready; n = n->next)
        known = KL_CONTAINER(n, entry, link)->informer == i;
    if (!known)
        add_locked(b, e);
    kl_unlock(&b->mu);
    if (known)
        entry_free(e);
}

/* --- the state's thread ------------------------------------------------------------------- */

/* Moves the entry's next event into `out`; returns true when the entry has another one. */
static bool say(entry *e, lkl_event *out)
{
    *out = (lkl_event){.feed = e->feed ? e->feed->id : 0, .news = e->news, .informer = e->informer};
    e->informer = NULL;
    if (e->news != LKL_CHANGE)
        return false;
    if (e->last) {
        out->old = e->last;
        e->last = NULL;
        set(&e->known, NULL);
        e->initial = false;
        return e->now;
    }
    out->old = e->known;
    out->now = e->now;
    out->initial = e->initial && !e->known;
    e->known = e->now = NULL;
    return false;
}

bool lkl__inbox_take(lkl_inbox *b, kl_time deadline, lkl_event *out)
{
    entry *done = NULL;
    kl_lock(&b->mu);
    while (deadline && kl_list_empty(&b->ready) && kl_cond_wait_until(&b->cond, &b->mu, deadline))
        continue;
    bool any = !kl_list_empty(&b->ready);
    if (any) {
        entry *e = KL_CONTAINER(b->ready.next, entry, link);
        if (!say(e, out)) {
            drop_locked(b, e);
            done = e;
        }
    }
    kl_unlock(&b->mu);
    if (done)
        entry_free(done);
    return any;
}

size_t lkl__inbox_len(lkl_inbox *b)
{
    kl_lock(&b->mu);
    size_t n = b->len;
    kl_unlock(&b->mu);
    return n;
}

lkl_feed *lkl__feed_new(lkl_inbox *b, kl_informer *i)
{
    lkl_feed *f = kl_new(lkl_feed);
    f->inbox = lkl__inbox_ref(b);
    f->id = ++b->ids;
    f->informer = kl_informer_ref(i);
    f->pending = kl_map_new();
    f->sub = kl_informer_subscribe(i, &(kl_handler){.on_event = on_event, .on_synced = on_synced, .arg = f});
    return f;
}

void lkl__feed_free(void *feed)
{
    lkl_feed *f = feed;
    lkl_inbox *b = f->inbox;
    kl_informer_unsubscribe(f->sub);
    kl_list gone;
    kl_list_init(&gone);
    kl_lock(&b->mu);
    for (kl_list *n = b->ready.next, *next; n != &b->ready; n = next) {
        next = n->next;
        entry *e = KL_CONTAINER(n, entry, link);
        if (e->feed == f) {
            drop_locked(b, e);
            kl_list_push(&gone, &e->link);
        }
    }
    kl_unlock(&b->mu);
    for (kl_list *n; (n = kl_list_shift(&gone));)
        entry_free(KL_CONTAINER(n, entry, link));
    kl_map_free(f->pending, NULL);
    kl_informer_unref(f->informer);
    lkl__inbox_unref(b);
    kl_free(f);
}
