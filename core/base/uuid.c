/* uuid.c - random UUIDs, and their text. */
#include "base/uuid.h"

#include <sys/random.h>

#include "base/mem.h"

char *kl_uuid_of(const unsigned char bytes[16], char out[KL_UUID_MAX])
{
    static const char hex[] = "0123456789abcdef";
    char *to = out;
    for (int i = 0; i < 16; i++) {
        unsigned b = bytes[i];
        if (i == 6)
            b = (b & 0x0f) | 0x40; /* the version */
        if (i == 8)
            b = (b & 0x3f) | 0x80; /* the variant */
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = hex[b >> 4];
        *to++ = hex[b & 15];
    }
    *to = 0;
    return out;
}

char *kl_uuid_new(char out[KL_UUID_MAX])
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        kl_mem_die("getrandom");
    return kl_uuid_of(bytes, out);
}
