/* why.h - why a key ran, or does not run: what the controllers of a process know about an object, for
 * `kubelua why` and GET /v1/why. */
#ifndef KL_CONTROL_WHY_H
#define KL_CONTROL_WHY_H

#include "control/control.h"
#include "manager/manager.h"

/* What the controllers know about the object of a kind ("v1/Secret", or a short form: secrets, Secret) under
 * "namespace/name" or "name":
 *
 *   {kind, key, controllers: [{cluster, controller, resource, role, key, present, state, says, queue:
 *   {state, in, failures}, runs, dropped}]}
 *
 * role is the controller's relation to the object: "resource", "owns", "watches" or "reads". There is an
 * entry for each key that the object maps to, and `key` is that key. `says` is a sentence about the present
 * state and the next step; runs and dropped are those of observe/flight.h. KL_ENOTFOUND: no controller
 * watches that kind. Any thread but the manager's loops, for which it waits. */
KL_NODISCARD kl_status kl_why_tell(
    kl_manager *m, const char *kind, const char *key, const kl_value **out, kl_err *err);
/* Resolves `asked` to a kind of a wiring, or NULL; `own`: the controller's own kind only. On the loop;
 * borrowed from the wiring. */
struct kl_wiring;
const char *kl_why_kind(struct kl_wiring *w, const char *asked, bool own);
/* Adds copies of a wiring's kinds (`own`: only its own) to *kinds, each once; kl_why_kinds_free frees the
 * list. On the loop. */
void kl_why_kinds(struct kl_wiring *w, bool own, char ***kinds, size_t *n);
void kl_why_kinds_free(char **kinds, size_t n);
/* The end of a message that `asked` is not one of the kinds: ": did you mean v1/Pod? (WHATv1/Pod, v1/Node)";
 * caller frees. */
char *kl_why_meant(const char *asked, char *const *kinds, size_t n, const char *what);
/* Completes `key`: for a namespaced kind, a name without a namespace is in "default", as in kubectl. The
 * caller frees it. */
struct kl_resource;
char *kl_why_key(const struct kl_resource *r, const char *key);
/* Adds GET /v1/why?kind=&namespace=&name= (or key=). As kl_inspect_add. */
void kl_why_add(kl_control *c, kl_manager *m);

#endif
