/* quantity_test.c - quantities: the main cases, and edges that the table of apimachinery's answers
 * (spec/oracle) does not have. */
#include "support/test.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "value/bignum.h"
#include "model/quantity.h"

static kl_quantity *quantity(const char *text)
{
    kl_err err = KL_ERR_INIT;
    kl_quantity *q = NULL;

    assert_ok(kl_quantity_parse(text, &q, &err), &err);
    return q;
}

/* Takes q. */
static void assert_text(kl_quantity *q, const char *want)
{
    char *text = kl_quantity_text(q);

    assert_string_equal(text, want);
    kl_free(text);
    kl_quantity_free(q);
}

static void add_and_drop(const char *a, const char *b, const char *want)
{
    kl_quantity *x = quantity(a), *y = quantity(b);

    assert_text(kl_quantity_add(x, y), want);
    kl_quantity_free(x);
    kl_quantity_free(y);
}

static void equivalent_forms_stay_as_typed(void **state)
{
    (void)state;
    assert_text(quantity("1.001k"), "1.001k");
    assert_text(quantity("0.5"), "500m");
    assert_text(quantity("1E+3"), "1E+3");
    assert_text(quantity("1000"), "1k");
    assert_text(quantity("1025Ki"), "1025Ki");
    assert_text(quantity("2048Mi"), "2Gi");
}

static void what_is_seen_to_be_canonical_is(void **state)
{
    (void)state;
    static const char *const units[] = {"", "m", "k", "Mi", "e3"};
    static const char *const texts[] = {"0", "1", "12m", "999", "1500m", "123456789012345678"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_true(kl_quantity_is_canonical(texts[i], strlen(texts[i])));
    for (int i = 0; i < 30000; i++) {
        char *text = kl_sprintf("%s%d%s", i % 7 ? "" : "0", i, units[i % 5]);
        kl_quantity *q = quantity(text);
        char *canonical = kl_quantity_canonical(q, NULL, NULL);
        if (kl_quantity_is_canonical(text, strlen(text)))
            assert_string_equal(text, canonical);
        kl_free(canonical);
        kl_free(text);
        kl_quantity_free(q);
    }
    assert_false(kl_quantity_is_canonical("", 0));
    assert_false(kl_quantity_is_canonical("m", 1));
    assert_false(kl_quantity_is_canonical("1\0", 2));
}

static void a_sum_takes_the_format_of_its_left_side_unless_that_is_zero(void **state)
{
    (void)state;
    add_and_drop("1k", "1Ki", "2024");
    add_and_drop("1Ki", "1k", "2024");
    add_and_drop("0", "2Gi", "2Gi");
    add_and_drop("1Gi", "1Gi", "2Gi");
    add_and_drop("100m", "1e-1", "200m");
}

static void sums_that_leave_64_bits_stay_exact(void **state)
{
    (void)state;
    add_and_drop("9223372036854775807n", "9223372036854775807n", "18446744073709551614n");
    add_and_drop("9E", "0.000000001", "9000000000000000000000000001n");
    add_and_drop("-99999999999999999999999", "99999999999999999999999", "0");
}

static void numbers_compare_across_forms_and_scales(void **state)
{
    static const char *const ascending[] = {"-1e100", "-1Ki", "-1", "-1n", "0", "1n", "999u", "1m", "1",
        "1001m", "1k", "1Ki", "9223372036854775807", "99999999999999999999E", "1e100", "1e101"};
    size_t i, j, n = sizeof ascending / sizeof *ascending;

    (void)state;
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++) {
            kl_quantity *a = quantity(ascending[i]), *b = quantity(ascending[j]);

            assert_int_equal(kl_quantity_cmp(a, b), (i > j) - (i < j));
            kl_quantity_free(a);
            kl_quantity_free(b);
        }
}

