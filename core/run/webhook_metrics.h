/* webhook_metrics.h - the series of webhooks, under controller-runtime's names. Any thread. */
#ifndef KL_RUN_WEBHOOK_METRICS_H
#define KL_RUN_WEBHOOK_METRICS_H

#include "base/buf.h"
#include "base/clock.h"

typedef struct kl_webhook_metrics kl_webhook_metrics;

kl_webhook_metrics *kl_webhook_metrics_new(void);
void kl_webhook_metrics_free(kl_webhook_metrics *m);
/* `path` is the webhook's, "/NAME". */
void kl_webhook_metrics_begin(kl_webhook_metrics *m, const char *path);
void kl_webhook_metrics_end(kl_webhook_metrics *m, const char *path, int code, kl_time took);      /* of one that began */
void kl_webhook_metrics_panic(kl_webhook_metrics *m);              /* the script raised */
void kl_webhook_metrics_certificate(kl_webhook_metrics *m, bool good);     /* a certificate was read, or could not be */
void kl_webhook_metrics_write(kl_webhook_metrics *m, kl_buf *out);

#endif
