/* names.h - the names of a CustomResourceDefinition: sets their defaults, and accepts them if no other
 * definition of the group has them. Reads only the definitions; under the server's lock. */
#ifndef KL_CUSTOM_NAMES_H
#define KL_CUSTOM_NAMES_H

#include "schema/status.h"
#include "store/store.h"
#include "value/value.h"

/* Fills in listKind and singular of spec.names. *crd is replaced. */
void kl_names_default(const kl_value **crd);
/* Sets status.acceptedNames and the conditions NamesAccepted and Established of *crd (replaced), whose status
 * is the previous one, as apiextensions-apiserver's controllers leave them. `crds` are all definitions, `now`
 * RFC 3339. `crds` NULL, in a dry run: a new definition gets its initial status only. */
void kl_names_settle(const kl__bucket *crds, const kl_value **crd, const char *now);
/* Adds a cause when an update makes the conversion webhook's caBundle invalid. On create (`old` NULL) it adds
 * none. */
void kl_names_check_bundle(const kl_value *old, const kl_value *crd, kl__causes *causes);
/* Whether the definition's kind is served. */
bool kl_names_served(const kl_value *crd);

#endif
