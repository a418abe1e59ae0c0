/* x509_sign.c - signing, by OpenSSL (see x509.c): the new key makes a request as for any CA, which is then
 * signed here. */
#include "base/x509_sign.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include "base/mem.h"
#include "base/x509_pem.h"

#define SERIAL_BYTES 16

static kl_status fail(kl_err *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return kl_fail(err, KL_EINVAL, "%s: %s", what, reason ? reason : "OpenSSL gives no reason");
}

static bool set_serial(X509 *x)
{
    unsigned char bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and never short */
    BIGNUM *n = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool good = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
    BN_free(n);
    return good;
}

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool good = e && X509_add_ext(x, e, -1) == 1;
    X509_EXTENSION_free(e);
    return good;
}

static bool copy_extensions(X509 *x, X509_REQ *r)
{
    STACK_OF(X509_EXTENSION) *all = X509_REQ_get_extensions(r);
    bool good = true;
    for (int i = 0; good && i < sk_X509_EXTENSION_num(all); i++)
        good = X509_add_ext(x, sk_X509_EXTENSION_value(all, i), -1) == 1;
    sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
    return good;
}

static bool extend(X509 *x, X509 *issuer, X509_REQ *r, bool ca)
{
    bool good = copy_extensions(x, r)
        && add_extension(x, issuer, NID_basic_constraints, ca ? "critical,CA:TRUE" : "critical,CA:FALSE")
        && add_extension(x, issuer, NID_key_usage,
            ca ? "critical,keyCertSign,cRLSign,digitalSignature" : "critical,digitalSignature")
        && add_extension(x, issuer, NID_subject_key_identifier, "hash");
    if (good && !ca)
        good = add_extension(x, issuer, NID_ext_key_usage, "serverAuth")
            && add_extension(x, issuer, NID_authority_key_identifier, "keyid:always");
    return good;
}

/* issuer NULL: the certificate is self-signed. */
typedef struct signer {
    X509 *issuer;
    EVP_PKEY *key;
    kl_time from, until;
} signer;

static kl_status sign(X509_REQ *r, const signer *by, char **out, kl_err *err)
{
    X509 *issuer = by->issuer;
    X509 *x = X509_new();
    BIO *text = BIO_new(BIO_s_mem());
    EVP_PKEY *subject = X509_REQ_get0_pubkey(r);
    char *data;
    if (!x || !text)
        kl_mem_die("memory (certificates)");
    bool good = subject && set_serial(x) && X509_set_version(x, X509_VERSION_3) == 1
        && X509_set_subject_name(x, X509_REQ_get_subject_name(r)) == 1
        && X509_set_issuer_name(x, issuer ? X509_get_subject_name(issuer) : X509_REQ_get_subject_name(r)) == 1
        && X509_set_pubkey(x, subject) == 1
        && ASN1_TIME_set(X509_getm_notBefore(x), (time_t)(by->from / KL_SECONDS(1)))
        && ASN1_TIME_set(X509_getm_notAfter(x), (time_t)(by->until / KL_SECONDS(1)))
        && extend(x, issuer ? issuer : x, r, !issuer) && X509_sign(x, by->key, EVP_sha256()) > 0
        && PEM_write_bio_X509(text, x) == 1;
    kl_status st = good ? KL_OK : fail(err, "the certificate cannot be signed");
    if (good) {
        long n = BIO_get_mem_data(text, &data);
        *out = kl_strndup(data, (size_t)n);
    }
    BIO_free(text);
    X509_free(x);
    ERR_clear_error();
    return st;
}

/* A new key for w, signed by the CA, or by itself when there is none. */
static kl_status make(const kl_x509_wish *w, const signer *by, char **cert, char **key, kl_err *err)
{
    char *fresh = NULL, *request = NULL;
    kl_status st = kl_x509_request(w, &fresh, &request, err);
    if (st)
        return st;
    X509_REQ *r = kl__pem_request(request);
    EVP_PKEY *own = by->issuer ? NULL : kl__pem_key(fresh, NULL);
    signer with = *by;
    if (own)
        with.key = own;
    st = r && with.key ? sign(r, &with, cert, err) : fail(err, "the request cannot be read");
    EVP_PKEY_free(own);
    X509_REQ_free(r);
    kl_free(request);
    if (st)
        kl_x509_wipe(fresh);
    else
        *key = fresh;
    return st;
}

kl_status kl_x509_make_ca(const char *cn, kl_time from, kl_time until, char **cert, char **key, kl_err *err)
{
    return make(&(kl_x509_wish){.cn = cn}, &(signer){.from = from, .until = until}, cert, key, err);
}

kl_status kl_x509_make_server(
    const kl_x509_wish *w, const kl_x509_issue *by, char **cert, char **key, kl_err *err)
{
    X509 *ca = kl__pem_certificate(by->ca_cert);
    EVP_PKEY *k = ca ? kl__pem_key(by->ca_key, NULL) : NULL;
    kl_status st;
    if (!ca || !k)
        st = fail(err, ca ? "the CA's key cannot be read" : "the CA's certificate cannot be read");
    else if (X509_check_private_key(ca, k) != 1)
        st = fail(err, "the CA's key does not belong to its certificate");
    else
        st = make(w, &(signer){ca, k, by->from, by->until}, cert, key, err);
    EVP_PKEY_free(k);
    X509_free(ca);
    return st;
}
