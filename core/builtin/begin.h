/* begin.h - fields of built-in kinds that the server writes. Pure; any thread. */
#ifndef KL_BUILTIN_BEGIN_H
#define KL_BUILTIN_BEGIN_H

#include "base/clock.h"
#include "builtin/builtin.h"

/* Sets the phase of a new Namespace to Active, and adds Kubernetes' finalizer to its own. *o is replaced. */
void kl__namespace_begin(const kl_value **o);
/* Sets the time of a PersistentVolume's last phase change: `wall`, unless the phase is that of `old` (NULL: a
 * new one).
 */
void kl__volume_phase(kl_time wall, const kl_value *old, const kl_value **o);

#endif
