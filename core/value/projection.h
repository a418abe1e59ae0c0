/* projection.h - the parts of an object that decoding keeps; the rest is skipped and never stored.
 *
 * A projection of paths always keeps what caches and controllers need: apiVersion, kind, and these fields of
 * metadata: name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp,
 * deletionGracePeriodSeconds, finalizers, ownerReferences and labels (selectors read them). Paths have the
 * form of value/path.h, without list indexes: a path through a list means all items
 * ("spec.containers.image"). Immutable, refcounted; any thread. */
#ifndef KL_VALUE_PROJECTION_H
#define KL_VALUE_PROJECTION_H

#include "base/err.h"
#include "value/value.h"

typedef struct kl_projection kl_projection;

/* Keeps these paths and the fields above. KL_EINVAL: a path is malformed or has an index; err names it. The
 * caller owns *out. */
KL_NODISCARD kl_status kl_projection_new(
    const char *const *paths, size_t n, kl_projection **out, kl_err *err);
/* Keeps everything except metadata.managedFields. */
kl_projection *kl_projection_without_managed_fields(void);
kl_projection *kl_projection_ref(kl_projection *p);
void kl_projection_unref(kl_projection *p);
bool kl_projection_equal(const kl_projection *a, const kl_projection *b); /* NULL keeps everything */
/* Whether the value at these keys is kept. */
bool kl_projection_keeps(const kl_projection *p, const char *const *keys, size_t n);

/* The projection for the Status of a watch's ERROR event, which is not an object of the kind: p when it keeps
 * the code, otherwise NULL, which keeps everything. */
const kl_projection *kl_projection_of_errors(const kl_projection *p);

/* Whether p keeps all of v. */
bool kl_projection_covers(const kl_projection *p, const kl_value *v);
/* The path of the first list in a merge patch that would replace a list of which only some fields are cached,
 * or NULL. Caller frees. */
char *kl_projection_cut_list(const kl_projection *p, const kl_value *patch);

/* --- for the decoder ---------------------------------------------------------------------- */
/* One level of a projection: which members are kept, cut or left out. */
typedef struct kl__cut kl__cut;
const kl__cut *kl__projection_root(const kl_projection *p); /* NULL: keeps everything */
/* The level of a watch event, {type, object}, whose object is projected. */
const kl__cut *kl__projection_frame(const kl_projection *p);
/* Whether the member `key` is kept; *below: the level below it, NULL when it is kept whole. */
bool kl__cut_keeps(const kl__cut *c, const char *key, size_t n, const kl__cut **below);
/* The level for the items of a list: that of the list, as a path means all items. NULL (keeps everything)
 * where c names the members to leave out, since a list has no such members. */
const kl__cut *kl__cut_items(const kl__cut *c);

#endif
