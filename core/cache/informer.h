/* informer.h - one resource (and selector), kept in sync: reflectors + indexer + handlers. Refcounted.
 *
 * Reads are for any thread. Events are handed to handlers on the watch thread (or on the executor, see
 * below), strictly in order per object: deletes before adds after a relist; a delete carries the last
 * state; a new uid under the same name is a delete and an add; equal objects wake nobody. Handlers added
 * late get what exists, flagged KL_INITIAL. */
#ifndef KL_CACHE_INFORMER_H
#define KL_CACHE_INFORMER_H

#include "cache/source.h"
#include "model/event.h"
#include "model/selector.h"

typedef struct kl_informer kl_informer;
typedef struct kl_subscription kl_subscription;

#define KL_INITIAL 1u /* part of the first list, or of what a late handler missed */
#define KL_RELIST 2u  /* found by a relist */
#define KL_RESYNC 4u  /* old == new: the periodic resync */

typedef struct kl_handler {
    /* KL_ADDED: old NULL. KL_MODIFIED: both. KL_DELETED: `old` is the last known state, now NULL.
     * Borrowed. Must not wait. May be NULL. */
    void (*on_event)(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags);
    /* The initial list has been delivered to this handler. Once. May be NULL. */
    void (*on_synced)(void *arg);
    void *arg;
    /* After one or more on_event, on their thread, when no more are at hand: what was gathered may be
     * handed on. May be NULL. */
    void (*on_lull)(void *arg);
    /* The store has come to another resourceVersion, whatever brought it: an event, a bookmark, a list.
     * When no more are at hand, and before on_lull. May be NULL. */
    void (*on_progress)(void *arg);
} kl_handler;

typedef struct kl_informer_part {
    kl_source source;       /* moved in */
    const char *namespace_; /* copied */
} kl_informer_part;

typedef struct kl_informer_options {
    kl_source source; /* moved in */
    /* Instead of `source` and `namespace_`: some namespaces of the kind, each with a source of its own,
     * all of one watch thread. They are one store, which is synced when each was listed. */
    const kl_informer_part *parts;
    size_t n_parts; /* 0: the one above */
    /* Instead of both: namespaces come and go while it runs (kl_informer_add_part). It begins with none,
     * and is synced at once; `source` is its way to the watch thread and lists nothing. */
    bool changing;
    /* With that: some part was listed for the first time, and handlers have heard of it. In the apply
     * context; NULL: nobody asks. */
    void (*on_part)(void *arg);
    void *part_arg;
    kl_clock *clock;
    const char *resource;           /* for logs and metrics: "pods", "deployments.apps" */
    const char *api_version, *kind; /* put into list items, which carry none */
    const char *namespace_;         /* informative: in messages; NULL all */
    uint64_t seed;                  /* jitter */
    int64_t page_size;              /* 0: 500 */
    /* begin with the initial events of a watch, where the server can, rather than with a list */
    bool stream;
    /* Where events are applied and handlers run; NULL: at once on the watch thread. Must keep order. Used
     * when an index is a Lua function, which may not run on the watch thread. Any call is made on the
     * watch thread. */
    void (*execute)(void *arg, void (*fn)(void *), void *fnarg);
    void *execute_arg;
    /* A list or watch failed, also in the same way as before, or the informer recovered. On the watch
     * thread; NULL: nobody asks. */
    void (*on_trouble)(void *arg);
    void *trouble_arg;
} kl_informer_options;

kl_informer *kl_informer_new(const kl_informer_options *o); /* one reference, not started */
kl_informer *kl_informer_ref(kl_informer *i);
/* the last one must come after kl_informer_stop */
void kl_informer_unref(kl_informer *i);
void kl_informer_start(kl_informer *i); /* any thread; once */
/* Asks it to stop; `stopped` (may be NULL) is called on the watch thread when no callback will follow. Any
 * thread. */
void kl_informer_stop(kl_informer *i, void (*stopped)(void *arg), void *arg);

/* Ends a wait after a failure: what it waited for (a CRD, a permission) may be there now. Any thread. */
void kl_informer_kick(kl_informer *i);

/* The kind is gone, as far as the caller knows: where the server last said so (404), what is still there
 * goes as if an empty list had come, and handlers hear of deletes. Where it is back meanwhile nothing
 * changes. Any thread. */
void kl_informer_clear(kl_informer *i);

kl_subscription *kl_informer_subscribe(kl_informer *i, const kl_handler *h); /* any thread */
/* After this returned, the handler is not called any more (waits for a running callback unless called from
 * it). */
void kl_informer_unsubscribe(kl_subscription *s);
/* any thread, s subscribed: MODIFIED with KL_RESYNC for every object, to this handler */
void kl_informer_resync(kl_informer *i, kl_subscription *s);

/* --- parts that come and go: of an informer that is `changing`; any thread, in the order of the calls --- */
/* A namespace that it does not have. What is listed there handlers hear of, flagged KL_INITIAL. */
void kl_informer_add_part(kl_informer *i, const kl_informer_part *p);
/* Readers are told at once that it is not covered; its objects leave the store soon after. Nothing was
 * deleted, so no handler hears of it. */
