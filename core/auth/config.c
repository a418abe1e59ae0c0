/* config.c - where the API server is and who we are: clientcmd's rules over the merged files and the
 * flags.
 *
 *   sources -> files merged (kubeconfig.c) -> context, cluster, user in force, overrides on top ->
 *   validated -> kl_config
 *
 * The order is controller-runtime's: --kubeconfig, KUBECONFIG, in-cluster, ~/.kube/config. Credentials count
 * only over TLS, impersonation always. All mistakes are reported together. */
#include "auth/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/time.h"
#include "auth/kubeconfig.h"
#include "http/proxy.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define SMALL_FILE_MAX ((size_t)4 << 20)
#define SOURCES_MAX 64 /* files in KUBECONFIG */

/* --- plain data --------------------------------------------------------------------------- */

#define EACH_STRING(f)                                                                                       \
    f(server) f(context_namespace) f(context) f(token) f(token_file) f(username) f(password) f(ca_file)      \
        f(ca_data) f(cert_file) f(cert_data) f(key_file) f(key_data) f(tls_server_name) f(proxy_url)         \
            f(impersonate) f(impersonate_uid) f(source) f(exec_command) f(auth_provider) f(user)             \
                f(user_file)
#define EACH_LIST(f) f(impersonate_groups) f(impersonate_extra)
#define EACH_VALUE(f) f(exec) f(exec_cluster) f(auth_provider_config)

static char **list_copy(const char *const *from)
{
    size_t n = 0;
    while (from && from[n])
        n++;
    char **to = n ? kl_new_array(char *, n + 1) : NULL;
    for (size_t i = 0; i < n; i++)
        to[i] = kl_strdup(from[i]);
    return to;
}

static void list_free(char **list)
{
    for (char **s = list; s && *s; s++)
        kl_free(*s);
    kl_free(list);
}

void kl_config_fini(kl_config *c)
{
#define FREE_STRING(field) kl_free(c->field);
#define FREE_LIST(field) list_free(c->field);
    EACH_STRING(FREE_STRING)
    EACH_LIST(FREE_LIST)
#define FREE_VALUE(field) kl_value_unref(c->field);
    EACH_VALUE(FREE_VALUE)
    *c = (kl_config){0};
}

void kl_config_copy(kl_config *to, const kl_config *from)
{
    *to = *from;
#define COPY_STRING(field) to->field = kl_strdup(from->field);
#define COPY_LIST(field) to->field = list_copy((const char *const *)from->field);
    EACH_STRING(COPY_STRING)
    EACH_LIST(COPY_LIST)
#define REF_VALUE(field) to->field = kl_value_ref(from->field);
    EACH_VALUE(REF_VALUE)
}

static char *without_slash(const char *url)
{
    size_t n = strlen(url);
    while (n && url[n - 1] == '/')
        n--;
    return kl_strndup(url, n);
}

void kl_config_for_server(const char *url, kl_config *out)
{
    *out = (kl_config){
        .server = without_slash(url), .context_namespace = kl_strdup("default"), .source = kl_strdup(url)};
}

static bool given(const char *s) { return s && *s; }

static void set(char **to, const char *value)
{
    char *copy = kl_strdup(value);
    kl_free(*to);
    *to = copy;
}

/* --- what is in force --------------------------------------------------------------------- */

/* Complaints are collected, so that one run reports all of them. */
typedef struct complaints {
    kl_buf text;
    int n;
} complaints;

static void complain(complaints *c, const char *fmt, ...) KL_PRINTF(2, 3);
static void complain(complaints *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_buf_printf(&c->text, "%s%s", c->n++ ? "; " : "", s);
    kl_free(s);
}

static char *names_of(kl_map *m)
{
    kl_buf b = KL_BUF_INIT;
    char **names = kl_map_sorted_keys(m);
    for (char **n = names; *n; n++)
        kl_buf_printf(&b, "%s\"%s\"", n == names ? "" : ", ", *n);
    kl_free(names);
    if (!b.len)
        kl_buf_puts(&b, "none");
    return kl_buf_take(&b);
}

static kl_status unknown(
    const kl__kubeconfig *k, const char *what, const char *name, kl_map *among, kl_err *err)
{
    char *names = names_of(among);
    kl_fail(err, KL_ENOTFOUND, "%s%s%s \"%s\" does not exist; known are: %s", k->files, *k->files ? ": " : "",
        what, name, names);
    kl_free(names);
    return KL_ENOTFOUND;
}

