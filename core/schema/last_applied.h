/* last_applied.h - the annotation of kubectl's client-side apply, when kubectl goes over to server-side
 * apply. Pure. */
#ifndef KL_SCHEMA_LAST_APPLIED_H
#define KL_SCHEMA_LAST_APPLIED_H

#include "schema/fieldset.h"
#include "schema/schema.h"

/* The fields that were applied last and are still as they were applied: a server-side apply may take these
 * from whoever has them. NULL: none are known. The caller frees. */
kl__fieldset *kl__last_applied_fields(const kl__schema *s, const kl_value *live);
/* After an apply of `config`, as it was sent, by kubectl (another manager changes nothing): where *object (a
 * reference) has the annotation, it says that. */
void kl__last_applied_update(const char *manager, const kl_value *config, const kl_value **object);

#endif
