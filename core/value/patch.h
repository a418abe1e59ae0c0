/* patch.h - merge patch (RFC 7386) and JSON patch (RFC 6902) over values. Pure; any thread.
 *
 * Both follow the API server, whose library (evanphx/json-patch v4) accepts more than the RFCs: nulls inside
 * objects of a merge patch's lists are removed; a JSON patch may be null, `replace` of a missing key adds it,
 * `copy` of one copies null, `add` without value adds null, indexes below zero count from the end, and "~2"
 * in a path is two characters. `test` compares values: 1.0 is 1 here, and an escaped character is the
 * character, where the library compares the texts. */
#ifndef KL_VALUE_PATCH_H
#define KL_VALUE_PATCH_H

#include "value/value.h"

/* A parsed JSON pointer: "/data/a~1b" has the steps { "data", "a/b" }. The text is not kept. False: it is not
 * a pointer, or has more than KL_VALUE_DEPTH_MAX steps; then there is nothing to free. */
typedef struct kl_json_pointer {
    char **steps;
    size_t len;
} kl_json_pointer;
KL_NODISCARD bool kl_json_pointer_parse(const char *text, kl_json_pointer *out);
void kl_json_pointer_fini(kl_json_pointer *p);

/* patch applied to doc (doc may be NULL = absent). A new reference. */
const kl_value *kl_merge_patch_apply(const kl_value *doc, const kl_value *patch);
/* The merge patch that turns `from` into `to`; {} when they are equal objects. A new reference. */
const kl_value *kl_merge_patch_create(const kl_value *from, const kl_value *to);
/* All operations or none; their copies hold at most 3 MiB together, as in the API server, and the lists and
 * objects that they change have at most 10 million members, counted for each. KL_EREJECTED when one fails
 * (the message names its index, op and path), KL_EINVAL when the patch is malformed. */
KL_NODISCARD kl_status kl_json_patch_apply(
    const kl_value *doc, const kl_value *patch, const kl_value **out, kl_err *err);
/* The JSON patch that turns `from` into `to`, both objects: [] when they are equal. Unchanged items
 * at the front and at the back of a list are left alone. A new reference. */
const kl_value *kl_json_patch_create(const kl_value *from, const kl_value *to);

#endif
