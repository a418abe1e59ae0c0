/* x509.c - the door to OpenSSL: PEM text is checked before a connection depends on it.
 *
 * libcurl brings OpenSSL anyway. Its queue of errors is per thread and is left empty. */
#include "base/x509.h"

#include <stdbool.h>
#include <time.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include "base/mem.h"

static BIO *open_text(const char *pem)
{
    BIO *b = BIO_new_mem_buf(pem, -1);
    if (!b)
        kl_mem_die("memory (PEM)");
    return b;
}

/* OpenSSL's error message; the queue ends empty. */
static const char *why(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return reason ? reason : "no PEM text";
}

int kl_x509_no_passphrase(char *out, int size, int writing, void *asked)
{
    (void)out;
    (void)size;
    (void)writing;
    if (asked)
        *(bool *)asked = true;
    return -1;
}

static kl_status no_certificate(kl_err *err)
{
    return kl_fail(err, KL_ESYNTAX, "it does not contain a readable certificate: %s", why());
}

kl_status kl_x509_check(const char *pem, kl_err *err)
{
    BIO *b = open_text(pem);
    size_t n = 0;
    for (X509 *x; (x = PEM_read_bio_X509(b, NULL, kl_x509_no_passphrase, NULL)); n++)
        X509_free(x);
    bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    BIO_free(b);
    if (!n || !end)
        return no_certificate(err);
    ERR_clear_error();
    return KL_OK;
}

static X509 *first_certificate(const char *pem)
{
    BIO *b = open_text(pem);
    X509 *x = PEM_read_bio_X509(b, NULL, kl_x509_no_passphrase, NULL);
    BIO_free(b);
    return x;
}

kl_status kl_x509_check_pair(const char *cert, const char *key, kl_err *err)
{
    bool asked = false;
    X509 *x = first_certificate(cert);
    if (!x)
        return no_certificate(err);
    BIO *b = open_text(key);
    EVP_PKEY *k = PEM_read_bio_PrivateKey(b, NULL, kl_x509_no_passphrase, &asked);
    BIO_free(b);
    kl_status st = KL_OK;
    if (!k)
        st = asked ? kl_fail(
                 err, KL_ESYNTAX, "the key needs a passphrase: give a key without one (openssl pkey -in KEY)")
                   : kl_fail(err, KL_ESYNTAX, "it does not contain a readable private key: %s", why());
    else if (X509_check_private_key(x, k) != 1)
        st = kl_fail(err, KL_EINVAL, "the key does not belong to the certificate");
    EVP_PKEY_free(k);
    X509_free(x);
    ERR_clear_error();
    return st;
}

kl_status kl_x509_not_after(const char *pem, kl_time *out, kl_err *err)
{
    struct tm tm = {0};
    X509 *x = first_certificate(pem);
    if (!x)
        return no_certificate(err);
    bool good = ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) == 1;
    X509_free(x);
    ERR_clear_error();
    if (!good)
        return kl_fail(err, KL_ESYNTAX, "the certificate's end cannot be read");
    *out = KL_SECONDS(timegm(&tm));
    return KL_OK;
}
