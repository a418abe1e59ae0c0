/* indexer_impl.h - an indexer from the inside: shared by indexer.c (objects) and indexes.c (where they stand). */
#ifndef KL_CACHE_INDEXER_IMPL_H
#define KL_CACHE_INDEXER_IMPL_H

#include <stdatomic.h>
#include "base/map.h"
#include "base/sync.h"
#include "cache/indexer.h"
#include "model/path.h"

typedef struct kl__index kl__index;
typedef struct kl__entry kl__entry;

typedef struct kl__bucket {
    kl__index *of;               /* NULL: of all objects */
    kl__entry **v;               /* sorted by key */
    size_t len, cap;
    char value[];
} kl__bucket;

struct kl__entry {
    const kl_value *object;
    kl__bucket **in;             /* n of them; the first is the one of all objects */
    uint32_t n;
    uint32_t seen;               /* the last kl_indexer_mark since which it was put or kept */
    char key[];
};

struct kl__index {
    char *name;
    kl_path *path;               /* a path index; */
    kl_index_fn *fn;             /* or a function; neither: the namespace */
    void *arg;
    void (*free_arg)(void *);
    kl_map *buckets;             /* value -> bucket */
    int users;
    bool live;                   /* the writer keeps it */
    bool ready;                  /* it knows all objects: readers may use it */
};

struct kl_indexer {
    kl_mutex mu;
    /* under mu: */
    kl_map *objects;             /* key -> entry */
    kl__bucket *all;
    kl__index **indexes, **dropped;
    size_t n_indexes, n_dropped;
    _Atomic uint64_t generation; /* of `indexes` and their `live`; the writer looks at it without the lock */
    char *rv;                    /* never NULL */
    size_t rv_cap;
    /* the writer's: */
    uint32_t mark;
    kl__index **live;            /* as of live_generation */
    size_t n_live;
    uint64_t live_generation;
    kl_buf text;                 /* the values that were emitted, one after the other with their NULs */
    struct emitted { kl__index *index; size_t at; } *emitted;
    size_t n_emitted, cap_emitted;
};

/* --- indexes.c: under ix->mu where the name says so ------------------------------------------------------------------------------ */
kl__index *kl__index_find_locked(const kl_indexer *ix, const char *name) KL_REQUIRES(ix->mu);
kl__index *kl__index_add_locked(kl_indexer *ix, const char *name) KL_REQUIRES(ix->mu);
void kl__index_free(kl__index *x);
/* The values of `o`. Runs scripts: not under the lock. */
void kl__index_compute(const kl__index *x, const kl_value *o, kl_index_emit *emit, void *arg);
void kl__index_join_locked(kl__entry *e, kl__index *x, const char *value);
kl__bucket *kl__bucket_new(kl__index *of, const char *value);
void kl__bucket_free(void *b);
void kl__bucket_enter_locked(kl__entry *e, kl__bucket *b);
void kl__bucket_leave_locked(kl__entry *e, kl__bucket *b);       /* frees b when nobody is left in it, unless it is the one of all objects */

#endif
