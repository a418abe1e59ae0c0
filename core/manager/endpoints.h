/* endpoints.h - /metrics, /healthz, /livez and /readyz over the HTTP door. */
#ifndef KL_MANAGER_ENDPOINTS_H
#define KL_MANAGER_ENDPOINTS_H

#include "manager/manager.h"
#include "metrics/metrics.h"

typedef struct kl_endpoints kl_endpoints;

typedef struct kl_endpoints_options {
    /* either may be NULL; one socket serves both when they are equal */
    const char *metrics_address, *health_address;
    /* the directory of tls.crt and tls.key for HTTPS at the metrics' address; NULL: HTTP */
    const char *metrics_cert_dir;
    /* the API server decides whose bearer token may get /metrics */
    bool metrics_auth;
    kl_client *client;
    kl_clock *clock;
    kl_metrics *metrics;
} kl_endpoints_options;

/* Handlers ask the manager, on the HTTP thread. */
KL_NODISCARD kl_status kl_endpoints_start(
    kl_manager *m, const kl_endpoints_options *o, kl_endpoints **out, kl_err *err);
void kl_endpoints_stop(kl_endpoints *e);
const char *kl_endpoints_metrics_address(kl_endpoints *e); /* as bound, or NULL */
const char *kl_endpoints_health_address(kl_endpoints *e);

#endif
