/* document.h - the OpenAPI documents of a server's kinds. Under the lock of the server that owns the kinds.
 * Allocates only for the call and its answer. */
#ifndef KL_OPENAPI_DOCUMENT_H
#define KL_OPENAPI_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "schema/kinds.h"

/* The index of the v3 documents: the URL of each, which contains the hash of its contents. */
void kl_openapi_index(const kl__kinds *kinds, kl_buf *out);
/* The hash of the document at `path`, "api/v1" or "apis/apps"; false when there is none. */
bool kl_openapi_v3_hash(const kl__kinds *kinds, const char *path, uint64_t *hash);
/* The document at `path` as JSON or as gnostic's openapi.v3.Document; it must exist. */
void kl_openapi_v3(const kl__kinds *kinds, const char *path, bool protobuf, kl_buf *out);
/* OpenAPI v2 of everything, as JSON and as gnostic's openapi.v2.Document, which kubectl reads. */
void kl_openapi_v2(const kl__kinds *kinds, kl_buf *out);
void kl_openapi_v2_protobuf(const kl__kinds *kinds, kl_buf *out);

#endif
