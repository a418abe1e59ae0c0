/* mask.h - impersonation: the headers Impersonate-User, -Group, -Uid and -Extra-. */
#ifndef KL_RBAC_MASK_H
#define KL_RBAC_MASK_H

#include "httpd/httpd.h"
#include "rbac/rbac.h"

typedef enum kl_mask {
    KL_MASK_NONE,    /* no impersonation */
    KL_MASK_WORN,    /* *user is a new reference to the impersonated user */
    KL_MASK_REFUSED, /* `may` refused a part of it */
    KL_MASK_NAMELESS /* groups without a user */
} kl_mask;

/* The impersonated user of a request, by its Impersonate headers. `may` is called once for each user, group,
 * uid and extra value, and returns whether the client may impersonate it. The caller unrefs *user, which is
 * set only for KL_MASK_WORN. Never waits; any thread that may read the request. */
kl_mask kl_rbac_mask(const kl_httpd_request *http, bool (*may)(void *arg, const kl_rbac_request *r),
    void *arg, const kl_value **user);

#endif
