/* order_test.c - the ready key that is next: priorities, ageing, turns of namespaces; the orders of
 * client-go and controller-runtime. */
#include "support/test.h"

#include "queue/workqueue.h"

static kl_workqueue *queue(kl_queue_order order)
{
    return kl_workqueue_new(
        &(kl_workqueue_options){.backoff = {KL_MILLISECONDS(5), KL_SECONDS(1000), 0}, .order = order});
}

static void add(kl_workqueue *q, const char *key, int priority, kl_time now)
{
    kl_workqueue_add_with(q, key, &(kl_add){.priority = priority}, now);
}

/* Takes all that is ready at `now` and is done with it: "a b c". */
static const char *all(kl_workqueue *q, kl_time now)
{
    static char text[1024];
    kl_queue_item it;
    size_t n = 0;
    text[0] = 0;
    while (kl_workqueue_try_get(q, now, &it)) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "", it.key);
        kl_workqueue_finish(q, &it, now);
    }
    return text;
}

static void the_highest_priority_goes_first(void **state)
{
    (void)state;
    for (int order = KL_QUEUE_FAIR; order <= KL_QUEUE_RANK; order++) {
        kl_workqueue *q = queue((kl_queue_order)order);
        add(q, "low", KL_PRIORITY_LOW, 0);
        add(q, "mid", 0, 1);
        add(q, "high", 10, 2);
        add(q, "mid2", 0, 3);
        assert_string_equal(all(q, 4), "high mid mid2 low");
        kl_workqueue_free(q);
    }
}

static void an_entry_keeps_the_highest_priority_it_was_added_with_until_it_is_handed_out(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    kl_queue_item it;
    add(q, "b", 0, 0);
    add(q, "a", KL_PRIORITY_LOW, 0);
    add(q, "c", 0, 0);
    add(q, "a", 7, 1);
    add(q, "a", -3, 1);
    assert_int_equal(kl_workqueue_priority(q, "a"), 7);
    assert_true(kl_workqueue_try_get(q, 1, &it));
    assert_string_equal(it.key, "a");
    assert_int_equal(it.priority, 7);
    add(q, "a", KL_PRIORITY_LOW, 2); /* another entry: it starts anew */
    kl_workqueue_finish(q, &it, 2);
    assert_string_equal(all(q, 2), "b c a");
    kl_workqueue_add_with(q, "late", &(kl_add){.priority = 5, .after = 10}, 10);
    add(q, "soon", 1, 20);
    assert_string_equal(all(q, 20), "late soon");
    kl_workqueue_free(q);
}

static void a_raised_key_stands_behind_its_new_peers(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    add(q, "a", KL_PRIORITY_LOW, 0);
    add(q, "b", 0, 1);
    add(q, "a", 0, 2);
    assert_string_equal(all(q, 2), "b a");
    kl_workqueue_free(q);
}

static void a_key_that_waited_long_enough_passes_more_urgent_ones(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    kl_time gap = -KL_PRIORITY_LOW * KL_QUEUE_AGEING;
    add(q, "low", KL_PRIORITY_LOW, 0);
    add(q, "before", 0, gap - 1);
    add(q, "after", 0, gap + 1);
    assert_string_equal(all(q, gap + 2), "before low after");
    kl_workqueue_free(q);
}

static void under_a_flood_of_urgent_keys_nothing_starves(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    kl_queue_item it;
    char key[32];
    kl_time now = 0, low_at = -1;
    add(q, "cold/low", KL_PRIORITY_LOW, now);
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof key, "hot/backlog-%d", i);
        add(q, key, 0, now);
    }
    /* For ever one key comes and one is taken, so that the backlog never shrinks. */
    for (int i = 0; i < 3000 && low_at < 0; i++, now += KL_MILLISECONDS(10)) {
        snprintf(key, sizeof key, "hot/%d", i);
        add(q, key, 0, now);
        assert_true(kl_workqueue_try_get(q, now, &it));
        if (!strcmp(it.key, "cold/low"))
            low_at = now;
        kl_workqueue_finish(q, &it, now);
    }
    assert_in_range(low_at, KL_SECONDS(10), KL_SECONDS(11));
    kl_workqueue_free(q);
}

