/* exec_plugin.h - programs that give credentials: client.authentication.k8s.io/v1 and v1beta1, as kubectl
 * runs them. The calls wait, so make none on an http thread. */
#ifndef KL_AUTH_EXEC_PLUGIN_H
#define KL_AUTH_EXEC_PLUGIN_H

#include "base/child.h"
#include "auth/config.h"

typedef struct kl__exec_credential {
    char *token;      /* or NULL */
    char *cert, *key; /* PEM; both or neither */
    bool expires;
    kl_time expiration; /* wall time */
} kl__exec_credential;

/* KL_EAUTH when the apiVersion in config's exec section is not supported. */
KL_NODISCARD kl_status kl__exec_plugin_check(const kl_config *config, kl_err *err);
/* Runs config's plugin in `child` (kl_child_stop ends it). `timeout` 0: the default of 5 minutes. A failure
 * is KL_EAUTH and names the command; the message contains its stderr, never its stdout. KL_ECANCELLED when
 * stopped. */
KL_NODISCARD kl_status kl__exec_plugin_run(
    const kl_config *config, kl_child *child, kl_time timeout, kl__exec_credential *out, kl_err *err);
/* The KUBERNETES_EXEC_INFO of a run; caller frees. */
char *kl__exec_plugin_info(const kl_config *config, bool interactive);
/* Parses the plugin's output. `version`: the configured apiVersion. */
KL_NODISCARD kl_status kl__exec_plugin_parse(
    const char *text, size_t n, const char *version, kl__exec_credential *out, kl_err *err);
void kl__exec_credential_fini(kl__exec_credential *c);

#endif
