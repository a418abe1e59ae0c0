/* webhooks.h - the admission webhooks of all scripts behind one HTTPS server: requests become keys of queues,
 * whose workers run them like reconciles.
 *
 *   POST /NAME --parsed--> pending --queue, worker, script--> decided --> answered
 *                             pending --deadline--> answered by the failure policy; a later decision is ignored
 *
 * A next generation takes over between two requests, as a controller's does. Certificates and
 * configurations are the keeper's (webhook_keeper.h). All functions run on the manager's loop unless said
 * otherwise. */
#ifndef KL_WEBHOOK_WEBHOOKS_H
#define KL_WEBHOOK_WEBHOOKS_H

#include "controller/controller.h"
#include "webhook/webhook_config.h"

typedef struct kl_webhooks kl_webhooks;

/* In env: object, answer and hook_arg are set here. The strings of o are the manager's. */
kl_webhooks *kl_webhooks_new(const kl_controller_env *env, const kl_webhook_options *o);
void kl_webhooks_free(kl_webhooks *w); /* after stop; NULL is fine */
/* KL_EEXISTS when a webhook of p has the name of another script's. `slot` identifies the script. */
KL_NODISCARD kl_status kl_webhooks_check(kl_webhooks *w, const void *slot, const kl_program *p, kl_err *err);
void kl_webhooks_take(kl_webhooks *w, const void *slot, kl_program *p, int generation);
/* Listens, once there is a webhook; further calls do nothing. */
KL_NODISCARD kl_status kl_webhooks_listen(kl_webhooks *w, kl_err *err);
void kl_webhooks_advance(kl_webhooks *w);
/* The end, in three steps. Any thread: no new requests, waits for those under way until `deadline`
 * (monotonic), closes the socket. */
void kl_webhooks_stop(kl_webhooks *w, kl_time deadline);
/* on the loop, then: ends the workers and frees the webhooks */
void kl_webhooks_end(kl_webhooks *w);

/* For people. */
size_t kl_webhooks_len(kl_webhooks *w);
void kl_webhooks_state(kl_webhooks *w, size_t i, kl_controller_state *out);
bool kl_webhooks_idle(kl_webhooks *w);
/* a running or waiting request: "webhook x: ..."; NULL: none. Caller frees */
char *kl_webhooks_busy(kl_webhooks *w);
const char *kl_webhooks_address(kl_webhooks *w);       /* as bound, until stop; or NULL. Any thread */
void kl_webhooks_metrics(kl_webhooks *w, kl_buf *out); /* any thread */

#endif
