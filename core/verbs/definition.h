/* definition.h - validation of a CustomResourceDefinition. Pure. */
#ifndef KL_VERBS_DEFINITION_H
#define KL_VERBS_DEFINITION_H

#include "schema/kinds.h"
#include "schema/status.h"

/* A definition whose names have been filled in, and the one that it replaces, or NULL. Names, versions,
 * schemas, columns, subresources, selectable fields and conversion, in apiextensions-apiserver's words and
 * under its paths: parts that all versions share are checked once, as spec.validation, spec.subresources and
 * so on. `builtin` as kl__types_of_crd has it. */
void kl__definition_validate(
    const kl_value *old, const kl_value *crd, const kl__types *builtin, kl__causes *causes);

#endif
