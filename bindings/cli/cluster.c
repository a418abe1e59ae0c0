/* cluster.c - one table of the options that choose the cluster and the user; commands in C and in Lua share
 * it. */
#include <string.h>

#include "base/mem.h"
#include "base/shelf.h"
#include "cli/cli.h"

/* `key`: the name of the option in kube.connect. */
static const struct {
    const char *name, *arg, *help;
    cli_type type;
    const char *brief, *key;
} table[] = {
    {"--kubeconfig", "FILE", "the kubeconfig to use", CLI_STRING, NULL, "kubeconfig"},
    {"--context", "NAME", "the kubeconfig's context to use", CLI_STRING, NULL, "context"},
    {"--cluster", "NAME", "the kubeconfig's cluster to use", CLI_STRING, NULL, "cluster"},
    {"--user", "NAME", "the kubeconfig's user to be", CLI_STRING, NULL, "user"},
    {"--namespace", "NAME", "the namespace (the context's)", CLI_STRING, "-n", "namespace"},
    {"--server", "URL", "the API server", CLI_STRING, "-s", "server"},
    {"--token", "TEXT", "the bearer token", CLI_STRING, NULL, "token"},
    {"--username", "NAME", "the name for basic authentication", CLI_STRING, NULL, "username"},
    {"--password", "TEXT", "... and the password", CLI_STRING, NULL, "password"},
    {"--client-certificate", "FILE", "the certificate to show", CLI_STRING, NULL, "cert_file"},
    {"--client-key", "FILE", "... and its key", CLI_STRING, NULL, "key_file"},
    {"--certificate-authority", "FILE", "CA bundle that verifies the server's certificate", CLI_STRING, NULL,
        "ca_file"},
    {"--as", "USER", "act as this user", CLI_STRING, NULL, "as"},
    {"--as-group", "GROUP", "... in this group (any number of times)", CLI_LIST, NULL, "as_groups"},
    {"--as-uid", "UID", "... with this uid", CLI_STRING, NULL, "as_uid"},
    {"--tls-server-name", "NAME", "the name that the server's certificate must have", CLI_STRING, NULL,
        "tls_server_name"},
    {"--insecure-skip-tls-verify", NULL, "believe any certificate", CLI_FLAG, NULL, "insecure"},
    {"--disable-compression", NULL, "never ask for compressed answers", CLI_FLAG, NULL,
        "disable_compression"},
    {"--request-timeout", "DURATION", "timeout of one request (60s)", CLI_STRING, NULL, "timeout"},
    {"--http1", NULL, "never speak HTTP/2", CLI_FLAG, NULL, "http1"},
    {"--cache-dir", "DIR", "directory for cached discovery and schemas (~/.cache/kubelua)", CLI_STRING, NULL,
        "cache_dir"},
};
#define N (sizeof table / sizeof *table)
_Static_assert(N <= CLI_CLUSTER_MAX, "more options than cli_cluster has room for");

size_t cli_cluster_options(cli_cluster *values, cli_option *out)
{
    memset(values, 0, sizeof *values);
    for (size_t i = 0; i < N; i++) {
        void *to = table[i].type == CLI_FLAG ? (void *)&values->flag[i]
            : table[i].type == CLI_LIST      ? (void *)&values->list[i]
                                             : (void *)&values->text[i];
        out[i] = (cli_option){table[i].name, table[i].arg, table[i].help, table[i].type, to, table[i].brief};
    }
    return N;
}

void cli_cluster_free(cli_cluster *values)
{
    for (size_t i = 0; i < N; i++)
        kl_free(values->list[i].v);
}

const char *cli_cluster_key(size_t place) { return place < N ? table[place].key : NULL; }

/* The value of the option that kube.connect calls `key`. */
static const char *text_of(const cli_cluster *values, const char *key)
{
    for (size_t i = 0; i < N; i++)
        if (!strcmp(table[i].key, key))
            return values->text[i];
    return NULL;
}

static bool flag_of(const cli_cluster *values, const char *key)
{
    for (size_t i = 0; i < N; i++)
        if (!strcmp(table[i].key, key))
            return values->flag[i];
    return false;
}

char *cli_cluster_cache(const cli_cluster *values)
{
    const char *dir = text_of(values, "cache_dir");
    return dir ? kl_strdup(dir) : kl_shelf_home();
}

void cli_cluster_sources(cli_cluster *values, kl_config_sources *s)
{
    kl_config_sources_default(s);
    s->explicit_file = text_of(values, "kubeconfig");
    s->o = (kl_config_overrides){.context = text_of(values, "context"),
        .cluster = text_of(values, "cluster"),
        .user = text_of(values, "user"),
        .ns = text_of(values, "namespace"),
        .server = text_of(values, "server"),
        .tls_server_name = text_of(values, "tls_server_name"),
        .timeout = text_of(values, "timeout"),
        .token = text_of(values, "token"),
        .username = text_of(values, "username"),
        .password = text_of(values, "password"),
        .ca_file = text_of(values, "ca_file"),
        .cert_file = text_of(values, "cert_file"),
        .key_file = text_of(values, "key_file"),
        .impersonate = text_of(values, "as"),
        .impersonate_uid = text_of(values, "as_uid"),
        .insecure = flag_of(values, "insecure") ? 1 : -1,
        .disable_compression = flag_of(values, "disable_compression")};
    for (size_t i = 0; i < N; i++)
        if (!strcmp(table[i].key, "as_groups") && values->list[i].n) {
            cli_list *l = &values->list[i];
            l->v = kl_realloc(l->v, (l->n + 1) * sizeof *l->v);
            l->v[l->n] = NULL;
            s->o.impersonate_groups = l->v;
        }
    /* as in kube.connect: with a server alone, the environment is not used */
    if (s->o.server && !s->explicit_file && !s->o.context) {
        s->env = NULL;
        s->home_file = NULL;
        s->try_in_cluster = false;
    }
}
