/* wiring_impl.h - the inside of a wiring, for wiring.c (life), mapper_state.c, mapping.c (events to keys) and
 * reader.c (reads). */
#ifndef KL_CONTROLLER_WIRING_IMPL_H
#define KL_CONTROLLER_WIRING_IMPL_H

#include <stdatomic.h>

#include "base/map.h"
#include "base/sync.h"
#include "controller/wiring.h"

/* The script's state on the mapper thread; opened there on first use, closed there. Shared by a wiring and
 * its indexes. */
typedef struct kl_mapper_state {
    atomic_int refs;
    kl_loop *mapper;
    kl_loop_line *line; /* events that wait for the functions */
    kl_program *program;
    size_t index;
    void *state;
    bool failed; /* the last opening failed; logged once */
    /* the function that exceeded its budget, and how: no function is called any more. NULL: none did. Set
     * once */
    _Atomic(char *) spent;
    atomic_bool stopped; /* the functions are not needed any more: running ones end, and none is called */
    /* for reports about `spent`: the functions' controller, its counters, the caches' callback and its
     * loop */
    char *controller;
    kl_controller_metrics *metrics; /* may be NULL */
    kl_caches *caches;
    kl_loop *loop;
    /* measures the functions' share of the mapper thread. Mapper thread only, but for `share` */
    kl_clock *clock;
    kl_time since, taken; /* of the running period: its beginning, the time used in it */
    bool told;
    atomic_int share; /* of the last period, in percent */
} kl_mapper_state;
kl_mapper_state *kl__mapper_state_ref(kl_mapper_state *m);
void kl__mapper_state_unref(kl_mapper_state *m);
/* mapper thread; NULL after a failure, logged when it is the first in a row */
void *kl__mapper_state_open(kl_mapper_state *m);
/* A share of the mapper thread, in percent, above which a controller's functions are reported. */
#define KL__SHARE_FAIR 50
/* Adds to the time that functions took. Mapper thread. */
void kl__mapper_state_took(kl_mapper_state *m, kl_time took);
/* The same for an index function that a change waited for. Fails with KL_ETIMEOUT when such functions hold
 * changes up, and no script's take more than those of this one. */
KL_NODISCARD kl_status kl__mapper_state_held_up(kl_mapper_state *m, kl_time took, kl_err *err);
/* A function failed on `o`. True when it exceeded a budget (its controller is parked and the failure logged),
 * or when it was stopped. Mapper thread. */
bool kl__mapper_state_spent(
    kl_mapper_state *m, kl_status st, const char *function, const kl_value *o, const kl_err *err);

typedef enum kl_role { KL_ROLE_PRIMARY, KL_ROLE_OWNS, KL_ROLE_WATCH } kl_role;

/* One kind whose events feed the queue. */
typedef struct kl_feed {
    kl_wiring *w;
    kl_role role;
    const kl_when *when;
    const kl_watch_spec *watch; /* KL_ROLE_WATCH */
    struct kl_need *need;
    kl_subscription *sub;
    atomic_bool told; /* the existing objects were delivered; later events are changes */
} kl_feed;

/* One kind that the controller uses. */
typedef struct kl_need {
    kl_cache *cache;
    kl_informer *informer; /* a reference, set once; NULL until resolved */
    const kl_resource *resource;
    bool indexed;
} kl_need;

typedef struct kl_wired_index {
    const kl_index_spec *spec;
    kl_need *need;
    char *name; /* in the informer: unique per path, or per generation for functions */
    bool added;
    atomic_bool ready;
} kl_wired_index;

struct kl_reader {
    /* the caches are in another process (run/remote.h), and the other members are unused; NULL: they are
     * here */
    const struct kl_remote *remote;
    kl_wiring *w;
    /* of a view (controller/view.h): the writes applied to the caches; NULL: not a view */
    struct kl_overlay *over;
    bool (*recall)(void *arg, const char *kind, const kl_read_query *q, kl_objects *out);
    void *recall_arg;
};
/* kl_reader_list of a view. */
KL_NODISCARD kl_status kl__view_list(
    kl_reader *rd, const char *kind, const kl_read_query *q, kl_objects *out, kl_err *err);

struct kl_wiring {
    kl_logic logic; /* first: kl_wiring_of */
    kl_reader reader;
    kl_wiring_options o;
    atomic_int refs;
    atomic_bool active;
    atomic_bool followed; /* handed over: its events that wait for the mapper are still mapped */
    bool attends;         /* loop only: runs wait for their writes in its caches */
    kl_need *needs;       /* [0] is the controller's own resource */
    size_t n_needs;
    kl_feed *feeds;
    size_t n_feeds;
    kl_wired_index *indexes;
    size_t n_indexes;
    kl_mapper_state *mapper; /* NULL when no spec names a function */
    char *problem;           /* an invalid index, or a resource that cannot be divided */
    /* loop only: divided: the set of namespaces that its caches hold or will hold. NULL: none */
    char **held;
    /* a subset that must be covered before the wiring is published. NULL: none */
    char **awaited;
    /* divided, without a list of namespaces: the cache of Namespaces */
    struct {
        kl_cache *cache;
        kl_informer *informer; /* a reference */
        kl_subscription *sub;
    } spaces;
    atomic_bool told_abroad; /* divided: a warning that a function maps to other namespaces was logged */
    kl_mutex mu;
    kl_map *pending KL_GUARDED_BY(mu); /* events waiting for the mapper, by "feed kind key" */
};

#define KL_NAMESPACE_KIND "v1/Namespace"

/* --- holding.c; on the loop --------------------------------------------------------------- */
void kl__holding_begin(kl_wiring *w);
void kl__holding_retire(kl_wiring *w);
void kl__holding_end(kl_wiring *w);
bool kl__holding_advance(kl_wiring *w); /* true: all held namespaces are covered */
/* what w waits for; NULL: nothing. Caller frees */
char *kl__holding_why(const kl_wiring *w);

kl_need *kl__wiring_need(kl_wiring *w, const char *kind); /* NULL when not declared */
/* How many of its resolved kinds have the name `word` ("cm", "deployments.apps"); *out: the first.
 */
size_t kl__wiring_named(kl_wiring *w, const char *word, kl_need **out);
/* The script's priority of an object of its resource (NULL: unknown), within +-KL_PRIORITY_MOST. A function
 * runs on the mapper thread with its `state`; without a state the result is 0. */
int kl__own_priority(kl_wiring *w, void *state, const kl_value *object);
/* Informer callback of a feed. */
void kl__feed_event(void *feed, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags);
/* Emits the keys that an object of the feed's kind maps to now. Any thread but the mapper's, for which it may
 * wait. */
void kl__feed_keys(kl_feed *f, const kl_value *object, kl_emit_fn *emit, void *arg);
void kl__feed_lull(void *feed);
void kl__feed_synced(void *feed);
/* NULL when there is none */
const char *kl__wired_index_name(kl_wiring *w, const kl_need *n, const char *name);

#endif
