/* view.h - the caches as a dry run sees them: its simulated writes and earlier reads override their
 * contents. */
#ifndef KL_CONTROLLER_VIEW_H
#define KL_CONTROLLER_VIEW_H

#include "run/overlay.h"
#include "run/reconciler.h"

/* A reader of `of` (borrowed; it outlives the view) that `o` overrides; takes a reference to `o`. Owner
 * thread. */
kl_reader *kl_view_new(kl_reader *of, kl_overlay *o);
void kl_view_free(kl_reader *view); /* NULL is fine */
/* Returns true when it has answered the list; the overlay is then applied to its answer. */
typedef bool kl_view_recall(void *arg, const char *kind, const kl_read_query *q, kl_objects *out);
void kl_view_set_recall(kl_reader *view, kl_view_recall *recall, void *arg);

/* A live list's answer with the overlay applied; a new reference. `ns` and `labels` are those of the request,
 * NULL: all. */
const kl_value *kl_view_answer(
    kl_overlay *o, const kl_resource *r, const char *ns, const char *labels, const kl_value *answer);

#endif
