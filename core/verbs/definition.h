/* definition.h - validation of a CustomResourceDefinition. Pure. */
#ifndef KL_VERBS_DEFINITION_H
#define KL_VERBS_DEFINITION_H

#include "schema/kinds.h"
#include "schema/status.h"

/* Checks names, versions, schemas, columns, subresources, selectable fields and conversion, with
 * apiextensions-apiserver's messages and paths: parts that all versions share are checked once, as
 * spec.validation, spec.subresources and so on. `crd` has its default names; `old` is the definition that it
 * replaces, or NULL. `builtin` as for kl__types_of_crd. */
void kl__definition_validate(
    const kl_value *old, const kl_value *crd, const kl__types *builtin, kl__causes *causes);

#endif
