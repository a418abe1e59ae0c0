/* base64.c - three bytes are four characters of six bits. */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>
#include "base/mem.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *kl_base64_encode(const void *data, size_t n)
{
    const unsigned char *p = data;
    char *out = kl_alloc((n + 2) / 3 * 4 + 1), *to = out;
    for (; n; p += 3) {
        size_t len = n < 3 ? n : 3;
        uint32_t bits = (uint32_t)p[0] << 16 | (len > 1 ? (uint32_t)p[1] << 8 : 0) | (len > 2 ? p[2] : 0);
        *to++ = alphabet[bits >> 18];
        *to++ = alphabet[bits >> 12 & 63];
        *to++ = len > 1 ? alphabet[bits >> 6 & 63] : '=';
        *to++ = len > 2 ? alphabet[bits & 63] : '=';
        n -= len;
    }
    *to = '\0';
    return out;
}

static kl_status refuse(kl_err *err, size_t at)
{
    return kl_fail(err, KL_ESYNTAX, "no base64: something is wrong at byte %zu", at + 1);
}

kl_status kl_base64_decode(const char *text, size_t n, kl_buf *out, kl_err *err)
{
    uint32_t bits = 0;
    int have = 0, pads = 0;                     /* characters of the four at hand, padding among them */
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '\n' || c == '\r')
            continue;
        const char *found = c ? memchr(alphabet, c, 64) : NULL;
        if (c == '=' && have >= 2)
            pads++;
        else if (!found || pads)
            return refuse(err, i);
        bits = bits << 6 | (found ? (uint32_t)(found - alphabet) : 0);
        if (++have < 4)
            continue;
        if (pads && bits & (pads == 1 ? 0xff : 0xffff))
            return refuse(err, i);              /* bits that belong to no byte */
        const char bytes[3] = { (char)(bits >> 16), (char)(bits >> 8), (char)bits };
        kl_status st = kl_buf_add(out, bytes, (size_t)(3 - pads));
        if (st)
            return kl_fail(err, st, "the text is too long");
        have = 0;
        bits = 0;
        if (pads) {                             /* padding ends it */
            for (i++; i < n; i++)
                if (text[i] != '\n' && text[i] != '\r')
                    return refuse(err, i);
            return KL_OK;
        }
    }
    return have ? refuse(err, n) : KL_OK;
}
