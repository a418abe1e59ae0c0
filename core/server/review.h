/* review.h - review kinds, which are answered but never stored: TokenReview, SelfSubjectReview, the
 * SubjectAccessReviews and SelfSubjectRulesReview. */
#ifndef KL_SERVER_REVIEW_H
#define KL_SERVER_REVIEW_H

#include "httpd/httpd.h"
#include "server/state.h"

/* Answers a call of such a kind; false for others. Under the lock. */
bool kl__review(const kl__call *c, const kl_value *body, kl_httpd_request *http);

#endif
