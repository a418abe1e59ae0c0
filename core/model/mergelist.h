/* mergelist.h - which lists of an object are merged by element, as far as that can be known without the
 * server's schema, and by which keys. Pure. */
#ifndef KL_MODEL_MERGELIST_H
#define KL_MODEL_MERGELIST_H

#include "value/value.h"

#define KL_MERGE_KEYS_MAX 3
typedef struct kl_merge_keys {
    bool set;                            /* scalars, each at most once; no keys */
    const char *keys[KL_MERGE_KEYS_MAX]; /* NULL-terminated unless full */
} kl_merge_keys;

/* How the list at `field` is merged. `builtin`: of a kind of the API server's own; of others only what all
 * objects have in common, and conditions, is known. `a` and `b` are its two states, of which either may be
 * NULL. False: as a whole. */
bool kl_merge_keys_of(
    const char *field, bool builtin, const kl_value *a, const kl_value *b, kl_merge_keys *out);
/* Whether x and y, elements of such a list, are the same one. */
bool kl_merge_same(const kl_merge_keys *k, const kl_value *x, const kl_value *y);
/* The place of x in the list, or its length. */
size_t kl_merge_find(const kl_merge_keys *k, const kl_value *list, const kl_value *x);
/* Whether kinds of this group come with the API server. */
bool kl_merge_builtin(const char *group);

#endif