static void namespaces_take_turns(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    for (int i = 0; i < 4; i++) {
        char key[16];
        snprintf(key, sizeof key, "big/%d", i);
        add(q, key, 0, 0);
    }
    add(q, "small/0", 0, 1);
    add(q, "cluster", 0, 1);
    add(q, "small/1", 0, 1);
    assert_string_equal(all(q, 2), "big/0 small/0 cluster big/1 small/1 big/2 big/3");
    add(q, "big/0", 0, 3);
    add(q, "small/0", KL_PRIORITY_LOW, 3); /* turns are taken among equals */
    add(q, "big/1", 0, 3);
    assert_string_equal(all(q, 3), "big/0 big/1 small/0");
    kl_workqueue_free(q);
}

static void a_namespace_waits_for_one_key_of_each_other_and_not_for_all_of_them(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    kl_queue_item it;
    char key[32];
    for (int i = 0; i < 100000; i++) {
        snprintf(key, sizeof key, "ns-%d/name-%d", i % 3, i);
        add(q, key, 0, 0);
    }
    add(q, "mine/only", 0, 1);
    int before = 0;
    while (kl_workqueue_try_get(q, 2, &it) && strcmp(it.key, "mine/only")) {
        before++;
        kl_workqueue_finish(q, &it, 2);
    }
    assert_int_equal(before, 3);
    kl_workqueue_free(q);
}

static void any_number_of_priorities_and_namespaces_is_kept_in_order(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    kl_queue_item it;
    char key[32];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5000; i++) {
            int p = i * 7919 % 5000;
            snprintf(key, sizeof key, "ns-%d/%d", p, p);
            add(q, key, p - 2500, 0);
        }
        for (int p = 4999; p >= 0; p--) {
            snprintf(key, sizeof key, "ns-%d/%d", p, p);
            assert_true(kl_workqueue_try_get(q, 0, &it));
            assert_string_equal(it.key, key);
            kl_workqueue_finish(q, &it, 0);
        }
        for (int i = 0; i < 5000; i++) { /* and as many namespaces of one priority */
            snprintf(key, sizeof key, "n-%d/x", i);
            add(q, key, 3, 0);
        }
        for (int i = 0; i < 5000; i++) {
            snprintf(key, sizeof key, "n-%d/x", i);
            assert_true(kl_workqueue_try_get(q, 0, &it));
            assert_string_equal(it.key, key);
            kl_workqueue_finish(q, &it, 0);
        }
    }
    kl_workqueue_free(q);
}

static void client_gos_order_knows_no_namespaces_and_no_age(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FIFO);
    add(q, "low/0", KL_PRIORITY_LOW, 0);
    add(q, "big/0", 0, 1);
    add(q, "big/1", 0, 1);
    add(q, "small/0", 0, KL_SECONDS(1000));
    assert_string_equal(all(q, KL_SECONDS(1000)), "big/0 big/1 small/0 low/0");
    kl_workqueue_free(q);
}

static void controller_runtimes_order_is_by_first_add_and_delayed_keys_last(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_RANK);
    kl_queue_item it;
    kl_workqueue_add_after(q, "late", 5, 0);
    kl_workqueue_add_after(q, "hurried", 5, 0);
    add(q, "a", KL_PRIORITY_LOW, 1);
    add(q, "b", 0, 20);
    add(q, "hurried", 0, 21); /* it is not delayed any more, and was there before b */
    add(q, "a", 0, 22);       /* likewise */
    assert_string_equal(all(q, 23), "hurried a b late");
    add(q, "x", 0, 30);
    assert_true(kl_workqueue_try_get(q, 30, &it));
    add(q, "x", 0, 31); /* while it runs: its place is kept */
    add(q, "y", 0, 32);
    kl_workqueue_finish(q, &it, 33);
    assert_string_equal(all(q, 33), "x y");
    kl_workqueue_free(q);
}

