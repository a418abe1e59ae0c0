/* informer.h - one resource (and selector), kept in sync: reflectors + indexer + handlers. Refcounted.
 *
 * Reads are for any thread. Handlers get events on the watch thread (or on the executor, see below), strictly
 * in order per object: deletes before adds after a relist; a delete carries the last state; a new uid under
 * the same name is a delete and an add; an unchanged object causes no call. Handlers added late get the
 * existing objects, flagged KL_INITIAL. */
#ifndef KL_CACHE_INFORMER_H
#define KL_CACHE_INFORMER_H

#include "cache/source.h"
#include "model/event.h"
#include "model/selector.h"

typedef struct kl_informer kl_informer;
typedef struct kl_subscription kl_subscription;

#define KL_INITIAL 1u /* part of the first list, or an object that a late handler missed */
#define KL_RELIST 2u  /* found by a relist */
#define KL_RESYNC 4u  /* old == new: the periodic resync */

typedef struct kl_handler {
    /* KL_ADDED: old NULL. KL_MODIFIED: both. KL_DELETED: `old` is the last known state, now NULL.
     * Borrowed. Must not wait. May be NULL. */
    void (*on_event)(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags);
    /* The initial list has been delivered to this handler. Once. May be NULL. */
    void (*on_synced)(void *arg);
    void *arg;
    /* After one or more on_event, on their thread, when no more events are ready: the end of a batch. May be
     * NULL. */
    void (*on_lull)(void *arg);
    /* The store has reached another resourceVersion, by an event, a bookmark or a list. Called when no more
     * events are ready, before on_lull. May be NULL. */
    void (*on_progress)(void *arg);
} kl_handler;

typedef struct kl_informer_part {
    kl_source source;       /* moved in */
    const char *namespace_; /* copied */
} kl_informer_part;

typedef struct kl_informer_options {
    kl_source source; /* moved in */
    /* Instead of `source` and `namespace_`: a list of namespaces, each with its own source, all on one watch
     * thread. They fill one store, which is synced when all are listed. */
    const kl_informer_part *parts;
    size_t n_parts; /* 0: `source` is used */
    /* Instead of both: namespaces come and go while it runs (kl_informer_add_part). It begins with none, and
     * is synced at once; `source` only gives the watch thread and lists nothing. */
    bool changing;
    /* With `changing`: a part was listed for the first time, and its handlers were called. In the apply
     * context (`execute`); may be NULL. */
    void (*on_part)(void *arg);
    void *part_arg;
    kl_clock *clock;
    const char *resource;           /* for logs and metrics: "pods", "deployments.apps" */
    const char *api_version, *kind; /* put into list items, which carry none */
    const char *namespace_;         /* only for messages; NULL: all */
    uint64_t seed;                  /* jitter */
    int64_t page_size;              /* 0: 500 */
    /* begin with the initial events of a watch rather than with a list, if the server supports it */
    bool stream;
    /* Runs fn where events are applied and handlers run, in order; NULL: at once on the watch thread. Needed
     * when an index is a Lua function, which may not run on the watch thread. Called on the watch thread
     * only. */
    void (*execute)(void *arg, void (*fn)(void *), void *fnarg);
    void *execute_arg;
    /* Called when a list or watch failed, even in the same way as before, or when the informer recovered. On
     * the watch thread; may be NULL. */
    void (*on_trouble)(void *arg);
    void *trouble_arg;
} kl_informer_options;

kl_informer *kl_informer_new(const kl_informer_options *o); /* one reference, not started */
kl_informer *kl_informer_ref(kl_informer *i);
/* a started informer must be stopped before its last unref */
void kl_informer_unref(kl_informer *i);
void kl_informer_start(kl_informer *i); /* any thread; once */
/* Requests a stop; `stopped` (may be NULL) is called on the watch thread, after the last callback. Any
 * thread. */
void kl_informer_stop(kl_informer *i, void (*stopped)(void *arg), void *arg);

/* Ends the backoff after a failure, because the missing CRD or permission may exist now. Any thread. */
void kl_informer_kick(kl_informer *i);

/* The caller believes that the kind is gone. If the server's last answer agrees (404), the store is emptied
 * as by an empty list, and handlers get deletes. If the server has the kind again by then, nothing
 * changes. Any thread. */
void kl_informer_clear(kl_informer *i);

kl_subscription *kl_informer_subscribe(kl_informer *i, const kl_handler *h); /* any thread */
/* After this returns, the handler is not called any more. It waits for a running callback, unless that
 * callback calls it. */
void kl_informer_unsubscribe(kl_subscription *s);
/* any thread, s subscribed: MODIFIED with KL_RESYNC for every object, to this handler */
void kl_informer_resync(kl_informer *i, kl_subscription *s);

/* --- parts that come and go: of an informer that is `changing`; any thread, in the order of the calls --- */
/* Adds a namespace that it does not have. Handlers get its objects, flagged KL_INITIAL. */
void kl_informer_add_part(kl_informer *i, const kl_informer_part *p);
/* Ends the cover of the namespace at once; its objects leave the store soon after. They were not deleted, so
 * no handler is called. */
void kl_informer_drop_part(kl_informer *i, const char *ns);
/* Whether the store covers a namespace: its part was listed. Any informer. */
bool kl_informer_covers(kl_informer *i, const char *ns);
/* The resourceVersion up to which readers see all of a namespace that is covered, as kl_informer_seen. */
uint64_t kl_informer_seen_in(kl_informer *i, const char *ns);

