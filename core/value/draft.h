/* draft.h - an editable copy of a value, copy-on-write, which records its changes. Owner thread.
 *
 * A draft node stands for one place. Reading falls through to the base value until something below was
 * written. Nodes open down to twice KL_VALUE_DEPTH_MAX below the root. kl_draft_patch gives the merge patch
 * (RFC 7386) of all edits. Lists are replaced whole in merge patches. */
#ifndef KL_VALUE_DRAFT_H
#define KL_VALUE_DRAFT_H

#include "value/value.h"

typedef struct kl_draft kl_draft; /* the whole edit; owns its nodes */
typedef struct kl_draft_node kl_draft_node;

kl_draft *kl_draft_new(const kl_value *base); /* takes its own reference */
void kl_draft_free(kl_draft *d);
/* Its memory beside the base: opened nodes and written values, each value measured up to
 * KL_DRAFT_MEASURED. */
#define KL_DRAFT_MEASURED ((size_t)1 << 30)
size_t kl_draft_bytes(const kl_draft *d);
kl_draft_node *kl_draft_root(kl_draft *d);
/* The present value at key. A container gives a node (stable address for the draft's life); a scalar gives
 * NULL with *scalar set (borrowed until the next write to this node); absent gives NULL and NULL. */
kl_draft_node *kl_draft_get(kl_draft_node *n, const char *key, size_t keylen, const kl_value **scalar);
kl_draft_node *kl_draft_item(kl_draft_node *n, size_t i, const kl_value **scalar); /* array, from 0 */
unsigned kl_draft_depth(const kl_draft_node *n); /* containers above it; 0: the root */
kl_type kl_draft_type(const kl_draft_node *n);   /* KL_ARRAY or KL_OBJECT */
size_t kl_draft_len(const kl_draft_node *n);
const char *kl_draft_key(kl_draft_node *n, size_t i, size_t *len); /* i-th key in order; NULL outside */
/* Writing. v NULL removes (arrays: removing shifts). A value with the same contents as before is no change.
 * kl_draft_set_item: i == len appends. */
void kl_draft_set(kl_draft_node *n, const char *key, size_t keylen, const kl_value *v);
KL_NODISCARD kl_status kl_draft_set_item(kl_draft_node *n, size_t i, const kl_value *v, kl_err *err);
void kl_draft_insert_item(kl_draft_node *n, size_t i, const kl_value *v);
/* the object at key, created when absent or scalar */
kl_draft_node *kl_draft_make(kl_draft_node *n, const char *key, size_t keylen);
/* Each of these compares opened nodes with the base: they cost as much as the edit. */
bool kl_draft_changed(kl_draft *d);
/* a list was changed: the patch needs the resourceVersion */
bool kl_draft_list_changed(kl_draft *d);
const kl_value *kl_draft_value(kl_draft_node *n); /* the present state, a new reference */
/* both at once: the patch, or NULL when nothing changed; and whether a list did */
const kl_value *kl_draft_result(kl_draft *d, bool *lists);
/* merge patch from base to now, a new reference; {} when equal */
const kl_value *kl_draft_patch(kl_draft *d);

#endif
