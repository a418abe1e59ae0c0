/* begin.h - what the server itself writes into an object of a built-in kind, and what it warns of. Pure; any
 * thread. */
#ifndef KL_BUILTIN_BEGIN_H
#define KL_BUILTIN_BEGIN_H

#include "base/clock.h"
#include "builtin/builtin.h"

/* A new Namespace is active, and has Kubernetes' own finalizer among its own. *o is replaced. */
void kl__namespace_begin(const kl_value **o);
/* When a PersistentVolume's phase became what it is: at `wall`, unless it is that of `old` (NULL: a new one).
 */
void kl__volume_phase(kl_time wall, const kl_value *old, const kl_value **o);
/* What the answer to a write that is fine warns of; static, or NULL. */
const char *kl__builtin_warning(const kl__write *w);

#endif
