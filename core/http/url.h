/* url.h - the URL of a request, byte for byte as client-go writes it: base, path and query. Pure; any thread.
 *
 * A path is joined from parts that may hold slashes, then cleaned: no "//", no ".", no ".." above the
 * root. */
#ifndef KL_HTTP_URL_H
#define KL_HTTP_URL_H

#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"

typedef struct kl_url_param {
    const char *key, *value;
} kl_url_param;

typedef struct kl_url_request {
    const char *base;                       /* "https://host:6443/prefix" */
    const char *group, *version, *resource; /* group "" is core; resource in any case, sent in lower case */
    const char *ns;                         /* NULL or "": none */
    const char *name;                       /* NULL: none; "" is refused */
    const char *const *subresource;         /* NULL-terminated path segments, or NULL */
    /* the same, but each may itself be a path, such as one after services/x/proxy */
    const char *const *suffix;
    const kl_url_param *params; /* in any order; sent sorted by key */
    size_t nparams;
} kl_url_request;

/* The whole URL. KL_EINVAL for a namespace, resource, name or subresource that could not be one path
 * segment. */
KL_NODISCARD kl_status kl_url_build(const kl_url_request *r, kl_buf *out, kl_err *err);
/* A path of the server, below the base's own: segments are joined; one alone keeps its trailing slash. */
KL_NODISCARD kl_status kl_url_abspath(
    const char *base, const char *const *segments, size_t n, kl_buf *out, kl_err *err);
/* The same for path?query as a user types it; a scheme and host in it are ignored, so that credentials
 * never leave the cluster. */
KL_NODISCARD kl_status kl_url_request_uri(const char *base, const char *uri, kl_buf *out, kl_err *err);
/* "k=v&k2=v2" sorted by key, values of one key in their order; nothing for no parameters. */
void kl_url_query(const kl_url_param *params, size_t n, kl_buf *out);
/* The part of a built URL that is sent to the server: path and query; "/" for an empty path. Borrowed. */
const char *kl_url_target(const char *url);

#endif
