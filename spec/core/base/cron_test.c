/* cron_test.c - cron texts as in crontab(5), in UTC; the expected times are from a calendar. */
#include "support/test.h"

#include <string.h>
#include <time.h>

#include "base/cron.h"

static int64_t at(const char *text)
{
    struct tm t = {0};
    assert_non_null(strptime(text, "%Y-%m-%d %H:%M:%S", &t));
    return timegm(&t);
}

static void next_is(const char *cron, const char *after, const char *wanted)
{
    kl_cron c;
    kl_err err = KL_ERR_INIT;
    if (kl_cron_parse(cron, &c, &err))
        fail_msg("%s", kl_err_message(&err));
    time_t next = (time_t)kl_cron_next(&c, at(after));
    char text[32];
    struct tm t;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", gmtime_r(&next, &t));
    if (strcmp(text, wanted))
        fail_msg("\"%s\" after %s is %s, not %s", cron, after, text, wanted);
}

static void the_next_time_is_the_first_one_after(void **state)
{
    (void)state;
    next_is("* * * * *", "2026-11-22 10:15:00", "2026-11-22 10:16:00");
    next_is("* * * * *", "2026-11-22 10:15:59", "2026-11-22 10:16:00");
    next_is("0 3 * * *", "2026-11-22 02:59:59", "2026-11-22 03:00:00");
    next_is("0 3 * * *", "2026-11-22 03:00:00", "2026-11-23 03:00:00");
    next_is("*/15 * * * *", "2026-11-22 10:46:00", "2026-11-22 11:00:00");
    next_is("5/20 * * * *", "2026-11-22 10:26:00", "2026-11-22 10:45:00");
    next_is("10-12,50 9-17/4 * * *", "2026-11-22 09:12:00", "2026-11-22 09:50:00");
    next_is("10-12,50 9-17/4 * * *", "2026-11-22 09:50:00", "2026-11-22 13:10:00");
    next_is("0 0 1 1 *", "2026-11-22 00:00:00", "2027-01-01 00:00:00");
    next_is("0 0 29 2 *", "2026-11-22 00:00:00", "2028-02-29 00:00:00");
    next_is("0 0 29 2 *", "2096-03-01 00:00:00", "2104-02-29 00:00:00");
    next_is("59 23 31 * *", "2026-11-22 00:00:00", "2026-12-31 23:59:00");
}

static void days_of_the_week_have_names_and_two_sundays(void **state)
{
    (void)state;
    next_is("0 12 * * mon-fri", "2026-11-20 12:00:00", "2026-11-23 12:00:00"); /* a Friday */
    next_is("0 12 * * 7", "2026-11-22 12:00:00", "2026-11-29 12:00:00");
    next_is("0 12 * * Sun", "2026-11-22 11:00:00", "2026-11-22 12:00:00");
    next_is("0 0 * feb,DEC ?", "2026-11-22 00:00:00", "2026-12-01 00:00:00");
    next_is("0 0 * * 5-7", "2026-11-22 00:00:00", "2026-11-27 00:00:00");
}

static void either_day_is_enough_where_both_are_given(void **state)
{
    (void)state;
    next_is("0 0 13 * fri", "2026-11-22 00:00:00", "2026-11-27 00:00:00");
    next_is("0 0 23 * fri", "2026-11-22 00:00:00", "2026-11-23 00:00:00");
    /* a star with a step is not a star, as CronJob sees it */
    next_is("0 0 */10 * mon", "2026-11-02 00:00:00", "2026-11-09 00:00:00");
    next_is("0 0 * * mon", "2026-11-02 00:00:00", "2026-11-09 00:00:00");
}

static void the_one_before_is_found(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "* * * * *", "*/7 3-5 * * *", "0 0 29 2 *", "30 12 * jan fri", "@yearly"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        kl_cron c;
        int64_t first = kl_cron_parse(texts[i], &c, NULL) ? 0 : kl_cron_next(&c, 1700000000),
                second = kl_cron_next(&c, first);
        assert_true(first > 1700000000 && second > first);
        assert_int_equal(kl_cron_previous(&c, second), first);
        assert_int_equal(kl_cron_previous(&c, first + 1), first);
        assert_int_equal(kl_cron_next(&c, kl_cron_previous(&c, first)), first);
    }
}

static void words_stand_for_common_schedules(void **state)
{
    (void)state;
    next_is("@hourly", "2026-11-22 10:15:00", "2026-11-22 11:00:00");
    next_is("@Daily", "2026-11-22 10:15:00", "2026-11-23 00:00:00");
    next_is(" @weekly ", "2026-11-22 10:15:00", "2026-11-29 00:00:00");
    next_is("@monthly", "2026-11-22 10:15:00", "2026-12-01 00:00:00");
    next_is("@annually", "2026-11-22 10:15:00", "2027-01-01 00:00:00");
}

static void mistakes_name_the_field(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "there are 0 fields"},
        {"0 3 * *", "there are 4 fields"},
        {"0 3 * * * *", "more than five fields"},
        {"60 * * * *", "'60' is not a valid minute"},
        {"* 24 * * *", "'24' is not a valid hour"},
        {"* * 0 * *", "'0' is not a valid day of the month"},
        {"* * * 13 *", "'13' is not a valid month"},
        {"* * * * moon", "'moon' is not a valid day of the week"},
        {"5-1 * * * *", "'5-1' is not a valid minute"},
        {"*/0 * * * *", "'*/0' is not a valid minute"},
        {"1, * * * *", "'1,' is not a valid minute"},
        {"99999999999999999999 * * * *", "is not a valid minute"},
        {"0 0 30 2 *", "there is no such day"},
        {"@often", "known words are @hourly"},
        {"@daily 3", "known words are @hourly"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_cron c;
        kl_err err = KL_ERR_INIT;
        assert_int_equal(kl_cron_parse(cases[i][0], &c, &err), KL_ESYNTAX);
        if (!strstr(kl_err_message(&err), cases[i][1]))
            fail_msg("\"%s\": %s", cases[i][0], kl_err_message(&err));
        kl_err_fini(&err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_time_is_the_first_one_after),
        cmocka_unit_test(days_of_the_week_have_names_and_two_sundays),
        cmocka_unit_test(either_day_is_enough_where_both_are_given),
        cmocka_unit_test(the_one_before_is_found),
        cmocka_unit_test(words_stand_for_common_schedules),
        cmocka_unit_test(mistakes_name_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* not in tsan: it starts no thread */
