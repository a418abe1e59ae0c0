/* sha1_test.c - the digests of FIPS 180 and RFC 6455 and lengths around a block's end. */
#include "support/test.h"

#include "base/mem.h"
#include "base/sha1.h"

static void expect(const char *text, size_t n, const char *hex)
{
    unsigned char d[20];
    char got[41];
    kl_sha1(text, n, d);
    for (int i = 0; i < 20; i++)
        snprintf(got + 2 * i, 3, "%02x", d[i]);
    assert_string_equal(got, hex);
}

static void digests_are_those_of_the_standard(void **state)
{
    (void)state;
    expect("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    expect("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    char *many = kl_alloc(1000000);
    memset(many, 'a', 1000000);
    expect(many, 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    expect(many, 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    expect(many, 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
    expect(many, 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    kl_free(many);
}

KL_TESTS(cmocka_unit_test(digests_are_those_of_the_standard))

/* not in tsan: it starts no thread */