static void check_readable(complaints *c, const char *what, const char *path, const char *owner)
{
    kl_err why = KL_ERR_INIT;
    kl_buf text;
    kl_buf_init(&text, SMALL_FILE_MAX);
    if (path && kl__file_read(path, &text, &why))
        complain(c, "%s %s%s%s%s%s", what, path, *owner ? " of \"" : "", owner, *owner ? "\"" : "",
            kl_err_message(&why) + strlen(path));
    kl_buf_fini(&text);
    kl_err_fini(&why);
}

static void check_both(complaints *c, const char *data, const char *file, const char *what, const char *owner)
{
    if (data && file)
        complain(c, "\"%s\" has both %s and %s-data: keep one", owner, what, what);
}

static void check_proxy(complaints *c, const char *url, const char *owner)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://"};
    for (size_t i = 0; url && i < 3; i++)
        if (!strncasecmp(url, schemes[i], strlen(schemes[i])))
            return;
    char *words = kl__proxy_words(url);
    if (url)
        complain(c, "proxy-url \"%s\" of cluster \"%s\" must begin with http://, https:// or socks5://",
            words ? words : "", owner);
    kl_free(words);
}

static void check_cluster(complaints *c, const char *name, bool there, const kl_config *x)
{
    if (!there && !x->server && !x->ca_file && !x->ca_data && !x->insecure && !x->tls_server_name
        && !x->proxy_url && !x->disable_compression)
        complain(c,
            *name ? "no server is configured: there is no cluster \"%s\""
                  : "no server is configured: the context names no cluster%s",
            name);
    else if (!x->server)
        complain(c, "cluster \"%s\" has no server", name);
    check_proxy(c, x->proxy_url, name);
    check_both(c, x->ca_data, x->ca_file, "certificate-authority", name);
    check_readable(c, "certificate-authority", x->ca_file, name);
}

static void check_exec(complaints *c, const char *name, const kl__kube_user *u)
{
    const char *mode = kl_value_str_at(u->exec, "interactiveMode", NULL);
    const kl_value *env = kl_value_get(u->exec, "env");
    if (u->auth_provider)
        complain(c, "user \"%s\" has both exec and auth-provider: keep one", name);
    if (!kl_value_len(kl_value_get(u->exec, "command")))
        complain(c, "user \"%s\": exec needs a command", name);
    if (!kl_value_len(kl_value_get(u->exec, "apiVersion")))
        complain(c, "user \"%s\": exec needs an apiVersion", name);
    for (size_t i = 0; i < kl_value_len(env); i++)
        if (!kl_value_len(kl_value_get(kl_value_item(env, i), "name")))
            complain(c, "user \"%s\": an environment variable of exec has no name", name);
    if (!mode || !*mode)
        complain(c, "user \"%s\": exec needs an interactiveMode (Never, IfAvailable or Always)", name);
    else if (strcmp(mode, "Never") && strcmp(mode, "IfAvailable") && strcmp(mode, "Always"))
        complain(c, "user \"%s\": interactiveMode \"%s\" must be Never, IfAvailable or Always", name, mode);
}

static void check_user(complaints *c, const char *name, const kl_config *x, const kl__kube_user *u)
{
    if (x->token && (x->username || x->password))
        complain(c, "user \"%s\" has both a token and a user name or password: keep one", name);
    if (x->cert_file || x->cert_data) {
        check_both(c, x->cert_data, x->cert_file, "client-certificate", name);
        check_both(c, x->key_data, x->key_file, "client-key", name);
        if (!x->key_file && !x->key_data)
            complain(c, "user \"%s\" has a client certificate but no client-key", name);
        check_readable(c, "client-certificate", x->cert_file, name);
        check_readable(c, "client-key", x->key_file, name);
    }
    if (u && u->exec)
        check_exec(c, name, u);
    if ((x->impersonate_uid || x->impersonate_groups || x->impersonate_extra) && !x->impersonate)
        complain(c, "user \"%s\" impersonates a uid, groups or extra fields but no user (as)", name);
}

