/* mask.h - requests in somebody else's name: the headers Impersonate-User, -Group, -Uid and -Extra-. */
#ifndef KL_RBAC_MASK_H
#define KL_RBAC_MASK_H

#include "httpd/httpd.h"
#include "rbac/rbac.h"

typedef enum kl_mask {
    KL_MASK_NONE,    /* it is made in nobody else's name */
    KL_MASK_WORN,    /* *user is a new reference to who it is made as */
    KL_MASK_REFUSED, /* `may` said no to a part of it */
    KL_MASK_NAMELESS /* groups without a user */
} kl_mask;

/* Who a request is made as, by its Impersonate headers. `may` is asked once for each user, group, uid and
 * extra value whether the caller may impersonate it. The caller unrefs *user, which is set for KL_MASK_WORN
 * alone. Waits for nothing; any thread that may read the request. */
kl_mask kl_rbac_mask(const kl_httpd_request *http, bool (*may)(void *arg, const kl_rbac_request *r),
    void *arg, const kl_value **user);

#endif
