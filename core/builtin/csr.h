/* csr.h - the rules of CertificateSigningRequests: the server fills in the requester; approval and
 * certificate are subresources. Pure; any thread. */
#ifndef KL_BUILTIN_CSR_H
#define KL_BUILTIN_CSR_H

#include "base/clock.h"
#include "schema/status.h"
#include "value/value.h"

/* Fills in the requester: username, uid, groups and extra of `user`, whatever the body says. */
void kl__csr_create(const kl_value *user, const kl_value **o);
/* `o` about to replace `old`: fields that a write of `sub` must not change come from `old` (`sub` NULL: the
 * object; "status", "approval"). */
void kl__csr_update(const char *sub, kl_time wall, const kl_value *old, const kl_value **o);
void kl__csr_validate(const char *sub, const kl_value *old, const kl_value *o, kl__causes *causes);

#endif
