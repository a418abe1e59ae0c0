/* gzip_test.c - packed text unpacks with zlib to the same, in every length around a block; and the ceiling.
 */
#include "support/test.h"

#include <string.h>
#include <zlib.h>
#include "base/gzip.h"
#include "base/mem.h"

#define LENGTH_MAX ((size_t)200000)

/* Bytes without order, which need as much room as before. */
static unsigned char *noise(size_t n)
{
    unsigned char *data = kl_alloc(n);
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (unsigned char)(x >> 24);
    }
    return data;
}

static void assert_unpacks_to(const kl_buf *packed, const unsigned char *data, size_t n)
{
    unsigned char *out = kl_alloc(n + 1);
    z_stream z = {.next_in = (Bytef *)packed->data,
        .avail_in = (uInt)packed->len,
        .next_out = out,
        .avail_out = (uInt)n + 1};
    assert_int_equal(inflateInit2(&z, 16 + MAX_WBITS), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, n);
    assert_memory_equal(out, data, n);
    inflateEnd(&z);
    kl_free(out);
}

static void all_bytes_come_back_in_every_length(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 1000, 65535, 65536, 65537, 131072, LENGTH_MAX};
    unsigned char *data = noise(LENGTH_MAX);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        kl_buf packed = KL_BUF_INIT;
        assert_int_equal(kl_gzip(data, lengths[i], &packed), KL_OK);
        assert_unpacks_to(&packed, data, lengths[i]);
        kl_buf_fini(&packed);
    }
    kl_free(data);
}

static void repetitive_text_is_compressed_after_existing_text(void **state)
{
    (void)state;
    unsigned char *data = kl_zalloc(LENGTH_MAX);
    kl_buf packed = KL_BUF_INIT;
    kl_buf_puts(&packed, "head");
    assert_int_equal(kl_gzip(data, LENGTH_MAX, &packed), KL_OK);
    assert_in_range(packed.len, 5, 2000);
    assert_memory_equal(packed.data, "head\x1f\x8b", 6);
    kl_buf_fini(&packed);
    kl_free(data);
}

static void a_ceiling_holds(void **state)
{
    (void)state;
    unsigned char *data = noise(LENGTH_MAX);
    kl_buf packed;
    kl_buf_init(&packed, 1000);
    assert_int_equal(kl_gzip(data, LENGTH_MAX, &packed), KL_ETOOBIG);
    kl_buf_fini(&packed);
    kl_free(data);
}

KL_TESTS(cmocka_unit_test(all_bytes_come_back_in_every_length),
    cmocka_unit_test(repetitive_text_is_compressed_after_existing_text), cmocka_unit_test(a_ceiling_holds))
/* not in tsan: it starts no thread */
