/* hooks.h - validation of webhook configurations. Pure; any thread. */
#ifndef KL_POLICY_HOOKS_H
#define KL_POLICY_HOOKS_H

#include "schema/status.h"
#include "value/value.h"

#define KL_WEBHOOK_TIMEOUT 10 /* seconds, if a webhook names none */

/* Validates a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration. */
void kl_policy_validate_hooks(const kl_value *o, bool mutating, kl__causes *causes);

/* Validates a clientConfig, whose place is `field`. */
void kl_policy_validate_client(const kl_value *client, const char *field, kl__causes *causes);
/* Validates the versions of ConversionReview that a webhook understands. */
void kl_policy_validate_reviews(const kl_value *versions, const char *field, kl__causes *causes);

#endif
