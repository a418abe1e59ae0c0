/* cause_test.c - the causes of keys: which one an entry keeps, and that each is freed once. */
#include "support/test.h"

#include "base/mem.h"
#include "base/random.h"
#include "queue/workqueue.h"

#define MOST 20000

static int alive[MOST];

static void forget(uint32_t what)
{
    assert_int_equal(alive[what], 1);
    alive[what] = 0;
}

static uint32_t made(uint32_t what)
{
    alive[what] = 1;
    return what;
}

static kl_workqueue *queue(kl_queue_order order)
{
    memset(alive, 0, sizeof alive);
    return kl_workqueue_new(
        &(kl_workqueue_options){.backoff = {10, 1000, 0}, .order = order, .forget = forget});
}

static void add(kl_workqueue *q, const char *key, uint32_t what, uint8_t why, kl_time now)
{
    kl_workqueue_add_with(q, key, &(kl_add){.cause = {made(what), why}}, now);
}

static kl_queue_item take(kl_workqueue *q, kl_time now, uint32_t what, uint8_t why, unsigned events)
{
    kl_queue_item item;
    assert_true(kl_workqueue_try_get(q, now, &item));
    assert_int_equal(item.cause.what, what);
    assert_int_equal(item.cause.why, why);
    assert_int_equal(item.events, events);
    return item;
}

static void free_all(kl_workqueue *q)
{
    kl_workqueue_free(q);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(alive[i], 0);
}

static void of_several_adds_the_last_one_counts(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    add(q, "a", 1, 3, 0);
    add(q, "a", 2, 4, 0);
    add(q, "a", 3, 5, 0);
    kl_queue_item a = take(q, 0, 3, 5, 3);
    assert_false(alive[1] || alive[2]);
    assert_true(alive[3]);
    kl_workqueue_finish(q, &a, 0);
    assert_false(alive[3]);
    free_all(q);
}

static void causes_that_come_during_a_run_are_for_the_next_run(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    add(q, "a", 1, 3, 0);
    kl_queue_item a = take(q, 0, 1, 3, 1);
    add(q, "a", 2, 4, 0);
    /* the add is sooner, and stays */
    kl_workqueue_add_with(q, "a", &(kl_add){.after = 100, .cause = {made(3), 5}}, 0);
    assert_true(alive[1]);
    assert_false(alive[3]);
    kl_workqueue_finish(q, &a, 0);
    a = take(q, 0, 2, 4, 1);
    kl_workqueue_finish(q, &a, 0);
    free_all(q);
}

static void routine_does_not_hide_a_change(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    kl_workqueue_add_with(q, "a", &(kl_add){.routine = true, .cause = {made(1), 3}}, 0);
    add(q, "a", 2, 4, 0);
    kl_workqueue_add_with(q, "a", &(kl_add){.routine = true, .cause = {made(3), 3}}, 0);
    kl_queue_item a = take(q, 0, 2, 4, 2);
    kl_workqueue_finish(q, &a, 0);
    kl_workqueue_add_with(q, "a", &(kl_add){.routine = true, .cause = {made(4), 3}}, 0);
    a = take(q, 0, 4, 3, 1);
    kl_workqueue_finish(q, &a, 0);
    free_all(q);
}

static void a_retry_is_the_cause_until_an_event_arrives(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    add(q, "a", 1, 3, 0);
    kl_queue_item a = take(q, 0, 1, 3, 1);
    kl_workqueue_add_with(q, "a", &(kl_add){.rate_limited = true, .cause = {made(2), 7}}, 0);
    kl_workqueue_finish(q, &a, 0);
    a = take(q, 10, 2, 7, 0);
    kl_workqueue_add_with(q, "a", &(kl_add){.rate_limited = true, .cause = {made(3), 7}}, 10);
    kl_workqueue_finish(q, &a, 10);
    add(q, "a", 4, 4, 11);
    a = take(q, 11, 4, 4, 1);
    kl_workqueue_finish(q, &a, 11);
    free_all(q);
}

