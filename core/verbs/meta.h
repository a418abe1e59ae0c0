/* meta.h - checks of the metadata that a write sends. */
#ifndef KL_VERBS_META_H
#define KL_VERBS_META_H

#include "schema/status.h"
#include "verbs/call.h"

/* Adds complaints about the metadata of a new object. */
void kl__meta_check_new(const kl__call *c, const kl_value *o, kl__causes *causes);
/* Adds complaints about the metadata of `o`, which is to replace `old`. kube-apiserver makes these checks for
 * every kind, and most kinds make them again: each complaint comes as often as there. `sent`: the object as
 * it was before fields that no write may change were taken from `old`. */
void kl__meta_check_update(
    const kl__call *c, const kl_value *old, const kl_value *sent, const kl_value *o, kl__causes *causes);

#endif
