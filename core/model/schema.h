/* schema.h - what fields the kinds of one API group version have, and of which types: enough to put right
 * what a scripting language cannot say ({} that should be [], 3.0 that should be 3) and to find a misspelt
 * field before anybody else sees it.
 *
 * Made of an OpenAPI v3 document, of which nothing else is kept: megabytes become tens of kilobytes in one
 * piece of memory. It is the same piece that is written to disk. Immutable, counted; any thread. */
#ifndef KL_MODEL_SCHEMA_H
#define KL_MODEL_SCHEMA_H

#include "value/value.h"

typedef struct kl_schema kl_schema;

/* Of a document as /openapi/v3/apis/GROUP/VERSION answers it. What it cannot make sense of allows
 * everything. KL_ESYNTAX: it is no such document; KL_ETOOBIG: more than a million fields. */
KL_NODISCARD kl_status kl_schema_read(const kl_value *document, kl_schema **out, kl_err *err);
/* Of what kl_schema_bytes gave. KL_ESYNTAX: they do not hold together, or are of another version of us. */
KL_NODISCARD kl_status kl_schema_load(const void *bytes, size_t n, kl_schema **out, kl_err *err);
const void *kl_schema_bytes(const kl_schema *s, size_t *n); /* borrowed */
kl_schema *kl_schema_ref(kl_schema *s);
void kl_schema_unref(kl_schema *s);

/* Which kinds it describes, and how many. */
bool kl_schema_has(const kl_schema *s, const char *group, const char *version, const char *kind);
size_t kl_schema_kinds(const kl_schema *s);

/* An object is a whole one, or what is applied; a patch may say null anywhere and, as strategic ones do,
 * "$patch". */
typedef enum kl_schema_use { KL_SCHEMA_OBJECT, KL_SCHEMA_PATCH } kl_schema_use;

/* What is asked of a check. */
typedef struct kl_schema_question {
    const char *group, *version, *kind;
    kl_schema_use use;
    bool strict; /* unknown fields and wrong types are mistakes */
} kl_schema_question;

/* `in` as its kind wants it: a new reference, the same value when nothing had to change. {} becomes []
 * where a list is wanted, a float without a fraction an integer where an integer is wanted. With `strict`,
 * unknown fields and wrong types are KL_EINVAL: the message names each with its path (lists count from 1)
 * and what was probably meant. Missing fields are the server's business. KL_ENOTFOUND: the schema has no
 * such kind. */
KL_NODISCARD kl_status kl_schema_check(
    const kl_schema *s, const kl_schema_question *q, const kl_value *in, const kl_value **out, kl_err *err);

#endif
