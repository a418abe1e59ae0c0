/* workqueue_test.c - one worker per key, delays, backoff, the end. What is next: order_test.c; millions of
 * steps: model_test.c. */
#include "support/test.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"
#include "queue/backoff.h"
#include "queue/workqueue.h"

static kl_workqueue *exact_queue(void)
{
    return kl_workqueue_new(&(kl_workqueue_options){.backoff = {KL_MILLISECONDS(5), KL_SECONDS(1000), 0}});
}

/* Hands out the next key, which must be `want` (NULL: none). */
static void assert_next(kl_workqueue *q, kl_time now, const char *want)
{
    kl_queue_item it = {0};
    bool got = kl_workqueue_try_get(q, now, &it);
    assert_int_equal(got, want != NULL);
    if (want)
        assert_string_equal(it.key, want);
}

static void a_key_added_often_is_handed_out_once(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    for (int i = 0; i < 1000; i++)
        kl_workqueue_add(q, "a", 0);
    kl_workqueue_add(q, "b", 0);
    assert_next(q, 0, "a");
    assert_next(q, 0, "b");
    assert_next(q, 0, NULL);
    kl_workqueue_free(q);
}

static void adds_while_running_mean_one_more_run_after_it(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_add(q, "a", 0);
    assert_next(q, 0, "a");
    for (int i = 0; i < 1000; i++)
        kl_workqueue_add(q, "a", 1);
    assert_string_equal(kl_workqueue_state(q, "a", NULL), "running, queued again");
    assert_next(q, 1, NULL); /* never two at once */
    kl_workqueue_done(q, "a", 2);
    assert_next(q, 2, "a");
    kl_workqueue_done(q, "a", 3);
    assert_next(q, 3, NULL);
    assert_string_equal(kl_workqueue_state(q, "a", NULL), "absent");
    kl_workqueue_free(q);
}

static void keys_come_out_in_the_order_they_went_in(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    const char *keys[] = {"c", "a", "b"};
    for (int i = 0; i < 3; i++)
        kl_workqueue_add(q, keys[i], 0);
    kl_workqueue_add(q, "c", 0);
    for (int i = 0; i < 3; i++)
        assert_next(q, 0, keys[i]);
    kl_workqueue_free(q);
}

static void a_delayed_key_comes_when_its_time_comes_and_not_before(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_add_after(q, "a", 100, 1000);
    assert_int_equal(kl_workqueue_next_due(q), 1100);
    assert_next(q, 1099, NULL);
    assert_next(q, 1100, "a");
    kl_workqueue_add_after(q, "b", 0, 1100);
    kl_workqueue_add_after(q, "c", -5, 1100);
    assert_int_equal(kl_workqueue_next_due(q), 0);
    assert_next(q, 1100, "b");
    assert_next(q, 1100, "c");
    assert_int_equal(kl_workqueue_next_due(q), KL_NEVER);
    kl_workqueue_free(q);
}

static void of_two_delays_the_earlier_wins(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_add_after(q, "a", 1000, 0);
    kl_workqueue_add_after(q, "a", 100, 0);
    kl_workqueue_add_after(q, "a", 2000, 0);
    kl_time due;
    assert_string_equal(kl_workqueue_state(q, "a", &due), "waiting");
    assert_int_equal(due, 100);
    assert_next(q, 100, "a");
    kl_workqueue_done(q, "a", 100);
    assert_next(q, 5000, NULL);
    kl_workqueue_free(q);
}

static void an_add_ends_a_delay(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_add_after(q, "a", 500, 0);
    kl_workqueue_add(q, "a", 1);
    assert_next(q, 1, "a");
    kl_workqueue_add_after(q, "a", 500, 2);
    kl_workqueue_add(q, "a", 3);
    assert_int_equal(kl_workqueue_next_due(q), KL_NEVER);
    kl_workqueue_done(q, "a", 4);
    assert_next(q, 4, "a"); /* at once, and only once */
    kl_workqueue_done(q, "a", 5);
    kl_workqueue_add(q, "a", 6);
    kl_workqueue_add_after(q, "a", 1, 6); /* nor is a ready key delayed */
    assert_next(q, 6, "a");
    kl_workqueue_done(q, "a", 7);
    assert_next(q, 5000, NULL);
    kl_workqueue_free(q);
}

