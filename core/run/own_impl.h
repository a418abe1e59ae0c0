/* own_impl.h - the inside of own_writes, for own_writes.c (awaited versions, and waiting keys) and
 * own_answer.c (the meaning of an answer). */
#ifndef KL_RUN_OWN_IMPL_H
#define KL_RUN_OWN_IMPL_H

#include <stdatomic.h>
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sync.h"
#include "model/selector.h"
#include "run/own_writes.h"

/* A cache that may owe versions. */
typedef struct kl__place {
    kl_list link;
    kl_own_writes *o;
    kl_informer *informer; /* a reference */
    const kl_resource *resource;
    kl_selector *labels; /* NULL: all */
    kl_field_selector *fields;
    int users;
    kl_subscription *sub;
    atomic_size_t owes; /* entries here, readable without the lock */
    kl_heap *counted;   /* one for each part of the informer: by resourceVersion */
    kl_list others;     /* the rest */
} kl__place;

/* KL__NUMBERED: as KL__COUNTED, but in `others`, for changing informers, whose parts have no heaps. */
typedef enum kl__debt { KL__COUNTED, KL__NUMBERED, KL__GONE, KL__EXACT, KL__SET } kl__debt;

/* What a subresource without a version in its answer does: the object then has this field, or is gone. */
typedef struct kl__effect {
    const char *subresource, *at, *field;
} kl__effect;

typedef struct kl__entry {
    kl_list of_mark, of_place; /* of_place: in `others` */
    kl_heap_node node;         /* in `counted` */
    kl__debt what;
    struct kl__mark *mark;
    kl__place *place;
    int part;
    uint64_t number; /* NUMBERED */
    char *ns, *key;  /* of the object; ns NULL: it has none */
    char *uid;       /* GONE: the incarnation that must be gone; NULL: any. SET: the one that was changed */
    const kl__effect *effect; /* SET */
    /* EXACT: shown at version rv, or when the version is not `before` (NULL: none) any more */
    char *rv, *before;
} kl__entry;

/* The versions for which one name waits. */
typedef struct kl__mark {
    char *name;
    kl_list entries; /* never empty while it is in the map */
    size_t counted;  /* of these, COUNTED or NUMBERED */
    kl_time until;
    char **waiting;
    size_t n_waiting; /* keys that are held */
    bool told;        /* a wait was counted in the metrics */
    kl_list shown;    /* in the list of marks to free, after it left the map */
} kl__mark;

struct kl_own_writes {
    const char *controller;
    kl_workqueue *queue;
    kl_clock *clock;
    kl_controller_metrics *metrics;
    atomic_size_t n_marks; /* readable without the lock */
    kl_mutex mu;
    kl_list places KL_GUARDED_BY(mu);
    kl_map *marks KL_GUARDED_BY(mu);
};

/* Adds an entry to the mark of `name`, replacing one that it makes superfluous. Takes over e's texts, which
 * the caller sets. */
void kl__own_add_locked(kl_own_writes *o, const char *name, kl__place *p, kl__entry *e, uint64_t rv,
    kl_time until) KL_REQUIRES(o->mu);

#endif
