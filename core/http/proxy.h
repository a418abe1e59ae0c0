/* proxy.h - which proxy a request goes through: a cluster's proxy-url, or HTTP_PROXY, HTTPS_PROXY and
 * NO_PROXY as Go programs read them. Pure. Any thread. */
#ifndef KL_HTTP_PROXY_H
#define KL_HTTP_PROXY_H

#include <stdbool.h>

/* borrowed; NULL or "": unset */
typedef struct kl__proxy_env {
    const char *http, *https, *no;
    bool cgi;
} kl__proxy_env;

/* The process's variables, lower case first; borrowed from the environment. */
kl__proxy_env kl__proxy_environment(void);
/* For kl_http_request: "" for none, else a URL libcurl knows. `configured` (proxy-url) overrides the
 * environment unless it is NULL; "" means no proxy. socks5:// becomes socks5h://, because in Go the proxy
 * resolves names. Caller frees. */
char *kl__proxy_choose(const char *configured, const kl__proxy_env *env, const char *url);
char *kl__proxy_for(const char *configured, const char *url); /* the same with kl__proxy_environment */
/* The proxy without user and password ("http://proxy:3128"), for messages; caller frees. NULL for "" and
 * NULL. */
char *kl__proxy_words(const char *proxy);

#endif
