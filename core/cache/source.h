/* source.h - the list/watch interface that the cache uses. The client implements it (informers/source.h);
 * specs implement it with scripted answers.
 *
 * One thread, the watch thread, calls all functions except post and free, and runs all callbacks. Before list
 * or watch returns, it may call `done`, only with a failure, and no other callback. When `item`, `event` or
 * `skipped` returns an error, the request ends, and `done` follows with that status. Any callback may start
 * requests and timers. A posted function always runs, even after everything was cancelled: it frees its
 * data. */
#ifndef KL_CACHE_SOURCE_H
#define KL_CACHE_SOURCE_H

#include <stdbool.h>
#include "base/clock.h"
#include "value/value.h"

typedef struct kl_list_request {
    const char *rv;                 /* NULL or "": unset (a consistent read); "0": any version */
    int64_t limit;                  /* 0: none */
    const char *continue_token;     /* NULL: the first page */
    const char *api_version, *kind; /* of the items, which may lack both; borrowed until done */
} kl_list_request;

typedef struct kl_watch_request {
    const char *rv;
    int64_t timeout_seconds;
    bool bookmarks;
    /* the server sends the existing objects first, not older than rv, then a bookmark that marks their end */
    bool initial;
} kl_watch_request;

/* An object that is too large, as its first bytes describe it. `ns` and `name` are not NUL-terminated. */
typedef struct kl_source_skipped {
    const char *type; /* of a watch event: "ADDED"...; "": unknown */
    const char *ns, *name;
    size_t nslen, namelen;
    const char *message; /* names the object, and says what to do */
} kl_source_skipped;

typedef struct kl_source_sink { /* callbacks of one list or watch */
    /* An item of a list. The callee owns `object`. */
    kl_status (*item)(void *arg, const kl_value *object, kl_err *err);
    /* An event of a watch. The callee owns `object`. */
    kl_status (*event)(void *arg, const char *type, const kl_value *object, kl_err *err);
    /* Returns the last known state of an object, a new reference or NULL: it speeds up decoding the next
     * state. May be NULL. The texts are not NUL-terminated. */
    const kl_value *(*known)(void *arg, const char *ns, size_t nslen, const char *name, size_t namelen);
    /* An object is too large and was skipped. NULL: such an object ends the request. */
    kl_status (*skipped)(void *arg, const kl_source_skipped *object, kl_err *err);
    /* No further event of the watch is ready; see `lulls`. */
    void (*lull)(void *arg);
    void (*opened)(void *arg); /* the server answered the watch with 200 */
    /* The request has ended: called once, and last. */
    void (*done)(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err);
    void *arg;
} kl_source_sink;

typedef struct kl_source {
    uint64_t (*list)(void *self, const kl_list_request *r, const kl_source_sink *sink);
    uint64_t (*watch)(void *self, const kl_watch_request *r, const kl_source_sink *sink);
    /* The request has no callbacks after cancel returns. */
    void (*cancel)(void *self, uint64_t id);
    uint64_t (*timer)(void *self, kl_time after, void (*fn)(void *), void *arg);
    void (*timer_cancel)(void *self, uint64_t id);
    /* Any thread: fn runs on the watch thread. */
    void (*post)(void *self, void (*fn)(void *), void *arg);
    /* Any thread, also within a posted function: the informer's last unref calls it. */
    void (*free)(void *self);
    void *self;
    /* Calls fn on the watch thread each time that the server answers again after an outage, until heed_not.
     * fn may call neither. NULL: the source cannot tell. */
    uint64_t (*heed)(void *self, void (*fn)(void *), void *arg);
    void (*heed_not)(void *self, uint64_t id);
    /* The source calls sink.lull after each batch of events, unless the request is done or cancelled first.
     * False: never. */
    bool lulls;
} kl_source;

#endif
