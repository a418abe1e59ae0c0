/* sha256.c - OpenSSL's SHA-256. */
#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/mem.h"

void kl_sha256(const void *data, size_t n, unsigned char out[32])
{
    if (!EVP_Digest(data, n, out, NULL, EVP_sha256(), NULL))
        kl_mem_die("SHA-256");
}
