/* sha1.c - OpenSSL's SHA-1. */
#include "base/sha1.h"

#include <openssl/evp.h>

#include "base/mem.h"

void kl_sha1(const void *data, size_t n, unsigned char out[20])
{
    if (!EVP_Digest(data, n, out, NULL, EVP_sha1(), NULL))
        kl_mem_die("SHA-1");
}
