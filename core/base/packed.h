/* packed.h - texts that `make` put into the binary, compressed by gzip (base/pack.lua). Any thread. */
#ifndef KL_BASE_PACKED_H
#define KL_BASE_PACKED_H

#include <stddef.h>

typedef struct kl_packed {
    const unsigned char *gz;
    size_t len;   /* bytes at gz */
    size_t plain; /* bytes of the text */
} kl_packed;

/* The text, with a NUL behind it; the caller frees it. */
char *kl_packed_text(const kl_packed *p);

#endif
