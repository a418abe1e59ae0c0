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

/* env is copied; its object, answer and hook_arg are set here. o and its strings are borrowed for w's life.
 */
kl_webhooks *kl_webhooks_new(const kl_controller_env *env, const kl_webhook_options *o);
void kl_webhooks_free(kl_webhooks *w); /* after kl_webhooks_end; NULL is fine */
/* Whether kl_webhooks_take accepts p. KL_EEXISTS: one of its webhooks has the name of another script's
 * webhook; KL_EINVAL: it has webhooks, and the options do not say how the API server reaches them. `slot`
 * identifies the script by its address. */
KL_NODISCARD kl_status kl_webhooks_check(kl_webhooks *w, const void *slot, const kl_program *p, kl_err *err);
/* Makes p's webhooks those of the script. Known names switch to p between two requests, new ones begin, and
 * names that p lacks end after their present requests. Takes a reference. */
void kl_webhooks_take(kl_webhooks *w, const void *slot, kl_program *p, int generation);
/* Listens, once there is a webhook; further calls do nothing. Fails with the error of the socket or the
 * certificates. */
KL_NODISCARD kl_status kl_webhooks_listen(kl_webhooks *w, kl_err *err);
/* Called after env's `changed`: begins webhooks whose caches are ready, and frees those that have ended. */
void kl_webhooks_advance(kl_webhooks *w);
/* The first of three steps to the end: refuses new requests, waits for those under way until `deadline`
 * (monotonic), closes the socket. Any thread. */
void kl_webhooks_stop(kl_webhooks *w, kl_time deadline);
/* the second step, on the loop: ends the workers and frees the webhooks */
void kl_webhooks_end(kl_webhooks *w);

/* For people: the i-th state of kl_webhooks_len. *out is as from kl_controller_state_get, and the caller
 * frees it. */
size_t kl_webhooks_len(kl_webhooks *w);
void kl_webhooks_state(kl_webhooks *w, size_t i, kl_controller_state *out);
bool kl_webhooks_idle(kl_webhooks *w); /* no request waits or runs */
/* a running or waiting request: "webhook x: ..."; NULL: none. Caller frees */
char *kl_webhooks_busy(kl_webhooks *w);
const char *kl_webhooks_address(kl_webhooks *w);       /* as bound, until stop; or NULL. Any thread */
void kl_webhooks_metrics(kl_webhooks *w, kl_buf *out); /* any thread */

#endif
