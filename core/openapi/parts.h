/* parts.h - the parts of documents (private to the room). Same thread as the document. */
#ifndef KL_OPENAPI_PARTS_H
#define KL_OPENAPI_PARTS_H

#include "openapi/definitions.h"
#include "schema/kinds.h"

/* Which document is being made. */
typedef enum kl__dialect { KL_OPENAPI_V3, KL_OPENAPI_V2 } kl__dialect;

/* v3 documents that do not belong to a group version. */
typedef enum kl__root {
    KL_OPENAPI_API,
    KL_OPENAPI_APIS,
    KL_OPENAPI_GROUP,
    KL_OPENAPI_ISSUER,
    KL_OPENAPI_KEYS,
    KL_OPENAPI_VERSION
} kl__root;

/* "io.k8s.api.core.v1.Pod", "com.example.v1.CronTab": the name of a kind's definition, or of its list's. The
 * caller frees it. */
char *kl__openapi_name(const kl__definitions *d, const kl__kind *k, bool list);
/* Whether the kind at `i` is the first of its group version, or of its group. */
bool kl__openapi_begins(const kl__kinds *kinds, size_t i, bool group_alone);
/* Marks the definitions that a kind is made of: its own and its list's when it is built in. kl__openapi_paths
 * marks what operations refer to. */
void kl__openapi_want_kind(kl__definitions *d, const kl__kind *k);
/* The definition of a subresource whose kind differs from its resource's, or NULL. */
kl__definition *kl__openapi_of_sub(const kl__definitions *d, const kl__kind *k, const kl__sub *sub);
/* "AppsV1" and "apps_v1" as operations and tags have it; version NULL: "Apps", "apps". The caller frees it.
 */
char *kl__openapi_word(const char *group, const char *version);
char *kl__openapi_tag(const char *group, const char *version);

/* Writes the object of paths of the kinds of a group version; `group` NULL: of all. Marks the definitions to
 * which they refer, as does kl__openapi_root. */
void kl__openapi_paths(kl_builder *b, const kl__kinds *kinds, kl__definitions *d, const char *group,
    const char *version, kl__dialect dialect);
/* The only path of a document that does not belong to a group version. */
void kl__openapi_root(
    kl_builder *b, kl__definitions *d, kl__dialect dialect, kl__root root, const char *group);

/* The definition of a CRD's kind, and of its list, in OpenAPI v3. The caller unrefs it. */
const kl_value *kl__openapi_custom(const kl__kind *k);
const kl_value *kl__openapi_custom_list(const kl__kind *k);
/* An OpenAPI v3 definition in v2's form. The caller unrefs it. */
const kl_value *kl__openapi_to_v2(const kl_value *v3);

/* gnostic's encoding of one definition, as an entry of Definitions, and of the rest of a document.
 * security_schemes may be NULL. */
void kl__gnostic_v2_definition(kl_buf *out, const char *name, const kl_value *schema);
void kl__gnostic_v2(kl_buf *out, const kl_value *rest, const kl_buf *definitions);
void kl__gnostic_v3_definition(kl_buf *out, const char *name, const kl_value *schema);
void kl__gnostic_v3(
    kl_buf *out, const kl_value *rest, const kl_buf *definitions, const kl_value *security_schemes);

#endif
