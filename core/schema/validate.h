/* validate.h - validation of the contents of objects. Pure. */
#ifndef KL_SCHEMA_VALIDATE_H
#define KL_SCHEMA_VALIDATE_H

#include "schema/schema.h"
#include "schema/status.h"

/* A custom resource against its schema: types, bounds, patterns, formats, anyOf and the like, embedded
 * resources, duplicate items of sets and keyed lists. `only_status`: a status write. */
void kl__validate_custom(const kl__schema *s, const kl_value *o, bool only_status, kl__causes *causes);
/* The owner references of an object. */
void kl__validate_owners(const kl_value *o, kl__causes *causes);
/* Checks a map at the path `field`. */
void kl__validate_labels(const char *field, const kl_value *map, kl__causes *causes);
void kl__validate_annotations(const char *field, const kl_value *map, kl__causes *causes);
/* Removes duplicate owner references; returns their uids as text, which the caller frees, or NULL. */
char *kl__owners_unique(const kl_value **o);
/* Labels, annotations and owner references of an object inside another, at `path`. */
void kl__validate_metadata_at(const char *path, const kl_value *o, kl__causes *causes);

#endif
