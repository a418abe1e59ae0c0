/* policy.h - a ValidatingAdmissionPolicy as a function: its verdict on one request, with one object as its
 * parameters. The caller chooses requests and parameters. Immutable once made; any thread. */
#ifndef KL_POLICY_POLICY_H
#define KL_POLICY_POLICY_H

#include "cel/cel.h"

typedef struct kl_policy kl_policy;

/* `object` is a ValidatingAdmissionPolicy that passed kl_policy_validate; takes a reference. */
kl_policy *kl_policy_new(const kl_value *object);
void kl_policy_free(kl_policy *p); /* NULL is fine */
const kl_value *kl_policy_object(const kl_policy *p);
/* Whether failurePolicy is Ignore, so that an expression that cannot be evaluated does not refuse the
 * request. */
bool kl_policy_ignores(const kl_policy *p);

typedef struct kl_policy_input {
    const kl_value *request; /* an AdmissionRequest with its object and oldObject */
    const kl_value *ns;      /* the namespace, or NULL */
    const kl_value *params;  /* or NULL */
    kl_cel_authorize *authorize;
    void *authorize_arg;
} kl_policy_input;

/* One refusal; strings are borrowed for the call. `always`: independent of the binding's actions. `index`:
 * the number of the validation. */
typedef void kl_policy_refuse(void *arg, bool always, size_t index, const char *reason, const char *message);
/* One audit annotation, borrowed for the call. */
typedef void kl_policy_note(void *arg, const char *key, const char *value);

/* Evaluates the policy; calls back for each refusal. */
void kl_policy_judge(
    const kl_policy *p, const kl_policy_input *in, kl_policy_refuse *refuse, kl_policy_note *note, void *arg);

#endif
