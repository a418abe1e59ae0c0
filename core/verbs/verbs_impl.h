/* verbs_impl.h - the steps that create and update (verbs.c) share with patch (patch.c): they read a body and
 * store it. */
#ifndef KL_VERBS_VERBS_IMPL_H
#define KL_VERBS_VERBS_IMPL_H

#include "model/time.h"
#include "schema/managed.h"
#include "verbs/call.h"

/* The key of an object of the call's kind and namespace; the caller kl_free()s it. */
char *kl__call_key(const kl__call *c, const char *name);
/* The call as a writer for managedFields. `now` and `other` are storage that the result points to. */
kl__writer kl__call_writer(
    const kl__call *c, const char *api_version, char now[KL_TIME_MAX], kl__other_version *other);

/* Checks that apiVersion and kind are those of the call, or absent where built-in kinds allow that. */
kl_status kl__body_check_type(const kl__call *c, const kl_value *body, kl_err *err);
/* Brings the body into storage form: types set, normalised, defaulted if `fill`. *out is a new reference. */
kl_status kl__body_decode(
    const kl__call *c, const kl_value *body, bool fill, const kl_value **out, kl_err *err);
/* Whether a text has a NUL: as C text it would end there, and be another name. */
bool kl__has_nul(const kl_value *v);
/* Checks that metadata.namespace is the URL's; it may be absent. */
kl_status kl__body_check_namespace(const kl__call *c, const kl_value **o, kl_err *err);
/* Checks an applied configuration of `k`: the call's kind, or the kind of its subresource. */
kl_status kl__applied_check(const kl__call *c, const kl__kind *k, const kl_value *patch, kl_err *err);
/* Checks name and namespace of an applied configuration. An absent name is filled in if the object is
 * `there`. */
kl_status kl__applied_name(const kl__call *c, bool there, const kl_value **config, kl_err *err);
/* Removes repeated owner references, and warns about them. */
void kl__body_unique_owners(const kl__call *c, const char *when, const kl_value **o);

/* Stores a new, decoded object. Takes `o`. `owned`: its managedFields are set already. */
kl_status kl__verb_create_decoded(
    const kl__call *c, const kl_value *o, bool owned, const kl_value **out, kl_err *err);
/* Replaces a stored object by a decoded one. Takes `o`; `stored` is borrowed. `owned`: its managedFields are
 * set already. */
kl_status kl__verb_update_decoded(const kl__call *c, const kl_value *stored, const kl_value *o, bool owned,
    const kl_value **out, kl_err *err);

/* 400 unless the object, which replaces another, has the name in the call's path. */
KL_NODISCARD kl_status kl__body_check_name(const kl__call *c, const kl_value *o, kl_err *err);
/* The error of a patch whose result is not an object of the kind: *err as decoding left it. It shows the
 * result, but of a strategic patch with unknown fields the patch. */
kl_status kl__blame_patch(kl__patch kind, const kl_value *patch, const kl_value *patched, kl_err *err);
/* `old` after a JSON patch; 400 or 422. *out is a new reference. */
KL_NODISCARD kl_status kl__json_patched(
    const kl_value *old, const kl_value *patch, const kl_value **out, kl_err *err);

#endif
