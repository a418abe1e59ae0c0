/* http_curl.h - libcurl's functions, loaded when the first client is made. A server that sends no requests
 * starts without libcurl and the thirty libraries behind it. Any thread. */
#ifndef KL_HTTP_HTTP_CURL_H
#define KL_HTTP_HTTP_CURL_H

#include <curl/curl.h>
#include "base/err.h"

#define KL__CURL_FUNCTIONS(X)                                                                                \
    X(easy_cleanup)                                                                                          \
    X(easy_getinfo)                                                                                          \
    X(easy_init)                                                                                             \
    X(easy_pause)                                                                                            \
    X(easy_recv)                                                                                             \
    X(easy_send)                                                                                             \
    X(easy_setopt)                                                                                           \
    X(easy_strerror)                                                                                         \
    X(free)                                                                                                  \
    X(global_init)                                                                                           \
    X(multi_add_handle)                                                                                      \
    X(multi_cleanup)                                                                                         \
    X(multi_info_read)                                                                                       \
    X(multi_init)                                                                                            \
    X(multi_remove_handle)                                                                                   \
    X(multi_setopt)                                                                                          \
    X(multi_socket_action)                                                                                   \
    X(multi_strerror)                                                                                        \
    X(slist_append)                                                                                          \
    X(slist_free_all)                                                                                        \
    X(url)                                                                                                   \
    X(url_cleanup)                                                                                           \
    X(url_get)                                                                                               \
    X(url_set)

#define KL__CURL_MEMBER(name) __typeof__(curl_##name) *name;
typedef struct kl__curl_functions {
    KL__CURL_FUNCTIONS(KL__CURL_MEMBER)
} kl__curl_functions;
#undef KL__CURL_MEMBER

/* Filled by the first kl__curl_load that succeeds; constant afterwards. */
extern kl__curl_functions kl__curl;
/* Loads and initialises libcurl on the first call. */
KL_NODISCARD kl_status kl__curl_load(kl_err *err);

#endif
