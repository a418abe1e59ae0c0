/* rest.h - HTTP requests to verbs. */
#ifndef KL_SERVER_REST_H
#define KL_SERVER_REST_H

#include "show/accept.h"
#include "server/state.h"

/* kl_httpd's handler; `arg` is the server. */
void kl__rest_handle(void *arg, kl_httpd_request *http);

kl_status kl__fail_method(kl_err *err); /* 405 */

/* list.c: the resource version in a query; 500 if it is not a number. */
kl_status kl__read_version(const char *text, uint64_t *out, kl_err *err);
kl_status kl__fail_too_new(const kl__call *c, uint64_t rv, kl_err *err); /* list.c: 504 */
/* list.c: GET of a collection, whole, paged or as a watch; and DELETE of one. */
void kl__rest_list(kl__request *r, const kl_show_form *form);
void kl__rest_delete_collection(kl__request *r, const kl_show_form *form, const kl_value *options);

/* connect.c: whether a call is for a log, a connection to a container, or a proxy; and its answer: KL_OK is
 * an empty log. */
bool kl__rest_connects(const kl__call *c);
KL_NODISCARD kl_status kl__rest_connect(const kl__call *c, kl_httpd_request *http, kl_err *err);

/* health.c, index.c, openapi.c: they answer requests for their paths and return true. Under the lock. */
bool kl__health(kl_server *s, const char *path, kl_httpd_request *http);
bool kl__index(kl_server *s, const char *path, kl_httpd_request *http);
bool kl__discovery(kl_server *s, const char *path, kl_httpd_request *http);
bool kl__openapi(kl_server *s, const char *path, kl_httpd_request *http);
/* health.c: calls `each` for every path of probes: /ENDPOINT (check NULL) and /ENDPOINT/CHECK. */
void kl__health_each(void (*each)(void *arg, const char *endpoint, const char *check), void *arg);

#endif
