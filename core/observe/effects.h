/* effects.h - the log of controllers' writes: a line of JSON for each write, when it is answered.
 *
 *   {"time": "...", "controller": "quota", "key": "team/a", "reconcileID": "...", "generation": 3, "verb":
 *   "patch", "kind": "v1/ConfigMap", "namespace": "team", "name": "a",
 *    "status": "ok", "code": 200, "before": "811", "after": "812", "ms": 3.1, "changes": [{"path":
 *    "data.n", "old": "1", "new": "2"}]}
 *
 * `before` comes from the cache, if the controller keeps the kind; changes are listed if it is known. Values
 * are cut to 64 characters; contents of Secrets are hidden. Files are bounded (base/tape.h): FILE is being
 * written, FILE.1 is the one before. */
#ifndef KL_OBSERVE_EFFECTS_H
#define KL_OBSERVE_EFFECTS_H

#include "run/witness.h"

/* The default and the minimum size of all files together. */
#define KL_EFFECTS_MAX ((size_t)64 << 20)
#define KL_EFFECTS_MAX_LEAST ((size_t)1 << 20)

typedef struct kl_effects kl_effects;

/* path NULL: no file. max 0: KL_EFFECTS_MAX. `tell`: each allowed write is also logged, but at most
 * KL_EFFECTS_TOLD a second: the next line tells how many were left out. KL_EIO names the file and why. */
#define KL_EFFECTS_TOLD 20
KL_NODISCARD kl_status kl_effects_new(const char *path, size_t max, bool tell, kl_effects **out, kl_err *err);
void kl_effects_free(kl_effects *e);          /* after the last run. NULL is fine */
kl_witness kl_effects_witness(kl_effects *e); /* `e` outlives the managers that use it */

#endif
