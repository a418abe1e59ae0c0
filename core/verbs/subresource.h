/* subresource.h - subresources that are created but not stored: an eviction or a binding of a pod, a token of
 * a service account. Under the lock. */
#ifndef KL_VERBS_SUBRESOURCE_H
#define KL_VERBS_SUBRESOURCE_H

#include "verbs/call.h"

/* Whether a create is one of these: a subresource, or a Binding on its own. */
bool kl__sub_creates(const kl__call *c);
/* POST of `body` to c->sub of c->name, or of a Binding to its namespace. *out is a new reference to the
 * answer: a Status, or a TokenRequest. 501 for proxies. */
KL_NODISCARD kl_status kl__sub_create(
    const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err);
/* True when kl__sub_create or the ordinary verbs serve the subresource. */
bool kl__sub_served(const char *sub);

#endif
