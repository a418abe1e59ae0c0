/* document.h - the OpenAPI documents of what a server serves. Under the lock of the server that owns the
 * kinds. Allocates only for the call and its answer. */
#ifndef KL_OPENAPI_DOCUMENT_H
#define KL_OPENAPI_DOCUMENT_H

#include "base/buf.h"
#include "schema/kinds.h"

/* OpenAPI v3 of one group version, as JSON; `group` "" is the core group. */
void kl_openapi_v3(const kl__kinds *kinds, const char *group, const char *version, kl_buf *out);
/* OpenAPI v2 of everything, as JSON and as gnostic's openapi.v2.Document, which kubectl reads. */
void kl_openapi_v2(const kl__kinds *kinds, kl_buf *out);
void kl_openapi_v2_protobuf(const kl__kinds *kinds, kl_buf *out);

#endif
