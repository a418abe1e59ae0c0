/* address.c - the longest run of at least two zero groups is "::". */
#include "model/address.h"

void kl_address_print(const unsigned char *bytes, size_t n, kl_buf *out)
{
    if (n == 4) {
        kl_buf_printf(out, "%d.%d.%d.%d", bytes[0], bytes[1], bytes[2], bytes[3]);
        return;
    }
    unsigned g[8];
    int best = -1, len = 1;
    for (int i = 0; i < 8; i++)
        g[i] = (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1];
    for (int i = 0; i < 8; i++) {
        int k = i;
        while (k < 8 && !g[k])
            k++;
        if (k - i > len) {
            best = i;
            len = k - i;
        }
    }
    for (int i = 0; i < 8; i++) {
        if (i == best) {
            kl_buf_puts(out, "::");
            i += len - 1;
        } else
            kl_buf_printf(out, "%s%x", i && i != best + len ? ":" : best < 0 && i ? ":" : "", g[i]);
    }
}
