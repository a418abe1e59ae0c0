/* typed_check.h - whether a value fits its schema well enough for field ownership, as structured-merge-diff
 * checks before an apply. Pure. */
#ifndef KL_SCHEMA_TYPED_CHECK_H
#define KL_SCHEMA_TYPED_CHECK_H

#include "schema/schema.h"

/* Problems in structured-merge-diff's words: ".data: expected map, got &{x}", or "errors:" and a line for
 * each. NULL: none. The caller frees. */
char *kl__typed_problem(const kl__schema *s, const kl_value *v);
/* Appends a value as Go's %v prints it: map[a:[1 2] b:<nil>]. */
void kl__go_print(const kl_value *v, kl_buf *out);
/* The result of Go's %T for a value decoded into interface{}: "int64", "<nil>". */
const char *kl__go_type(const kl_value *v);

#endif
