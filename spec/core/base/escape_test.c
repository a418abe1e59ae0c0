/* escape_test.c - JSON escapes: each byte alone, text without escapes, and a full buffer. */
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

static void appends_to_existing_text(void **state)
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

#define LATIN "\303\244 \342\202\254 \360\237\216\211" /* a letter, a sign, a picture */

static void escapes_terminal_control_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } CASES[] = {
        {"plain\ttext\n" LATIN, "plain\ttext\n" LATIN},
        {"\033[2J\033]0;title\007", "^[[2J^[]0;title\\x07"},
        {"a\rb\bc\177", "a\\rb\\x08c\\u007f"},
        {"\302\2331m\302\205\302\240", "\\u009b1m\\u0085\302\240"},
        {"\342\200\256gpj.exe\342\200\254\342\201\246\342\201\251", "\\u202egpj.exe\\u202c\\u2066\\u2069"},
        {"\342\200\250\342\200\251\342\200\247\342\200\257", "\\u2028\\u2029\342\200\247\342\200\257"},
        {"\2331m \355\240\200 \303", "\\x9b1m \\xed\\xa0\\x80 \\xc3"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        kl_buf b = KL_BUF_INIT;
        kl_visible_escape(&b, CASES[i].text, strlen(CASES[i].text), false);
        assert_string_equal(kl_buf_str(&b), CASES[i].shown);
        kl_buf_fini(&b);
    }
    kl_buf b = KL_BUF_INIT;
    kl_visible_escape(&b, "a\nb\0c", 5, true);
    assert_string_equal(kl_buf_str(&b), "a\\nb\\x00c");
    kl_buf_fini(&b);
}

static void json_for_people_spells_them_too(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    static const char TEXT[] = "\033\177\302\233\342\200\256" LATIN "\233";
    kl_json_escape_any(&b, TEXT, sizeof TEXT - 1);
    assert_string_equal(kl_buf_str(&b), "\\u001b\\u007f\\u009b\\u202e" LATIN "\357\277\275");
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
        cmocka_unit_test(appends_to_existing_text),
        cmocka_unit_test(escapes_terminal_control_characters),
        cmocka_unit_test(json_for_people_spells_them_too),
        cmocka_unit_test(adds_nothing_that_does_not_fit_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
