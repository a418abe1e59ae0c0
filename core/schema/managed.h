/* managed.h - ownership of fields: metadata.managedFields and server-side apply. Pure. */
#ifndef KL_SCHEMA_MANAGED_H
#define KL_SCHEMA_MANAGED_H

#include "value/value.h"
#include "schema/schema.h"

/* Another version of the kind in which managers may own fields. The fields that they lose are computed in
 * that version. */
typedef struct kl__other_version {
    const char *api_version;
    const kl__schema *schema;
    const kl_value *(*convert)(const kl_value *object); /* from the written version to this one; a new
                                                           reference */
} kl__other_version;

typedef struct kl__writer {
    const char *manager;            /* who writes */
    const char *api_version;        /* in which version */
    const char *sub;                /* subresource or NULL */
    const char *now;                /* the time of new entries, RFC 3339 */
    bool only_status;               /* only fields of status are owned ... */
    bool no_status;                 /* ... or of everything but status */
    bool owners_unknown;            /* an object without managers may have some: it is from a cache */
    const kl__other_version *other; /* NULL: all versions have the same fields */
    /* Whether the kind has this version: what others own in another one is forgotten. NULL: it has all. */
    bool (*knows)(const void *arg, const char *api_version);
    const void *arg;
} kl__writer;

/* After a create or update: the writer owns the fields that it changed, and others lose them. *object (a
 * reference) is replaced by one with new managedFields. `old` is NULL for a create. Entries that the client
 * sent in metadata.managedFields replace the old ones when all of them are valid; one empty entry clears
 * them. An update of an object without managers adds none. */
void kl__managed_update(
    const kl__schema *s, const kl__writer *w, const kl_value *old, const kl_value **object);

/* Applies `config` to `live` (NULL: none); *out is the result with its managedFields, a new reference.
 * Without `force`, 409 with FieldManagerConflict causes when another manager owns a changed field. */
KL_NODISCARD kl_status kl__managed_apply(const kl__schema *s, const kl__writer *w, bool force,
    const kl_value *live, const kl_value *config, const kl_value **out, kl_err *err);

/* Whether two objects are equal except for the times in managedFields. */
bool kl__managed_same(const kl_value *a, const kl_value *b);

#endif
