/* table_kubeconfig.c - the server and the credentials of a set of kubeconfig files and flags. The files of a
 * case are written to their own directory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "auth/kubeconfig.h"
#include "oracle.h"

#define PATHS_MAX 16

/* `text` with every "$DIR" replaced. */
static char *with_dir(const char *text, const char *dir)
{
    kl_buf b = KL_BUF_INIT;
    for (const char *at; (at = strstr(text, "$DIR")); text = at + 4) {
        kl_buf_add(&b, text, (size_t)(at - text));
        kl_buf_puts(&b, dir);
    }
    kl_buf_puts(&b, text);
    return kl_buf_take(&b);
}

static char *path_in(const char *dir, const char *name) { return kl_sprintf("%s/%s", dir, name); }

static kl_status write_file(const char *dir, const char *name, const char *text, kl_err *err)
{
    char *path = path_in(dir, name), *whole = with_dir(text, dir);
    for (char *slash = strchr(path + strlen(dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "we");
    bool bad = !f || fputs(whole, f) < 0;
    if (f)
        bad = fclose(f) || bad;
    kl_status st = bad ? kl_fail(err, ORACLE_BAD_CASE, "%s: %s", path, strerror(errno)) : KL_OK;
    kl_free(path);
    kl_free(whole);
    return st;
}

static void remove_files(const char *dir, const kl_value *files)
{
    for (size_t i = 0; i < kl_value_len(files); i++) {
        const char *name;
        kl_value_member(files, i, &name, NULL);
        char *path = path_in(dir, name);
        for (size_t n = strlen(dir); strlen(path) > n; *strrchr(path, '/') = '\0')
            remove(path);
        kl_free(path);
    }
    rmdir(dir);
}

/* What stands for the directory in an answer. */
static void build_path(kl_builder *b, const char *key, const char *path, const char *dir)
{
    size_t n = strlen(dir);
    char *shown = path && !strncmp(path, dir, n) ? kl_sprintf("$DIR%s", path + n) : kl_strdup(path);
    kl_build_kstr(b, key, shown);
    kl_free(shown);
}

static void build_names(kl_builder *b, const char *key, kl_map *m)
{
    char **names = kl_map_sorted_keys(m);
    kl_build_key(b, key);
    kl_build_array(b);
    for (char **n = names; *n; n++)
        kl_build_str(b, *n);
    kl_build_end(b);
    kl_free(names);
}

static void build_merged(kl_builder *b, const kl__kubeconfig *k)
{
    kl_build_key(b, "merged");
    kl_build_object(b);
    build_names(b, "clusters", k->clusters);
    build_names(b, "contexts", k->contexts);
    build_names(b, "users", k->users);
    kl_build_kstr(b, "currentContext", k->current_context ? k->current_context : "");
    kl_build_end(b);
}

static void build_exec(kl_builder *b, const kl__kube_user *u, const char *dir)
{
    const kl_value *args = kl_value_get(u->exec, "args"), *env = kl_value_get(u->exec, "env");
    kl_build_key(b, "exec");
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", kl_value_str_at(u->exec, "apiVersion", NULL));
    build_path(b, "command", kl_value_str_at(u->exec, "command", NULL), dir);
    kl_build_kstr(b, "interactiveMode", kl_value_str_at(u->exec, "interactiveMode", NULL));
    oracle_build_bool(
        b, "provideClusterInfo", kl_value_bool(kl_value_get(u->exec, "provideClusterInfo"), false));
    kl_build_key(b, "args");
    if (args)
        kl_build_value(b, args);
    else
        kl_build_null(b);
    kl_build_key(b, "env");
    if (env)
        kl_build_array(b);
    else
        kl_build_null(b);
    for (size_t i = 0; i < kl_value_len(env); i++) {
        char *pair = kl_sprintf("%s=%s", kl_value_str_at(kl_value_item(env, i), "name", NULL),
            kl_value_str_at(kl_value_item(env, i), "value", NULL));
        kl_build_str(b, pair);
        kl_free(pair);
    }
    if (env)
        kl_build_end(b);
    kl_build_end(b);
}

static void build_config(kl_builder *b, const kl_config *c, const kl__kube_user *u, const char *dir)
{
    kl_build_kstr(b, "server", c->server);
    kl_build_kstr(b, "namespace", c->context_namespace);
    oracle_build_bool(b, "namespaceOverridden", c->namespace_set);
    kl_build_kstr(b, "token", c->token);
    build_path(b, "tokenFile", c->token_file, dir);
    kl_build_kstr(b, "username", c->username);
    kl_build_kstr(b, "password", c->password);
    build_path(b, "caFile", c->ca_file, dir);
    kl_build_kstr(b, "caData", c->ca_data);
    build_path(b, "certFile", c->cert_file, dir);
    kl_build_kstr(b, "certData", c->cert_data);
    build_path(b, "keyFile", c->key_file, dir);
    kl_build_kstr(b, "keyData", c->key_data);
    kl_build_kstr(b, "tlsServerName", c->tls_server_name);
    kl_build_kstr(b, "proxyURL", c->proxy_url);
    kl_build_kstr(b, "impersonate", c->impersonate);
    kl_build_kstr(b, "impersonateUID", c->impersonate_uid);
    if (c->insecure)
        oracle_build_bool(b, "insecure", true);
    if (c->disable_compression)
        oracle_build_bool(b, "disableCompression", true);
    if (c->timeout)
        oracle_build_int(b, "timeoutNs", c->timeout);
    if (c->exec)
        build_exec(b, u, dir);
    if (c->auth_provider)
        kl_build_kstr(b, "authProvider", u->auth_provider);
}

static kl_config_overrides read_overrides(const kl_value *o)
{
    const char *insecure = kl_value_str_at(o, "insecure", NULL);
    return (kl_config_overrides){.context = kl_value_str_at(o, "context", NULL),
        .cluster = kl_value_str_at(o, "cluster", NULL),
        .user = kl_value_str_at(o, "user", NULL),
        .ns = kl_value_str_at(o, "namespace", NULL),
        .server = kl_value_str_at(o, "server", NULL),
        .token = kl_value_str_at(o, "token", NULL),
        .tls_server_name = kl_value_str_at(o, "tlsServerName", NULL),
        .impersonate = kl_value_str_at(o, "as", NULL),
        .timeout = kl_value_str_at(o, "timeout", NULL),
        .insecure = !insecure ? -1 : !strcmp(insecure, "true")};
}

static kl_status answer(const oracle_case *c, const char *dir, kl_builder *b, kl_err *err)
{
    const kl_value *list = kl_value_get(c->in, "kubeconfig");
    const char *explicit = kl_value_str_at(c->in, "explicit", NULL);
    char *paths[PATHS_MAX];
    size_t n = 0;
    if (explicit)
        paths[n++] = path_in(dir, explicit);
    for (size_t i = 0; !explicit && i < kl_value_len(list) && n < PATHS_MAX; i++)
        paths[n++] = path_in(dir, kl_value_str(kl_value_item(list, i)));
    kl_config_overrides o = read_overrides(kl_value_get(c->in, "overrides"));
    kl__kubeconfig k;
    kl_config config;
    const kl__kube_user *user;
    kl_status st = kl__kubeconfig_load((const char *const *)paths, n, explicit, &k, err);
    if (!st) {
        st = kl__config_resolve(&k, &o, &config, &user, err);
        if (!st) {
            build_merged(b, &k);
            build_config(b, &config, user, dir);
            kl_config_fini(&config);
        }
        kl__kubeconfig_fini(&k);
    }
    for (size_t i = 0; i < n; i++)
        kl_free(paths[i]);
    return st;
}

static kl_status resolve(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = kl_sprintf("%s/kubelua-oracle-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    const kl_value *files = kl_value_get(c->in, "files");
    kl_status st = mkdtemp(dir)
        ? KL_OK
        : kl_fail(err, ORACLE_BAD_CASE, "no temporary directory: %s", strerror(errno));
    for (size_t i = 0; !st && i < kl_value_len(files); i++) {
        const char *name;
        const kl_value *text = kl_value_member(files, i, &name, NULL);
        st = write_file(dir, name, kl_value_str(text), err);
    }
    if (!st)
        st = answer(c, dir, b, err);
    remove_files(dir, files);
    kl_free(dir);
    return st;
}

static const oracle_op ops[] = {{"resolve", resolve, NULL}, {0}};
ORACLE_TABLE("kubeconfig", ops)
