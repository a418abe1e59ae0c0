/* webhook_keeper.h - keeps the certificate of webhooks valid, and writes its CA into their configurations.
 *
 *   1. The certificate comes from files, which are read again when they change; or it is our own, from a
 *      Secret that replicas share, or from memory.
 *   2. Configurations that we manage get its CA.
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
    kl_clock *clock; /* clients check certificates by the real clock */
    kl_keyring *ring;
    kl_webhook_metrics *metrics;
    const kl_webhook_options *o; /* checked; outlives the keeper */
    const char *address;         /* as bound: for url "auto" */
    /* the result of kl_webhook_keeper_why may have changed; on the keeper's thread */
    void (*changed)(void *arg);
    void *changed_arg;
} kl_webhook_keeper_env;

kl_webhook_keeper *kl_webhook_keeper_start(const kl_webhook_keeper_env *env);
/* joins; the configurations and the Secret stay for the next process */
void kl_webhook_keeper_stop(kl_webhook_keeper *k);
/* Configures hook number i of p, replacing an earlier one of its name; takes a reference to p. */
void kl_webhook_keeper_want(kl_webhook_keeper *k, kl_program *p, size_t i);
/* The script dropped it: its configuration is deleted if we manage it. */
void kl_webhook_keeper_drop(kl_webhook_keeper *k, const char *name);
/* Why the API server does not call the webhook yet, or NULL. Caller frees. */
char *kl_webhook_keeper_why(kl_webhook_keeper *k, const char *name);

#endif
