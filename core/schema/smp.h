/* smp.h - strategic merge patch of built-in kinds: lists merge by key as the types say. Pure.
 *
 * All results are new references; without success *out is not set. Invalid patches and documents are 400;
 * without a schema (NULL) lists are replaced, as in a merge patch. */
#ifndef KL_SCHEMA_SMP_H
#define KL_SCHEMA_SMP_H

#include "schema/schema.h"

/* `old` with the patch and its directives ($patch, $retainKeys, $setElementOrder, $deleteFromPrimitiveList).
 */
KL_NODISCARD kl_status kl__smp_apply(
    const kl__schema *s, const kl_value *old, const kl_value *patch, const kl_value **out, kl_err *err);
/* The patch that turns `from` into `to`; an empty object when they are equal. */
KL_NODISCARD kl_status kl__smp_diff(
    const kl__schema *s, const kl_value *from, const kl_value *to, const kl_value **out, kl_err *err);
/* The three-way patch of kubectl apply for `current`: sets the fields of `modified`, removes those that only
 * `original` has, and keeps the rest of `current`. Without `overwrite`, 409 when both changed the same
 * field. */
KL_NODISCARD kl_status kl__smp_three_way(const kl__schema *s, const kl_value *original,
    const kl_value *modified, const kl_value *current, bool overwrite, const kl_value **out, kl_err *err);

/* --- inside: smp.c for smp_diff.c --------------------------------------------------------- */
/* Merges two patches into one: nulls and directives of both stay. */
KL_NODISCARD kl_status kl__smp_merge_patches(
    const kl__schema *s, const kl_value *one, const kl_value *two, const kl_value **out, kl_err *err);

#endif
