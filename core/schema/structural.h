/* structural.h - whether an API server accepts the schemas of a CustomResourceDefinition. Pure.
 *
 * Messages and their order are those of apiextensions-apiserver 1.34. */
#ifndef KL_SCHEMA_STRUCTURAL_H
#define KL_SCHEMA_STRUCTURAL_H

#include "schema/schema.h"
#include "schema/status.h"

/* Checks one openAPIV3Schema at `path`: forbidden keywords, that it is structural, that its defaults satisfy
 * it. `builtin` as for kl__types_of_crd. */
void kl__structural_validate(
    const char *path, const kl_value *json, const kl__types *builtin, kl__causes *causes);
/* Checks only whether it is structural. False when it uses keywords that structural schemas lack. */
bool kl__structural_shape(const char *path, const kl_value *json, kl__causes *causes);
/* Calls warn for each format of texts that the server never checks. */
void kl__structural_formats(const kl_value *json, void (*warn)(void *arg, const char *format), void *arg);

#endif
