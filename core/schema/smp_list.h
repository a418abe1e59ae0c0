/* smp_list.h - lists that strategic merge patches merge: rows under construction, found by key, put in order.
 * Private to core/schema.
 *
 * `key` is the merge key of maps; NULL for scalars, which are their own key. */
#ifndef KL_SCHEMA_SMP_LIST_H
#define KL_SCHEMA_SMP_LIST_H

#include "value/value.h"

/* one reference each; {0} is empty */
typedef struct kl__rows {
    const kl_value **v;
    size_t len;
} kl__rows;

void kl__rows_add(kl__rows *r, const kl_value *taken);
void kl__rows_add_all(kl__rows *r, const kl_value *list); /* references of its items */
void kl__rows_fini(kl__rows *r);
/* the rows as a list; r is empty afterwards */
const kl_value *kl__rows_done(kl__rows *r);

/* Finds the first item with the key of another: by a hash of their keys, so that lists of any length merge in
 * linear time. An item without the key has null for it. The items are borrowed. */
typedef struct kl__finder {
    const char *key;
    const kl_value **v;
    uint32_t *next, *heads, *tails; /* chains through places, which count from 1 */
    size_t len, cap, mask;
} kl__finder;
void kl__finder_init(kl__finder *f, const char *key);
void kl__finder_init_list(kl__finder *f, const char *key, const kl_value *list);
void kl__finder_fini(kl__finder *f);
void kl__finder_add(kl__finder *f, const kl_value *item);
long kl__finder_find(const kl__finder *f, const kl_value *like); /* its place, from 0, or -1 */
/* Leaves the rows that are `in` f, or those that are not. */
void kl__rows_keep(kl__rows *r, const kl__finder *f, bool in);
const kl_value *kl__merge_key(const kl_value *item, const char *key); /* borrowed; never NULL */

/* Sorts by `order`, rows that it lacks first; rows with $patch: delete last. Stable, as Go's sort. */
void kl__rows_sort(kl__rows *r, const kl_value *order, const char *key);
/* Merges two sequences: the rows named in `order`, in its order, and the others, in the order of `before`:
 * another one comes first where `before` has it before the named one. */
void kl__rows_weave(kl__rows *r, const kl_value *order, const kl_value *before, const char *key);

/* KL_OK when all elements of both lists (each may be NULL) have one type, which is returned: KL_NULL when
 * there are none. Lists of lists and mixed ones are 400. */
KL_NODISCARD kl_status kl__list_type(const kl_value *a, const kl_value *b, kl_type *out, kl_err *err);
/* 400 when an item of a list of maps lacks the key. */
KL_NODISCARD kl_status kl__list_has_keys(const kl_value *list, const char *key, kl_err *err);

#endif