static void integers_round_away_from_zero_and_say_when_they_do_not_fit(void **state)
{
    kl_quantity *q = quantity("-1500m");
    int64_t v;

    (void)state;
    assert_true(kl_quantity_value(q, &v));
    assert_int_equal(v, -2);
    assert_true(kl_quantity_milli(q, &v));
    assert_int_equal(v, -1500);
    assert_false(kl_quantity_as_int64(q, &v));
    kl_quantity_free(q);
    q = quantity("-1e30");
    assert_false(kl_quantity_value(q, &v));
    assert_true(v == INT64_MIN);
    assert_true(kl_quantity_scaled(q, 15, &v));
    assert_true(v == -1000000000000000);
    kl_quantity_free(q);
    q = quantity("-1234567890123456789012n");
    assert_true(kl_quantity_value(q, &v));
    assert_true(v == -1234567890123); /* as Go does: long negative fractions are cut */
    kl_quantity_free(q);
    q = quantity("1234567890123456789012n");
    assert_true(kl_quantity_value(q, &v));
    assert_true(v == 1234567890124);
    kl_quantity_free(q);
    q = quantity("92233720368547758071234567890");
    assert_false(kl_quantity_milli(q, &v));
    assert_true(v == INT64_MAX);
    kl_quantity_free(q);
}

static void the_smallest_64_bit_number_survives_every_operation(void **state)
{
    kl_quantity *q = kl_quantity_new(INT64_MIN, 0, KL_DECIMAL_SI), *one = quantity("1"), *r;
    int64_t v;

    (void)state;
    assert_text(kl_quantity_neg(q), "9223372036854775808");
    assert_text(kl_quantity_sub(q, one), "-9223372036854775809");
    assert_text(kl_quantity_sub(one, q), "9223372036854775809");
    assert_text(kl_quantity_mul(q, -1, NULL), "9223372036854775808");
    r = kl_quantity_mul(q, INT64_MIN, NULL);
    assert_false(kl_quantity_value(r, &v));
    assert_text(r, "85070591730234615865843651857942052864");
    assert_text(kl_quantity_copy(q), "-9223372036854775808");
    kl_quantity_free(q);
    kl_quantity_free(one);
}

static void doubles_are_the_nearest(void **state)
{
    static const struct {
        const char *text;
        double want;
    } cases[] = {
        {"0.1", 0.1},
        {"1n", 1e-9},
        {"123456789012345678", 123456789012345678.0},
        {"1e400", HUGE_VAL},
        {"0.30000000000000004", 0.300000001},
        {"1.5Gi", 1610612736.0},
        {"9007199254740993", 9007199254740992.0},
        {"-2.5", -2.5},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_quantity *q = quantity(cases[i].text);

        assert_true(kl_quantity_double(q) == cases[i].want);
        kl_quantity_free(q);
    }
}

static void errors_name_the_text_and_the_way_out(void **state)
{
    kl_err err = KL_ERR_INIT;
    kl_quantity *q;

    (void)state;
    assert_fails(
        kl_quantity_parse("12 Gi", &q, &err), KL_ESYNTAX, &err, "\"12 Gi\" is not a number and a suffix");
    assert_fails(
        kl_quantity_parse("1K", &q, &err), KL_ESYNTAX, &err, "unknown suffix \"K\"; known are n u m k");
    assert_fails(kl_quantity_parse("", &q, &err), KL_ESYNTAX, &err, "such as 100m");
    assert_fails(kl_quantity_parse(".Ei", &q, &err), KL_ESYNTAX, &err, "no digits");
    assert_fails(kl_quantity_parsen("1\0"
                                    "2",
                     3, &q, &err),
        KL_ESYNTAX, &err, "not a number");
}

static void a_few_bytes_do_not_buy_gigabytes(void **state)
{
    kl_err err = KL_ERR_INIT;
    kl_quantity *q, *tiny;
    char *long_text = kl_alloc(30000);

    (void)state;
    assert_fails(kl_quantity_parse("1e2000000000", &q, &err), KL_ETOOBIG, &err, "more than 10000 digits");
    assert_fails(kl_quantity_parse("1234567890123456789e1000000000", &q, &err), KL_ETOOBIG, &err, "digits");
    assert_fails(kl_quantity_parse("1e99999999999999999999999999", &q, &err), KL_ETOOBIG, &err, "digits");
    memset(long_text, '7', 29999);
    long_text[29999] = '\0';
    assert_fails(kl_quantity_parse(long_text, &q, &err), KL_ETOOBIG, &err, "digits");
    kl_free(long_text);
    assert_text(quantity("1e-2000000000"), "1e-9");
    assert_text(quantity("0e2000000000"), "0");
    q = quantity("1e9999");
    tiny = quantity("0.000000001");
    assert_int_equal(kl_quantity_cmp(q, tiny), 1);
    assert_text(kl_quantity_sub(q, q), "0");
    kl_quantity_free(q);
    kl_quantity_free(tiny);
}

