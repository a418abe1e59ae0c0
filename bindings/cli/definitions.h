/* definitions.h - applies the CustomResourceDefinitions of scripts (kube.crd) to clusters. */
#ifndef KL_CLI_DEFINITIONS_H
#define KL_CLI_DEFINITIONS_H

#include "client/client.h"
#include "run/reconciler.h"
#include "server/server.h"

/* Applies a program's definitions to each of n clusters, and waits for the answers. Main thread. An error
 * names the definition. */
KL_NODISCARD kl_status cli_definitions_apply(
    kl_client *const *clients, size_t n, const kl_program *p, kl_err *err);

/* Loads a program's definitions into an embedded server. */
KL_NODISCARD kl_status cli_definitions_load(kl_server *s, const kl_program *p, kl_err *err);

#endif
