/* keyring.c - the door to GnuTLS: credentials are reference-counted, and a session keeps its initial ones. */
#include "base/keyring.h"

#include <stdatomic.h>
#include <string.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/x509.h"

struct kl_keypair {
    atomic_int refs;
    gnutls_certificate_credentials_t of;
};

struct kl_keyring {
    kl_mutex mu;
    kl_keypair *now KL_GUARDED_BY(mu);
    char *authorities; /* CAs of client certificates; NULL: no client certificates are requested */
};

kl_keyring *kl_keyring_new(void)
{
    kl_keyring *k = kl_new(kl_keyring);
    kl_mutex_init(&k->mu);
    return k;
}

void kl_keypair_unref(kl_keypair *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    gnutls_certificate_free_credentials(p->of);
    kl_free(p);
}

void kl_keyring_free(kl_keyring *k)
{
    if (!k)
        return;
    kl_keypair_unref(k->now);
    kl_free(k->authorities);
    kl_mutex_fini(&k->mu);
    kl_free(k);
}

kl_status kl_keyring_set(kl_keyring *k, const char *cert, const char *key, kl_err *err)
{
    kl_status st = kl_x509_check_pair(cert, key, err); /* this check gives the best message */
    if (st)
        return st;
    kl_keypair *p = kl_new(kl_keypair), *old;
    atomic_init(&p->refs, 1);
    if (gnutls_certificate_allocate_credentials(&p->of) < 0)
        kl_mem_die("memory (TLS credentials)");
    const gnutls_datum_t c = {(unsigned char *)(void *)cert, (unsigned)strlen(cert)},
                         s = {(unsigned char *)(void *)key, (unsigned)strlen(key)};
    int rc = gnutls_certificate_set_x509_key_mem(p->of, &c, &s, GNUTLS_X509_FMT_PEM);
    if (rc >= 0 && k->authorities) {
        const gnutls_datum_t ca = {(unsigned char *)(void *)k->authorities, (unsigned)strlen(k->authorities)};
        rc = gnutls_certificate_set_x509_trust_mem(p->of, &ca, GNUTLS_X509_FMT_PEM);
    }
    if (rc < 0) {
        kl_keypair_unref(p);
        return kl_fail(err, KL_ESYNTAX, "the certificate or its key cannot be used: %s", gnutls_strerror(rc));
    }
    kl_lock(&k->mu);
    old = k->now;
    k->now = p;
    kl_unlock(&k->mu);
    kl_keypair_unref(old);
    return KL_OK;
}

bool kl_keyring_empty(kl_keyring *k)
{
    kl_lock(&k->mu);
    bool empty = !k->now;
    kl_unlock(&k->mu);
    return empty;
}

kl_keypair *kl_keyring_show(kl_keyring *k, void *session)
{
    kl_lock(&k->mu);
    kl_keypair *p = k->now;
    if (p)
        atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    kl_unlock(&k->mu);
    if (p && gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, p->of) < 0) {
        kl_keypair_unref(p);
        p = NULL;
    }
    if (p && k->authorities)
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
    return p;
}

/* ------------------------------------------------------------------ clients */

kl_status kl_keyring_ask(kl_keyring *k, const char *authorities, kl_err *err)
{
    kl_status st = kl_x509_check(authorities, err);
    if (st)
        return st;
    kl_free(k->authorities);
    k->authorities = kl_strdup(authorities);
    return KL_OK;
}

/* The values of one part of the subject, separated by commas. */
static char *subject(gnutls_x509_crt_t crt, const char *oid)
{
    kl_buf out = KL_BUF_INIT;
    kl_buf_puts(&out, "");
    char value[1024];
    for (unsigned i = 0; i < 64; i++) {
        size_t n = sizeof value;
        if (gnutls_x509_crt_get_dn_by_oid(crt, oid, i, 0, value, &n) < 0)
            break;
        kl_buf_printf(&out, "%s%.*s", i ? "," : "", (int)n, value);
    }
    return kl_buf_take(&out);
}

kl_peer kl_keyring_peer(void *session, char **cn, char **organizations)
{
    unsigned n = 0, status = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);
    if (!chain || !n)
        return KL_PEER_NONE;
    gnutls_typed_vdata_st use = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)(void *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    gnutls_x509_crt_t crt;
    if (gnutls_certificate_verify_peers(session, &use, 1, &status) < 0 || status
        || gnutls_x509_crt_init(&crt) < 0)
        return KL_PEER_BAD;
    bool good = gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER) >= 0;
    if (good) {
        *cn = subject(crt, GNUTLS_OID_X520_COMMON_NAME);
        *organizations = subject(crt, GNUTLS_OID_X520_ORGANIZATION_NAME);
    }
    gnutls_x509_crt_deinit(crt);
    return good ? KL_PEER_GOOD : KL_PEER_BAD;
}
