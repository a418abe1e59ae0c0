/* packed.c - inflates the texts that the build packed into the binary. */
#include "base/packed.h"

#include <assert.h>
#include <zlib.h>

#include "base/mem.h"

#define GZIP (16 + MAX_WBITS) /* inflateInit2: a gzip header, and the largest window */

char *kl_packed_text(const kl_packed *p)
{
    char *text = kl_alloc(p->plain + 1);
    z_stream z = {0};
    int rc = inflateInit2(&z, GZIP);
    z.next_in = (Bytef *)p->gz;
    z.avail_in = (uInt)p->len;
    z.next_out = (Bytef *)text;
    z.avail_out = (uInt)p->plain;
    if (rc == Z_OK)
        rc = inflate(&z, Z_FINISH);
    /* the bytes are part of the binary: a failure is a broken build */
    assert(rc == Z_STREAM_END && !z.avail_out);
    inflateEnd(&z);
    text[p->plain] = '\0';
    return text;
}
