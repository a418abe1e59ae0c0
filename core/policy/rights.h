/* rights.h - the writer of a policy or a binding must have the right to read the parameters that it names
 * (registry/ admissionregistration, authz.go). */
#ifndef KL_POLICY_RIGHTS_H
#define KL_POLICY_RIGHTS_H

#include "builtin/builtin.h"
#include "store/store.h"

typedef struct kl_policy_asker {
    /* whether the writer has a right; texts as in ResourceAttributes, "*" for any */
    bool (*may)(void *arg, const char *verb, const char *group, const char *resource, const char *ns,
        const char *name);
    void *arg;
    const kl_value *user; /* the writer */
    const kl__kinds *kinds;
    kl__store *store;
} kl_policy_asker;

/* For a write of a ValidatingAdmissionPolicy or a binding; other writes pass. Under the lock that guards
 * kinds and objects. */
void kl_policy_check_rights(const kl_policy_asker *a, const kl__write *w);

#endif
