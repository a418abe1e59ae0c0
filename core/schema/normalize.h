/* normalize.h - turns a client's object into the stored form.
 *
 * Built-in kinds behave as after a round trip through Go's structs: nulls and unknown fields are removed,
 * quantities and times get their canonical text, structs that are always present appear. Custom resources are
 * pruned and defaulted by their schema. */
#ifndef KL_SCHEMA_NORMALIZE_H
#define KL_SCHEMA_NORMALIZE_H

#include "base/buf.h"
#include "schema/schema.h"

/* Unknown fields, as far as kube-apiserver would name them: 100 of a built-in kind, and of a custom resource
 * those of its metadata first, sorted. */
typedef struct kl__unknown {
    char **paths; /* "spec.containers[0].imge" */
    size_t count, cap, bytes;
} kl__unknown;

/* *out is a new reference. `fill`: adds the fields that Go's structs and defaults add (false for apply
 * patches). Unknown fields are noted in `unknown` (may be NULL). 400 when a value has the wrong type, with
 * its struct and path in Go. */
KL_NODISCARD kl_status kl__normalize(const kl__schema *s, const kl_value *in, bool fill, kl__unknown *unknown,
    const kl_value **out, kl_err *err);
void kl__unknown_fini(kl__unknown *u);
/* unknown field "a.b", unknown field "c": the text of strict decoding; caller frees. */
char *kl__unknown_text(const kl__unknown *u);
/* Turns empty objects into empty lists where the schema has lists: for objects from Lua, which cannot tell
 * them apart. A new reference. */
const kl_value *kl__schema_lists(const kl__schema *s, const kl_value *v);
/* Turns empty lists into null where Go's structs have null for them: kl__normalize keeps them, because their
 * writer owns them. A new reference. */
const kl_value *kl__null_lists(const kl__schema *s, const kl_value *v);
/* Go's name of the type of a JSON value: "number", "bool", "array"; static. */
const char *kl__json_type(const kl_value *v);
/* Defaults and pruning of a stored custom resource by a schema that may be newer than it. A new reference. */
const kl_value *kl__normalize_custom(const kl__schema *s, const kl_value *in);

#endif
