/* access.h - tells whose a token is, and what its user may do. Under the lock.
 *
 * Without --authorization-mode RBAC every request is allowed; a request without a token belongs to the user
 * "kubelua", an administrator. With it, a request without a token or certificate belongs to system:anonymous,
 * and core/rbac decides. */
#ifndef KL_VERBS_ACCESS_H
#define KL_VERBS_ACCESS_H

#include "rbac/rbac.h"
#include "verbs/call.h"

/* The user of a token, a new reference; NULL: the token is invalid. It must be for one of `audiences` (NULL
 * or empty: the API server). *why (why may be NULL): the fault, which the caller frees. */
const kl_value *kl__access_of_token(
    const kl__world *w, const char *token, const kl_value *audiences, char **why);
/* Those of `audiences` that the token is for: a new list. */
const kl_value *kl__access_audiences(const kl__world *w, const char *token, const kl_value *audiences);
/* The claim that names the object of this kind to which a token is bound, or NULL. Static. */
const char *kl__access_bound_claim(const char *kind);
bool kl__access_allows(kl__world *w, const kl_value *user, const kl_rbac_request *request, kl_buf *why);
/* The callback of `authorizer` in expressions (see kl_cel_authorize): *reason lives as long as `kept`. user
 * NULL: the server itself. */
typedef struct kl__reasons {
    char **v;
    size_t n;
} kl__reasons;
bool kl__access_asked(
    kl__world *w, const kl_value *user, const kl_value *attributes, kl__reasons *kept, const char **reason);
void kl__reasons_fini(kl__reasons *kept);
kl_rbac_source kl__access_source(kl__world *w);

/* 403 if the role or binding `o`, as it will be stored, grants more than its writer holds. */
KL_NODISCARD kl_status kl__access_grant(
    const kl__call *c, const kl_value *old, const kl_value *o, kl_err *err);

/* Adds causes if the writer of a ValidatingAdmissionPolicy or a binding may not read its parameters. */
struct kl__write;
void kl__access_check_params(const kl__call *c, const struct kl__write *w);

/* Creates missing default roles. Before the first request. */
KL_NODISCARD kl_status kl__access_begin(kl__world *w, kl_err *err);
/* A ClusterRole was added, deleted or changed: aggregated roles are rebuilt. */
void kl__access_aggregate(kl__world *w);

#endif
