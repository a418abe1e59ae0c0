/* review.h - kinds that are only asked, and never stored: whose is this token, who am I, may somebody do
 * this? */
#ifndef KL_SERVER_REVIEW_H
#define KL_SERVER_REVIEW_H

#include "base/map.h"
#include "httpd/httpd.h"
#include "server/state.h"

/* Answers when the kind of the call is such a one; else false. Under the lock. */
bool kl__review(const kl__call *c, const kl_value *body, kl_httpd_request *http);

/* A file as kube-apiserver's --token-auth-file: token,user,uid,"group,group" a line. Errors name the line. */
KL_NODISCARD kl_status kl__tokens_read(const char *path, kl_map **out, kl_err *err);
void kl__tokens_free(kl_map *tokens); /* NULL is fine */

#endif
