/* schema.h - the fields and types of the kinds of one API group version: enough to correct values that a
 * scripting language cannot express ({} that should be [], 3.0 that should be 3) and to find a misspelt field
 * before the server does.
 *
 * Built from an OpenAPI v3 document, of which nothing else is kept: megabytes become tens of kilobytes in one
 * piece of memory, which is also its form on disk. Immutable, counted; any thread. */
#ifndef KL_MODEL_SCHEMA_H
#define KL_MODEL_SCHEMA_H

#include "value/value.h"

typedef struct kl_schema kl_schema;

/* Reads a document of /openapi/v3/apis/GROUP/VERSION. A schema of an unknown form allows everything.
 * KL_ESYNTAX: it is not such a document; KL_ETOOBIG: more than a million fields. */
KL_NODISCARD kl_status kl_schema_read(const kl_value *document, kl_schema **out, kl_err *err);
/* From the bytes of kl_schema_bytes. KL_ESYNTAX: they are inconsistent, or of another version of kubelua. */
KL_NODISCARD kl_status kl_schema_load(const void *bytes, size_t n, kl_schema **out, kl_err *err);
const void *kl_schema_bytes(const kl_schema *s, size_t *n); /* borrowed */
kl_schema *kl_schema_ref(kl_schema *s);
void kl_schema_unref(kl_schema *s);

/* Which kinds it describes, and how many. */
bool kl_schema_has(const kl_schema *s, const char *group, const char *version, const char *kind);
size_t kl_schema_kinds(const kl_schema *s);

/* OBJECT: a complete object, or an apply. PATCH: may contain null anywhere and, if strategic, "$patch". */
typedef enum kl_schema_use { KL_SCHEMA_OBJECT, KL_SCHEMA_PATCH } kl_schema_use;

/* The kind and strictness of a check. */
typedef struct kl_schema_question {
    const char *group, *version, *kind;
    kl_schema_use use;
    bool strict; /* unknown fields and wrong types are mistakes */
} kl_schema_question;

/* `in` converted to its kind's types: a new reference, the same value when nothing had to change. {} becomes
 * [] where a list is expected, a float without a fraction an integer where an integer is expected. With
 * `strict`, unknown fields and wrong types are KL_EINVAL: the message names each with its path (lists count
 * from 1) and a suggestion. Missing fields are left to the server. KL_ENOTFOUND: the schema has no such
 * kind. */
KL_NODISCARD kl_status kl_schema_check(
    const kl_schema *s, const kl_schema_question *q, const kl_value *in, const kl_value **out, kl_err *err);

#endif
