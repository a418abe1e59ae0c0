/* config.h - where the API server is and who we are: kubeconfig files, in-cluster files, overrides.
 *
 * The result is plain data; nothing is contacted. Files named by it (token, CA, certificates) are read when
 * used, so that rotation works, but are checked for readability here. Owner thread while being made;
 * read-only afterwards. */
#ifndef KL_AUTH_CONFIG_H
#define KL_AUTH_CONFIG_H

#include <stdbool.h>
#include "base/clock.h"
#include "base/err.h"

typedef struct kl_config {
    char *server;             /* "https://host:port[/prefix]" without a trailing slash */
    char *context_namespace;  /* effective namespace; never NULL ("default") */
    bool namespace_set;       /* it came from an override */
    char *context;            /* name of the context in use, or NULL */
    char *token, *token_file; /* the file's content wins whenever it is readable */
    char *username, *password;
    char *ca_file, *ca_data; /* data is decoded PEM; data wins */
    char *cert_file, *cert_data, *key_file, *key_data;
    char *tls_server_name;
    char *proxy_url;
    char *impersonate, *impersonate_uid;
    char **impersonate_groups; /* NULL-terminated or NULL */
    char **impersonate_extra;  /* key, value, key, value, ..., NULL; or NULL */
    bool insecure;
    bool disable_compression;
    bool in_cluster;
    kl_time timeout;             /* 0: none */
    char *source;                /* for messages: "/home/u/.kube/config" or "in-cluster" */
    const struct kl_value *exec; /* the user's exec section, defaults in place; or NULL */
    /* the cluster's extension for exec plugins (client.authentication.k8s.io/exec), or NULL */
    const struct kl_value *exec_cluster;
    char *exec_command;  /* the plugin's program, resolved */
    char *auth_provider; /* "oidc", or NULL */
    const struct kl_value *auth_provider_config;
    /* the user's name and the file that defines it, which receives refreshed tokens; or NULL */
    char *user, *user_file;
} kl_config;

typedef struct kl_config_overrides {
    const char *context, *cluster, *user, *ns, *server, *token, *tls_server_name, *impersonate;
    const char *timeout;
    const char *token_file, *username, *password;
    const char *ca_file, *ca_data, *cert_file, *cert_data, *key_file, *key_data; /* data is PEM text */
    const char *proxy; /* http://, https:// or socks5:// */
    const char *impersonate_uid;
    const char *const *impersonate_groups; /* NULL-terminated, or NULL */
    const char *const *impersonate_extra;  /* key, value, ..., NULL; or NULL */
    int insecure;                          /* -1 unset, 0, 1 */
    bool disable_compression;
} kl_config_overrides;

typedef struct kl_config_sources {
    const char *explicit_file; /* --kubeconfig: missing is an error; NULL */
    const char *env;           /* value of KUBECONFIG (a path list), or NULL */
    const char *home_file;     /* ~/.kube/config, or NULL */
    bool try_in_cluster;       /* tried after KUBECONFIG and before the home file, as in controller-runtime */
    kl_config_overrides o;
} kl_config_sources;

/* Sources from the environment (KUBECONFIG, HOME); o.insecure = -1. Strings are borrowed from the
 * environment. */
void kl_config_sources_default(kl_config_sources *s);
KL_NODISCARD kl_status kl_config_load(const kl_config_sources *s, kl_config *out, kl_err *err);
KL_NODISCARD kl_status kl_config_in_cluster(kl_config *out, kl_err *err);
/* A plain config for one server URL, no credentials. */
void kl_config_for_server(const char *url, kl_config *out);
void kl_config_fini(kl_config *c);
void kl_config_copy(kl_config *to, const kl_config *from);

#endif
