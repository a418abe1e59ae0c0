/* base64.c - OpenSSL's base64, with Go's strictness: line breaks are skipped, any other invalid byte is
 * refused with its place. */
#include "base/base64.h"

#include <limits.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/mem.h"

/* OpenSSL counts in int; both sizes are multiples of its blocks, so that pieces can be put side by side. */
#define BYTES_MAX 3072
#define TEXT_MAX 4096

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *kl_base64_encode(const void *data, size_t n)
{
    const unsigned char *from = data;
    unsigned char *out = kl_alloc((n + 2) / 3 * 4 + 1);
    unsigned char *to = out;
    *to = '\0';
    for (size_t piece; n; n -= piece, from += piece) {
        piece = n < BYTES_MAX ? n : BYTES_MAX;
        to += EVP_EncodeBlock(to, from, (int)piece);
    }
    return (char *)out;
}

static kl_status refuse(kl_err *err, size_t at)
{
    return kl_fail(err, KL_ESYNTAX, "not base64: wrong at byte %zu", at + 1);
}

/* A chunk of base64 characters without line breaks, in groups of four. */
typedef struct text {
    unsigned char v[TEXT_MAX];
    size_t n;
    int pads;
} text;

/* Adds one character; false: it is not valid at this place. */
static bool take(text *t, char c)
{
    const char *found = c ? memchr(alphabet, c, 64) : NULL;
    if (c == '=' && (t->pads ? t->n % 4 != 0 : t->n % 4 >= 2))
        t->pads++;
    else if (!found || t->pads)
        return false;
    t->v[t->n++] = (unsigned char)c;
    /* The unused bits of the last character before the padding must be 0. */
    if (t->pads && t->n % 4 == 0)
        return !((size_t)((const char *)memchr(alphabet, t->v[t->n - 1 - t->pads], 64) - alphabet)
            & (t->pads == 1 ? 3 : 15));
    return true;
}

static kl_status flush(text *t, kl_buf *out, kl_err *err)
{
    unsigned char bytes[BYTES_MAX + 1];
    int n = EVP_DecodeBlock(bytes, t->v, (int)t->n);
    kl_status st = n < 0 ? KL_EINTERNAL : kl_buf_add(out, bytes, (size_t)(n - t->pads));
    t->n = 0;
    return st ? kl_fail(err, st, "the text is too long") : KL_OK;
}

kl_status kl_base64_decode(const char *s, size_t n, kl_buf *out, kl_err *err)
{
    text t = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n' || s[i] == '\r')
            continue;
        if (!take(&t, s[i]))
            return refuse(err, i);
        kl_status st = t.n == TEXT_MAX ? flush(&t, out, err) : KL_OK;
        if (st)
            return st;
    }
    return t.n % 4 ? refuse(err, n) : t.n ? flush(&t, out, err) : KL_OK;
}
