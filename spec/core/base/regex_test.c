/* regex_test.c - Go's regular expressions: matches, their places, bounded time, and Go's messages for
 * invalid ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/regex.h"

static bool matches(const char *pattern, const char *text)
{
    kl_regex *r;
    assert_int_equal(KL_OK, kl_regex_new(pattern, strlen(pattern), &r, NULL));
    bool yes = kl_regex_matches(r, text, strlen(text));
    kl_regex_free(r);
    return yes;
}

static void it_matches_anywhere_unless_anchored(void **state)
{
    (void)state;
    assert_true(matches("b+", "abbc"));
    assert_false(matches("^b+", "abbc"));
    assert_true(matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "web-1"));
    assert_false(matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "web-"));
}

static void it_has_go_s_classes(void **state)
{
    (void)state;
    assert_true(matches("^\\pL+$",
        "stra\xc3\x9f"
        "e"));
    assert_false(matches("^\\w+$", "\xc3\xa9"));
    assert_true(matches("(?i)^abc$", "ABC"));
    assert_false(matches("^a$", "a\n")); /* $ is the end of the text, not of a line */
    assert_true(matches("^[[:alpha:]]\\d$", "a7"));
}

static void it_says_where(void **state)
{
    (void)state;
    kl_regex *r;
    size_t begin, end;
    assert_int_equal(KL_OK, kl_regex_new("[0-9]+", 6, &r, NULL));
    assert_true(kl_regex_find(r, "ab12cd345", 9, 0, &begin, &end));
    assert_int_equal(2, begin);
    assert_int_equal(4, end);
    assert_true(kl_regex_find(r, "ab12cd345", 9, end, &begin, &end));
    assert_int_equal(6, begin);
    assert_int_equal(9, end);
    assert_false(kl_regex_find(r, "ab12cd345", 9, end, &begin, &end));
    assert_false(kl_regex_find(r, "ab", 2, 3, &begin, &end));
    kl_regex_free(r);
}

static void it_refuses_in_go_s_words(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *message;
    } cases[] = {
        {"[a", "error parsing regexp: missing closing ]: `[a`"},
        {"(a", "error parsing regexp: missing closing ): `(a`"},
        {"a)", "error parsing regexp: unexpected ): `a)`"},
        {"*", "error parsing regexp: missing argument to repetition operator: `*`"},
        {"a**", "error parsing regexp: invalid nested repetition operator: `**`"},
        {"a\\", "error parsing regexp: trailing backslash at end of expression: ``"},
        {"(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
        {"(a)\\1", "error parsing regexp: invalid escape sequence: `\\1`"},
        {"[z-a]", "error parsing regexp: invalid character class range: `z-a`"},
        {"a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_regex *r = NULL;
        kl_err err = KL_ERR_INIT;
        assert_int_equal(KL_EINVAL, kl_regex_new(cases[i].pattern, strlen(cases[i].pattern), &r, &err));
        assert_string_equal(cases[i].message, err.message);
        assert_null(r);
        kl_err_fini(&err);
    }
}

/* A backtracking matcher would need 2^100000 steps. */
static void it_takes_linear_time(void **state)
{
    (void)state;
    size_t n = 100000;
    char *text = malloc(n + 1);
    memset(text, 'a', n);
    text[n] = 0;
    assert_false(matches("^(a+)+b$", text));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_matches_anywhere_unless_anchored),
        cmocka_unit_test(it_has_go_s_classes),
        cmocka_unit_test(it_says_where),
        cmocka_unit_test(it_refuses_in_go_s_words),
        cmocka_unit_test(it_takes_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