static void in_client_gos_order_an_add_does_not_end_a_delay(void **state)
{
    (void)state;
    kl_workqueue *q = kl_workqueue_new(&(kl_workqueue_options){.order = KL_QUEUE_FIFO});
    kl_workqueue_add_after(q, "a", 500, 0);
    kl_workqueue_add(q, "a", 1);
    assert_next(q, 1, "a");
    kl_workqueue_done(q, "a", 2);
    assert_next(q, 499, NULL);
    assert_next(q, 500, "a");
    kl_workqueue_free(q);
}

static void a_delay_that_ends_while_the_key_runs_makes_it_run_again(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_add(q, "a", 0);
    assert_next(q, 0, "a");
    kl_workqueue_add_after(q, "a", 5, 0);
    assert_next(q, 10, NULL);
    kl_workqueue_done(q, "a", 12);
    assert_next(q, 12, "a");
    kl_workqueue_free(q);
}

static void failures_climb_the_ladder_until_forgotten(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_time d = KL_MILLISECONDS(5);
    for (int i = 0; i < 60; i++) {
        assert_int_equal(kl_workqueue_requeues(q, "a"), i);
        assert_int_equal(kl_workqueue_add_rate_limited(q, "a", 0), d);
        d = d * 2 > KL_SECONDS(1000) ? KL_SECONDS(1000) : d * 2;
    }
    kl_workqueue_forget(q, "a");
    assert_int_equal(kl_workqueue_requeues(q, "a"), 0);
    assert_int_equal(kl_workqueue_add_rate_limited(q, "a", 0), KL_MILLISECONDS(5));
    kl_workqueue_forget(q, "never heard of");
    kl_workqueue_free(q);
}

static void jitter_shortens_a_delay_by_at_most_its_share(void **state)
{
    (void)state;
    kl_backoff_policy p = kl_backoff_defaults((kl_backoff_policy){0});
    kl_random r = {3};
    kl_time least = KL_NEVER, most = 0;
    assert_int_equal(p.base, KL_MILLISECONDS(5));
    for (int i = 0; i < 1000; i++) {
        kl_time d = kl_backoff_delay(&p, 3, &r);
        assert_in_range(d, KL_MILLISECONDS(36), KL_MILLISECONDS(40));
        least = d < least ? d : least;
        most = d > most ? d : most;
    }
    assert_true(most - least > KL_MILLISECONDS(3));
    assert_in_range(kl_backoff_delay(&p, 2000000000, &r), KL_SECONDS(900), KL_SECONDS(1000));
    p = kl_backoff_defaults((kl_backoff_policy){.base = KL_SECONDS(1)});
    /* who sets a policy says its jitter, too */
    assert_int_equal(kl_backoff_delay(&p, 0, &r), KL_SECONDS(1));
    assert_int_equal(
        kl_backoff_delay(&(kl_backoff_policy){KL_SECONDS(9), KL_SECONDS(2), 0}, 4, &r), KL_SECONDS(2));
}

static void shutting_down_hands_out_queued_keys_and_takes_no_new_ones(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_add(q, "run", 0);
    assert_next(q, 0, "run");
    kl_workqueue_add(q, "run", 0);
    kl_workqueue_add(q, "queued", 0);
    kl_workqueue_add_after(q, "waiting", 10, 0);
    kl_workqueue_shut_down(q);
    kl_workqueue_shut_down(q);
    assert_true(kl_workqueue_shutting_down(q));
    kl_workqueue_add(q, "late", 1);
    kl_workqueue_add_after(q, "late", 1, 1);
    kl_workqueue_add_rate_limited(q, "late", 1);
    assert_next(q, 1000, "queued");
    assert_next(q, 1000, NULL);
    kl_workqueue_done(q, "queued", 1000);
    kl_workqueue_done(q, "run", 1000);
    assert_false(kl_workqueue_drained(q));
    assert_next(q, 1000, "run"); /* it was added before the end */
    kl_workqueue_done(q, "run", 1000);
    assert_true(kl_workqueue_drained(q));
    kl_workqueue_free(q);
}

