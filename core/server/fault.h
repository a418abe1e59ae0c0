/* fault.h - answers that a test has ordered: the next requests that match fail so. Under the server's
 * lock. */
#ifndef KL_SERVER_FAULT_H
#define KL_SERVER_FAULT_H

#include "server/state.h"

/* KL_OK, or the failure that was ordered for this request, counted down; *retry_after as in
 * kl_server_fault. */
KL_NODISCARD kl_status kl__fault_check(
    const kl__call *c, const char *verb, const char *agent, int *retry_after, kl_err *err);
void kl__faults_clear(kl_server *s);

#endif
