/* parts.h - the parts of documents (private to the room). Same thread as the document. */
#ifndef KL_OPENAPI_PARTS_H
#define KL_OPENAPI_PARTS_H

#include "openapi/definitions.h"
#include "schema/kinds.h"

/* Which document is being made. */
typedef enum kl__dialect { KL_OPENAPI_V3, KL_OPENAPI_V2 } kl__dialect;

/* "io.k8s.api.core.v1.Pod", "com.example.v1.CronTab": what a kind's definition, or its list's, is called.
 * The caller frees it. */
char *kl__openapi_name(const kl__definitions *d, const kl__kind *k, bool list);
/* Marks the definitions that a kind needs: its own and its list's when it is built in, those of its
 * subresources, and those of every document. */
void kl__openapi_want_kind(kl__definitions *d, const kl__kind *k);

/* The object of paths of the kinds of a group version; `group` NULL: of all. */
void kl__openapi_paths(kl_builder *b, const kl__kinds *kinds, const kl__definitions *d, const char *group,
    const char *version, kl__dialect dialect);

/* The definition of a CRD's kind, and of its list, in OpenAPI v3. The caller unrefs it. */
const kl_value *kl__openapi_custom(const kl__kind *k);
const kl_value *kl__openapi_custom_list(const kl__kind *k);
/* An OpenAPI v3 definition in v2's form. The caller unrefs it. */
const kl_value *kl__openapi_to_v2(const kl_value *v3);

/* gnostic's encoding of one definition, as an entry of Definitions; and of the rest of a document. */
void kl__gnostic_definition(kl_buf *out, const char *name, const kl_value *schema);
void kl__gnostic_document(kl_buf *out, const kl_value *rest, const kl_buf *definitions);

#endif
