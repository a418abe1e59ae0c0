/* projection.h - the parts of an object that decoding keeps; the rest is skipped and never stored.
 *
 * A projection always keeps the fields that caches and controllers need: apiVersion, kind, and of metadata
 * name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp,
 * deletionGracePeriodSeconds, finalizers, ownerReferences and labels (selectors read them). Paths are written
 * as in value/path.h without list indexes: a path through a list means all of its items
 * ("spec.containers.image"). Immutable, refcounted; any thread. */
#ifndef KL_VALUE_PROJECTION_H
#define KL_VALUE_PROJECTION_H

#include "base/err.h"
#include "value/value.h"

typedef struct kl_projection kl_projection;

/* Keeps only these paths. KL_EINVAL names the path that is malformed or has an index. One reference. */
KL_NODISCARD kl_status kl_projection_new(
    const char *const *paths, size_t n, kl_projection **out, kl_err *err);
/* Keeps everything but metadata.managedFields. */
kl_projection *kl_projection_without_managed_fields(void);
kl_projection *kl_projection_ref(kl_projection *p);
void kl_projection_unref(kl_projection *p);
bool kl_projection_equal(const kl_projection *a, const kl_projection *b); /* NULL is everything */
/* Whether a projected object still has the value at these keys: false when it was left out. */
bool kl_projection_keeps(const kl_projection *p, const char *const *keys, size_t n);

/* The projection for the Status of an ERROR event, which is not an object of the caller: it keeps the reason;
 * p where it does so already. */
const kl_projection *kl_projection_of_errors(const kl_projection *p);

/* Whether v has nothing that would be left out. */
bool kl_projection_covers(const kl_projection *p, const kl_value *v);
/* The path of the first list in a merge patch that would replace a list whose items were cut, or NULL. Caller
 * frees. */
char *kl_projection_cut_list(const kl_projection *p, const kl_value *patch);

/* --- for the decoder ---------------------------------------------------------------------- */
/* One level of it: the treatment of each member. */
typedef struct kl__cut kl__cut;
const kl__cut *kl__projection_root(const kl_projection *p); /* NULL: keep all */
/* for a watch's frame, whose member "object" is cut */
const kl__cut *kl__projection_frame(const kl_projection *p);
/* Whether the member `key` is kept; *below: the level below it, NULL when it is kept whole. */
bool kl__cut_keeps(const kl__cut *c, const char *key, size_t n, const kl__cut **below);
/* The level for items of a list: a path means all items. Names to leave out apply to members of objects
 * only. */
const kl__cut *kl__cut_items(const kl__cut *c);

#endif
