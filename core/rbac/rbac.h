/* rbac.h - authorization by Roles, ClusterRoles and their bindings, as kube-apiserver decides it.
 *
 * Functions of (roles, user, request): no I/O, no state. Any thread that may read the source. */
#ifndef KL_RBAC_RBAC_H
#define KL_RBAC_RBAC_H

#include <stdbool.h>
#include "value/value.h"

#define KL_RBAC_MASTERS "system:masters"
#define KL_RBAC_GROUP "rbac.authorization.k8s.io"

/* A user is a value in authentication.k8s.io's form: {username, uid, groups, extra}. */

/* One request. Strings are borrowed; NULL and "" are the same. */
typedef struct kl_rbac_request {
    const char *verb;
    const char *path; /* of a non-resource request; then the fields below are ignored */
    const char *group, *version, *resource, *sub, *ns, *name;
} kl_rbac_request;

/* The source of roles and bindings. ns NULL: ClusterRoles, ClusterRoleBindings. Its values are borrowed. */
typedef struct kl_rbac_source {
    const kl_value *(*role)(void *arg, const char *ns, const char *name);
    void (*bindings)(
        void *arg, const char *ns, void (*fn)(void *fn_arg, const kl_value *binding), void *fn_arg);
    void *arg;
} kl_rbac_source;

/* Whether the user may make the request. `why` (may be NULL) gets the reason as in a SubjectAccessReview. */
bool kl_rbac_allows(
    const kl_rbac_source *s, const kl_value *user, const kl_rbac_request *request, kl_buf *why);
/* Every rule that applies to the user in the namespace (NULL: only cluster-wide rules): an array, a new
 * reference. `errors` (may be NULL) gets the missing roles, in the review's words. */
const kl_value *kl_rbac_rules(const kl_rbac_source *s, const kl_value *user, const char *ns, kl_buf *errors);
/* Whether `held` covers every right of `rules` (arrays of rules). If not, `missing` gets the uncovered
 * rights, one rule a line, as kube-apiserver lists them. */
bool kl_rbac_covers(const kl_value *held, const kl_value *rules, kl_buf *missing);

bool kl_rbac_in_group(const kl_value *user, const char *group);
/* "User \"bob\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"" */
void kl_rbac_say(const kl_value *user, const kl_rbac_request *request, kl_buf *out);

/* The default roles and bindings of every cluster, without internal ones, as a JSON list of objects. */
extern const char kl_rbac_defaults[];

#endif