static void take_cluster(const kl__kube_cluster *c, const kl_config_overrides *o, kl_config *x)
{
    if (c) {
        x->server = kl_strdup(c->server);
        x->tls_server_name = kl_strdup(c->tls_server_name);
        x->proxy_url = kl_strdup(c->proxy_url);
        x->ca_file = kl_strdup(c->ca_file);
        x->ca_data = kl_strdup(c->ca_data);
        x->insecure = c->insecure;
        x->disable_compression = c->disable_compression;
    }
    /* any of these flags replaces all three settings: without verification no CA is needed */
    if (o->insecure > 0 || given(o->ca_file) || given(o->ca_data)) {
        x->insecure = o->insecure > 0;
        set(&x->ca_file, given(o->ca_file) ? o->ca_file : NULL);
        set(&x->ca_data, given(o->ca_data) ? o->ca_data : NULL);
    }
    if (given(o->proxy))
        set(&x->proxy_url, o->proxy);
    x->disable_compression = x->disable_compression || o->disable_compression;
    bool server = given(o->server), name = given(o->tls_server_name);
    if (server)
        set(&x->server, o->server);
    if (server || name) /* a server name of the old server does not apply to the new one */
        set(&x->tls_server_name, name ? o->tls_server_name : NULL);
}

/* A new file or new data replaces both the file and the data. */
static void set_pair(char **file, char **data, const char *new_file, const char *new_data)
{
    if (!given(new_file) && !given(new_data))
        return;
    set(file, given(new_file) ? new_file : NULL);
    set(data, given(new_data) ? new_data : NULL);
}

static void set_list(char ***to, const char *const *values)
{
    if (!values || !*values)
        return;
    list_free(*to);
    *to = list_copy(values);
}

static void take_user(const kl__kube_user *u, const kl_config_overrides *o, kl_config *x)
{
    if (u) {
        x->token = kl_strdup(u->token);
        x->token_file = kl_strdup(u->token_file);
        x->username = kl_strdup(u->username);
        x->password = kl_strdup(u->password);
        x->cert_file = kl_strdup(u->cert_file);
        x->cert_data = kl_strdup(u->cert_data);
        x->key_file = kl_strdup(u->key_file);
        x->key_data = kl_strdup(u->key_data);
        x->impersonate = kl_strdup(u->impersonate);
        x->impersonate_uid = kl_strdup(u->impersonate_uid);
        x->impersonate_groups = list_copy((const char *const *)u->impersonate_groups);
        x->impersonate_extra = list_copy((const char *const *)u->impersonate_extra);
    }
    if (given(o->token) || given(o->token_file)) {
        set(&x->token, given(o->token) ? o->token : NULL);
        set(&x->token_file, given(o->token_file) ? o->token_file : NULL);
    }
    if (given(o->username))
        set(&x->username, o->username);
    if (given(o->password))
        set(&x->password, o->password);
    set_pair(&x->cert_file, &x->cert_data, o->cert_file, o->cert_data);
    set_pair(&x->key_file, &x->key_data, o->key_file, o->key_data);
    if (given(o->impersonate))
        set(&x->impersonate, o->impersonate);
    if (given(o->impersonate_uid))
        set(&x->impersonate_uid, o->impersonate_uid);
    set_list(&x->impersonate_groups, o->impersonate_groups);
    set_list(&x->impersonate_extra, o->impersonate_extra);
}

static void take_plugins(const kl__kube_cluster *c, const kl__kube_user *u, const char *name, kl_config *x)
{
    if (!u || (!u->exec && !u->auth_provider))
        return;
    x->exec = kl_value_ref(u->exec);
    x->exec_cluster = kl_value_ref(c ? c->exec_extension : NULL);
    x->exec_command = kl_strdup(kl_value_str_at(u->exec, "command", NULL));
    x->auth_provider = kl_strdup(u->auth_provider);
    x->auth_provider_config = kl_value_ref(u->auth_provider_config);
    x->user = kl_strdup(name);
    x->user_file = kl_strdup(u->file);
}

/* Credentials and CAs are for TLS; "host:port" without a scheme counts as plain, as client-go decides
 * before it looks at CAs. */