static void by_name_it_does_not_matter_when_a_key_came(void **state)
{
    (void)state;
    static const char *const keys[] = {"b/z", "a/c", "b/a", "a/b", "node"};
    for (size_t first = 0; first < 5; first++) {
        kl_workqueue *q = queue(KL_QUEUE_NAME);
        for (size_t i = 0; i < 5; i++)
            add(q, keys[(first + i) % 5], 0, (kl_time)i);
        add(q, "z/low", KL_PRIORITY_LOW, 0);
        add(q, "z/high", 1, 9);
        assert_string_equal(all(q, KL_SECONDS(1000)), "z/high a/b a/c b/a b/z node z/low");
        kl_workqueue_free(q);
    }
}

static void of_a_delay_and_a_rate_limit_the_sooner_counts(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    assert_int_equal(
        kl_workqueue_add_with(q, "a", &(kl_add){.after = KL_SECONDS(1), .rate_limited = true}, 0),
        KL_MILLISECONDS(5));
    assert_int_equal(kl_workqueue_add_with(q, "b", &(kl_add){.after = 7, .rate_limited = true}, 0), 7);
    assert_int_equal(kl_workqueue_requeues(q, "b"), 1);
    assert_int_equal(kl_workqueue_add_with(q, "c", &(kl_add){.rate_limited = true}, 0), KL_MILLISECONDS(5));
    assert_int_equal(kl_workqueue_add_with(q, "d", &(kl_add){.after = 9}, 0), 9);
    assert_int_equal(kl_workqueue_add_with(q, "e", &(kl_add){.after = -9}, 0), 0);
    assert_string_equal(all(q, 9), "e b d");
    kl_workqueue_free(q);
}

static void depths_are_counted_by_priority_up_to_25(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    kl_workqueue_depths d;
    char key[16];
    kl_workqueue_depths_get(q, &d);
    assert_int_equal(d.n, 0);
    add(q, "a", 0, 0);
    add(q, "b", 0, 0);
    add(q, "c", KL_PRIORITY_LOW, 0);
    kl_workqueue_add_with(q, "later", &(kl_add){.priority = 9, .after = 5}, 0);
    kl_workqueue_depths_get(q, &d);
    assert_int_equal(d.n, 2);
    assert_int_equal(d.of[0].priority, 0);
    assert_int_equal(d.of[0].ready, 2);
    assert_int_equal(d.of[1].priority, KL_PRIORITY_LOW);
    assert_int_equal(d.of[1].ready, 1);
    all(q, 0);
    kl_workqueue_depths_get(q, &d);
    assert_int_equal(d.n, 2); /* a gauge says 0 rather than nothing */
    assert_int_equal(d.of[0].ready, 0);
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "k%d", i);
        add(q, key, i, 0);
    }
    kl_workqueue_depths_get(q, &d);
    assert_int_equal(d.n, KL_QUEUE_DEPTHS);
    assert_int_equal(d.of[0].priority, 39);
    assert_true(d.more);
    assert_int_equal(d.others, 40 - KL_QUEUE_DEPTHS);
    kl_workqueue_free(q);
}

KL_TESTS(cmocka_unit_test(the_highest_priority_goes_first),
    cmocka_unit_test(an_entry_keeps_the_highest_priority_it_was_added_with_until_it_is_handed_out),
    cmocka_unit_test(a_raised_key_stands_behind_its_new_peers),
    cmocka_unit_test(a_key_that_waited_long_enough_passes_more_urgent_ones),
    cmocka_unit_test(under_a_flood_of_urgent_keys_nothing_starves), cmocka_unit_test(namespaces_take_turns),
    cmocka_unit_test(a_namespace_waits_for_one_key_of_each_other_and_not_for_all_of_them),
    cmocka_unit_test(any_number_of_priorities_and_namespaces_is_kept_in_order),
    cmocka_unit_test(client_gos_order_knows_no_namespaces_and_no_age),
    cmocka_unit_test(controller_runtimes_order_is_by_first_add_and_delayed_keys_last),
    cmocka_unit_test(by_name_it_does_not_matter_when_a_key_came),
    cmocka_unit_test(of_a_delay_and_a_rate_limit_the_sooner_counts),
    cmocka_unit_test(depths_are_counted_by_priority_up_to_25))

/* not in tsan: it starts no thread */
