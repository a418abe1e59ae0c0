/* source.h - the list/watch interface that the cache wants. `run` plugs the client in, specs plug in a
 * script.
 *
 * All functions (but post) are called on one thread, the source's ("watch thread"), and all callbacks come on
 * it; from within list and watch only `done` may be called, and only with a failure. When `item` or `event`
 * answers with an error the request ends, and `done` follows with that status. New requests and timers may be
 * started from any callback. A posted function always runs, also after everything was cancelled: it frees its
 * data. */
#ifndef KL_CACHE_SOURCE_H
#define KL_CACHE_SOURCE_H

#include <stdbool.h>
#include "base/clock.h"
#include "value/value.h"

typedef struct kl_list_request {
    const char *rv;                 /* NULL or "" = unset (consistent), "0" = any */
    int64_t limit;                  /* 0 none */
    const char *continue_token;     /* NULL */
    const char *api_version, *kind; /* of the items, which may not carry it themselves; borrowed until done */
} kl_list_request;

typedef struct kl_watch_request {
    const char *rv;
    int64_t timeout_seconds;
    bool bookmarks;
    /* send the existing objects first, not older than rv, then a bookmark that marks their end */
    bool initial;
} kl_watch_request;

/* An object that was too large: what its first bytes show. The texts are not NUL-terminated. */
typedef struct kl_source_skipped {
    const char *type; /* of a watch's event: "ADDED"...; "" when not known */
    const char *ns, *name;
    size_t nslen, namelen;
    const char *message; /* which object, and what to do */
} kl_source_skipped;

typedef struct kl_source_sink { /* callbacks of one list or watch */
    /* list; callee owns */
    kl_status (*item)(void *arg, const kl_value *object, kl_err *err);
    /* watch; callee owns */
    kl_status (*event)(void *arg, const char *type, const kl_value *object, kl_err *err);
    /* The last known state of an object, a new reference or NULL: its next state is decoded faster with it.
     * May be NULL. The texts are not NUL-terminated. */
    const kl_value *(*known)(void *arg, const char *ns, size_t nslen, const char *name, size_t namelen);
    /* An object was too large and is skipped. A failure ends the request. NULL: such an object ends it. */
    kl_status (*skipped)(void *arg, const kl_source_skipped *object, kl_err *err);
    /* watch: no more events ready; see `lulls` */
    void (*lull)(void *arg);
    void (*opened)(void *arg);                                                              /* watch: 200 */
    void (*done)(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err); /* once, last */
    void *arg;
} kl_source_sink;

typedef struct kl_source {
    uint64_t (*list)(void *self, const kl_list_request *r, const kl_source_sink *sink);
    uint64_t (*watch)(void *self, const kl_watch_request *r, const kl_source_sink *sink);
    /* no callback of it after this returns */
    void (*cancel)(void *self, uint64_t id);
    uint64_t (*timer)(void *self, kl_time after, void (*fn)(void *), void *arg);
    void (*timer_cancel)(void *self, uint64_t id);
    /* any thread: run fn on the watch thread */
    void (*post)(void *self, void (*fn)(void *), void *arg);
    /* by the informer's last unref: any thread, also from within a posted function */
    void (*free)(void *self);
    void *self;
    /* Calls fn on the watch thread each time that the server answers again after an outage, until heed_not.
     * Call both on the watch thread, and not from within fn. NULL: the source cannot tell. */
    uint64_t (*heed)(void *self, void (*fn)(void *), void *arg);
    void (*heed_not)(void *self, uint64_t id);
    /* it calls sink.lull after each batch of events, unless done or cancelled first; false: never */
    bool lulls;
} kl_source;

#endif
