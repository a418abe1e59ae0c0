/* bucket_test.c - a token bucket. client-go's answers are in the oracle's table. */
#include "support/test.h"
#include "base/bucket.h"

static void a_bucket_gives_its_burst_and_then_its_rate(void **state)
{
    kl_bucket b;

    (void)state;
    kl_bucket_init(&b, 2, 2);
    assert_true(kl_bucket_try(&b, 0));
    assert_true(kl_bucket_try(&b, 0));
    assert_false(kl_bucket_try(&b, 0));
    assert_false(kl_bucket_try(&b, KL_MILLISECONDS(499)));
    assert_true(kl_bucket_try(&b, KL_MILLISECONDS(500)));
    assert_int_equal(kl_bucket_reserve(&b, KL_MILLISECONDS(500)), KL_MILLISECONDS(500));
    assert_int_equal(kl_bucket_reserve(&b, KL_MILLISECONDS(500)), KL_SECONDS(1));
}

static void a_bucket_without_refill_reports_never(void **state)
{
    kl_bucket b;

    (void)state;
    kl_bucket_init(&b, 0, 1);
    assert_int_equal(kl_bucket_reserve(&b, 0), 0);
    assert_true(kl_bucket_reserve(&b, KL_SECONDS(100)) == KL_NEVER);
    kl_bucket_init(&b, 10, 0);
    assert_true(kl_bucket_reserve(&b, 0) == KL_NEVER);
    assert_false(kl_bucket_try(&b, KL_SECONDS(1)));
}

static void a_withdrawn_request_returns_its_token(void **state)
{
    kl_bucket b;

    (void)state;
    kl_bucket_init(&b, 5, 2);
    assert_int_equal(kl_bucket_reserve(&b, 0), 0);
    assert_int_equal(kl_bucket_reserve(&b, 0), 0);
    assert_int_equal(kl_bucket_reserve(&b, 0), KL_MILLISECONDS(200));
    assert_int_equal(kl_bucket_reserve(&b, 0), KL_MILLISECONDS(400)); /* who comes later goes later */
    kl_bucket_return(&b);
    assert_int_equal(kl_bucket_reserve(&b, 0), KL_MILLISECONDS(400));
    /* a long rest fills no more than the burst */
    assert_int_equal(kl_bucket_reserve(&b, KL_SECONDS(3600)), 0);
    assert_int_equal(kl_bucket_reserve(&b, KL_SECONDS(3600)), 0);
    assert_true(kl_bucket_reserve(&b, KL_SECONDS(3600)) > 0);
    /* a clock that goes back gives nothing */
    assert_true(kl_bucket_reserve(&b, KL_SECONDS(3000)) > 0);
}

KL_TESTS(cmocka_unit_test(a_bucket_gives_its_burst_and_then_its_rate),
    cmocka_unit_test(a_bucket_without_refill_reports_never),
    cmocka_unit_test(a_withdrawn_request_returns_its_token))

/* not in tsan: it starts no thread */
