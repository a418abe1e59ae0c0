/* base64.c - what is read as base64 is written again as it was, line breaks aside; bytes come back as they
 * were. */
#include "fuzz/fuzz.h"

#include <string.h>
#include "base/base64.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    kl_buf b = KL_BUF_INIT;
    char *text = kl_base64_encode(data, n);
    CLAIM(!kl_base64_decode(text, strlen(text), &b, NULL) && b.len == n && (!n || !memcmp(b.data, data, n)));
    kl_free(text);
    kl_buf_clear(&b);
    if (!kl_base64_decode((const char *)data, n, &b, NULL)) {
        text = kl_base64_encode(kl_buf_str(&b), b.len);
        size_t at = 0;
        for (size_t i = 0; i < n; i++)
            if (data[i] != '\n' && data[i] != '\r')
                CLAIM(text[at++] == (char)data[i]);
        CLAIM(!text[at]);
        kl_free(text);
    }
    kl_buf_fini(&b);
    return 0;
}
