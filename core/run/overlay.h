/* overlay.h - what one run is known to have written, or was shown, in front of what the caches say: so
 * that who writes nothing reads its own writes.
 *
 * An object is in it under its resource (group and plural), namespace and name, whatever version it was
 * asked for in. Any thread. */
#ifndef KL_RUN_OVERLAY_H
#define KL_RUN_OVERLAY_H

#include "cache/informer.h"
#include "run/simulate.h"

typedef struct kl_overlay kl_overlay;

kl_overlay *kl_overlay_new(void);
kl_overlay *kl_overlay_ref(kl_overlay *o);
void kl_overlay_unref(kl_overlay *o); /* NULL is fine */

/* False: nothing is known of it. True: *out is the object, a new reference, or NULL: there is none. ns
 * NULL: cluster scope. */
bool kl_overlay_get(
    kl_overlay *o, const kl_resource *r, const char *ns, const char *name, const kl_value **out);
/* From now on it is v (NULL: there is none). */
void kl_overlay_set(kl_overlay *o, const kl_resource *r, const char *ns, const char *name, const kl_value *v);
/* The same where nothing was known. True when that was so. */
bool kl_overlay_show(
    kl_overlay *o, const kl_resource *r, const char *ns, const char *name, const kl_value *v);
/* Whether it was written, not only shown. */
bool kl_overlay_wrote(kl_overlay *o, const kl_resource *r, const char *ns, const char *name);
/* Whether anything of a resource is known. */
bool kl_overlay_has(kl_overlay *o, const kl_resource *r);

/* kl_simulate over what is known, or over `base` where nothing is, and remembers what came of it. Its number
 * is the overlay's own; op->name may be missing (generateName). *was, if not NULL: a new reference to what it
 * was before. */
KL_NODISCARD kl_status kl_overlay_write(
    kl_overlay *o, const kl_simulation *write, kl_simulated *out, const kl_value **was, kl_err *err);

/* Puts right what a list found elsewhere: what is known to be otherwise is replaced, what is gone is left
 * out, and what is there and `matches` is put in. `listed`: the list had it, so that what cannot be judged
 * may stay. Sorted by key. */
void kl_overlay_list(kl_overlay *o, const kl_resource *r,
    bool (*matches)(void *arg, const kl_value *v, bool listed), void *arg, kl_objects *io);

#endif
