/* rest.h - HTTP requests to verbs. */
#ifndef KL_SERVER_REST_H
#define KL_SERVER_REST_H

#include "show/accept.h"
#include "server/state.h"

/* kl_httpd's handler; `arg` is the server. */
void kl__rest_handle(void *arg, kl_httpd_request *http);

void kl__reply_error(kl_httpd_request *http, const char *headers, const kl_err *err);
/* moves body's contents */
void kl__reply_buf(kl_httpd_request *http, int code, const char *type, const char *headers, kl_buf *body);
/* the same for a complete one; compressed when it is large and the client accepts gzip */
void kl__reply_take(kl_httpd_request *http, int code, const char *type, const char *headers, kl_buf *body);
/* Formats JSON as kube-apiserver does: indented for people, else with one line feed at the end. */
void kl__finish_json(kl_httpd_request *http, kl_buf *body);
/* in the media type that the request asks for, as failures are */
void kl__reply_value(kl_httpd_request *http, int code, const char *headers, const kl_value *v);
/* 200 with an ETag of the body; 304 to a client that has it. Moves body's contents. */
void kl__reply_tagged(kl_httpd_request *http, const char *type, kl_buf *body);

/* list.c: GET of a collection, whole, paged or as a watch; and DELETE of one. */
void kl__rest_list(kl__request *r, const kl_show_form *form);
void kl__rest_delete_collection(kl__request *r, const kl_show_form *form, const kl_value *options);

/* health.c, discovery.c, openapi.c: true when the path was theirs. Under the lock. */
bool kl__health(kl_server *s, const char *path, kl_httpd_request *http);
bool kl__discovery(kl_server *s, const char *path, kl_httpd_request *http);
bool kl__openapi(kl_server *s, const char *path, kl_httpd_request *http);

#endif
