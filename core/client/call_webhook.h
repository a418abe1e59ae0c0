/* call_webhook.h - the embedded API server's calls of webhooks through core/http: POST, JSON, the CA of the
 * configuration. */
#ifndef KL_CLIENT_CALL_WEBHOOK_H
#define KL_CLIENT_CALL_WEBHOOK_H

#include <stddef.h>
#include "base/clock.h"
#include "base/err.h"

typedef struct kl_webhook_caller kl_webhook_caller;

/* The result of a call, once, on the web's thread: an HTTP answer, or a `failure` message. Borrowed. */
typedef void kl_webhook_called(void *arg, int code, const char *text, size_t n, const char *failure);

/* Its thread starts with the first call. */
kl_webhook_caller *kl_webhook_caller_new(void);
/* ends running calls, with failures; NULL is fine */
void kl_webhook_caller_free(kl_webhook_caller *c);
/* Any thread. `ca` is PEM text, or NULL for the system's. */
void kl_webhook_call(kl_webhook_caller *c, const char *url, const char *ca, const char *body, size_t len,
    kl_time timeout, kl_webhook_called *done, void *arg);

#endif