/* --- reading ------------------------------------------------------------------------------ */
bool kl_informer_synced(const kl_informer *i);
/* a new reference or NULL */
const kl_value *kl_informer_lookup(kl_informer *i, const char *key);
size_t kl_informer_count(kl_informer *i);
/* The part that watches a namespace (NULL: cluster-scoped objects); -1: none. Not for a changing informer:
 * its parts have no numbers. */
int kl_informer_part_of(const kl_informer *i, const char *ns);
/* The number of its parts, at least 1; 0 for a changing informer, whose parts come and go. */
size_t kl_informer_parts(const kl_informer *i);
bool kl_informer_changing(const kl_informer *i);
/* The resourceVersion up to which readers see all changes of that part; 0: unknown, or the server's versions
 * are not numbers. */
uint64_t kl_informer_seen(const kl_informer *i, int part);

/* A condition on a named index: EQ, NE, IN, NOTIN, EXISTS or NOT_EXISTS, as in label selectors: NE and NOTIN
 * hold for an object without any value, too. An object that has several values is EQ to each of them. */
typedef struct kl_index_term {
    const char *index;
    kl_selector_op op;
    /* NULL-terminated; one for EQ and NE; NULL for EXISTS and NOT_EXISTS */
    const char *const *values;
} kl_index_term;
typedef struct kl_query {      /* all conditions must hold */
    const char *ns;            /* NULL: all */
    const kl_selector *labels; /* NULL: all */
    const char *index, *value; /* named index; NULL: none */
    const kl_index_term *terms;
    size_t n_terms; /* more of them */
    bool (*where)(void *arg, const kl_value *o);
    void *where_arg;
    size_t limit; /* 0: none */
} kl_query;
typedef struct kl_objects {
    size_t len;
    const kl_value **v;
} kl_objects; /* each a reference */
/* A consistent snapshot, sorted by key: one moment of the store. KL_ENOTFOUND when the index does not exist
 * (the message lists those that do), KL_EAGAIN while it is being built, KL_EINVAL for an empty term. */
KL_NODISCARD kl_status kl_informer_list(kl_informer *i, const kl_query *q, kl_objects *out, kl_err *err);
void kl_objects_fini(kl_objects *o);

/* --- indexes ------------------------------------------------------------------------------ */
/* Emits 0..n values for an object. Runs where events are applied, without the lock. */
typedef void kl_index_emit(void *emit_arg, const char *value);
typedef void kl_index_fn(void *arg, const kl_value *o, kl_index_emit *emit, void *emit_arg);
/* Named indexes are refcounted by name and identity: the same name with the same path is one index. A
 * different definition under a taken name is KL_EEXISTS. A path index is complete when the call returns
 * KL_OK. A function index is filled on the executor, in pieces between its other work; then `ready` (may be
 * NULL) is always called once.
 * After KL_OK the informer owns `arg`, unless the same definition existed before. */
KL_NODISCARD kl_status kl_informer_add_index_path(
    kl_informer *i, const char *name, const char *path, kl_err *err);
KL_NODISCARD kl_status kl_informer_add_index_fn(kl_informer *i, const char *name, kl_index_fn *fn, void *arg,
    void (*free_arg)(void *), void (*ready)(void *), void *ready_arg, kl_err *err);
void kl_informer_drop_index(kl_informer *i, const char *name);
/* For index functions: the object was there before the index, so no change waits for the call. */
bool kl_informer_filling(const kl_informer *i);

/* --- state -------------------------------------------------------------------------------- */
typedef struct kl_informer_stats {
    bool synced, parked; /* parked: 4xx (but 429), or an object too big; retried with backoff */
    uint64_t objects, lists, watches, events, errors;
    /* objects received so far by the running list or stream of initial events; they reach the store at its
     * end */
    uint64_t coming;
    /* memory of the objects, shared parts counted in each; an estimate from a sample when there are many */
    uint64_t bytes;
    uint64_t skipped;       /* received objects above max_object, counted each time */
    uint64_t short_watches; /* ended within a second of their request */
    uint64_t stalls;        /* watches given up because of silence */
    uint64_t streams;       /* watches that requested initial events */
    uint64_t fallbacks;     /* of these, those that fell back to lists */
    uint64_t relists;       /* times that our resourceVersion had expired */
    uint64_t restarts;      /* watches that followed an earlier one */
    kl_time last_event;     /* monotonic; a list, a bookmark and a new watch are events, too; 0: never */
    kl_time last_change;    /* the same without bookmarks */
    char *rv;               /* with several parts, that of the part furthest behind */
    /* With several parts, the following fields describe a failing part, if there is one. */
    /* "idle", "listing", "streaming", "watching", "waiting", "parked", "stopped"; message: of the last
     * failure, or NULL */
    char *state, *message;
    char *namespace_;  /* the namespace of that failure; NULL: all namespaces, or unknown */
    kl_status failure; /* the kind of that failure; KL_OK when there is none */
} kl_informer_stats;
void kl_informer_stats_get(kl_informer *i, kl_informer_stats *out);
void kl_informer_stats_fini(kl_informer_stats *s);
/* Whether the informer has reached resourceVersion rv and called its handlers (versions must be numbers).
 * True for a parked informer, too, because it makes no progress without help. */
bool kl_informer_reached(kl_informer *i, uint64_t rv);

#endif
