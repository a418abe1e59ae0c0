/* breaker_test.c - when new logic is so much worse than the old logic that it is rolled back. */
#include "support/test.h"

#include "base/mem.h"
#include "controller/breaker.h"

static bool bad(kl_breaker_side before, kl_breaker_side fresh)
{
    char *why = kl_breaker_judge(&before, &fresh);
    kl_free(why);
    return why;
}

static const kl_breaker_side GOOD = {.runs = 1000, .errors = 2, .writes = 100, .lasted = KL_SECONDS(600)};

#define FRESH(...) ((kl_breaker_side){.lasted = KL_SECONDS(10), __VA_ARGS__})

static void it_fails_much_more_often(void **state)
{
    (void)state;
    assert_true(bad(GOOD, FRESH(.runs = 10, .errors = 8)));
    assert_false(bad(GOOD, FRESH(.runs = 10, .errors = 4)));     /* an accident */
    assert_true(bad(GOOD, FRESH(.runs = 5, .errors = 5)));       /* there is one object */
    assert_false(bad(GOOD, FRESH(.runs = 1000, .errors = 100))); /* most of the work is done */
    assert_true(bad(GOOD, FRESH(.runs = 1000, .errors = 200)));
    assert_false(bad(GOOD, FRESH(.runs = 0, .errors = 0)));
}

static void a_rollback_needs_a_better_old_generation(void **state)
{
    (void)state;
    kl_breaker_side shaky = {.runs = 100, .errors = 20, .lasted = KL_SECONDS(600)},
                    hopeless = {.runs = 7, .errors = 7, .lasted = KL_SECONDS(600)}, unknown = {0};
    assert_false(bad(shaky, FRESH(.runs = 100, .errors = 58)));
    assert_true(bad(shaky, FRESH(.runs = 100, .errors = 61)));
    assert_false(bad(hopeless, FRESH(.runs = 100, .errors = 100)));
    assert_false(bad(unknown, FRESH(.runs = 100, .errors = 100)));
    assert_false(bad(hopeless, FRESH(.runs = 100, .writes = 10000)));
}

static void the_first_failures_wait_for_the_other_keys(void **state)
{
    (void)state;
    kl_breaker_side fresh = {.runs = 49, .errors = 49, .lasted = KL_MILLISECONDS(100)};
    assert_false(bad(GOOD, fresh));
    fresh.runs = 50;
    assert_true(bad(GOOD, fresh));
    fresh = (kl_breaker_side){.runs = 5, .errors = 5, .lasted = KL_BREAKER_SETTLE};
    assert_true(bad(GOOD, fresh));
}

static void it_writes_much_more_often(void **state)
{
    (void)state;
    assert_true(bad(GOOD, FRESH(.runs = 100, .writes = 20)));
    assert_false(bad(GOOD, FRESH(.runs = 100, .writes = 19)));
    /* 100 a second: a heartbeat for each of many keys */
    kl_breaker_side busy = {.runs = 100000, .writes = 60000, .lasted = KL_SECONDS(600)};
    assert_false(bad(busy, FRESH(.runs = 2000, .writes = 2000)));
    assert_true(bad(busy, FRESH(.runs = 4000, .writes = 3000)));
}

static void the_verdict_names_the_worse_figure(void **state)
{
    (void)state;
    kl_breaker_side fresh = FRESH(.runs = 10, .errors = 8);
    char *why = kl_breaker_judge(&GOOD, &fresh);
    assert_string_equal(why, "8 of 10 runs failed, 2 of 1000 did before");
    kl_free(why);
    fresh = FRESH(.runs = 100, .writes = 50);
    why = kl_breaker_judge(&GOOD, &fresh);
    assert_string_equal(why,
        "keys write again and again: 5 times per second after the first 10 runs of a key; before, all writes "
        "were 0.167 per second");
    kl_free(why);
}

/* --- trials ------------------------------------------------------------------------------- */

static kl_trial *trial(size_t failing)
{
    kl_trial *t = kl_trial_new();
    kl_trial_begin(t, 2, &GOOD, failing, KL_SECONDS(100));
    return t;
}

