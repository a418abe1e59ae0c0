/* watchdog_test.c - turns that ended in time, and turns that did not. */
#include "support/test.h"

#include <stdatomic.h>
#include "base/clock.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/watchdog.h"

static const kl_terms ANY = {.deadline = KL_NEVER};

/* Computes until the turn is over. */
static kl_over spin(const kl_guard *g)
{
    kl_over over;
    while (!(over = kl_guard_over(g)))
        ;
    return over;
}

static void a_turn_that_computes_is_over_when_its_budget_is_spent(void **state)
{
    (void)state;
    kl_guard g;
    kl_guard_init(&g, NULL, NULL);
    kl_time before = kl_clock_thread_cpu();
    kl_guard_enter(&g, &(kl_terms){.cpu = KL_MILLISECONDS(20), .deadline = KL_NEVER});
    assert_int_equal(spin(&g), KL_OVER_CPU);
    assert_true(kl_clock_thread_cpu() - before >= KL_MILLISECONDS(20));
    assert_int_equal(kl_guard_leave(&g), KL_OVER_CPU);
    kl_guard_enter(&g, &ANY); /* the next one begins anew */
    assert_int_equal(kl_guard_over(&g), KL_OVER_NOT);
    assert_int_equal(kl_guard_leave(&g), KL_OVER_NOT);
    kl_guard_fini(&g);
}

static void a_deadline_and_a_flag_end_a_turn_as_well(void **state)
{
    (void)state;
    kl_guard g;
    atomic_bool stop;
    atomic_init(&stop, false);
    kl_guard_init(&g, NULL, NULL);
    kl_guard_enter(&g, &(kl_terms){.deadline = kl_clock_now(kl_clock_real())});
    assert_int_equal(spin(&g), KL_OVER_DEADLINE);
    (void)kl_guard_leave(&g);
    kl_guard_enter(&g, &(kl_terms){.deadline = KL_NEVER, .stop = &stop});
    assert_int_equal(kl_guard_over(&g), KL_OVER_NOT);
    atomic_store(&stop, true);
    assert_int_equal(spin(&g), KL_OVER_STOP);
    (void)kl_guard_leave(&g);
    kl_guard_fini(&g);
}

typedef struct sleeper {
    kl_guard g;
    kl_mutex mu;
    kl_cond cond;
    bool in, go;
    kl_over over;
} sleeper;

static void sleep_in_a_turn(void *arg)
{
    sleeper *s = arg;
    kl_guard_enter(&s->g, &(kl_terms){.cpu = KL_MILLISECONDS(20), .deadline = KL_NEVER});
    kl_lock(&s->mu);
    s->in = true;
    kl_cond_broadcast(&s->cond);
    while (!s->go)
        kl_cond_wait(&s->cond, &s->mu);
    kl_unlock(&s->mu);
    s->over = kl_guard_leave(&s->g);
}

static void say(sleeper *s, bool *what)
{
    kl_lock(&s->mu);
    *what = true;
    kl_cond_broadcast(&s->cond);
    kl_unlock(&s->mu);
}

static void waiting_spends_nothing(void **state)
{
    (void)state;
    sleeper s = {.over = KL_OVER_STOP};
    kl_guard g;
    kl_mutex_init(&s.mu);
    kl_cond_init(&s.cond);
    kl_guard_init(&s.g, NULL, NULL);
    kl_guard_init(&g, NULL, NULL);
    kl_thread *t = kl_thread_start("sleeper", sleep_in_a_turn, &s);
    kl_lock(&s.mu);
    while (!s.in)
        kl_cond_wait(&s.cond, &s.mu);
    kl_unlock(&s.mu);
    for (int i = 0; i < 3; i++) { /* three budgets of somebody else */
        kl_guard_enter(&g, &(kl_terms){.cpu = KL_MILLISECONDS(20), .deadline = KL_NEVER});
        (void)spin(&g);
        (void)kl_guard_leave(&g);
    }
    say(&s, &s.go);
    kl_thread_join(t);
    assert_int_equal(s.over, KL_OVER_NOT);
    kl_guard_fini(&g);
    kl_guard_fini(&s.g);
    kl_cond_fini(&s.cond);
    kl_mutex_fini(&s.mu);
}

static void tell(void *arg, kl_stuck *out)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    out->name = kl_strdup("worker/x");
    out->story = kl_strdup("it hangs");
}

static void count(void *arg, const kl_stuck *s)
{
    assert_string_equal(s->name, "worker/x");
    assert_string_equal(s->story, "it hangs");
    ++*(int *)arg;
}

static int stuck_now(void)
{
    int n = 0;
    kl_watchdog_stuck(count, &n);
    return n;
}

static void a_turn_that_does_not_end_is_reported_once_until_it_ends(void **state)
{
    (void)state;
    kl_guard g;
    atomic_int told;
    atomic_init(&told, 0);
    kl_watchdog_set_patience(0);
    kl_guard_init(&g, tell, &told);
    for (int i = 1; i <= 2; i++) {
        kl_guard_enter(&g, &(kl_terms){.deadline = 0});
        while (!stuck_now())
            ;
        assert_int_equal(atomic_load(&told), i);
        (void)kl_guard_leave(&g);
        assert_int_equal(stuck_now(), 0);
    }
    kl_guard_enter(&g, &ANY);
    assert_int_equal(stuck_now(), 0);
    (void)kl_guard_leave(&g);
    kl_guard_fini(&g);
    kl_watchdog_set_patience(KL_WATCHDOG_STUCK);
}

static _Thread_local volatile int signals;
static void interrupted(void) { signals++; }

/* The last one: signals stay with the process. */
static void the_thread_of_a_turn_that_is_over_is_sent_a_signal_until_it_leaves(void **state)
{
    (void)state;
    kl_guard g;
    kl_watchdog_signals(interrupted);
    kl_guard_init(&g, NULL, NULL);
    kl_guard_enter(&g, &(kl_terms){.deadline = 0});
    while (signals < 3)
        (void)kl_thread_self(), kl_clock_now(kl_clock_real());
    (void)kl_guard_leave(&g);
    kl_guard_fini(&g);
}

static void guards_may_come_and_go_while_others_work(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) { /* the dog comes and goes with them */
        kl_guard a, b;
        kl_guard_init(&a, NULL, NULL);
        kl_guard_enter(&a, &(kl_terms){.deadline = 0});
        kl_guard_init(&b, NULL, NULL);
        kl_guard_enter(&b, &ANY);
        assert_int_equal(spin(&a), KL_OVER_DEADLINE);
        (void)kl_guard_leave(&a);
        kl_guard_fini(&a);
        (void)kl_guard_leave(&b);
        kl_guard_fini(&b);
    }
}

KL_TESTS(cmocka_unit_test(a_turn_that_computes_is_over_when_its_budget_is_spent),
    cmocka_unit_test(a_deadline_and_a_flag_end_a_turn_as_well), cmocka_unit_test(waiting_spends_nothing),
    cmocka_unit_test(a_turn_that_does_not_end_is_reported_once_until_it_ends),
    cmocka_unit_test(guards_may_come_and_go_while_others_work),
    cmocka_unit_test(the_thread_of_a_turn_that_is_over_is_sent_a_signal_until_it_leaves))
