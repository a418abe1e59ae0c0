/* buf_test.c - growing bytes with a ceiling. */
#include "support/test.h"

#include "base/buf.h"
#include "base/mem.h"

static void gathers_text_and_is_always_terminated(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    assert_string_equal(kl_buf_str(&b), "");
    assert_null(b.data);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(kl_buf_putc(&b, (char)('a' + i % 26)), KL_OK);
        assert_int_equal(b.data[b.len], '\0');
    }
    assert_int_equal(b.len, 1000);
    kl_buf_clear(&b);
    assert_string_equal(kl_buf_str(&b), "");
    kl_buf_puts(&b, "x=");
    kl_buf_printf(&b, "%d,%s", 7, "s");
    kl_buf_add(&b, "\0z", 2);
    assert_int_equal(b.len, 7);
    assert_memory_equal(b.data, "x=7,s\0z", 8);
    kl_buf_add(&b, NULL, 0);
    assert_int_equal(b.len, 7);
    kl_buf_fini(&b);
    assert_null(b.data);
}

static void formats_text_longer_than_the_first_guess(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    char text[2000];
    memset(text, 'q', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(kl_buf_printf(&b, "<%s>", text), KL_OK);
    assert_int_equal(b.len, 2001);
    assert_int_equal(b.data[2000], '>');
    kl_buf_fini(&b);
}

static void stays_failed_above_its_ceiling_and_keeps_its_contents(void **state)
{
    (void)state;
    kl_buf b;
    kl_buf_init(&b, 10);
    assert_int_equal(kl_buf_puts(&b, "12345678"), KL_OK);
    assert_int_equal(kl_buf_puts(&b, "90"), KL_OK);
    assert_int_equal(kl_buf_putc(&b, 'x'), KL_ETOOBIG);
    assert_int_equal(kl_buf_status(&b), KL_ETOOBIG);
    assert_int_equal(kl_buf_putc(&b, 'x'), KL_ETOOBIG);
    assert_int_equal(kl_buf_add(&b, "", 0), KL_ETOOBIG);
    assert_null(kl_buf_reserve(&b, 0));
    assert_string_equal(kl_buf_str(&b), "1234567890");
    kl_buf_clear(&b);
    assert_int_equal(kl_buf_status(&b), KL_OK);
    assert_int_equal(kl_buf_printf(&b, "%d", 12345), KL_OK);
    assert_int_equal(kl_buf_printf(&b, "%300d", 1), KL_ETOOBIG);
    assert_null(kl_buf_reserve(&b, SIZE_MAX));
    kl_buf_fini(&b);
    assert_int_equal(b.max, 10);
}

static void gives_room_and_takes_away_from_the_front(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    char *at = kl_buf_reserve(&b, 100);
    memcpy(at, "hello world", 11);
    b.len += 11;
    kl_buf_consume(&b, 6);
    assert_string_equal(kl_buf_str(&b), "world");
    kl_buf_consume(&b, 0);
    kl_buf_consume(&b, 99);
    assert_int_equal(b.len, 0);
    assert_string_equal(kl_buf_str(&b), "");
    kl_buf_fini(&b);
}

static void hands_its_text_over(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    char *empty = kl_buf_take(&b);
    assert_string_equal(empty, "");
    kl_free(empty);
    kl_buf_puts(&b, "mine");
    char *text = kl_buf_take(&b);
    assert_string_equal(text, "mine");
    assert_int_equal(b.len, 0);
    assert_null(b.data);
    kl_free(text);
    kl_buf_fini(&b);
}

KL_TESTS(cmocka_unit_test(gathers_text_and_is_always_terminated),
    cmocka_unit_test(formats_text_longer_than_the_first_guess),
    cmocka_unit_test(stays_failed_above_its_ceiling_and_keeps_its_contents),
    cmocka_unit_test(gives_room_and_takes_away_from_the_front), cmocka_unit_test(hands_its_text_over))

/* not in tsan: it starts no thread */
