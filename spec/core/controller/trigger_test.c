/* trigger_test.c - intervals and cron times on a loop without a thread; the test owns both clocks. */
#include "support/test.h"

#include "controller/trigger.h"

#define MIDNIGHT 1795305600 /* 2026-11-22 00:00:00 UTC, a Sunday */

typedef struct world {
    kl_clock *clock;
    kl_loop *l;
    kl_triggers *t;
    int fired;
} world;

static void fired(void *arg) { ((world *)arg)->fired++; }

static void setup(world *w)
{
    *w = (world){.clock = kl_clock_fake_new(KL_SECONDS(10), KL_SECONDS(MIDNIGHT))};
    w->l = kl_loop_new("spec", w->clock);
    w->t = kl_triggers_new(w->l, w->clock, fired, w);
}

static void teardown(world *w)
{
    kl_triggers_free(w->t);
    kl_loop_free(w->l);
    kl_clock_fake_free(w->clock);
}

/* How often it was due within `d`, looked at every second. */
static int within(world *w, kl_time d)
{
    w->fired = 0;
    for (kl_time t = 0; t < d; t += KL_SECONDS(1)) {
        kl_clock_advance(w->clock, KL_SECONDS(1));
        kl_loop_step(w->l);
    }
    return w->fired;
}

static void an_interval_comes_again_and_again(void **state)
{
    (void)state;
    world w;
    setup(&w);
    kl_triggers_set(w.t, KL_SECONDS(10), NULL);
    assert_int_equal(within(&w, KL_SECONDS(9)), 0);
    assert_int_equal(within(&w, KL_SECONDS(1)), 1);
    assert_int_equal(within(&w, KL_SECONDS(100)), 10);
    kl_triggers_set(w.t, 0, NULL);
    assert_int_equal(within(&w, KL_SECONDS(100)), 0);
    teardown(&w);
}

static void setting_the_same_interval_again_does_not_put_it_off(void **state)
{
    (void)state;
    world w;
    setup(&w);
    kl_triggers_set(w.t, KL_SECONDS(10), NULL);
    assert_int_equal(within(&w, KL_SECONDS(9)), 0);
    kl_triggers_set(w.t, KL_SECONDS(10), NULL);
    assert_int_equal(within(&w, KL_SECONDS(1)), 1);
    kl_triggers_set(w.t, KL_SECONDS(20), NULL);
    assert_int_equal(within(&w, KL_SECONDS(19)), 0);
    assert_int_equal(within(&w, KL_SECONDS(1)), 1);
    teardown(&w);
}

static void missed_triggers_come_once(void **state)
{
    (void)state;
    world w;
    setup(&w);
    kl_triggers_set(w.t, KL_SECONDS(10), (const char *const[]){"* * * * *", NULL});
    kl_clock_advance(w.clock, KL_SECONDS(605));
    kl_loop_step(w.l);
    assert_int_equal(w.fired, 1);
    assert_int_equal(within(&w, KL_SECONDS(4)), 0);
    assert_int_equal(within(&w, KL_SECONDS(1)), 1); /* the interval keeps its step */
    teardown(&w);
}

static void cron_times_come_by_the_wall_clock(void **state)
{
    (void)state;
    world w;
    setup(&w);
    kl_triggers_set(w.t, 0, (const char *const[]){"30 1 * * *", "*/20 * * * mon", NULL});
    assert_int_equal(within(&w, KL_SECONDS(3600 + 1799)), 0);
    assert_int_equal(within(&w, KL_SECONDS(1)), 1);
    assert_int_equal(within(&w, KL_SECONDS(22 * 3600 + 1799)), 0);
    assert_int_equal(within(&w, KL_SECONDS(3600)), 3); /* Monday, from 0:00 on */
    teardown(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interval_comes_again_and_again),
        cmocka_unit_test(setting_the_same_interval_again_does_not_put_it_off),
        cmocka_unit_test(missed_triggers_come_once),
        cmocka_unit_test(cron_times_come_by_the_wall_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* not in tsan: it starts no thread */
