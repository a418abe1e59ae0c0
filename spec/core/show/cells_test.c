/* cells_test.c - ages are worded as apimachinery's duration.HumanDuration words them, on both sides of each
 * bound. */
#include "support/test.h"

#include "base/clock.h"
#include "show/cells.h"

#define START 1767225600 /* 2026-01-01T00:00:00Z */
#define MINUTE 60
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static void ages_have_two_units_while_they_are_small(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        const char *says;
    } cases[] = {
        {-2, "<invalid>"},
        {-1, "0s"},
        {0, "0s"},
        {119, "119s"},
        {2 * MINUTE, "2m"},
        {2 * MINUTE + 1, "2m1s"},
        {10 * MINUTE - 1, "9m59s"},
        {10 * MINUTE, "10m"},
        {10 * MINUTE + 1, "10m"},
        {3 * HOUR - 1, "179m"},
        {3 * HOUR, "3h"},
        {3 * HOUR + MINUTE, "3h1m"},
        {8 * HOUR - 1, "7h59m"},
        {8 * HOUR + MINUTE, "8h"},
        {2 * DAY - 1, "47h"},
        {2 * DAY, "2d"},
        {2 * DAY + HOUR, "2d1h"},
        {8 * DAY - 1, "7d23h"},
        {8 * DAY + HOUR, "8d"},
        {2 * 365 * DAY - 1, "729d"},
        {2 * 365 * DAY, "2y"},
        {2 * 365 * DAY + DAY, "2y1d"},
        {8 * 365 * DAY - 1, "7y364d"},
        {8 * 365 * DAY + DAY, "8y"},
    };
    char age[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(
            kl_cell_since("2026-01-01T00:00:00Z", KL_SECONDS(START + cases[i].seconds), age, sizeof age));
        assert_string_equal(age, cases[i].says);
    }
    assert_false(kl_cell_since(NULL, KL_SECONDS(START), age, sizeof age));
    assert_false(kl_cell_since("yesterday", KL_SECONDS(START), age, sizeof age));
}

KL_TESTS(cmocka_unit_test(ages_have_two_units_while_they_are_small))
