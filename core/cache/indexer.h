/* indexer.h - objects by key and by named index.
 *
 * Readers are for any thread and hold a short lock while they copy references. Changes come from one thread at a time, the
 * writer: index functions run on it before the lock is taken, so that an object and its index entries become visible
 * together and nothing foreign runs under the lock. The index "namespace" is built in. */
#ifndef KL_CACHE_INDEXER_H
#define KL_CACHE_INDEXER_H

#include "cache/informer.h"

typedef struct kl_indexer kl_indexer;

#define KL_INDEX_NAMESPACE "namespace"
#define KL_KEY_MAX 512         /* "namespace/name": 253 bytes each, '/' and NUL */

/* The key of an object into `out`; false when it has no name or one too long for any server. */
bool kl_indexer_key(const kl_value *o, char out[KL_KEY_MAX]);

kl_indexer *kl_indexer_new(void);
void kl_indexer_free(kl_indexer *ix);          /* no reader, no writer left */

/* --- any thread ------------------------------------------------------------------------------------------------------------ */
const kl_value *kl_indexer_lookup(kl_indexer *ix, const char *key);              /* a new reference or NULL */
/* What kl_informer_list promises; `where` is called without the lock. */
KL_NODISCARD kl_status kl_indexer_list(kl_indexer *ix, const kl_query *q, kl_objects *out, kl_err *err);
size_t kl_indexer_count(kl_indexer *ix);
uint64_t kl_indexer_bytes(kl_indexer *ix);
char *kl_indexer_rv(kl_indexer *ix);           /* the resourceVersion the content has reached; caller frees */
/* Path indexes are ready when this returns. See kl_informer_add_index_path. */
KL_NODISCARD kl_status kl_indexer_add_path(kl_indexer *ix, const char *name, const char *path, kl_err *err);
/* Registers a function index under its name. *fresh: it must be filled by kl_indexer_fill before readers see it; otherwise
 * the same definition was there and has one user more. Takes `arg` over when it returns KL_OK with *fresh. */
KL_NODISCARD kl_status kl_indexer_reserve_fn(kl_indexer *ix, const char *name, kl_index_fn *fn, void *arg, void (*free_arg)(void *), bool *fresh, kl_err *err);
/* One user less. Without users the index is gone for readers at once; true: the writer should call kl_indexer_sweep. */
bool kl_indexer_drop(kl_indexer *ix, const char *name);

/* --- the writer ------------------------------------------------------------------------------------------------------------ */
void kl_indexer_fill(kl_indexer *ix);          /* runs new function indexes over what is there, then shows them */
void kl_indexer_sweep(kl_indexer *ix);         /* frees dropped indexes and their arguments */
/* `now` NULL removes. Returns what was there (the caller's reference), or NULL. Takes its own reference to now. */
const kl_value *kl_indexer_put(kl_indexer *ix, const char *key, const kl_value *now);
void kl_indexer_set_rv(kl_indexer *ix, const char *rv);      /* NULL changes nothing */
/* For a list: after mark, what is neither put nor kept is no longer there. keep is a lookup that says so. */
void kl_indexer_mark(kl_indexer *ix);
const kl_value *kl_indexer_keep(kl_indexer *ix, const char *key);
void kl_indexer_take_unmarked(kl_indexer *ix, kl_objects *out);      /* removes the others, at once; sorted by key */

#endif
