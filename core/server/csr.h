/* csr.h - the rules of CertificateSigningRequests: who asks is the server's to say, approval and
 * certificate are subresources. */
#ifndef KL_SERVER_CSR_H
#define KL_SERVER_CSR_H

#include "server/state.h"
#include "schema/status.h"

void kl__csr_create(const kl_value **o);
/* `o` about to replace `old`: what the call (the object, /status or /approval) may not touch comes from
 * `old`. */
void kl__csr_update(const kl__call *c, const kl_value *old, const kl_value **o);
void kl__csr_validate(const kl__call *c, const kl_value *old, const kl_value *o, kl__causes *causes);

#endif
