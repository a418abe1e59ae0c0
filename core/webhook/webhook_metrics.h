/* webhook_metrics.h - the series of webhooks, under controller-runtime's names. Any thread. */
#ifndef KL_WEBHOOK_WEBHOOK_METRICS_H
#define KL_WEBHOOK_WEBHOOK_METRICS_H

#include "base/buf.h"
#include "base/clock.h"
#include "metrics/metrics.h"

typedef struct kl_webhook_metrics kl_webhook_metrics;

/* all: where certificates are counted; outlives it */
kl_webhook_metrics *kl_webhook_metrics_new(kl_metrics *all);
void kl_webhook_metrics_free(kl_webhook_metrics *m);
/* `path` is the webhook's, "/NAME". */
void kl_webhook_metrics_begin(kl_webhook_metrics *m, const char *path);
/* ends a request that kl_webhook_metrics_begin counted */
void kl_webhook_metrics_end(kl_webhook_metrics *m, const char *path, int code, kl_time took);
void kl_webhook_metrics_panic(kl_webhook_metrics *m);                  /* the script raised */
void kl_webhook_metrics_certificate(kl_webhook_metrics *m, bool good); /* kl_metrics_certificate */
void kl_webhook_metrics_write(kl_webhook_metrics *m, kl_buf *out);

#endif
