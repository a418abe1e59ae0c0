/* smp_list.h - lists that strategic merge patches merge: rows under construction, found by key, put in order.
 * Private to core/schema.
 *
 * `key` is the merge key of maps; NULL for scalars, which are their own key. */
#ifndef KL_SCHEMA_SMP_LIST_H
#define KL_SCHEMA_SMP_LIST_H

#include "value/finder.h"

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

/* Keeps the rows that are in f, or with `in` false those that are not. */
void kl__rows_keep(kl__rows *r, const kl_finder *f, bool in);
const kl_value *kl__merge_key(const kl_value *item, const char *key); /* borrowed; never NULL */

/* Sorts by `order`, rows that it lacks first; rows with $patch: delete last. Stable, as Go's sort. */
void kl__rows_sort(kl__rows *r, const kl_value *order, const char *key);
/* Merges two sequences: the rows named in `order`, in its order, and the others, in the order of `before`. An
 * unnamed row precedes a named one if it does so in `before`. */
void kl__rows_weave(kl__rows *r, const kl_value *order, const kl_value *before, const char *key);

/* KL_OK when all elements of both lists (each may be NULL) have one type, which is returned: KL_NULL when
 * there are none. Lists of lists and mixed ones are 400. */
KL_NODISCARD kl_status kl__list_type(const kl_value *a, const kl_value *b, kl_type *out, kl_err *err);
/* 400 when an item of a list of maps lacks the key. */
KL_NODISCARD kl_status kl__list_has_keys(const kl_value *list, const char *key, kl_err *err);

#endif
