/* base64_test.c - RFC 4648's vectors, every length, and invalid texts. */
#include "support/test.h"

#include <string.h>
#include "base/base64.h"
#include "base/mem.h"

static void the_vectors_of_the_rfc(void **state)
{
    (void)state;
    static const char *const vectors[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        char *text = kl_base64_encode(vectors[i][0], strlen(vectors[i][0]));
        assert_string_equal(text, vectors[i][1]);
        kl_buf b = KL_BUF_INIT;
        assert_int_equal(kl_base64_decode(text, strlen(text), &b, NULL), KL_OK);
        assert_string_equal(kl_buf_str(&b), vectors[i][0]);
        kl_buf_fini(&b);
        kl_free(text);
    }
}

static void all_bytes_come_back_in_every_length(void **state)
{
    (void)state;
    unsigned char data[260];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7);
    for (size_t n = 0; n <= sizeof data; n++) {
        char *text = kl_base64_encode(data, n);
        kl_buf b = KL_BUF_INIT;
        assert_int_equal(kl_base64_decode(text, strlen(text), &b, NULL), KL_OK);
        assert_int_equal(b.len, n);
        if (n)
            assert_memory_equal(b.data, data, n);
        kl_buf_fini(&b);
        kl_free(text);
    }
}

static void line_breaks_are_skipped_and_other_characters_rejected(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    assert_int_equal(kl_base64_decode("Zm9v\r\nYg==\n", 11, &b, NULL), KL_OK);
    assert_string_equal(kl_buf_str(&b), "foob");
    kl_buf_fini(&b);
    static const char *const wrong[] = {
        "Z", "Zg", "Zg=", "Zg===", "Zg==Zg==", "Zm9v=", "=m9v", "Z===", "Zm 9v", "Zm9*", "Zh==", "Zm9=v"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kl_err err = KL_ERR_INIT;
        b = KL_BUF_INIT;
        assert_int_equal(kl_base64_decode(wrong[i], strlen(wrong[i]), &b, &err), KL_ESYNTAX);
        assert_non_null(strstr(kl_err_message(&err), "at byte"));
        kl_err_fini(&err);
        kl_buf_fini(&b);
    }
    b = KL_BUF_INIT;
    assert_int_equal(kl_base64_decode("Zg\0=", 4, &b, NULL), KL_ESYNTAX);
    kl_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_rfc),
        cmocka_unit_test(all_bytes_come_back_in_every_length),
        cmocka_unit_test(line_breaks_are_skipped_and_other_characters_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* not in tsan: it starts no thread */
