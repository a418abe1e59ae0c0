/* batch_test.c - wake-ups wait for the end of a batch, and none is lost. */
#include "support/test.h"

#include "base/sync.h"
#include "controller/batch.h"

static void end_elsewhere(void *arg)
{
    void **p = arg;
    *(bool *)p[1] = kl_batch_end(p[0]);
}

static bool ended_by_another(kl_batch *b)
{
    bool wakes = false;
    kl_thread *t = kl_thread_start("other", end_elsewhere, (void *[]){b, &wakes});
    kl_thread_join(t);
    return wakes;
}

static void ask_elsewhere(void *arg)
{
    void **p = arg;
    *(bool *)p[1] = kl_batch_wakes(p[0]);
}

static bool wakes_on_another(kl_batch *b)
{
    bool wakes = false;
    kl_thread *t = kl_thread_start("other", ask_elsewhere, (void *[]){b, &wakes});
    kl_thread_join(t);
    return wakes;
}

static void a_thread_that_holds_wakes_once_at_the_end(void **state)
{
    (void)state;
    kl_batch b = {0};
    assert_true(kl_batch_wakes(&b)); /* nobody holds */
    kl_batch_begin(&b);
    assert_false(kl_batch_wakes(&b));
    kl_batch_begin(&b);
    assert_false(kl_batch_wakes(&b));
    assert_true(kl_batch_end(&b));
    assert_false(kl_batch_end(&b));
    assert_true(kl_batch_wakes(&b));
}

static void another_thread_wakes_at_once(void **state)
{
    (void)state;
    kl_batch b = {0};
    kl_batch_begin(&b);
    assert_true(wakes_on_another(&b));
    assert_false(kl_batch_end(&b));
}

static void a_batch_that_ends_on_another_thread_wakes_too(void **state)
{
    (void)state;
    kl_batch b = {0};
    kl_batch_begin(&b);
    assert_false(kl_batch_wakes(&b));
    assert_true(ended_by_another(&b));
    assert_true(kl_batch_wakes(&b)); /* and nobody holds any more */
}

KL_TESTS(cmocka_unit_test(a_thread_that_holds_wakes_once_at_the_end),
    cmocka_unit_test(another_thread_wakes_at_once),
    cmocka_unit_test(a_batch_that_ends_on_another_thread_wakes_too))
