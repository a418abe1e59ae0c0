/* object.h - a Kubernetes object is a value with metadata: its common fields, and its key.
 *
 * A key is "namespace/name", or "name" for cluster scope. All readers are borrowed, NULL-safe and for any
 * thread. */
#ifndef KL_MODEL_OBJECT_H
#define KL_MODEL_OBJECT_H

#include "value/value.h"
#include "base/clock.h"

const char *kl_object_api_version(const kl_value *o);
const char *kl_object_kind(const kl_value *o);
const char *kl_object_name(const kl_value *o);
const char *kl_object_namespace(const kl_value *o); /* NULL for cluster scope */
const char *kl_object_uid(const kl_value *o);
const char *kl_object_rv(const kl_value *o);     /* metadata.resourceVersion */
int64_t kl_object_generation(const kl_value *o); /* 0 when the kind has none */
bool kl_object_deleting(const kl_value *o);      /* has a deletionTimestamp */
const kl_value *kl_object_label(const kl_value *o, const char *name);
const kl_value *kl_object_annotation(const kl_value *o, const char *name);
bool kl_object_has_finalizer(const kl_value *o, const char *name);
/* the owner reference with controller=true, or NULL */
const kl_value *kl_object_controller(const kl_value *o);

/* "ns/name" or "name" of the object; caller kl_free()s. NULL when it has no name. */
char *kl_object_key(const kl_value *o);
char *kl_key_join(const char *ns, const char *name); /* ns NULL or "" gives "name" */
/* Splits without copying: *ns is NULL for cluster scope, else its bytes are key[0..nslen). name points into
 * key. */
void kl_key_split(const char *key, size_t *nslen, const char **name);
/* Numeric comparison of resourceVersions (opaque but ordered since 1.35): <0, 0, >0; *ok false when one is
 * not a number. */
int kl_rv_compare(const char *a, const char *b, bool *ok);
uint64_t kl_rv_number(const char *rv); /* 0 when it is not a number, or too long */
/* v with apiVersion and kind set, where missing (list items carry none). A new reference. */
const kl_value *kl_object_with_type(const kl_value *o, const char *api_version, const char *kind);
/* v with this apiVersion and kind, whatever it had. A new reference. */
const kl_value *kl_object_as(const kl_value *o, const char *api_version, const char *kind);

/* The data of a Secret with its stringData, which wins, as base64. A new reference; NULL when the latter has
 * no text. */
const kl_value *kl_secret_data(const kl_value *secret);

#endif