static void count(void *arg) { ++*(int *)arg; }

static void a_key_whose_time_has_come_goes_before_one_that_is_added_later(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_add_after(q, "delayed", 5, 0);
    kl_workqueue_add(q, "late", 10);
    assert_next(q, 20, "delayed");
    assert_next(q, 20, "late");
    kl_workqueue_free(q);
}

static void wakes_idle_workers_when_keys_arrive(void **state)
{
    (void)state;
    int woken = 0;
    kl_workqueue *q = kl_workqueue_new(&(kl_workqueue_options){.wake = count, .wake_arg = &woken});
#define WAKES(n, call)                                                                                       \
    do {                                                                                                     \
        woken = 0;                                                                                           \
        call;                                                                                                \
        assert_int_equal(woken, n);                                                                          \
    } while (0)
    WAKES(1, kl_workqueue_add(q, "a", 0));
    /* who was woken has not looked yet, and will find both */
    WAKES(0, kl_workqueue_add(q, "b", 0));
    assert_next(q, 0, "a");
    WAKES(0, kl_workqueue_add(q, "c", 0));
    assert_next(q, 0, "b");
    assert_next(q, 0, "c");
    assert_next(q, 0, NULL);
    WAKES(0, kl_workqueue_add(q, "a", 0)); /* it runs: nothing to take */
    WAKES(1, kl_workqueue_done(q, "a", 0));
    assert_next(q, 0, "a");
    assert_next(q, 0, NULL);
    WAKES(1, kl_workqueue_add_after(q, "x", 100, 0));
    assert_next(q, 0, NULL);
    WAKES(0, kl_workqueue_add_after(q, "y", 200, 0)); /* not the next one due */
    WAKES(1, kl_workqueue_add_after(q, "y", 50, 0));
    assert_next(q, 0, NULL);
    WAKES(0, kl_workqueue_done(q, "b", 0));
    WAKES(1, kl_workqueue_shut_down(q));
    WAKES(0, kl_workqueue_done(q, "c", 0));
    WAKES(1, kl_workqueue_done(q, "a", 0)); /* drained */
#undef WAKES
    kl_workqueue_free(q);
}

static void a_worker_finds_a_new_key_or_is_woken_for_it(void **state)
{
    (void)state;
    int woken = 0;
    kl_workqueue *q = kl_workqueue_new(&(kl_workqueue_options){.wake = count, .wake_arg = &woken});
    kl_workqueue_add(q, "a", 0);
    kl_workqueue_add(q, "b", 0); /* nobody waits now: these stand in line */
    kl_workqueue_add(q, "c", 0);
    assert_int_equal(woken, 1);
    assert_int_equal(kl_workqueue_more(q), 0);
    assert_int_equal(kl_workqueue_next_due(q), 0);
    assert_next(q, 0, "a");
    kl_workqueue_add(q, "d", 0);
    assert_string_equal(kl_workqueue_state(q, "d", NULL), "queued");
    assert_next(q, 0, "b");
    assert_next(q, 0, "c");
    assert_next(q, 0, "d");
    assert_int_equal(woken, 1);
    assert_int_equal(kl_workqueue_more(q), KL_NEVER);
    kl_workqueue_add(q, "e", 0);
    assert_int_equal(woken, 2);
    kl_workqueue_add(q, "f", 0);
    kl_workqueue_shut_down(q); /* what stood in line was added before the end */
    assert_next(q, 0, "e");
    assert_next(q, 0, "f");
    kl_workqueue_free(q);
}

static void done_of_an_idle_key_has_no_effect(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_done(q, "a", 0);
    kl_workqueue_add(q, "a", 0);
    kl_workqueue_done(q, "a", 0);
    assert_next(q, 0, "a");
    kl_workqueue_free(q);
}

