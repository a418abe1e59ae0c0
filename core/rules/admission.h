/* admission.h - expressions about a request: those of admission policies, and matchConditions of webhooks.
 * Any thread. */
#ifndef KL_RULES_ADMISSION_H
#define KL_RULES_ADMISSION_H

#include "rules/rules.h"

/* The variables of a request, in the order of kl_cel_run's. */
enum {
    KL_CEL_OBJECT,
    KL_CEL_OLD_OBJECT,
    KL_CEL_REQUEST,
    KL_CEL_NAMESPACE,
    KL_CEL_AUTHORIZER,
    KL_CEL_REQUEST_RESOURCE,
    KL_CEL_PARAMS,
    KL_CEL_VARIABLES, /* of kl_cel_env_define: stays empty */
    KL_CEL_REQUEST_VARS
};

/* An environment with these variables; `params` and `authorizer` tell whether it declares those two. */
kl_cel_env *kl_cel_request_env(bool params, bool authorizer);
/* The values of a request ({object, oldObject, ...}), borrowed; params and ns may be NULL. `resource` is
 * kl_cel_request_resource's. */
void kl_cel_request_vars(const kl_value *request, const kl_value *resource, const kl_value *ns,
    const kl_value *params, kl_cel_var vars[KL_CEL_REQUEST_VARS]);
/* The resource that authorizer.requestResource checks; a new reference. */
const kl_value *kl_cel_request_resource(const kl_value *request);

#define KL_CEL_SPENT                                                                                         \
    "validation failed due to running out of cost budget, no further validation rules will be run"

typedef enum kl_cel_returns {
    KL_CEL_RETURNS_ANY,
    KL_CEL_RETURNS_BOOL,
    KL_CEL_RETURNS_STRING,
    KL_CEL_RETURNS_STRING_OR_NULL
} kl_cel_returns;
/* Compiles an expression with a result of that type. NULL: `why` describes the mistake; its status is that of
 * kl_cel_compile. */
kl_cel *kl_cel_request_compile(const kl_cel_env *env, const char *text, kl_cel_returns returns, kl_err *why);

/* Validates conditions; the fields of complaints begin with `path`. */
void kl_cel_conditions_validate(const kl_cel_env *env, const kl_value *conditions, const char *path,
    kl_cel_complain *complain, void *arg);

/* Conditions compiled; `list` (borrowed) and env must live as long. Immutable. */
typedef struct kl_cel_conditions kl_cel_conditions;
kl_cel_conditions *kl_cel_conditions_new(const kl_cel_env *env, const kl_value *list);
void kl_cel_conditions_free(kl_cel_conditions *c); /* NULL is fine */
/* Whether a request matches all conditions. `run` has the values, the authorizer and the shared part; this
 * sets its limit. KL_EINVAL: none is false, but some could not be evaluated; the failure policy decides. */
KL_NODISCARD kl_status kl_cel_conditions_match(
    const kl_cel_conditions *c, kl_cel_run *run, bool *matches, kl_err *err);

#endif
