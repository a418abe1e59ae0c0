/* ownership.h - server-side apply without a server: what an object would be after it, and who would own
 * what. Pure; any thread.
 *
 * Ownership is read from metadata.managedFields. Where that is missing (a cache that drops it), nothing is
 * taken away and nobody objects. Lists are merged by element where mergelist.h knows how, and replaced
 * otherwise: the server's schema may know more. */
#ifndef KL_MODEL_OWNERSHIP_H
#define KL_MODEL_OWNERSHIP_H

#include "value/value.h"

typedef struct kl_application {
    const kl_value *base;   /* NULL: there is no such object */
    const kl_value *config; /* what is applied */
    const char *manager;
    const char *subresource; /* NULL: the object itself */
    bool force;
    bool builtin;     /* see kl_merge_keys_of */
    const char *time; /* of the entry in managedFields */
} kl_application;

/* The object after it, a new reference. KL_ECONFLICT: other managers own what would change; the message
 * names them and the fields. */
KL_NODISCARD kl_status kl_ownership_apply(const kl_application *a, const kl_value **out, kl_err *err);

#endif
