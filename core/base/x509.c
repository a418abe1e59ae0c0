/* x509.c - the door to OpenSSL: PEM text is checked before a connection depends on it.
 *
 * libcurl brings OpenSSL anyway. Its queue of errors is per thread and is left empty. */
#include "base/x509.h"

#include <stdbool.h>
#include <time.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include "base/x509_pem.h"

/* OpenSSL's error message; the queue ends empty. */
static const char *why(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return reason ? reason : "no PEM text";
}

static kl_status no_certificate(kl_err *err)
{
    return kl_fail(err, KL_ESYNTAX, "it does not contain a readable certificate: %s", why());
}

kl_status kl_x509_check(const char *pem, kl_err *err)
{
    size_t n = kl__pem_count(pem);
    if (!n || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return no_certificate(err);
    ERR_clear_error();
    return KL_OK;
}

kl_status kl_x509_check_pair(const char *cert, const char *key, kl_err *err)
{
    bool encrypted = false;
    X509 *x = kl__pem_certificate(cert);
    if (!x)
        return no_certificate(err);
    EVP_PKEY *k = kl__pem_key(key, &encrypted);
    kl_status st = KL_OK;
    if (!k)
        st = encrypted ? kl_fail(
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
    X509 *x = kl__pem_certificate(pem);
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