static void a_requeued_key_keeps_its_cause_which_is_joined(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    add(q, "a", 1, 3, 0);
    kl_queue_item a = take(q, 0, 1, 3, 1);
    kl_workqueue_hold(q, &a, 100, 0);
    a = take(q, 100, 1, 3, 1);
    add(q, "a", 2, 4, 100);
    kl_workqueue_hold(q, &a, 200, 100);
    a = take(q, 100, 2, 4, 2);
    assert_true(kl_workqueue_enter(q, &a, "g", 100));
    add(q, "b", 3, 5, 100);
    kl_queue_item b = take(q, 100, 3, 5, 1);
    assert_false(kl_workqueue_enter(q, &b, "g", 100));
    kl_workqueue_finish(q, &a, 100);
    b = take(q, 100, 3, 5, 1);
    kl_workqueue_finish(q, &b, 100);
    free_all(q);
}

static void shutdown_frees_waiting_causes(void **state)
{
    (void)state;
    kl_workqueue *q = queue(KL_QUEUE_FAIR);
    add(q, "a", 1, 3, 0);
    kl_queue_item a = take(q, 0, 1, 3, 1);
    kl_workqueue_add_with(q, "a", &(kl_add){.after = 100, .cause = {made(2), 5}}, 0);
    kl_workqueue_add_with(q, "b", &(kl_add){.after = 100, .cause = {made(3), 5}}, 0);
    add(q, "c", 4, 3, 0);
    kl_workqueue_shut_down(q);
    assert_false(alive[2] || alive[3]);
    assert_true(alive[1] && alive[4]);
    add(q, "d", 5, 3, 0);
    assert_false(alive[5]);
    kl_workqueue_finish(q, &a, 0);
    free_all(q);
}

/* Whatever is done with keys, in any order of the queue: each cause is let go once, and none is handed out
 * that was. */
static void every_cause_is_freed_once(void **state)
{
    (void)state;
    static const kl_queue_order ORDERS[] = {KL_QUEUE_FAIR, KL_QUEUE_FIFO, KL_QUEUE_RANK, KL_QUEUE_NAME};
    for (unsigned seed = 0; seed < 40; seed++) {
        kl_queue_order order = ORDERS[seed % 4];
        kl_workqueue *q = queue(order);
        kl_random r = {.state = seed};
        kl_queue_item running[8];
        size_t n = 0;
        kl_time now = 0;
        for (uint32_t what = 1; what < 4000; what++) {
            char key[300];
            uint64_t x = kl_random_next(&r);
            memset(key, 'k', sizeof key);
            snprintf(key + (x % 16 ? 0 : 240), 20, "%u", (unsigned)(x >> 8) % 20);
            now += x >> 16 & 7;
            kl_add how = {.cause = {made(what), 1 + (x >> 20) % 14},
                .routine = x >> 30 & 1,
                .rate_limited = !(x >> 31 & 7),
                .after = x >> 34 & 1 ? (kl_time)(x >> 35 & 31) : 0};
            kl_workqueue_add_with(q, key, &how, now);
            if (what == 3900)
                kl_workqueue_shut_down(q);
            if (n < 8 && x >> 40 & 1 && kl_workqueue_try_get(q, now, &running[n])) {
                assert_true(!running[n].cause.what || alive[running[n].cause.what]);
                n++;
            }
            if (n && x >> 41 & 1) {
                kl_queue_item it = running[--n];
                if (order == KL_QUEUE_FAIR && !(x >> 42 & 3)) {
                    kl_workqueue_hold(q, &it, now + (kl_time)(x >> 44 & 15), now);
                } else {
                    if (x >> 50 & 1)
                        kl_workqueue_forget(q, it.key);
                    assert_true(!it.cause.what || alive[it.cause.what]);
                    kl_workqueue_finish(q, &it, now);
                }
            }
        }
        free_all(q);
    }
}

KL_TESTS(cmocka_unit_test(of_several_adds_the_last_one_counts),
    cmocka_unit_test(causes_that_come_during_a_run_are_for_the_next_run),
    cmocka_unit_test(routine_does_not_hide_a_change),
    cmocka_unit_test(a_retry_is_the_cause_until_an_event_arrives),
    cmocka_unit_test(a_requeued_key_keeps_its_cause_which_is_joined),
    cmocka_unit_test(shutdown_frees_waiting_causes), cmocka_unit_test(every_cause_is_freed_once))

/* not in tsan: it starts no thread */
