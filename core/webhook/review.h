/* review.h - the common part of reviews: an object of some kind, with a request that has a uid. */
#ifndef KL_WEBHOOK_REVIEW_H
#define KL_WEBHOOK_REVIEW_H

#include "value/value.h"

typedef struct kl__review {
    const char *group, *version; /* "admission.k8s.io", "v1" */
    const char *kind;            /* "AdmissionReview" */
    const char *article;         /* "an": of the kind, in messages */
    const char *field;           /* the list of versions in the configuration of the other side */
    kl_status (*check)(const kl_value *request, kl_err *err); /* of its request */
} kl__review;

/* The checked request of a review, a new reference. KL_EINVAL when it is not such a review; the message says
 * what it is. */
KL_NODISCARD kl_status kl__review_request(
    const kl__review *expected, const char *text, size_t n, const kl_value **request, kl_err *err);
/* Adds the decision's message, cut as the log cuts texts, to the object that b builds. */
void kl__review_build_message(kl_builder *b, const kl_value *decision);

#endif
