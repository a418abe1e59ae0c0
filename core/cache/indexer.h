/* indexer.h - objects by key, by named index, by label.
 *
 * Readers run on any thread and never wait: they see one complete version of the store. Objects are changed
 * by one thread at a time, the apply context; each put, removal and replace is one step to a new version, its
 * index entries and resourceVersion included. Index functions run on that thread without the lock. The index
 * "namespace" is built in. */
#ifndef KL_CACHE_INDEXER_H
#define KL_CACHE_INDEXER_H

#include "cache/informer.h"

typedef struct kl_indexer kl_indexer;

#define KL_INDEX_NAMESPACE "namespace"
#define KL_KEY_MAX 512 /* "namespace/name": 253 bytes each, '/' and NUL */

/* Writes the key of an object to `out`; false when the name is missing, too long, or contains a '/', which no
 * server accepts. */
bool kl_indexer_key(const kl_value *o, char out[KL_KEY_MAX]);

kl_indexer *kl_indexer_new(void);
void kl_indexer_free(kl_indexer *ix); /* when no reader and no writer is left */

/* --- any thread --------------------------------------------------------------------------- */
const kl_value *kl_indexer_lookup(kl_indexer *ix, const char *key); /* a new reference or NULL */
/* As kl_informer_list. `where` is called last, and may read this store. */
KL_NODISCARD kl_status kl_indexer_list(kl_indexer *ix, const kl_query *q, kl_objects *out, kl_err *err);
size_t kl_indexer_count(kl_indexer *ix);
uint64_t kl_indexer_bytes(kl_indexer *ix);
char *kl_indexer_rv(kl_indexer *ix); /* the resourceVersion of the content; caller frees */
/* The path index is ready when this returns; the apply context is blocked for a few hundred objects at a
 * time. See kl_informer_add_index_path. */
KL_NODISCARD kl_status kl_indexer_add_path(kl_indexer *ix, const char *name, const char *path, kl_err *err);
/* Registers a function index under its name. If *fresh, kl_indexer_fill must fill it before readers see it;
 * otherwise the same definition exists and gets one more user. Takes over `arg` when it returns KL_OK with
 * *fresh. */
KL_NODISCARD kl_status kl_indexer_reserve_fn(kl_indexer *ix, const char *name, kl_index_fn *fn, void *arg,
    void (*free_arg)(void *), bool *fresh, kl_err *err);
/* Removes a user. After the last one readers do not see the index any more; true: the apply context should
 * call kl_indexer_sweep. */
bool kl_indexer_drop(kl_indexer *ix, const char *name);

/* --- the apply context -------------------------------------------------------------------- */
/* Runs new function indexes over the stored objects, then shows them to readers. After each object it asks
 * whether to stop; then it returns false, and the next call continues. Objects may change in between. True:
 * all are filled. */
bool kl_indexer_fill(kl_indexer *ix, bool (*enough)(void *arg), void *arg);
void kl_indexer_sweep(kl_indexer *ix); /* frees dropped indexes and their arguments */
/* Stores `o` under its key, which it must have, and moves the store to `rv` (NULL: unchanged). False, with no
 * change, when the store has the same resourceVersion of the same incarnation. *old: the previous object, the
 * caller's reference, or NULL. */
bool kl_indexer_put(kl_indexer *ix, const kl_value *o, const char *rv, const kl_value **old);
/* Removes the object under the key of o; returns it, the caller's reference, or NULL. */
const kl_value *kl_indexer_remove(kl_indexer *ix, const kl_value *o, const char *rv);
void kl_indexer_set_rv(kl_indexer *ix, const char *rv); /* NULL changes nothing */

/* old: the caller's reference, or NULL; now: borrowed from the page, or NULL */
typedef struct kl_change {
    const kl_value *old, *now;
} kl_change;
typedef struct kl_changes {
    kl_change *v;
    size_t len, cap;
} kl_changes;
/* Replaces the contents with the page and moves the store to rv, in one step. *out: the differences, first
 * those of listed objects by key, then those of removed ones by key. */
void kl_indexer_replace(kl_indexer *ix, const kl_value **page, size_t n, const char *rv, kl_changes *out);
/* The same for one namespace: all objects of the page are in it; others stay. NULL: all namespaces. */
void kl_indexer_replace_namespace(
    kl_indexer *ix, const char *ns, const kl_value **page, size_t n, const char *rv, kl_changes *out);
void kl_changes_fini(kl_changes *c);

/* Whether two states of one key are two incarnations: a delete and an add. */
bool kl_object_reborn(const kl_value *old, const kl_value *now);

#endif
