/* csr.h - the rules of CertificateSigningRequests: the server fills in the requester; approval and
 * certificate are subresources. Pure; any thread. */
#ifndef KL_BUILTIN_CSR_H
#define KL_BUILTIN_CSR_H

#include "base/clock.h"
#include "schema/status.h"
#include "value/value.h"

/* Fills in the requester's username, uid, groups and extra from `user`, which override those of the body. */
void kl__csr_create(const kl_value *user, const kl_value **o);
/* Prepares `o` to replace `old`: takes from `old` the fields that a write of `sub` must not change (`sub`
 * NULL: the object; "status", "approval"). */
void kl__csr_update(const char *sub, kl_time wall, const kl_value *old, const kl_value **o);
void kl__csr_validate(const char *sub, const kl_value *old, const kl_value *o, kl__causes *causes);

#endif
