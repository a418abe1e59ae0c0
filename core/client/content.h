/* content.h - chooses the media type of answers, and decodes protobuf. Any thread.
 *
 * Kinds with tables in wire/proto.h are requested in protobuf, with JSON as the second choice. When a server
 * refuses (406, 415), or sends something that the tables do not cover, that resource is requested in JSON
 * from then on. */
#ifndef KL_CLIENT_CONTENT_H
#define KL_CLIENT_CONTENT_H

#include "client/client_impl.h"

/* Makes a request of this client (see kl__request_make) and chooses its media type. */
KL_NODISCARD kl_status kl__content_request(
    kl_client *c, const kl_op *op, const kl_resource *r, kl__request *q, kl_err *err);
/* The value of its Accept header. Caller frees. */
char *kl__content_accept(const kl__request *q);
/* Whether a Content-Type is protobuf; NULL is not. */
bool kl__content_is_protobuf(const char *type);
/* The server refused the media type. True: protobuf was requested, and JSON is from now on; send again. */
bool kl__content_refused(kl_client *c, kl__request *q, int code);
/* The answer does not match our tables: the resource is requested in JSON from now on. */
void kl__content_outdated(kl_client *c, kl__request *q);
/* Decodes a whole body. KL_EAGAIN: send again; the request now asks for JSON. */
KL_NODISCARD kl_status kl__content_decode(
    kl_client *c, kl__request *q, const char *body, size_t n, const kl_value **out, kl_err *err);

#endif
