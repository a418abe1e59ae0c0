/* endpoints.h - /metrics, /healthz and /readyz over the HTTP door. */
#ifndef KL_RUN_ENDPOINTS_H
#define KL_RUN_ENDPOINTS_H

#include "run/manager.h"

typedef struct kl_endpoints kl_endpoints;

/* Either address may be NULL; the same address twice is one socket. Handlers ask the manager, on the HTTP thread. */
KL_NODISCARD kl_status kl_endpoints_start(kl_manager *m, const char *metrics_address, const char *health_address, kl_endpoints **out, kl_err *err);
void kl_endpoints_stop(kl_endpoints *e);
const char *kl_endpoints_metrics_address(kl_endpoints *e);      /* as bound, or NULL */
const char *kl_endpoints_health_address(kl_endpoints *e);

#endif
