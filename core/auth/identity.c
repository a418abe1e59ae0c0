/* identity.c - reads and checks CAs, certificate and key before a connection depends on them.
 *
 * Files become texts here. libcurl would read them at each handshake and cache a CA file for a day. It would
 * notice half a rotation (a new certificate with the old key) only when connecting. */
#include "auth/identity.h"

#include <string.h>
#include "base/mem.h"
#include "base/x509.h"
#include "auth/kubeconfig.h"

#define PEM_MAX ((size_t)4 << 20)

static kl_status read_pem(const char *what, const char *file, char **out, kl_err *err)
{
    kl_buf text;
    kl_buf_init(&text, PEM_MAX);
    kl_status st = kl__file_read(file, &text, err);
    if (st) {
        kl_err_prefix(err, "%s", what);
        st = kl_fail(err, KL_EAUTH, "%s", kl_err_message(err));
    } else
        *out = kl_strdup(kl_buf_str(&text));
    if (text.data)
        explicit_bzero(text.data, text.len);
    kl_buf_fini(&text);
    return st;
}

static kl_status take(const char *what, const char *data, const char *file, char **out, kl_err *err)
{
    if (data) {
        *out = kl_strdup(data);
        return KL_OK;
    }
    return file ? read_pem(what, file, out, err) : KL_OK;
}

static const char * or (const char *file, const char *otherwise) { return file ? file : otherwise; }

static kl_status judge(const kl__identity *i, const kl_config *c, bool of_plugin, kl_err *err)
{
    kl_err why = KL_ERR_INIT;
    kl_status st = KL_OK;
    if (i->ca && kl_x509_check(i->ca, &why))
        st = kl_fail(err, KL_EAUTH, "the CA (%s): %s",
            or (c->ca_data ? NULL : c->ca_file, "certificate-authority-data"), kl_err_message(&why));
    else if (i->cert && kl_x509_check_pair(i->cert, i->key ? i->key : "", &why))
        st = kl_fail(err, KL_EAUTH, "the client certificate (%s) and its key (%s): %s",
            of_plugin ? "clientCertificateData"
                      : or (c->cert_data ? NULL : c->cert_file, "client-certificate-data"),
            of_plugin ? "clientKeyData" : or (c->key_data ? NULL : c->key_file, "client-key-data"),
            kl_err_message(&why));
    kl_err_fini(&why);
    return st;
}

kl_status kl__identity_load(
    const kl_config *c, const char *cert, const char *key, kl__identity **out, kl_err *err)
{
    static _Atomic uint64_t generations;
    kl__identity *i = kl_new(kl__identity);
    bool of_plugin = cert != NULL;
    atomic_store(&i->refs, 1);
    i->generation = atomic_fetch_add(&generations, 1) + 1;
    kl_status st = take("certificate-authority", c->ca_data, c->ca_file, &i->ca, err);
    if (!st)
        st = take("client-certificate", of_plugin ? cert : c->cert_data, c->cert_file, &i->cert, err);
    if (!st && i->cert)
        st = take("client-key", of_plugin ? key : c->key_data, c->key_file, &i->key, err);
    if (!st)
        st = judge(i, c, of_plugin, err);
    if (st)
        kl__identity_unref(i);
    else
        *out = i;
    return st;
}

kl__identity *kl__identity_ref(kl__identity *i)
{
    atomic_fetch_add(&i->refs, 1);
    return i;
}

void kl__identity_unref(kl__identity *i)
{
    if (!i || atomic_fetch_sub(&i->refs, 1) > 1)
        return;
    if (i->key)
        explicit_bzero(i->key, strlen(i->key));
    kl_free(i->ca);
    kl_free(i->cert);
    kl_free(i->key);
    kl_free(i);
}

static bool same(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

bool kl__identity_same(const kl__identity *a, const kl__identity *b)
{
    return same(a->ca, b->ca) && same(a->cert, b->cert) && same(a->key, b->key);
}

kl_tls kl__identity_tls(const kl__identity *i, const kl_config *c)
{
    return (kl_tls){.ca_file = c->ca_data ? NULL : c->ca_file,
        .ca_pem = i->ca,
        .cert_pem = i->cert,
        .key_pem = i->key,
        .server_name = c->tls_server_name,
        .insecure = c->insecure,
        .generation = i->generation};
}
