/* certificates.c - given files, or a self-made certificate: an authority created at the start signs it, and
 * its key is dropped, so that a kubeconfig with that authority trusts this process only. */
#include "httpd/certificates.h"

#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/x509_sign.h"

/* SKEW exceeds any clock error, LIFE the life of any process. */
#define SKEW KL_MINUTES(60)
#define LIFE KL_MINUTES(60 * 24 * 365)

/* "[::1]:80" and "10.0.0.1:80" without port and brackets; the caller frees. */
static char *host_of(const char *listen)
{
    const char *colon = strrchr(listen, ':');
    size_t n = colon ? (size_t)(colon - listen) : strlen(listen);
    bool brackets = n >= 2 && *listen == '[' && listen[n - 1] == ']';
    return kl_strndup(listen + brackets, n - 2 * brackets);
}

static kl_status make_pair(const char *listen, char **ca, char **cert, char **key, kl_err *err)
{
    static const char *const names[] = {
        "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", NULL};
    kl_time now = kl_clock_wall(kl_clock_real());
    char *host = host_of(listen), *ca_key = NULL;
    bool address = *host && strspn(host, "0123456789.") == strlen(host);
    address |= strchr(host, ':') != NULL;
    const char *ips[] = {"127.0.0.1", "::1", "10.96.0.1", address ? host : NULL, NULL};
    const char *dns[6] = {names[0], names[1], names[2], names[3], *host && !address ? host : NULL, NULL};
    kl_status st = kl_x509_make_ca("kubelua", now - SKEW, now + LIFE, ca, &ca_key, err);
    if (!st)
        st = kl_x509_make_server(&(kl_x509_wish){.cn = "kubelua", .dns = dns, .ips = ips},
            &(kl_x509_issue){*ca, ca_key, now - SKEW, now + LIFE}, cert, key, err);
    kl_x509_wipe(ca_key);
    kl_free(host);
    return st;
}

static kl_status read_text(const char *path, const char *what, char **out, kl_err *err)
{
    kl_buf text = KL_BUF_INIT;
    kl_status st = kl_file_read_given(path, what, &text, err);
    if (!st)
        *out = kl_buf_take(&text);
    kl_buf_fini(&text);
    return st;
}

static kl_status ask_clients(kl_keyring *ring, const char *path, kl_err *err)
{
    char *text = NULL;
    kl_status st = read_text(path, "a file of authorities of clients", &text, err);
    if (!st && (st = kl_keyring_ask(ring, text, err)))
        kl_err_prefix(err, "%s", path);
    kl_free(text);
    return st;
}

kl_status kl_httpd_certify(const kl_httpd_certificates *o, kl_keyring **ring, char **ca, kl_err *err)
{
    char *cert = NULL, *key = NULL, *own = NULL;
    kl_keyring *k = kl_keyring_new();
    kl_status st = o->client_ca ? ask_clients(k, o->client_ca, err) : KL_OK;
    if (!st && o->cert) {
        st = read_text(o->cert, "a certificate", &cert, err);
        if (!st)
            st = read_text(o->key, "a private key", &key, err);
    } else if (!st)
        st = make_pair(o->listen, &own, &cert, &key, err);
    if (!st && (st = kl_keyring_set(k, cert, key, err)) && o->cert)
        kl_err_prefix(err, "%s", o->cert);
    if (!st) {
        *ring = k;
        /* the signer of a given one is unknown: clients verify it with the contents of its file */
        *ca = kl_strdup(own ? own : cert);
    } else
        kl_keyring_free(k);
    kl_free(own);
    kl_free(cert);
    kl_x509_wipe(key);
    return st;
}
