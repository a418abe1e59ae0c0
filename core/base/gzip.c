/* gzip.c - deflates, a block at a time. */
#include "base/gzip.h"

#include <zlib.h>

#include "base/mem.h"

#define GZIP (16 + MAX_WBITS) /* deflateInit2: a gzip header, and the largest window */
#define MEMORY 8              /* zlib's default */
#define BLOCK (64 * 1024)
#define GULP (1 << 30) /* zlib counts in unsigned ints */

kl_status kl_gzip(const void *data, size_t n, kl_buf *out)
{
    z_stream z = {0};
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        kl_mem_die("memory (gzip)");
    unsigned char *block = kl_alloc(BLOCK);
    kl_status st = KL_OK;
    int rc = Z_OK;
    z.next_in = (Bytef *)data;
    while (!st && rc != Z_STREAM_END) {
        if (!z.avail_in) {
            z.avail_in = (uInt)(n > GULP ? GULP : n);
            n -= z.avail_in;
        }
        z.next_out = block;
        z.avail_out = BLOCK;
        rc = deflate(&z, n ? Z_NO_FLUSH : Z_FINISH);
        st = kl_buf_add(out, block, BLOCK - z.avail_out);
    }
    deflateEnd(&z);
    kl_free(block);
    return st;
}
