/* inbox.h - events of informers on their way into a Lua state: filled on the watch thread, emptied by the
 * state's owner.
 *
 * Until the owner reads, all events of a key become one entry: its reader's last state, and the present one.
 * So an inbox holds at most one entry per object and feed, however rarely its owner reads, and loses only
 * intermediate states, never an object.
 *
 *   the reader knows nothing:   add, ..., gone again            no entry
 *   the reader knows a:         it changes to b, then to c      update(a, c)
 *                               it goes                         delete(last of a)
 *                               it goes, b comes by its name    delete(last of a), add(b)
 *
 * A feed is one subscription; several may share an inbox and keep the order of their keys' first events. */
#ifndef LKL_INBOX_H
#define LKL_INBOX_H

#include <lua.h>
#include "api/bell.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sync.h"
#include "cache/informer.h"

typedef struct lkl_inbox {
    int refs;        /* boxes and feeds; state's thread */
    lua_Integer ids; /* state's thread */
    kl_mutex mu;     /* guards the rest, and the entries of its feeds */
    kl_cond cond;
    kl_list ready; /* entries in order */
    size_t len;
    lkl_bell *bell; /* rings with each entry; a reference, or NULL */
} lkl_inbox;

typedef struct lkl_feed {
    lkl_inbox *inbox;      /* a reference */
    lua_Integer id;        /* the reader's id of the feed */
    kl_informer *informer; /* a reference */
    kl_subscription *sub;
    kl_map *pending; /* key -> entry; under the inbox's lock */
} lkl_feed;

typedef enum lkl_news { LKL_CHANGE, LKL_SYNCED, LKL_TROUBLE } lkl_news;
typedef struct lkl_event {
    lua_Integer feed; /* the feed's id; 0 for trouble */
    lkl_news news;
    /* of a change: references owned by the reader; NULL where there was, or is, no object */
    const kl_value *old, *now;
    bool initial;          /* an add of an object that existed before the reader */
    kl_informer *informer; /* trouble: a reference */
} lkl_event;

/* --- the state's thread ------------------------------------------------------------------- */
lkl_inbox *lkl__inbox_new(void);
lkl_inbox *lkl__inbox_ref(lkl_inbox *b);
void lkl__inbox_unref(lkl_inbox *b);
/* The next event, waited for until `deadline` (0: not at all); false when there is none. */
bool lkl__inbox_take(lkl_inbox *b, kl_time deadline, lkl_event *out);
size_t lkl__inbox_len(lkl_inbox *b);
/* Sets the bell to ring for events (NULL: none); rings it at once if the inbox is not empty. */
void lkl__inbox_set_bell(lkl_inbox *b, lkl_bell *bell);
lkl_feed *lkl__feed_new(lkl_inbox *b, kl_informer *i);
/* Ends the subscription; unread events are dropped. Waits for a running callback, which never blocks. */
void lkl__feed_free(void *feed);

/* --- any thread --------------------------------------------------------------------------- */
/* Reports that an informer's trouble has changed; several reports are one event until the reader takes it. */
void lkl__inbox_trouble(lkl_inbox *b, kl_informer *i);

#endif
