/* dispatch.h - finds the ValidatingAdmissionPolicies that apply to a write, with their bindings and
 * parameters, and applies them. Under the lock that guards kinds and objects. */
#ifndef KL_POLICY_DISPATCH_H
#define KL_POLICY_DISPATCH_H

#include "cel/cel.h"
#include "policy/match.h"

/* A cache of compiled policies. */
typedef struct kl_policies kl_policies;
kl_policies *kl_policies_new(void);
void kl_policies_free(kl_policies *p); /* NULL is fine */

/* A write, with the facts that only the server knows. */
typedef struct kl_policies_call {
    kl_match match;
    const char *name; /* the name in the error; NULL: the object's */
    /* the AdmissionRequest with its objects in the version of k; a new reference */
    const kl_value *(*request)(void *arg, const kl__kind *k);
    void (*warn)(void *arg, const char *text);
    /* An annotation for the audit log. `more`: values of one key are joined; otherwise the first stays. */
    void (*audit)(void *arg, const char *key, const char *value, bool more);
    kl_cel_authorize *authorize;
    void *arg;
} kl_policies_call;

/* KL_OK when all matching policies allow the write; else the refusal. */
KL_NODISCARD kl_status kl_policies_admit(kl_policies *p, const kl_policies_call *call, kl_err *err);

#endif
