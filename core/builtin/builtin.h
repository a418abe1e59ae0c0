/* builtin.h - validation of built-in kinds as kube-apiserver does it, with the same causes: field, type,
 * message. Pure: functions of the object and the one that it replaces. Any thread. */
#ifndef KL_BUILTIN_BUILTIN_H
#define KL_BUILTIN_BUILTIN_H

#include "schema/kinds.h"
#include "schema/status.h"
#include "value/value.h"

/* One write. `o` is the object to store, with its defaults; `old` is NULL on create; `sub` is the written
 * subresource ("status"), or NULL. */
typedef struct kl__write {
    const kl__kind *kind;
    const char *sub;
    const kl_value *old, *o;
    kl__causes *causes;
} kl__write;

/* Adds the write's causes. Metadata is checked elsewhere (schema/validate.h). */
void kl__builtin_validate(const kl__write *w);

#endif