static void stats_show_running_keys_and_their_time(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_stats s;
    const char *keys[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        kl_workqueue_add(q, keys[i], 10 * i);
        assert_next(q, 10 * i, keys[i]);
    }
    kl_workqueue_add(q, "d", 20);
    kl_workqueue_add_after(q, "e", 100, 20);
    kl_workqueue_stats_get(q, 30, &s);
    assert_int_equal(s.running, 3);
    assert_int_equal(s.ready, 1);
    assert_int_equal(s.delayed, 1);
    assert_int_equal(s.longest_running, 30);
    assert_int_equal(s.unfinished, 30 + 20 + 10);
    assert_int_equal(s.adds, 4);
    assert_int_equal(s.retries, 1);
    kl_workqueue_done(q, "a", 30);
    kl_workqueue_stats_get(q, 40, &s);
    assert_int_equal(s.longest_running, 30);
    assert_int_equal(s.unfinished, 30 + 20);
    kl_queue_item it;
    assert_true(kl_workqueue_try_get(q, 40, &it));
    assert_int_equal(it.queued_at, 20);
    kl_workqueue_free(q);
}

static void after_a_burst_the_memory_is_small_again_and_keys_of_any_length_are_kept(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_queue_item it;
    char *key = kl_alloc(3 << 20);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20000; i++) {
            snprintf(key, 64, "ns-%d/name-%d-%d", i % 7, i, round);
            kl_workqueue_add(q, key, 0);
        }
        /* Longer than what a slab holds by itself, and than a whole slab. */
        for (int bits = 6; bits <= 21; bits++) {
            memset(key, 'k', (size_t)1 << bits);
            key[(size_t)1 << bits] = 0;
            kl_workqueue_add(q, key, 0);
            kl_workqueue_add(q, key, 0);
        }
        int n = 0;
        while (kl_workqueue_try_get(q, 1, &it)) {
            n += it.key[0] == 'k' ? strspn(it.key, "k") == strlen(it.key) : !strncmp(it.key, "ns-", 3);
            kl_workqueue_finish(q, &it, 1);
        }
        assert_int_equal(n, 20000 + 16);
    }
    kl_workqueue_add(q, "one/more", 2); /* something stays while thousands come and go */
    assert_true(kl_workqueue_try_get(q, 2, &it));
    for (int i = 0; i < 30000; i++) {
        snprintf(key, 64, "ns-%d/name-%d", i % 7, i);
        kl_workqueue_add(q, key, 2);
        kl_queue_item other;
        assert_true(kl_workqueue_try_get(q, 2, &other));
        kl_workqueue_finish(q, &other, 2);
        assert_string_equal(kl_workqueue_state(q, key, NULL), "absent");
    }
    assert_string_equal(it.key, "one/more");
    assert_string_equal(kl_workqueue_state(q, "one/more", NULL), "running");
    kl_workqueue_finish(q, &it, 3);
    kl_free(key);
    kl_workqueue_free(q);
}

KL_TESTS(cmocka_unit_test(a_key_added_often_is_handed_out_once),
    cmocka_unit_test(adds_while_running_mean_one_more_run_after_it),
    cmocka_unit_test(keys_come_out_in_the_order_they_went_in),
    cmocka_unit_test(a_delayed_key_comes_when_its_time_comes_and_not_before),
    cmocka_unit_test(of_two_delays_the_earlier_wins), cmocka_unit_test(an_add_ends_a_delay),
    cmocka_unit_test(in_client_gos_order_an_add_does_not_end_a_delay),
    cmocka_unit_test(a_delay_that_ends_while_the_key_runs_makes_it_run_again),
    cmocka_unit_test(failures_climb_the_ladder_until_forgotten),
    cmocka_unit_test(jitter_shortens_a_delay_by_at_most_its_share),
    cmocka_unit_test(shutting_down_hands_out_queued_keys_and_takes_no_new_ones),
    cmocka_unit_test(a_key_whose_time_has_come_goes_before_one_that_is_added_later),
    cmocka_unit_test(wakes_idle_workers_when_keys_arrive),
    cmocka_unit_test(a_worker_finds_a_new_key_or_is_woken_for_it),
    cmocka_unit_test(done_of_an_idle_key_has_no_effect),
    cmocka_unit_test(stats_show_running_keys_and_their_time),
    cmocka_unit_test(after_a_burst_the_memory_is_small_again_and_keys_of_any_length_are_kept))

/* not in tsan: it starts no thread */
