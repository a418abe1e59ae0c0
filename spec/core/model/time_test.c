/* time_test.c - durations and times. The table of Go's answers is the bulk (spec/oracle). */
#include "support/test.h"

#include "model/time.h"

static void durations_print_and_read_back(void **state)
{
    static const kl_time v[] = {0, 1, -1, 999, 1000, 1500000, KL_SECONDS(1), KL_SECONDS(90),
        KL_MINUTES(61) + 1, INT64_MAX, INT64_MIN};
    char text[KL_DURATION_MAX];
    kl_err err = KL_ERR_INIT;
    kl_time back;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof v / sizeof *v; i++) {
        assert_ok(kl_duration_parse(kl_duration_format(v[i], text), &back, &err), &err);
        assert_true(back == v[i]);
    }
    assert_string_equal(kl_duration_format(INT64_MIN, text), "-2562047h47m16.854775808s");
}

static void a_duration_without_a_unit_is_refused(void **state)
{
    kl_err err = KL_ERR_INIT;
    kl_time d;

    (void)state;
    assert_fails(kl_duration_parse("30", &d, &err), KL_ESYNTAX, &err,
        "\"30\" is not a duration: a number has no unit; write it as 300ms");
    assert_fails(kl_duration_parse("1d", &d, &err), KL_ESYNTAX, &err, "unknown unit");
    assert_fails(kl_duration_parse("", &d, &err), KL_ESYNTAX, &err, "expected a number");
    assert_fails(kl_duration_parse("3000000h", &d, &err), KL_ESYNTAX, &err, "too long");
    assert_fails(kl_duration_parse("9223372036854775808ns9223372036854775808ns", &d, &err), KL_ESYNTAX, &err,
        "too long");
}

static void every_day_of_four_centuries_reads_back(void **state)
{
    char text[KL_TIME_MAX];
    kl_err err = KL_ERR_INIT;
    int64_t sec, back;
    int32_t nsec;

    (void)state;
    for (sec = (int64_t)-370 * 31556952; sec < (int64_t)31 * 31556952; sec += 86399) {
        assert_ok(kl_time_parse(kl_time_format(sec, text), &back, &nsec, &err), &err);
        assert_true(back == sec && nsec == 0);
    }
}

static void offsets_and_fractions_are_understood(void **state)
{
    char text[KL_TIME_MAX];
    kl_err err = KL_ERR_INIT;
    int64_t sec;
    int32_t nsec;

    (void)state;
    assert_ok(kl_time_parse("2024-01-02T03:04:05.5-07:30", &sec, &nsec, &err), &err);
    assert_string_equal(kl_time_format_micro(sec, nsec, text), "2024-01-02T10:34:05.500000Z");
    assert_ok(kl_time_parse_micro("2024-01-02T03:04:05.123456Z", &sec, &nsec, &err), &err);
    assert_int_equal(nsec, 123456000);
    assert_ok(kl_time_parse("0001-01-01T00:00:00Z", &sec, &nsec, &err), &err);
    assert_true(sec == KL_TIME_ZERO_SEC);
}

static void wall_times_before_the_epoch_round_down(void **state)
{
    char text[KL_TIME_MAX];

    (void)state;
    assert_string_equal(kl_time_format_wall(0, text), "1970-01-01T00:00:00Z");
    assert_string_equal(kl_time_format_wall(-1, text), "1969-12-31T23:59:59Z");
    assert_string_equal(kl_time_format_wall(KL_SECONDS(-1), text), "1969-12-31T23:59:59Z");
    assert_string_equal(
        kl_time_format_wall(KL_SECONDS(1704164645) + 999999999, text), "2024-01-02T03:04:05Z");
}

static void an_invalid_time_is_rejected(void **state)
{
    kl_err err = KL_ERR_INIT;
    int64_t sec;
    int32_t nsec;

    (void)state;
    assert_fails(kl_time_parse("yesterday", &sec, &nsec, &err), KL_ESYNTAX, &err,
        "\"yesterday\" is not RFC 3339; write it as 2024-01-02T03:04:05Z");
    assert_fails(
        kl_time_parse("2023-02-29T00:00:00Z", &sec, &nsec, &err), KL_ESYNTAX, &err, "does not exist");
    assert_fails(
        kl_time_parse_micro("2024-01-02T03:04:05Z", &sec, &nsec, &err), KL_ESYNTAX, &err, ".000000Z");
}

KL_TESTS(cmocka_unit_test(durations_print_and_read_back),
    cmocka_unit_test(a_duration_without_a_unit_is_refused),
    cmocka_unit_test(every_day_of_four_centuries_reads_back),
    cmocka_unit_test(offsets_and_fractions_are_understood),
    cmocka_unit_test(wall_times_before_the_epoch_round_down), cmocka_unit_test(an_invalid_time_is_rejected))

/* not in tsan: it starts no thread */
