/* limiter_test.c - ladders and penalties. client-go's answers are in the oracle's table. */
#include "support/test.h"

#include "queue/limiter.h"

static void a_ladder_grows_until_its_cap_and_stays_there(void **state)
{
    kl_ladder l = {.delay = KL_MILLISECONDS(800), .cap = KL_SECONDS(3), .factor = 2, .steps = 100};

    (void)state;
    assert_int_equal(kl_ladder_step(&l, NULL), KL_MILLISECONDS(800));
    assert_int_equal(kl_ladder_step(&l, NULL), KL_MILLISECONDS(1600));
    assert_int_equal(kl_ladder_step(&l, NULL), KL_SECONDS(3));
    assert_int_equal(kl_ladder_step(&l, NULL), KL_SECONDS(3));
    assert_int_equal(l.steps, 0);
}

static void a_ladder_without_a_cap_does_not_overflow(void **state)
{
    kl_ladder l = {.delay = KL_SECONDS(1), .factor = 1e9, .steps = 10};
    int i;

    (void)state;
    for (i = 0; i < 10; i++)
        assert_true(kl_ladder_step(&l, NULL) > 0);
    assert_true(kl_ladder_step(&l, NULL) == INT64_MAX);
}

static void a_penalty_doubles_and_is_forgotten_after_quiet(void **state)
{
    kl_penalties *p = kl_penalties_new(KL_SECONDS(1), KL_SECONDS(3));

    (void)state;
    assert_false(kl_penalties_waiting(p, "a", 0));
    kl_penalties_next(p, "a", 0);
    kl_penalties_next(p, "b", 0);
    assert_true(kl_penalties_waiting(p, "a", KL_MILLISECONDS(999)));
    assert_false(kl_penalties_waiting(p, "a", KL_SECONDS(1)));
    kl_penalties_next(p, "a", KL_SECONDS(1));
    assert_int_equal(kl_penalties_get(p, "a"), KL_SECONDS(2));
    kl_penalties_next(p, "a", KL_SECONDS(1));
    assert_int_equal(kl_penalties_get(p, "a"), KL_SECONDS(3));
    kl_penalties_sweep(p, KL_MILLISECONDS(6500));
    assert_int_equal(kl_penalties_get(p, "b"), 0);
    assert_int_equal(kl_penalties_get(p, "a"), KL_SECONDS(3));
    kl_penalties_next(p, "a", KL_SECONDS(8));
    assert_int_equal(kl_penalties_get(p, "a"), KL_SECONDS(1));
    kl_penalties_forget(p, "a");
    assert_int_equal(kl_penalties_get(p, "a"), 0);
    kl_penalties_free(p);
}

KL_TESTS(cmocka_unit_test(a_ladder_grows_until_its_cap_and_stays_there),
    cmocka_unit_test(a_ladder_without_a_cap_does_not_overflow),
    cmocka_unit_test(a_penalty_doubles_and_is_forgotten_after_quiet))

/* not in tsan: it starts no thread */
