/* webhook_keeper.h - what webhooks need around them: a certificate that never ends, and configurations
 * that trust it.
 *
 *   1. The certificate comes from files, which are read again when they change; or it is our own, from a
 *      Secret that replicas share, or from memory.
 *   2. Configurations that are ours to keep get its CA.
 *   3. Only then is a new certificate shown to clients.
 *
 * One thread, which talks to the API server and waits for it. All functions from any thread. */
#ifndef KL_WEBHOOK_WEBHOOK_KEEPER_H
#define KL_WEBHOOK_WEBHOOK_KEEPER_H

#include "base/keyring.h"
#include "client/client.h"
#include "run/reconciler.h"
#include "webhook/webhook_config.h"
#include "webhook/webhook_metrics.h"

typedef struct kl_webhook_keeper kl_webhook_keeper;

typedef struct kl_webhook_keeper_env {
    kl_client *client;
    kl_clock *clock; /* whoever checks certificates looks at the real one */
    kl_keyring *ring;
    kl_webhook_metrics *metrics;
    const kl_webhook_options *o; /* checked; outlives the keeper */
    const char *address;         /* as bound: for url "auto" */
    /* what kl_webhook_keeper_why says may have changed; on the keeper's thread */
    void (*changed)(void *arg);
    void *changed_arg;
} kl_webhook_keeper_env;

kl_webhook_keeper *kl_webhook_keeper_start(const kl_webhook_keeper_env *env);
/* joins; configurations and Secret stay, for the next process */
void kl_webhook_keeper_stop(kl_webhook_keeper *k);
/* Hook number i of p is to be configured, in place of what its name had before; a reference to p is taken. */
void kl_webhook_keeper_want(kl_webhook_keeper *k, kl_program *p, size_t i);
/* A script does not have it any more: its configuration, if it is ours, is deleted. */
void kl_webhook_keeper_drop(kl_webhook_keeper *k, const char *name);
/* Why the API server does not call the webhook yet, or NULL. Caller frees. */
char *kl_webhook_keeper_why(kl_webhook_keeper *k, const char *name);

#endif
