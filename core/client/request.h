/* request.h - a kl_op as an HTTP request. Pure: nothing is contacted. Any thread. */
#ifndef KL_CLIENT_REQUEST_H
#define KL_CLIENT_REQUEST_H

#include "client/client.h"

/* The form of a good answer. */
typedef enum kl__shape { KL__ANY, KL__OBJECT, KL__LIST, KL__TABLE } kl__shape;

typedef struct kl__request {
    const char *method;       /* static */
    char *url;                /* whole */
    const char *accept;       /* static */
    const char *content_type; /* static; NULL without a body */
    kl_buf body;
    char *what;        /* "get pods kube-system/a": how errors begin */
    char *grant;       /* the RBAC rule that it needs, as text; NULL for raw paths */
    char *traceparent; /* a whole header line, or NULL */
    kl__shape shape;
    bool own_429;      /* evictions: a 429 comes from the disruption budget, not from a busy server */
    char *protobuf_of; /* "apps/v1/deployments" when protobuf is asked for, see content.h */
    bool in_protobuf;  /* the answer is protobuf */
    bool wants_object; /* POST: a 409 without a Status means AlreadyExists */
} kl__request;

/* `server` is the base URL without a trailing slash; `r` overrides op->kind. KL_EINVAL for a wrong op. */
KL_NODISCARD kl_status kl__request_make(const char *server, const kl_op *op, const kl_resource *r,
    const char *field_manager, kl__request *out, kl_err *err);
void kl__request_fini(kl__request *q);
/* KL_EINVAL, with the existing ones, when discovery lists no such verb or subresource. A resource that lists
 * no verbs is assumed to have all. */
KL_NODISCARD kl_status kl__request_offered(const kl_op *op, const kl_resource *r, kl_err *err);

/* A deep copy of an op, for calls that wait for discovery. */
typedef struct kl__op_copy {
    kl_op op;
    kl_resource resource;
} kl__op_copy;
kl__op_copy *kl__op_copy_new(const kl_op *op);
void kl__op_copy_free(kl__op_copy *c);

#endif
