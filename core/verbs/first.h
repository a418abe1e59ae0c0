/* first.h - the objects that kube-apiserver makes for itself: at its start, for the addresses of Services,
 * and for the versions of definitions. But for the namespaces only in a `complete` world. Under the lock. */
#ifndef KL_VERBS_FIRST_H
#define KL_VERBS_FIRST_H

#include "verbs/call.h"

/* Creates those that are missing: namespaces, APIServices, FlowSchemas, PriorityLevelConfigurations, the
 * range of Services. Before the first request. */
KL_NODISCARD kl_status kl__first_make(kl__world *w, kl_err *err);
/* The Service `kubernetes`, and its endpoints: where the server listens. ip NULL: no other machine can reach
 * it, and there are no endpoints. */
KL_NODISCARD kl_status kl__first_serve(kl__world *w, const char *ip, int port, kl_err *err);
/* Creates an object unless it is there. Takes `o`. */
KL_NODISCARD kl_status kl__first_missing(kl__world *w, const kl_value *o, kl_err *err);
/* Creates what is missing of a text: a list of objects in JSON. A string NOW in it stands for the time. */
KL_NODISCARD kl_status kl__first_list(kl__world *w, const char *text, kl_err *err);

/* A Service is about to be stored as `now` (NULL: it was removed): its addresses get their IPAddresses, and
 * those of `old` (NULL: it is new) lose them. Of other kinds nothing happens. */
void kl__first_addresses(kl__world *w, const kl__kind *k, const kl_value *old, const kl_value *now);
/* The versions that the definitions of the group serve get APIServices, and others lose them. */
void kl__first_versions(kl__world *w, const char *group);

#endif
