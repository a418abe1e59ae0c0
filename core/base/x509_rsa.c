/* x509_rsa.c - an RSA key of OpenSSL (see x509.c). With a good key and memory nothing here fails. */
#include "base/x509_rsa.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include "base/mem.h"

#define BITS 2048u

struct kl_rsa {
    EVP_PKEY *key;
};

static void must(bool good)
{
    if (!good)
        kl_mem_die("memory (signatures)");
}

kl_rsa *kl_rsa_new(void)
{
    kl_rsa *k = kl_new(kl_rsa);
    k->key = EVP_RSA_gen(BITS);
    must(k->key != NULL);
    return k;
}

void kl_rsa_free(kl_rsa *k)
{
    if (!k)
        return;
    EVP_PKEY_free(k->key);
    kl_free(k);
}

static void put_number(const kl_rsa *k, const char *name, kl_buf *out)
{
    BIGNUM *n = NULL;
    unsigned char bytes[BITS / 8];
    must(EVP_PKEY_get_bn_param(k->key, name, &n) == 1 && BN_num_bytes(n) <= (int)sizeof bytes);
    kl_buf_add(out, (const char *)bytes, (size_t)BN_bn2bin(n, bytes));
    BN_free(n);
}

void kl_rsa_public(const kl_rsa *k, kl_buf *modulus, kl_buf *exponent, kl_buf *digest)
{
    unsigned char *der = NULL, sum[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    put_number(k, OSSL_PKEY_PARAM_RSA_N, modulus);
    put_number(k, OSSL_PKEY_PARAM_RSA_E, exponent);
    int n = i2d_PUBKEY(k->key, &der);
    must(n > 0 && EVP_Digest(der, (size_t)n, sum, &len, EVP_sha256(), NULL) == 1);
    OPENSSL_free(der);
    kl_buf_add(digest, (const char *)sum, len);
}

void kl_rsa_sign(const kl_rsa *k, const void *data, size_t n, kl_buf *signature)
{
    unsigned char out[BITS / 8];
    size_t len = sizeof out;
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    must(c && EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, k->key) == 1
        && EVP_DigestSign(c, out, &len, data, n) == 1);
    EVP_MD_CTX_free(c);
    kl_buf_add(signature, (const char *)out, len);
}