static void json_numbers_strings_and_null_are_quantities(void **state)
{
    static const struct {
        const char *json, *want;
    } cases[] = {{"\" 1Gi \"", "1Gi"}, {"1.5", "1500m"}, {"null", "0"}, {"1e3", "1e3"}};
    kl_err err = KL_ERR_INIT;
    kl_quantity *q;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(kl_quantity_parse_json(cases[i].json, strlen(cases[i].json), &q, &err), &err);
        assert_text(q, cases[i].want);
    }
    assert_fails(kl_quantity_parse_json("true", 4, &q, &err), KL_ESYNTAX, &err, "true");
    assert_fails(kl_quantity_parse_json("\"1\0\"", 4, &q, &err), KL_ESYNTAX, &err, "not a number");
}

static void big_numbers_agree_with_wide_ones(void **state)
{
    static const int64_t v[] = {0, 1, -1, 9, 999999999, 1000000000, -1000000001, INT64_MAX, INT64_MIN,
        123456789012345678, -99999999999999999};
    size_t i, j, n = sizeof v / sizeof *v;
    int64_t back;

    (void)state;
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++) {
            kl_bignum a = KL_BIGNUM_INIT, b = KL_BIGNUM_INIT;
            __int128 sum = (__int128)v[i] + v[j];
            bool fits = sum <= INT64_MAX && sum >= INT64_MIN;

            kl_bignum_set(&a, v[i]);
            kl_bignum_set(&b, v[j]);
            assert_int_equal(kl_bignum_cmp(&a, &b), (v[i] > v[j]) - (v[i] < v[j]));
            kl_bignum_add(&a, &b);
            assert_int_equal(kl_bignum_get(&a, &back), fits);
            if (fits)
                assert_true(back == (int64_t)sum);
            kl_bignum_fini(&a);
            kl_bignum_fini(&b);
        }
}

static void shifting_up_and_down_is_multiplying_and_dividing_by_ten(void **state)
{
    kl_bignum n = KL_BIGNUM_INIT;
    kl_buf text = KL_BUF_INIT;
    size_t i;

    (void)state;
    for (i = 0; i <= 40; i++) {
        kl_bignum_set(&n, -1234567890);
        kl_bignum_shift_up(&n, i);
        assert_int_equal(kl_bignum_digits(&n), 10 + i);
        assert_false(kl_bignum_shift_down(&n, i + 1));
        assert_true(kl_bignum_shift_down(&n, 1));
        kl_buf_clear(&text);
        kl_bignum_print(&n, &text);
        assert_string_equal(kl_buf_str(&text), "-12345678");
    }
    assert_true(kl_bignum_shift_down(&n, 100));
    assert_int_equal(kl_bignum_sign(&n), 0);
    kl_bignum_fini(&n);
    kl_buf_fini(&text);
}

KL_TESTS(cmocka_unit_test(equivalent_forms_stay_as_typed), cmocka_unit_test(what_is_seen_to_be_canonical_is),
    cmocka_unit_test(a_sum_takes_the_format_of_its_left_side_unless_that_is_zero),
    cmocka_unit_test(sums_that_leave_64_bits_stay_exact),
    cmocka_unit_test(numbers_compare_across_forms_and_scales),
    cmocka_unit_test(integers_round_away_from_zero_and_say_when_they_do_not_fit),
    cmocka_unit_test(the_smallest_64_bit_number_survives_every_operation),
    cmocka_unit_test(doubles_are_the_nearest), cmocka_unit_test(errors_name_the_text_and_the_way_out),
    cmocka_unit_test(a_few_bytes_do_not_buy_gigabytes),
    cmocka_unit_test(json_numbers_strings_and_null_are_quantities),
    cmocka_unit_test(big_numbers_agree_with_wide_ones),
    cmocka_unit_test(shifting_up_and_down_is_multiplying_and_dividing_by_ten))

/* not in tsan: it starts no thread */
