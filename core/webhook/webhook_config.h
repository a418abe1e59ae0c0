/* webhook_config.h - the configuration that registers a webhook with an API server, from the script's spec.
 * Pure except for `resolve`. */
#ifndef KL_WEBHOOK_WEBHOOK_CONFIG_H
#define KL_WEBHOOK_WEBHOOK_CONFIG_H

#include "model/resource.h"
#include "run/spec.h"

typedef struct kl_webhook_options {
    const char *listen; /* ":9443" when NULL */
    /* tls.crt, tls.key and perhaps ca.crt, renewed externally; NULL: self-made certificates */
    const char *cert_dir;
    /* our address for the API server: "https://host:port", or "auto" for the bound address; NULL: by
     * service */
    const char *url;
    const char *service; /* "namespace/name" or "namespace/name:port" */
    /* "namespace/name" of the Secret that replicas share their certificates in; NULL: by the service's
     * name, or, for a url, none */
    const char *secret;
    kl_time life; /* of our own certificates; 0: 90 days */
} kl_webhook_options;

/* KL_EINVAL names the missing or unreadable part. */
KL_NODISCARD kl_status kl_webhook_options_check(const kl_webhook_options *o, kl_err *err);

/* A service as three texts; the caller frees ns and name. */
typedef struct kl_webhook_service {
    char *ns, *name;
    int port;
} kl_webhook_service;
KL_NODISCARD kl_status kl_webhook_service_parse(const char *text, kl_webhook_service *out, kl_err *err);
void kl_webhook_service_fini(kl_webhook_service *s);

/* "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration" */
const char *kl_webhook_config_kind(bool mutating);
/* A kind that may end in a subresource ("v1/Pod/exec"): the length of the kind, and where the subresource
 * begins, or NULL. */
size_t kl_webhook_kind_split(const char *word, const char **subresource);

/* The key clientConfig: `where` and, unless NULL, the CA. */
void kl_webhook_client(kl_builder *b, const kl_value *where, const char *ca);

typedef kl_status kl_webhook_resolve_fn(void *arg, const char *kind, const kl_resource **out, kl_err *err);
/* `where` is the clientConfig without the CA; `ca` PEM text or NULL. A new reference. Fails when a kind
 * cannot be resolved. */
KL_NODISCARD kl_status kl_webhook_config(const kl_webhook_spec *s, const kl_value *where, const char *ca,
    kl_webhook_resolve_fn *resolve, void *arg, const kl_value **out, kl_err *err);

#endif
