/* escape_test.c - text as JSON writes it: each byte by itself, what needs no escape, and a buffer that is
 * full. */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/escape.h"

static void spells_each_byte_as_json_has_it(void **state)
{
    (void)state;
    static const char *const SHORT[] = {
        ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r"};
    for (int c = 0; c < 256; c++) {
        kl_buf b = KL_BUF_INIT;
        char text[3] = {'<', (char)c, '>'}, want[16];
        const char *brief = c < (int)(sizeof SHORT / sizeof *SHORT) ? SHORT[c] : NULL;
        if (c == '"' || c == '\\')
            snprintf(want, sizeof want, "<\\%c>", c);
        else if (c < ' ' && brief)
            snprintf(want, sizeof want, "<%s>", brief);
        else if (c < ' ')
            snprintf(want, sizeof want, "<\\u%04x>", c);
        else
            snprintf(want, sizeof want, "<%c>", c);
        kl_json_escape(&b, text, sizeof text);
        assert_int_equal(b.len, strlen(want));
        assert_memory_equal(kl_buf_str(&b), want, b.len);
        kl_buf_fini(&b);
    }
}

static void adds_to_what_is_there(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    kl_buf_puts(&b, "x=");
    kl_json_escape(&b, "", 0);
    kl_json_escape(&b, "plain", 5);
    kl_json_escape(&b, "a\nb\1", 4);
    assert_string_equal(kl_buf_str(&b), "x=plaina\\nb\\u0001");
    kl_buf_fini(&b);
}

static void adds_nothing_that_does_not_fit_whole(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    b.max = 8;
    kl_json_escape(&b, "\1\1", 2);
    assert_int_equal(kl_buf_status(&b), KL_ETOOBIG);
    assert_int_equal(b.len, 0);
    kl_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spells_each_byte_as_json_has_it),
        cmocka_unit_test(adds_to_what_is_there),
        cmocka_unit_test(adds_nothing_that_does_not_fit_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