static void drop_what_needs_tls(kl_config *x)
{
    if (x->token || x->token_file || x->username || x->password || x->cert_file || x->cert_data)
        kl_warn("credentials are not sent: the server's URL does not begin with https://", "server=%s",
            x->server);
    set(&x->token, NULL);
    set(&x->token_file, NULL);
    set(&x->username, NULL);
    set(&x->password, NULL);
    set(&x->cert_file, NULL);
    set(&x->cert_data, NULL);
    set(&x->key_file, NULL);
    set(&x->key_data, NULL);
    set(&x->ca_file, NULL);
    set(&x->ca_data, NULL);
    set(&x->tls_server_name, NULL);
    x->insecure = false;
}

static kl_status take_token_file(kl_config *x, kl_err *err)
{
    kl_buf text;
    if (x->token || !x->token_file)
        return KL_OK;
    kl_buf_init(&text, SMALL_FILE_MAX);
    kl_status st = kl__file_read(x->token_file, &text, err);
    if (st)
        st = kl_err_prefix(err, "tokenFile");
    else
        set(&x->token, kl_buf_str(&text));
    kl_buf_fini(&text);
    return st;
}

static kl_status take_timeout(const char *text, kl_time *out, kl_err *err)
{
    char *end;
    if (!text || !*text)
        return KL_OK;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (!*end && !errno && n >= 0 && n < 1LL << 32) {
        *out = KL_SECONDS(n);
        return KL_OK;
    }
    if (!kl_duration_parse(text, out, NULL) && *out >= 0)
        return KL_OK;
    *out = 0;
    return kl_fail(err, KL_EINVAL,
        "the request timeout \"%s\" is not a time: give seconds or a duration such as 30s or 2m", text);
}

static kl_status tell(const complaints *c, const kl__kubeconfig *k, const kl_config_overrides *o, kl_err *err)
{
    return kl_fail(err, KL_EINVAL, "%s: %s",
        *k->files              ? k->files
            : given(o->server) ? "the options"
                               : "no kubeconfig file was found",
        kl_buf_str(&c->text));
}

kl_status kl__config_resolve(const kl__kubeconfig *k, const kl_config_overrides *o, kl_config *out,
    const kl__kube_user **user, kl_err *err)
{
    const char *context = o->context && *o->context ? o->context : k->current_context;
    const kl__kube_context *cx = context ? kl_map_get(k->contexts, context) : NULL;
    if (context && !cx)
        return unknown(k, "context", context, k->contexts, err);
    const char *cluster = o->cluster && *o->cluster ? o->cluster : cx ? cx->cluster : NULL;
    const char *name = o->user && *o->user ? o->user : cx ? cx->user : NULL;
    const kl__kube_cluster *c = cluster ? kl_map_get(k->clusters, cluster) : NULL;
    const kl__kube_user *u = name ? kl_map_get(k->users, name) : NULL;
    if (!c && o->cluster && *o->cluster)
        return unknown(k, "cluster", cluster, k->clusters, err);
    if (!u && o->user && *o->user)
        return unknown(k, "user", name, k->users, err);
    kl_config x = {.source = kl_strdup(*k->files ? k->files : "the options"), .context = kl_strdup(context)};
    take_cluster(c, o, &x);
    take_user(u, o, &x);
    x.namespace_set = o->ns && *o->ns;
    x.context_namespace = kl_strdup(x.namespace_set ? o->ns : cx && cx->ns ? cx->ns : "default");
    complaints wrong = {0};
    check_user(&wrong, name ? name : "", &x, u);
    check_cluster(&wrong, cluster ? cluster : "", c != NULL, &x);
    kl_status st = wrong.n ? tell(&wrong, k, o, err) : KL_OK;
    if (wrong.n == 1 && !x.server && !context)
        st = kl_fail(err, KL_EINVAL, "%s%sno current-context is set: name one with --context", k->files,
            *k->files ? ": " : "no kubeconfig file was found, and ");
    kl_buf_fini(&wrong.text);
    if (!st)
        st = take_timeout(o->timeout, &x.timeout, err);
    if (!st && strncasecmp(x.server, "https://", 8))
        drop_what_needs_tls(&x);
    else if (!st) {
        take_plugins(c, u, name, &x);
        st = take_token_file(&x, err);
        if (!st && !x.cert_file && !x.cert_data) { /* a key alone is of no use */
            set(&x.key_file, NULL);
            set(&x.key_data, NULL);
        }
    }
    if (user)
        *user = u;
    if (st)
        kl_config_fini(&x);
    else
        *out = x;
    return st;
}

/* --- a server that can be used ------------------------------------------------------------ */

