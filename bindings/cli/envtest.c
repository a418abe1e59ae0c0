/* envtest.c - acts as the two programs that envtest starts: kube-apiserver's flags become options of the
 * embedded server; etcd, which stores nothing here, reports that it is healthy.
 *
 * Flags without a meaning here are accepted, as envtest always passes some, and tests add others. The log
 * names those that may have been meant to change something. */
#include "cli/envtest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/embedded.h"
#include "httpd/httpd.h"

#define APISERVER "kube-apiserver"
#define ETCD "etcd"

/* ------------------------------------------------------------------ links */

static bool link_to(const char *self, const char *dir, const char *name)
{
    char *path = kl_sprintf("%s/%s", dir, name), seen[4096];
    ssize_t n = readlink(path, seen, sizeof seen - 1);
    bool good = n > 0 && !strncmp(seen, self, (size_t)n) && !self[n];
    struct stat other;
    if (!good && n < 0 && !lstat(path, &other)) {
        cli_fail(
            1, "apiserver", "%s exists, and is not a link that kubelua made; name another directory", path);
        kl_free(path);
        return false;
    }
    if (!good) {
        if (n > 0)
            unlink(path);
        good = !symlink(self, path);
    }
    if (!good)
        cli_fail(1, "apiserver", "cannot make the link %s: %s", path, strerror(errno));
    kl_free(path);
    return good;
}

bool cli_envtest_links(const char *dir)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return !cli_fail(1, "apiserver", "cannot find this program's own file: %s", strerror(errno));
    self[n] = '\0';
    if (mkdir(dir, 0777) && errno != EEXIST)
        return !cli_fail(1, "apiserver", "cannot make the directory %s: %s", dir, strerror(errno));
    return link_to(self, dir, APISERVER) && link_to(self, dir, ETCD);
}

/* ------------------------------------------------------------------ flags */

typedef struct flag {
    const char *name;
    const char **out; /* NULL: the flag has no effect here */
} flag;

static const flag *flag_named(const flag *flags, const char *name, size_t n)
{
    for (; flags->name; flags++)
        if (strlen(flags->name) == n && !memcmp(flags->name, name, n))
            return flags;
    return NULL;
}

static void print_flags(const char *program, const flag *flags)
{
    printf("kubelua running as %s. Flags:\n", program);
    for (; flags->name; flags++)
        printf("  --%s\n", flags->name);
}

/* "--name=value" and "--name value". False when only help was asked for. */
static bool read_flags(const char *program, const flag *flags, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i] + strspn(argv[i], "-"), *equals = strchr(word, '=');
        size_t n = equals ? (size_t)(equals - word) : strlen(word);
        if (!strcmp(word, "help") || !strcmp(word, "h")) {
            print_flags(program, flags);
            return false;
        }
        const flag *f = flag_named(flags, word, n);
        if (!f)
            fprintf(
                stderr, "%s: --%.*s is unknown to kubelua, which runs in its place\n", program, (int)n, word);
        const char *value = equals ? equals + 1 : NULL;
        if (!equals && i + 1 < argc && argv[i + 1][0] != '-')
            value = argv[++i];
        if (f && f->out)
            *f->out = value;
    }
    return true;
}

/* ------------------------------------------------------------------ the two programs */

static bool is_file(const char *path) { return !access(path, R_OK); }

static int serve(const kl_server_options *o)
{
    static const cli_list none;
    kl_server *s = NULL;
    int code = cli_server_start(APISERVER, o, &none, &s);
    if (!code) {
        printf("serving %s\n", kl_server_url(s));
        fflush(stdout);
        kl_mem_settle();
        while (cli_wait(KL_MINUTES(60)) != CLI_TERMINATE)
            ;
    }
    cli_server_stop(s);
    return code;
}

static int run_apiserver(int argc, char **argv)
{
    const char *address = "127.0.0.1", *port = "6443", *certs = NULL, *modes = "AlwaysAllow";
    kl_server_options o = {.tls = true, .complete = true};
    const flag flags[] = {
        {"bind-address", &address},
        {"secure-port", &port},
        {"cert-dir", &certs},
        {"tls-cert-file", &o.tls_cert},
        {"tls-private-key-file", &o.tls_key},
        {"client-ca-file", &o.client_ca},
        {"token-auth-file", &o.tokens},
        {"audit-log-path", &o.audit_log},
        {"audit-policy-file", &o.audit_policy},
        {"authorization-mode", &modes},
        {"advertise-address", NULL},
        {"allow-privileged", NULL},
        {"disable-admission-plugins", NULL},
        {"etcd-servers", NULL},
        {"service-account-issuer", NULL},
        {"service-account-key-file", NULL},
        {"service-account-signing-key-file", NULL},
        {"service-cluster-ip-range", NULL},
        {NULL, NULL},
    };
    if (!read_flags(APISERVER, flags, argc, argv))
        return 0;
    char *listen = kl_sprintf(strchr(address, ':') ? "[%s]:%s" : "%s:%s", address, port);
    char *cert = certs ? kl_sprintf("%s/apiserver.crt", certs) : NULL;
    char *key = certs ? kl_sprintf("%s/apiserver.key", certs) : NULL;
    o.listen = listen;
    o.rbac = modes && strstr(modes, "RBAC");
    if (!o.tls_cert && cert && is_file(cert) && is_file(key)) {
        o.tls_cert = cert;
        o.tls_key = key;
    }
    int code = !cli_log(APISERVER, "info", NULL);
    cli_signals_block();
    if (!code)
        code = serve(&o);
    kl_free(listen);
    kl_free(cert);
    kl_free(key);
    return code;
}

static void is_well(void *arg, kl_httpd_request *http)
{
    (void)arg;
    static const char text[] = "{\"health\":\"true\",\"reason\":\"\"}";
    bool health = !strcmp(kl_httpd_path(http), "/health");
    kl_httpd_reply(
        http, health ? 200 : 404, "application/json", NULL, health ? text : "", health ? sizeof text - 1 : 0);
}

static int run_etcd(int argc, char **argv)
{
    const char *url = "http://127.0.0.1:2379";
    const flag flags[] = {
        {"listen-client-urls", &url},
        {"advertise-client-urls", NULL},
        {"data-dir", NULL},
        {"listen-peer-urls", NULL},
        {"unsafe-no-fsync", NULL},
        {NULL, NULL},
    };
    kl_err err = KL_ERR_INIT;
    kl_httpd *h = NULL;
    if (!read_flags(ETCD, flags, argc, argv))
        return 0;
    const char *host = url && strstr(url, "://") ? strstr(url, "://") + 3 : "";
    char *listen = kl_strndup(host, strcspn(host, "/,"));
    cli_signals_block();
    kl_status st = kl_httpd_start(
        &(kl_httpd_options){.listen = listen, .handler = is_well, .no_bodies = true}, &h, &err);
    kl_free(listen);
    if (st)
        return cli_fail_err(1, ETCD, &err);
    while (cli_wait(KL_MINUTES(60)) != CLI_TERMINATE)
        ;
    kl_httpd_stop(h);
    return 0;
}

bool cli_envtest(int argc, char **argv, int *code)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    bool server = !strcmp(name, APISERVER);
    if (!server && strcmp(name, ETCD))
        return false;
    *code = server ? run_apiserver(argc, argv) : run_etcd(argc, argv);
    return true;
}
