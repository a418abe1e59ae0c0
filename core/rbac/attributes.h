/* attributes.h - the attributes of an HTTP request for authorization. Pure functions of the request: any
 * thread that may read it. */
#ifndef KL_RBAC_ATTRIBUTES_H
#define KL_RBAC_ATTRIBUTES_H

#include "httpd/httpd.h"
#include "rbac/rbac.h"

/* The attributes as kube-apiserver reads them from method and path alone. Its strings live until
 * kl__access_read_fini. */
typedef struct kl__asked {
    kl_rbac_request request;
    char *hold, *path, *name;
} kl__asked;
void kl__access_read(kl_httpd_request *http, kl__asked *out);
void kl__access_read_fini(kl__asked *a);

/* Whether a query parameter is true as in kube-apiserver: it is there, and neither "0" nor "false". */
bool kl__query_truth(kl_httpd_request *http, const char *name);

#endif
