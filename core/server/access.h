/* access.h - who asks, and whether he may. Under the lock.
 *
 * Without --authorization-mode RBAC everybody may do everything: whoever has no token of a user is "kubelua",
 * an administrator. With it a request has a token or a certificate of a user, or it is system:anonymous, and
 * core/rbac decides. */
#ifndef KL_SERVER_ACCESS_H
#define KL_SERVER_ACCESS_H

#include "rbac/rbac.h"
#include "server/state.h"

/* The user of the request (a new reference), impersonation included, when it may be served. NULL: it has been
 * answered, 401 or 403. */
const kl_value *kl__access_admit(kl_server *s, kl_httpd_request *http);
/* The user of a token, borrowed; NULL: it is nobody's. */
const kl_value *kl__access_of_token(const kl_server *s, const char *token);
bool kl__access_allows(kl_server *s, const kl_value *user, const kl_rbac_request *request, kl_buf *why);
/* What `authorizer` in an expression asks (see kl_cel_authorize): *reason lives as long as `kept`. user NULL:
 * the server itself. */
typedef struct kl__reasons {
    char **v;
    size_t n;
} kl__reasons;
bool kl__access_asked(
    kl_server *s, const kl_value *user, const kl_value *attributes, kl__reasons *kept, const char **reason);
void kl__reasons_fini(kl__reasons *kept);
kl_rbac_source kl__access_source(kl_server *s);

/* Roles and bindings grant no more than their writer holds: 403 otherwise. `o` as it is to be stored. */
KL_NODISCARD kl_status kl__access_grant(
    const kl__call *c, const kl_value *old, const kl_value *o, kl_err *err);

/* Whoever writes a ValidatingAdmissionPolicy or a binding may read its parameters: else causes. */
struct kl__write;
void kl__access_check_params(const kl__call *c, const struct kl__write *w);

/* Makes the roles of every cluster that are not there. Before the first request. */
KL_NODISCARD kl_status kl__access_begin(kl_server *s, kl_err *err);
/* A ClusterRole came, went or changed: those that gather others are made anew. */
void kl__access_aggregate(kl_server *s);

#endif