static void trim(char *s)
{
    size_t n = s ? strlen(s) : 0, skip = s ? strspn(s, " \t\r\n") : 0;
    while (n > skip && strchr(" \t\r\n", s[n - 1]))
        n--;
    if (s) {
        memmove(s, s + skip, n - skip);
        s[n - skip] = '\0';
    }
}

/* A header's value must not start another header. */
static kl_status check_header_values(const kl_config *x, kl_err *err)
{
    const char *names[] = {"as", "as-uid"}, *values[] = {x->impersonate, x->impersonate_uid};
    char **lists[] = {x->impersonate_groups, x->impersonate_extra};
    for (size_t i = 0; i < 2; i++) {
        for (const char *p = values[i]; p && *p; p++)
            if ((unsigned char)*p < ' ' || *p == 0x7f)
                return kl_fail(err, KL_EINVAL, "%s: impersonation: %s has control characters in it",
                    x->source, names[i]);
        for (char **l = lists[i]; l && *l; l++)
            for (const char *p = *l; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                    return kl_fail(err, KL_EINVAL, "%s: impersonation: %s has control characters in it",
                        x->source, i ? "as-user-extra" : "as-groups");
    }
    return KL_OK;
}

/* Adds the scheme to "h:8080", removes a trailing slash, and rejects invalid servers. */
static kl_status finish(kl_config *x, kl_err *err)
{
    char *server = without_slash(x->server);
    if (!strstr(server, "://")) {
        bool path = strchr(server, '/') != NULL;
        char *whole = kl_sprintf("http://%s", *server ? server : "localhost");
        kl_free(server);
        server = whole;
        if (path) {
            kl_free(server);
            return kl_fail(
                err, KL_EINVAL, "%s: server \"%s\" needs https:// or http:// in front", x->source, x->server);
        }
    }
    const char *host = strstr(server, "://") + 3;
    bool scheme = !strncasecmp(server, "https://", 8) || !strncasecmp(server, "http://", 7);
    size_t n = strcspn(host, "/");
    bool bad = !scheme || !n || *host == ':' || host[n - 1] == ':' || strpbrk(server, " \t\r\n?#");
    kl_free(x->server);
    x->server = server;
    if (bad)
        return kl_fail(err, KL_EINVAL, "%s: server \"%s\" is not an https:// or http:// URL of a host",
            x->source, server);
    trim(x->token);
    for (const char *p = x->token; p && *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return kl_fail(err, KL_EAUTH, "%s: the token has blanks or line breaks in it", x->source);
    if (x->insecure && (x->ca_file || x->ca_data))
        return kl_fail(err, KL_EINVAL,
            "%s: insecure-skip-tls-verify together with a certificate-authority: keep one", x->source);
    return check_header_values(x, err);
}

/* --- in the cluster ----------------------------------------------------------------------- */

kl_status kl__config_in_cluster_from(const char *dir, const char *host, const char *port,
    const char *pod_namespace, kl_config *out, kl_err *err)
{
    if (!host || !*host || !port || !*port)
        return kl_fail(err, KL_ENOTFOUND,
            "not inside a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
    kl_config x = {.in_cluster = true, .source = kl_strdup("in-cluster")};
    kl_buf text;
    kl_buf_init(&text, SMALL_FILE_MAX);
    bool v6 = strchr(host, ':') && *host != '[';
    x.server = kl_sprintf("https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    x.token_file = kl_sprintf("%s/token", dir);
    x.ca_file = kl_sprintf("%s/ca.crt", dir);
    kl_status st = kl__file_read(x.token_file, &text, err);
    if (st)
        kl_err_prefix(err, "in-cluster");
    else
        x.token = kl_strdup(kl_buf_str(&text));
    if (access(x.ca_file, R_OK)) {
        kl_warn("the cluster's CA cannot be read: only the system's CAs are trusted", "file=%s error=%s",
            x.ca_file, strerror(errno));
        set(&x.ca_file, NULL);
    }
    char *file = kl_sprintf("%s/namespace", dir);
    kl_buf_clear(&text);
    if (pod_namespace && *pod_namespace)
        x.context_namespace = kl_strdup(pod_namespace);
    else if (!kl__file_read(file, &text, NULL)) {
        x.context_namespace = kl_strdup(kl_buf_str(&text));
        trim(x.context_namespace);
    }
    if (!x.context_namespace || !*x.context_namespace)
        set(&x.context_namespace, "default");
    kl_free(file);
    kl_buf_fini(&text);
    if (!st)
        st = finish(&x, err);
    if (st)
        kl_config_fini(&x);
    else
        *out = x;
    return st;
}

kl_status kl_config_in_cluster(kl_config *out, kl_err *err)
{
    return kl__config_in_cluster_from(SERVICE_ACCOUNT, getenv("KUBERNETES_SERVICE_HOST"),
        getenv("KUBERNETES_SERVICE_PORT"), getenv("POD_NAMESPACE"), out, err);
}

static kl_status override_in_cluster(const kl_config_overrides *o, kl_config *x, kl_err *err)
{
    take_cluster(NULL, o, x);
    take_user(NULL, o, x);
    if (o->ns && *o->ns) {
        set(&x->context_namespace, o->ns);
        x->namespace_set = true;
    }
    kl_status st = take_timeout(o->timeout, &x->timeout, err);
    if (!st)
        st = finish(x, err);
    if (st)
        kl_config_fini(x);
    return st;
}

/* --- the sources -------------------------------------------------------------------------- */

void kl_config_sources_default(kl_config_sources *s)
{
    static char home_file[4096]; /* lives as long as the environment does */
    const char *home = getenv("HOME");
    *s = (kl_config_sources){.env = getenv("KUBECONFIG"), .try_in_cluster = true, .o.insecure = -1};
    if (home && *home
        && (size_t)snprintf(home_file, sizeof home_file, "%s/.kube/config", home) < sizeof home_file)
        s->home_file = home_file;
}

static kl_status load_files(const kl_config_sources *s, const char *const *paths, size_t n, bool must_exist,
    kl_config *out, kl_err *err)
{
    kl__kubeconfig k;
    kl_config x;
    kl_status st = kl__kubeconfig_load(paths, n, must_exist, &k, err);
    if (st)
        return st;
    bool nothing = !*k.files && !(s->o.server && *s->o.server);
    if (nothing)
        st = kl_fail(err, KL_ENOTFOUND,
            "no kubeconfig: give --kubeconfig FILE, set KUBECONFIG, or run inside a cluster%s%s%s",
            n ? " (looked at " : "", n ? paths[0] : "",
            n > 1   ? " and others)"
                : n ? ")"
                    : "");
    else
        st = kl__config_resolve(&k, &s->o, &x, NULL, err);
    if (!st && (st = finish(&x, err)))
        kl_config_fini(&x);
    if (!st)
        *out = x;
    kl__kubeconfig_fini(&k);
    return st;
}

static kl_status load_list(const kl_config_sources *s, const char *list, kl_config *out, kl_err *err)
{
    const char *paths[SOURCES_MAX];
    size_t n = 0;
    char *copy = kl_strdup(list), *rest = copy;
    for (char *path; n < SOURCES_MAX && (path = strsep(&rest, ":"));)
        if (*path)
            paths[n++] = path;
    kl_status st = load_files(s, paths, n, false, out, err);
    kl_free(copy);
    return st;
}

kl_status kl_config_load(const kl_config_sources *s, kl_config *out, kl_err *err)
{
    if (s->explicit_file && *s->explicit_file)
        return load_files(s, &s->explicit_file, 1, true, out, err);
    if (s->env && *s->env)
        return load_list(s, s->env, out, err);
    /* A context, cluster or user given by name can only come from a file. */
    bool named = (s->o.context && *s->o.context) || (s->o.cluster && *s->o.cluster)
        || (s->o.user && *s->o.user);
    kl_err why = KL_ERR_INIT;
    kl_status st = s->try_in_cluster && !named ? kl_config_in_cluster(out, &why) : KL_ENOTFOUND;
    if (!st) {
        kl_err_fini(&why);
        return override_in_cluster(&s->o, out, err);
    }
    kl_status home = load_files(s, &s->home_file, s->home_file ? 1 : 0, false, out, err);
    if (home == KL_ENOTFOUND && st != KL_ENOTFOUND) /* inside a cluster, but its files are invalid */
        kl_err_move(err, &why);
    kl_err_fini(&why);
    return home == KL_ENOTFOUND && st != KL_ENOTFOUND ? st : home;
}
