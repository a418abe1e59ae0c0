/* x509_pem.c - the only readers of PEM text, each without a prompt for a passphrase. */
#include "base/x509_pem.h"

#include <openssl/pem.h>
#include "base/mem.h"

static BIO *open_text(const char *pem)
{
    BIO *b = BIO_new_mem_buf(pem, -1);
    if (!b)
        kl_mem_die("memory (PEM)");
    return b;
}

static int no_passphrase(char *out, int size, int writing, void *encrypted)
{
    (void)out;
    (void)size;
    (void)writing;
    if (encrypted)
        *(bool *)encrypted = true;
    return -1;
}

X509 *kl__pem_certificate(const char *pem)
{
    BIO *b = open_text(pem);
    X509 *x = PEM_read_bio_X509(b, NULL, no_passphrase, NULL);
    BIO_free(b);
    return x;
}

X509_REQ *kl__pem_request(const char *pem)
{
    BIO *b = open_text(pem);
    X509_REQ *r = PEM_read_bio_X509_REQ(b, NULL, no_passphrase, NULL);
    BIO_free(b);
    return r;
}

EVP_PKEY *kl__pem_key(const char *pem, bool *encrypted)
{
    BIO *b = open_text(pem);
    EVP_PKEY *k = PEM_read_bio_PrivateKey(b, NULL, no_passphrase, encrypted);
    BIO_free(b);
    return k;
}

size_t kl__pem_count(const char *pem)
{
    BIO *b = open_text(pem);
    size_t n = 0;
    for (X509 *x; (x = PEM_read_bio_X509(b, NULL, no_passphrase, NULL)); n++)
        X509_free(x);
    BIO_free(b);
    return n;
}
