/* informer_impl.h - the internals of an informer, for the files that implement it only.
 *
 *   informer.c   life, jobs between threads, start and stop, reading
 *   follow.c     the watch thread: performs the reflector's actions
 *   apply.c      the apply context: the store and its changes
 *   handlers.c   the apply context: calls the subscribers
 *   parts.c      namespaces: which part watches which, and how parts come and go */
#ifndef KL_CACHE_INFORMER_IMPL_H
#define KL_CACHE_INFORMER_IMPL_H

#include <stdatomic.h>
#include "base/map.h"
#include "base/sync.h"
#include "cache/indexer.h"
#include "cache/informer.h"
#include "cache/reflector.h"

struct kl_subscription {
    kl_informer *informer; /* a reference until unsubscribed */
    kl_handler handler;
    atomic_int refs;     /* the subscriber's, and the apply context's while it knows it */
    bool active, synced; /* apply context: gets events; on_synced was called */
    bool told;           /* apply context: it got an event since its last on_lull */
    bool dead;           /* under informer->mu */
    uint64_t caller;     /* under informer->mu: the thread that runs its callback now, or 0 */
};

/* What several reflectors counted. */
typedef struct kl__sums {
    kl_reflector_counts counts;
    uint64_t restarts;
} kl__sums;

/* One list and watch, of all namespaces or of one. */
typedef struct kl__follower {
    kl_informer *i; /* whose part it is */
    kl_source source;
    char *ns;  /* the namespace it watches, a different one for each part; NULL: all */
    size_t at; /* changing informers, under their mu: its index in `parts` */

    /* watch thread */
    kl_reflector *reflector;
    uint64_t turn;    /* counts performed actions */
    uint64_t request; /* the open list or watch, 0 none */
    uint64_t timer;   /* 0 none */
    kl_time timer_at;
    /* the kind of its lists if it is not the item's kind with "List" appended; or NULL */
    char *list_kind;
    bool typed;            /* the items of the open list have their own kind */
    const kl_value **page; /* the items received so far */
    size_t n_page, cap_page;
    size_t page_kept;      /* how many of them are from complete pages */
    _Atomic size_t coming; /* a copy of n_page; any thread reads it */
    bool streaming;        /* the open watch sends initial events: they are collected */
    /* key -> 1 + its place in `page`; made when an initial event is not ADDED, or a page is not sorted after
     * the one before; NULL until then */
    kl_map *page_of;
    char *last_key;      /* the last key of the received pages; NULL before */
    kl_err stream_error; /* the ERROR event of the open watch */
    bool has_stream_error;

    /* apply context */
    atomic_bool listed; /* once; any thread reads it */
    /* the resourceVersion that it has reached; NULL: none, or the informer has only this part */
    char *reached;
    _Atomic uint64_t seen; /* the same as a number; any thread reads it */

    /* under the informer's mu: */
    const char *state; /* the reflector's last report */
    char *message;
    kl_status failure;
    bool parked;
    kl_reflector_counts counts;
} kl__follower;

struct kl_informer {
    atomic_int refs;
    uint64_t heed; /* watch thread: the id of source.heed; 0: none */
    /* the source that gives the watch thread, which all parts share; its own only when changing */
    kl_source home;
    bool changing; /* parts come and go; false: they are fixed, and at least one */
    void (*on_part)(void *arg);
    void *part_arg;
    uint64_t seed;
    int64_t page_size;
    bool stream;
    kl_clock *clock;
    char *resource, *api_version, *kind;
    void (*execute)(void *arg, void (*fn)(void *), void *fnarg);
    void *execute_arg;
    void (*on_trouble)(void *arg);
    void *trouble_arg;
    kl_indexer *indexer;
    _Atomic bool synced;
    _Atomic uint64_t events, skipped;
    _Atomic kl_time last_event, last_change;
    /* the watch thread's id while it delivers an event of a source that calls `lull`; or 0 */
    _Atomic uint64_t bringing;

    /* watch thread */
    bool started, running; /* was started once; started and not stopped */
    bool ended;            /* stopped, and the executor (which may be freed) has none of its jobs left */
    /* an event was applied at once, and on_lull has not been called since */
    bool owes_lull;