void kl_informer_drop_part(kl_informer *i, const char *ns);
/* Whether the store holds what there is in a namespace: its part was listed. Any informer. */
bool kl_informer_covers(kl_informer *i, const char *ns);
/* The resourceVersion up to which readers see all of a namespace that is covered, as kl_informer_seen. */
uint64_t kl_informer_seen_in(kl_informer *i, const char *ns);

/* --- reading ------------------------------------------------------------------------------ */
bool kl_informer_synced(const kl_informer *i);
/* a new reference or NULL */
const kl_value *kl_informer_lookup(kl_informer *i, const char *key);
size_t kl_informer_count(kl_informer *i);
/* Which of its parts looks at a namespace (NULL: at what has none); -1: none does. Not of one that is
 * changing: there parts have no numbers. */
int kl_informer_part_of(const kl_informer *i, const char *ns);
/* at least 1; 0 for one that is changing */
size_t kl_informer_parts(const kl_informer *i);
bool kl_informer_changing(const kl_informer *i);
/* The resourceVersion up to which readers see all that happened in that part; 0: not known, or the server
 * does not count. */
uint64_t kl_informer_seen(const kl_informer *i, int part);

/* What a named index must say of an object: EQ, NE, IN, NOTIN, EXISTS or NOT_EXISTS, as label selectors
 * mean them: NE and NOTIN hold for an object without any value, too. An object that has several values is
 * EQ to each of them. */
typedef struct kl_index_term {
    const char *index;
    kl_selector_op op;
    /* NULL-terminated; one for EQ and NE; NULL for EXISTS and NOT_EXISTS */
    const char *const *values;
} kl_index_term;
typedef struct kl_query {      /* all of it must hold */
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
/* A consistent snapshot, sorted by key: one moment of the store. KL_ENOTFOUND when the index does not
 * exist (the message lists those that do), KL_EAGAIN while it is being built, KL_EINVAL for a term that
 * says nothing. */
KL_NODISCARD kl_status kl_informer_list(kl_informer *i, const kl_query *q, kl_objects *out, kl_err *err);
void kl_objects_fini(kl_objects *o);

/* --- indexes ------------------------------------------------------------------------------ */
/* Emits 0..n values for an object. Runs where events are applied (the lock is not held). */
typedef void kl_index_emit(void *emit_arg, const char *value);
typedef void kl_index_fn(void *arg, const kl_value *o, kl_index_emit *emit, void *emit_arg);
/* Named indexes are refcounted by name and identity: the same name with the same path is one index. A
 * different definition under a taken name is KL_EEXISTS. Existing objects are indexed before it returns
 * KL_OK... asynchronously on the executor for functions: `ready` (may be NULL) is called there, once,
 * whatever happens; `arg` is the informer's after KL_OK, unless the very same definition was there before. */
KL_NODISCARD kl_status kl_informer_add_index_path(
    kl_informer *i, const char *name, const char *path, kl_err *err);
KL_NODISCARD kl_status kl_informer_add_index_fn(kl_informer *i, const char *name, kl_index_fn *fn, void *arg,
    void (*free_arg)(void *), void (*ready)(void *), void *ready_arg, kl_err *err);
void kl_informer_drop_index(kl_informer *i, const char *name);

/* --- state -------------------------------------------------------------------------------- */
typedef struct kl_informer_stats {
    bool synced, parked; /* parked: 403, 404 or an object too big; retried with backoff */
    uint64_t objects, lists, watches, events, errors;
    /* what the list under way, or the stream of initial events, has brought so far; the store has it at
     * its end */
    uint64_t coming;
    /* of the objects, shared parts counted in each; an estimate from a sample when there are many */
    uint64_t bytes;
    uint64_t skipped;       /* objects above max_object that came, each time they came */
    uint64_t short_watches; /* ended within a second of being asked for */
    uint64_t stalls;        /* given up because they had been silent */
    uint64_t streams;       /* watches that asked for their initial events */
    uint64_t fallbacks;     /* of these, those that lists took over from */
    uint64_t relists;       /* times that the server had lost our place */
    uint64_t restarts;      /* watches that follow another one */
    kl_time last_event;     /* monotonic, lists, bookmarks and established watches count; 0 never */
    kl_time last_change;    /* the same without bookmarks */
    char *rv;               /* of several parts, the one that has come least far */
    /* Of several parts all that follows is of one in trouble, where one is. */
    /* "idle", "listing", "streaming", "watching", "waiting", "parked", "stopped"; message of the last
     * failure or NULL */
    char *state, *message;
    char *namespace_;  /* where that is; NULL: everywhere, or nobody said */
    kl_status failure; /* what kind of failure that is; KL_OK when there is none */
} kl_informer_stats;
void kl_informer_stats_get(kl_informer *i, kl_informer_stats *out);
void kl_informer_stats_fini(kl_informer_stats *s);
/* Whether it has come to resource version rv, which the server's are numbers for, and told its handlers;
 * parked counts as well: it will not come further by itself. */
bool kl_informer_reached(kl_informer *i, uint64_t rv);

#endif
