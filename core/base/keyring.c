/* keyring.c - the door to GnuTLS: credentials are counted, a session holds those that it began with. */
#include "base/keyring.h"

#include <stdatomic.h>
#include <string.h>
#include <gnutls/gnutls.h>
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
    kl_mutex_fini(&k->mu);
    kl_free(k);
}

kl_status kl_keyring_set(kl_keyring *k, const char *cert, const char *key, kl_err *err)
{
    kl_status st = kl_x509_check_pair(cert, key, err); /* says best what is wrong */
    if (st)
        return st;
    kl_keypair *p = kl_new(kl_keypair), *old;
    atomic_init(&p->refs, 1);
    if (gnutls_certificate_allocate_credentials(&p->of) < 0)
        kl_mem_die("memory (TLS credentials)");
    const gnutls_datum_t c = {(unsigned char *)(void *)cert, (unsigned)strlen(cert)},
                         s = {(unsigned char *)(void *)key, (unsigned)strlen(key)};
    int rc = gnutls_certificate_set_x509_key_mem(p->of, &c, &s, GNUTLS_X509_FMT_PEM);
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
    return p;
}