    /* apply context */
    /* the subscriptions known here, each a reference; updated when subs_version changes */
    kl_subscription **active;
    size_t n_active;
    uint64_t active_version;
    bool stopped;
    bool filling; /* function indexes run for objects that were there before them */
    bool moved;   /* some part has advanced since handlers were called */
    /* the part that was furthest behind at the last search; NULL: search */
    const kl__follower *least;

    kl_mutex mu;
    kl_cond idle; /* a callback of a dead subscription has ended */
    /* under mu: */
    kl_subscription **subs;
    size_t n_subs;
    uint64_t subs_version;
    /* Changed under mu. A dropped part lives until the watch thread, and then the apply context, have
     * released it. */
    kl__follower **parts;
    size_t n_parts;
    kl_map *by_ns; /* changing informers: `parts` by namespace; else NULL */
    kl__sums gone; /* counts of dropped parts */
};

/* A function to run on the watch thread or in the apply context. It holds a reference to its informer. */
typedef struct kl__job {
    kl_informer *i; /* a reference */
    void (*fn)(kl_informer *i, struct kl__job *j);
    kl__follower *from; /* the part that sends it to the apply context */
    kl_subscription *sub;
    void (*call)(void *arg);
    void *call_arg;
    kl_event_type type;
    const kl_value *object;
    const kl_value **page;
    size_t n_page;
    char *rv;
} kl__job;

/* --- informer.c: any thread, but for kl__job_apply, which is for the watch thread --------- */
kl__job *kl__job_new(kl_informer *i, void (*fn)(kl_informer *, kl__job *));
kl__job *kl__job_of(kl__follower *f, void (*fn)(kl_informer *, kl__job *));
void kl__job_post_watch(kl_informer *i, kl__job *j); /* to the watch thread */
/* through the watch thread into the apply context */
void kl__job_post(kl_informer *i, kl__job *j);
void kl__job_apply(kl_informer *i, kl__job *j); /* into the apply context */
void kl__job_lull(kl_informer *i);              /* watch thread: a batch of events has ended */
void kl__sums_add(kl__sums *s, const kl_reflector_counts *c);

/* --- parts.c ------------------------------------------------------------------------------ */
kl__follower *kl__follower_new(kl_informer *i, const kl_informer_part *part, uint64_t seed);
void kl__follower_free(kl__follower *f);
/* A copy of the list of present parts, which the caller frees. For the watch thread, on which no part
 * disappears meanwhile. */
kl__follower **kl__parts_copy(kl_informer *i, size_t *n);
/* watch thread: marks a changing informer as synced */
void kl__parts_started(kl_informer *i);

/* --- follow.c: watch thread --------------------------------------------------------------- */
void kl__follow_step(kl__follower *f, const kl_reflector_input *in);
void kl__follow_perform(kl__follower *f, const kl_reflector_action *a);
/* the reflector's state, for kl_informer_stats_get */
void kl__follow_publish(kl__follower *f);
void kl__follow_drop_page(kl__follower *f);
void kl__follow_stop(kl__follower *f); /* ends its list, watch and timer */

/* --- apply.c: jobs of the apply context --------------------------------------------------- */
void kl__apply_event(kl_informer *i, kl__job *j);   /* from, type, object */
void kl__apply_rv(kl_informer *i, kl__job *j);      /* from, rv */
void kl__apply_replace(kl_informer *i, kl__job *j); /* from, page, n_page, rv */
void kl__apply_nothing(kl_informer *i, kl__job *j); /* from: removes the objects that the part listed */
/* from: removes the part's objects without calling handlers; frees the part */
void kl__apply_forget(kl_informer *i, kl__job *j);

/* --- handlers.c: apply context, but for kl__subscription_unref ---------------------------- */
void kl__handlers_refresh(kl_informer *i); /* before a round of calls: brings the list of handlers up to date
                                            */
void kl__handlers_tell(
    kl_informer *i, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags);
void kl__handlers_tell_synced(kl_informer *i);
void kl__handlers_lull(kl_informer *i); /* after one or more rounds */
void kl__subscription_unref(kl_subscription *s);

#endif
