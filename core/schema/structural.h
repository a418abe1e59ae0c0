/* structural.h - whether the schemas of a CustomResourceDefinition are ones that an API server serves. Pure.
 *
 * The texts and their order are those of apiextensions-apiserver 1.34. */
#ifndef KL_SCHEMA_STRUCTURAL_H
#define KL_SCHEMA_STRUCTURAL_H

#include "schema/schema.h"
#include "schema/status.h"

/* One openAPIV3Schema at `path`: what no schema may say, that it is structural, that its defaults fit it.
 * `builtin` as kl__types_of_crd has it. */
void kl__structural_validate(
    const char *path, const kl_value *json, const kl__types *builtin, kl__causes *causes);
/* Whether it is structural, alone. False when it says what structural schemas have no word for. */
bool kl__structural_shape(const char *path, const kl_value *json, kl__causes *causes);
/* Calls warn for each format of a text that is never checked. */
void kl__structural_formats(const kl_value *json, void (*warn)(void *arg, const char *format), void *arg);

#endif
