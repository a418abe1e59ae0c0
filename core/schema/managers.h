/* managers.h - the entries of metadata.managedFields: one for each writer, with the fields that it owns.
 * Owner thread. */
#ifndef KL_SCHEMA_MANAGERS_H
#define KL_SCHEMA_MANAGERS_H

#include "schema/fieldset.h"

typedef struct kl__manager {
    char *name, *operation, *api_version, *sub, *time; /* NULL when absent */
    kl__fieldset *set;
} kl__manager;

typedef struct kl__managers {
    kl__manager *v;
    size_t len;
} kl__managers;

/* The entries of an object, sorted by writer. Of two entries of one writer the last one counts; an applier
 * is one writer in all API versions. The caller ends it. */
kl__managers kl__managers_of(const kl_value *object);
void kl__managers_fini(kl__managers *m);
/* The entry of the writer of `like`, or NULL; borrowed. `m` as it came from kl__managers_of. */
kl__manager *kl__managers_find(const kl__managers *m, const kl__manager *like);
/* A new entry at the end, all NULL; borrowed. */
kl__manager *kl__managers_add(kl__managers *m);
/* Moves the entries of `from` to the end of `m`. */
void kl__managers_join(kl__managers *m, kl__managers *from);
/* Writes the entries that own something as the managedFields of *object, in their order there. */
void kl__managers_write(kl__managers *m, const kl_value **object);
/* Whether two objects have the same entries, except for their times. */
bool kl__managers_same(const kl_value *a, const kl_value *b);
/* Merges the oldest entries of updates as "ancient-changes", until there are few enough. */
void kl__managers_cap(kl__managers *m);

#endif
