/* webhook.h - the function that calls webhooks for the server, which kl_server_options provides. */
#ifndef KL_VERBS_WEBHOOK_H
#define KL_VERBS_WEBHOOK_H

#include <stddef.h>

#include "base/clock.h"

/* A call of a webhook: POST of a JSON body. Borrowed for the call. */
typedef struct kl_server_webhook {
    const char *url; /* "https://...?timeout=10s" */
    const char *ca;  /* PEM text of the CA that verifies its certificate; NULL: the system's */
    const char *body;
    size_t len;
    kl_time timeout;
} kl_server_webhook;
/* The result, once, on any thread, perhaps before the call returns: an HTTP answer, or a `failure` message.
 * All borrowed. */
typedef void kl_server_webhook_done(void *arg, int code, const char *text, size_t n, const char *failure);
/* Makes the call. */
typedef void kl_server_webhook_caller(
    void *arg, const kl_server_webhook *call, kl_server_webhook_done *done, void *done_arg);

#endif
