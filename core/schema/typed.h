/* typed.h - values with their schema, as in structured-merge-diff: their fields, the differences of two
 * values, merging, and removal of fields. Pure.
 *
 * Leaves are scalars, atomic values, and empty maps and lists. Keyed lists and sets are walked item by
 * item. */
#ifndef KL_SCHEMA_TYPED_H
#define KL_SCHEMA_TYPED_H

#include "schema/fieldset.h"
#include "schema/schema.h"

typedef struct kl__changes {
    kl__fieldset *added, *modified, *removed;
    const kl_value *null; /* a Go slice that is absent */
} kl__changes;

void kl__typed_fields(const kl__schema *s, const kl_value *v, kl__fieldset *out);
/* The path element of an item of a set or keyed list: `k:{"name":"c"}` (keys sorted, an absent one by its
 * default) or `v:"x"`. The caller frees. */
char *kl__typed_element(const kl__schema *list, const kl_value *item);
/* From `old` to `now`; the caller frees with kl__changes_fini. */
void kl__typed_compare(const kl__schema *s, const kl_value *old, const kl_value *now, kl__changes *out);
void kl__changes_fini(kl__changes *c);
/* a new reference */
const kl_value *kl__typed_merge(const kl__schema *s, const kl_value *live, const kl_value *config);
/* a new reference, or NULL when nothing is left */
const kl_value *kl__typed_remove(const kl__schema *s, const kl_value *v, const kl__fieldset *fields);
/* Makes the struct fields on the path to members into members. In place. */
void kl__typed_name_fields(const kl__schema *s, kl__fieldset *set);

#endif
