/* reply.h - replies of the API server: values, failures and texts in the form that the client requested. */
#ifndef KL_SERVER_REPLY_H
#define KL_SERVER_REPLY_H

#include "server/state.h"
#include "show/accept.h"

/* Answers with a stored object in the requested form, with the call's warnings. */
void kl__reply_object(
    const kl__call *c, const kl_show_form *form, int code, const kl_value *stored, kl_httpd_request *http);
void kl__reply_error(kl_httpd_request *http, const char *headers, const kl_err *err);
/* moves body's contents */
void kl__reply_buf(kl_httpd_request *http, int code, const char *type, const char *headers, kl_buf *body);
/* the same for a complete answer; compressed if it is large and the client accepts gzip */
void kl__reply_take(kl_httpd_request *http, int code, const char *type, const char *headers, kl_buf *body);
/* Formats JSON as kube-apiserver does: indented for people, else with one line feed at the end. */
void kl__finish_json(kl_httpd_request *http, kl_buf *body);
/* in the media type that the request accepts, like failures */
void kl__reply_value(kl_httpd_request *http, int code, const char *headers, const kl_value *v);
/* 200 with an ETag of the body, or 304 if the client has that. `headers` may be NULL. Moves body's contents.
 */
void kl__reply_tagged(kl_httpd_request *http, const char *type, const char *headers, kl_buf *body);

#endif
