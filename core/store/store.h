/* store.h - every object of the server, by resource, with one counter of resource versions and a history
 * of changes.
 *
 * Objects are values and never change in place; a bucket holds those of one resource sorted by key
 * ("ns/name", or "name"), as etcd would. All functions run under the server's lock. */
#ifndef KL_STORE_STORE_H
#define KL_STORE_STORE_H

#include "base/list.h"
#include "model/event.h"
#include "value/value.h"

typedef struct kl__store kl__store;

typedef struct kl__entry {
    char *key;
    const kl_value *object;
    uint64_t rv;
} kl__entry;

/* One change: `old` is the state before (NULL for ADDED), `now` the state after; for a deletion, the last
 * state with the deletion's RV. */
typedef struct kl__change {
    uint64_t rv;
    kl_event_type type;
    char *key;
    const kl_value *old, *now;
} kl__change;

typedef struct kl__bucket {
    char *group, *plural;
    kl__entry **v; /* sorted by key */
    size_t len, cap;
    kl__change *ring; /* the last changes, oldest at `first` */
    size_t first, count, ring_cap;
    uint64_t forgotten; /* changes up to this RV are not in the ring any more */
    /* The range of unknown versions, which changes of an earlier process may have had that did not reach the
     * disk. 0: none. */
    uint64_t gap_from, gap_to;
    uint64_t last_rv; /* of its latest change */
    kl_list watches;  /* see watch.c */
} kl__bucket;

typedef void kl__store_listener(void *arg, kl__bucket *b, const kl__change *c);

kl__store *kl__store_new(size_t history, kl__store_listener *changed, void *arg);
void kl__store_free(kl__store *s);
/* Makes versions begin above `rv`; lower ones belong to an earlier process, and their changes are unknown.
 * Before the first bucket. */
void kl__store_begin(kl__store *s, uint64_t rv);
/* Restores an object of an earlier process; watches do not get it. Takes the reference. Before the first
 * change. */
void kl__store_restore(kl__bucket *b, const char *key, const kl_value *object, uint64_t rv);
/* Sets the history of a resource from an earlier process: its last change was at `last`, and changes are
 * known up to `known`. */
void kl__store_remember(kl__store *s, kl__bucket *b, uint64_t last, uint64_t known);
/* Whether the history has all changes since `rv`. */
bool kl__bucket_knows(const kl__bucket *b, uint64_t rv);
uint64_t kl__store_rv(const kl__store *s);
/* makes a new resource version without a change, and returns it */
uint64_t kl__store_step(kl__store *s);
/* made when absent; lives as long as s */
kl__bucket *kl__store_bucket(kl__store *s, const char *group, const char *plural);
/* every bucket; borrowed until the next new one */
size_t kl__store_buckets(const kl__store *s, kl__bucket *const **all);

/* borrowed until the next change, or NULL */
const kl__entry *kl__bucket_get(const kl__bucket *b, const char *key);
/* the first index whose key is not below `key` */
size_t kl__bucket_from(const kl__bucket *b, const char *key);
/* whether any key starts with `prefix` */
bool kl__bucket_has(const kl__bucket *b, const char *prefix);
/* Stores `object` (takes it) at a new RV, which it writes into metadata. Returns the stored value,
 * borrowed. */
const kl_value *kl__store_put(kl__store *s, kl__bucket *b, const char *key, const kl_value *object);
/* Removes; returns the last state at the deletion's RV, a new reference, or NULL when there was none. `last`
 * (may be NULL: the stored state) is the state to report. */
const kl_value *kl__store_remove(kl__store *s, kl__bucket *b, const char *key, const kl_value *last);

/* A snapshot of a bucket: the first `most` entries whose key starts with `prefix`, from key `from` on, as
 * they were at `rv` (0: now). KL_EGONE when the history does not reach back so far. The caller frees with
 * kl__picture_fini. */
typedef struct kl__picture {
    const kl_value **objects; /* one reference each */
    char **keys;
    size_t len;
    size_t rest; /* entries after the last one */
} kl__picture;
KL_NODISCARD kl_status kl__bucket_picture(
    const kl__bucket *b, const char *prefix, const char *from, uint64_t rv, size_t most, kl__picture *out);
void kl__picture_fini(kl__picture *p);

/* i-th of b->count, oldest first */
const kl__change *kl__bucket_change(const kl__bucket *b, size_t i);

#endif
