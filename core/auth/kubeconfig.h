/* kubeconfig.h - kubeconfig files as data: read, checked for shape, merged. config.c combines them with
 * flags. Owner thread. */
#ifndef KL_AUTH_KUBECONFIG_H
#define KL_AUTH_KUBECONFIG_H

#include "base/map.h"
#include "value/value.h"
#include "auth/config.h"

typedef struct kl__kube_cluster {
    char *server, *tls_server_name, *proxy_url;
    char *ca_file, *ca_data; /* data is decoded */
    bool insecure, disable_compression;
    /* extensions["client.authentication.k8s.io/exec"], for plugins; or NULL */
    const kl_value *exec_extension;
} kl__kube_cluster;

typedef struct kl__kube_user {
    char *token, *token_file, *username, *password;
    char *cert_file, *cert_data, *key_file, *key_data;
    char *impersonate, *impersonate_uid;
    char **impersonate_groups;            /* NULL-terminated or NULL */
    char **impersonate_extra;             /* key, value, ..., NULL; or NULL */
    const kl_value *exec;                 /* with the command resolved and the defaults in place; or NULL */
    char *auth_provider;                  /* its name, or NULL */
    const kl_value *auth_provider_config; /* strings by name, or NULL */
    char *file;                           /* the file that defines this user */
} kl__kube_user;

typedef struct kl__kube_context {
    char *cluster, *user, *ns;
} kl__kube_context;

typedef struct kl__kubeconfig {
    kl_map *clusters, *users, *contexts; /* name -> the structs above */
    char *current_context;               /* or NULL */
    char *files;                         /* "a, b": the files that were read, for messages; "" when none */
} kl__kubeconfig;

/* Reads and merges in order: an entry is taken whole from the first file that has it. Missing files are
 * skipped unless `must_exist`. Errors name file and place. */
KL_NODISCARD kl_status kl__kubeconfig_load(
    const char *const *paths, size_t n, bool must_exist, kl__kubeconfig *out, kl_err *err);
/* Parses one file's text; relative paths in it are relative to `dir`. The fuzzer calls it, too. */
KL_NODISCARD kl_status kl__kubeconfig_parse(
    const char *name, const char *dir, const char *text, size_t n, kl__kubeconfig *out, kl_err *err);
void kl__kubeconfig_fini(kl__kubeconfig *k);

/* clientcmd's ClientConfig: the chosen context, cluster and user with the overrides on top, validated.
 * `server` stays as written. *user, when asked for, is the user's entry, borrowed from k, or NULL. */
KL_NODISCARD kl_status kl__config_resolve(const kl__kubeconfig *k, const kl_config_overrides *o,
    kl_config *out, const kl__kube_user **user, kl_err *err);
/* In-cluster configuration from `dir`, the service account's files. */
KL_NODISCARD kl_status kl__config_in_cluster_from(const char *dir, const char *host, const char *port,
    const char *pod_namespace, kl_config *out, kl_err *err);
/* A whole small file, NUL-terminated; KL_EIO with the reason. */
KL_NODISCARD kl_status kl__file_read(const char *path, kl_buf *out, kl_err *err);

/* Decodes text such as PEM from standard base64, line breaks allowed; NULL when it is not base64, or contains
 * a NUL. Caller frees. */
char *kl__base64_text(const char *s);

#endif
