/* last_applied.h - the annotation of kubectl's client-side apply, when kubectl migrates to server-side apply.
 * Pure. */
#ifndef KL_SCHEMA_LAST_APPLIED_H
#define KL_SCHEMA_LAST_APPLIED_H

#include "schema/fieldset.h"
#include "schema/schema.h"

/* The last applied fields that have not changed since, which a server-side apply may take from any manager.
 * NULL: none are known. The caller frees. */
kl__fieldset *kl__last_applied_fields(const kl__schema *s, const kl_value *live);
/* After kubectl's apply of `config`, as sent: updates the annotation of *object (a reference), if it has one.
 * Does nothing for other managers. */
void kl__last_applied_update(const char *manager, const kl_value *config, const kl_value **object);

#endif
