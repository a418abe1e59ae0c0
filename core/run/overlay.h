/* overlay.h - the writes and reads of one run, which override the caches, so that a dry run reads its own
 * writes.
 *
 * An object is found by its resource (group and plural), namespace and name, whatever version was requested.
 * Any thread. */
#ifndef KL_RUN_OVERLAY_H
#define KL_RUN_OVERLAY_H

#include "cache/informer.h"
#include "run/simulate.h"

typedef struct kl_overlay kl_overlay;

kl_overlay *kl_overlay_new(void);
kl_overlay *kl_overlay_ref(kl_overlay *o);
void kl_overlay_unref(kl_overlay *o); /* NULL is fine */

/* False: it is unknown. True: *out is the object, a new reference, or NULL: it does not exist. ns NULL:
 * cluster scope. */
bool kl_overlay_get(
    kl_overlay *o, const kl_resource *r, const char *ns, const char *name, const kl_value **out);
/* Sets the object to v (NULL: it does not exist). */
void kl_overlay_set(kl_overlay *o, const kl_resource *r, const char *ns, const char *name, const kl_value *v);
/* Sets it only where it was unknown. True when it was. */
bool kl_overlay_show(
    kl_overlay *o, const kl_resource *r, const char *ns, const char *name, const kl_value *v);
/* Whether it was written, not only read. */
bool kl_overlay_wrote(kl_overlay *o, const kl_resource *r, const char *ns, const char *name);
/* Whether any object of a resource is known. */
bool kl_overlay_has(kl_overlay *o, const kl_resource *r);

/* Simulates a write (kl_simulate) of the known object, or of write->base where it is unknown, and remembers
 * the result. It sets the simulation's number; op->name may be missing (generateName). *was (was may be
 * NULL): the object before, a new reference. */
KL_NODISCARD kl_status kl_overlay_write(
    kl_overlay *o, const kl_simulation *write, kl_simulated *out, const kl_value **was, kl_err *err);

/* Corrects a list from elsewhere: known objects are replaced, deleted ones removed, and those that `matches`
 * accepts added. `listed`: the list had it, so an object that cannot be judged may stay. Sorted by key. */
void kl_overlay_list(kl_overlay *o, const kl_resource *r,
    bool (*matches)(void *arg, const kl_value *v, bool listed), void *arg, kl_objects *io);

#endif
