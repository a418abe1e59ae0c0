/* review.h - kinds that are only asked, and never stored: whose is this token, who am I, may somebody do
 * this, what may I do? */
#ifndef KL_SERVER_REVIEW_H
#define KL_SERVER_REVIEW_H

#include "httpd/httpd.h"
#include "server/state.h"

/* Answers when the kind of the call is such a one; else false. Under the lock. */
bool kl__review(const kl__call *c, const kl_value *body, kl_httpd_request *http);

#endif
