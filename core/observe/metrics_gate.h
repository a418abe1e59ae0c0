/* metrics_gate.h - who may read /metrics: the API server authenticates a bearer token (TokenReview) and
 * authorizes its user (SubjectAccessReview: get of the non-resource URL /metrics), as in controller-runtime's
 * filter.
 *
 * Its own thread sends the reviews, one after the other; an approval is cached for a minute, a refusal for
 * ten seconds. */
#ifndef KL_OBSERVE_METRICS_GATE_H
#define KL_OBSERVE_METRICS_GATE_H

#include "httpd/httpd.h"
#include "client/client.h"

typedef struct kl_metrics_gate kl_metrics_gate;

/* `open` answers an approved request, on the gate's thread. */
kl_metrics_gate *kl_metrics_gate_new(
    kl_client *client, kl_clock *clock, void (*open)(void *arg, kl_httpd_request *r), void *arg);
/* Takes over the request, which is answered later: by `open`, or with 401, 403 or 500. HTTP thread. */
void kl_metrics_gate_ask(kl_metrics_gate *g, kl_httpd_request *r);
/* Answers waiting and new requests with 503; joins. Before the HTTP server stops; free afterwards. NULL is
 * fine. */
void kl_metrics_gate_close(kl_metrics_gate *g);
void kl_metrics_gate_free(kl_metrics_gate *g);

#endif