/* n runs of keys of their own, at that second of the trial; whether somebody should look then. */
static bool runs(kl_trial *t, int n, const char *prefix, kl_trial_run r, kl_time second)
{
    bool look = false;
    r.generation = r.generation ? r.generation : 2;
    r.attempt = r.attempt ? r.attempt : 1;
    for (int i = 0; i < n; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s-%d", prefix, i);
        r.key = key;
        look |= kl_trial_note(t, &r, KL_SECONDS(100) + second * KL_SECONDS(1));
    }
    return look;
}

static void a_verdict_ends_the_trial(void **state)
{
    (void)state;
    kl_trial *t = trial(0);
    int generation = 0;
    assert_false(runs(t, 40, "good", (kl_trial_run){0}, 1));
    assert_true(runs(t, 40, "bad", (kl_trial_run){.failed = true}, 1));
    char *why = kl_trial_verdict(t, KL_SECONDS(101), &generation);
    assert_non_null(why);
    assert_int_equal(generation, 2);
    kl_free(why);
    assert_null(kl_trial_verdict(t, KL_SECONDS(101), &generation));
    assert_false(runs(t, 100, "bad", (kl_trial_run){.failed = true}, 2));
    kl_trial_free(t);
}

static void failures_that_do_not_count(void **state)
{
    (void)state;
    static const kl_trial_run harmless[] = {
        {.failed = true, .excused = true}, /* the server's fault */
        {.failed = true, .attempt = KL_BREAKER_ATTEMPTS + 1},
        {.failed = true, .generation = 1}, /* of the old one, which was under way still */
        {.wrote = true},
    };
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        kl_trial *t = trial(0);
        assert_false(runs(t, 1000, "key", harmless[i], 10));
        kl_trial_free(t);
    }
}

static void keys_that_failed_before_may_fail_again(void **state)
{
    (void)state;
    kl_trial *t = trial(10);
    for (int attempt = 1; attempt <= KL_BREAKER_ATTEMPTS; attempt++)
        assert_false(runs(t, 10, "bad", (kl_trial_run){.failed = true, .attempt = attempt}, 10));
    assert_true(runs(t, 10, "worse", (kl_trial_run){.failed = true}, 10));
    kl_trial_free(t);
}

static void only_repeated_writes_of_a_key_count(void **state)
{
    (void)state;
    kl_trial *t = trial(0);
    for (int i = 0; i < KL_BREAKER_FREE_WRITES; i++)
        assert_false(runs(t, 500, "key", (kl_trial_run){.wrote = true}, 1));
    for (int i = 1; i < KL_BREAKER_WRITES; i++)
        assert_false(runs(t, 1, "key", (kl_trial_run){.wrote = true}, 1));
    assert_true(runs(t, 1, "key", (kl_trial_run){.wrote = true}, 1));
    kl_trial_free(t);
}

static void the_next_generation_begins_with_nothing(void **state)
{
    (void)state;
    kl_trial *t = trial(0);
    assert_false(runs(t, 49, "bad", (kl_trial_run){.failed = true}, 1));
    kl_trial_begin(t, 3, &GOOD, 0, KL_SECONDS(102));
    assert_false(runs(t, 4, "bad", (kl_trial_run){.failed = true, .generation = 3}, 20));
    kl_trial_end(t);
    assert_false(runs(t, 100, "bad", (kl_trial_run){.failed = true, .generation = 3}, 20));
    kl_trial_free(t);
}

KL_TESTS(cmocka_unit_test(it_fails_much_more_often),
    cmocka_unit_test(a_rollback_needs_a_better_old_generation),
    cmocka_unit_test(the_first_failures_wait_for_the_other_keys), cmocka_unit_test(it_writes_much_more_often),
    cmocka_unit_test(the_verdict_names_the_worse_figure), cmocka_unit_test(a_verdict_ends_the_trial),
    cmocka_unit_test(failures_that_do_not_count), cmocka_unit_test(keys_that_failed_before_may_fail_again),
    cmocka_unit_test(only_repeated_writes_of_a_key_count),
    cmocka_unit_test(the_next_generation_begins_with_nothing))

/* not in tsan: it starts no thread */
