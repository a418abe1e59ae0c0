/* workqueue_test.c - one worker per key, delays, backoff; and random operations against a plain model of the rules. */
#include "support/test.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"
#include "queue/backoff.h"
#include "queue/workqueue.h"

static kl_workqueue *exact_queue(void)
{
    return kl_workqueue_new(&(kl_workqueue_options){ .backoff = { KL_MILLISECONDS(5), KL_SECONDS(1000), 0 } });
}

/* Hands out the next key, which must be `want` (NULL: none). */
static void assert_next(kl_workqueue *q, kl_time now, const char *want)
{
    kl_queue_item it = {0};
    bool got = kl_workqueue_try_get(q, now, &it);
    assert_int_equal(got, want != NULL);
    if (want)
        assert_string_equal(it.key, want);
    kl_free(it.key);
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
    assert_next(q, 1, NULL);                   /* never two at once */
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
    const char *keys[] = { "c", "a", "b" };
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

static void an_add_does_not_cancel_a_delay(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
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
    kl_random r = { 3 };
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
    p = kl_backoff_defaults((kl_backoff_policy){ .base = KL_SECONDS(1) });
    assert_int_equal(kl_backoff_delay(&p, 0, &r), KL_SECONDS(1));      /* who sets a policy says its jitter, too */
    assert_int_equal(kl_backoff_delay(&(kl_backoff_policy){ KL_SECONDS(9), KL_SECONDS(2), 0 }, 4, &r), KL_SECONDS(2));
}

static void shutting_down_hands_out_what_is_queued_and_takes_nothing_new(void **state)
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
    assert_next(q, 1000, "run");               /* it was added before the end */
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

static void wakes_whoever_waits_exactly_when_there_is_news(void **state)
{
    (void)state;
    int woken = 0;
    kl_workqueue *q = kl_workqueue_new(&(kl_workqueue_options){ .wake = count, .wake_arg = &woken });
#define WAKES(n, call) do { woken = 0; call; assert_int_equal(woken, n); } while (0)
    WAKES(1, kl_workqueue_add(q, "a", 0));
    WAKES(0, kl_workqueue_add(q, "a", 0));
    WAKES(1, kl_workqueue_add_after(q, "b", 100, 0));
    WAKES(0, kl_workqueue_add_after(q, "c", 200, 0));      /* not the next one due */
    WAKES(1, kl_workqueue_add_after(q, "c", 50, 0));
    assert_next(q, 0, "a");
    WAKES(0, kl_workqueue_add(q, "a", 0));
    WAKES(1, kl_workqueue_done(q, "a", 0));
    assert_next(q, 0, "a");
    WAKES(0, kl_workqueue_done(q, "a", 0));
    WAKES(1, kl_workqueue_shut_down(q));
#undef WAKES
    kl_workqueue_free(q);
}

static void done_of_a_key_that_does_not_run_is_nothing(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_done(q, "a", 0);
    kl_workqueue_add(q, "a", 0);
    kl_workqueue_done(q, "a", 0);
    assert_next(q, 0, "a");
    kl_workqueue_free(q);
}

static void stats_tell_what_runs_and_for_how_long(void **state)
{
    (void)state;
    kl_workqueue *q = exact_queue();
    kl_workqueue_stats s;
    const char *keys[] = { "a", "b", "c" };
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
    kl_free(it.key);
    kl_workqueue_free(q);
}

/* --- the rules as a plain model: arrays and loops ------------------------------------------------------------------------------ */

#define KEYS 6
typedef struct model {
    int fifo[KEYS], len;
    bool queued[KEYS], running[KEYS], dirty[KEYS];
    kl_time due[KEYS];             /* KL_NEVER: not waiting */
    uint64_t order[KEYS], next;    /* of equal times */
    int failures[KEYS];
    bool down;
} model;

static void model_add(model *m, int k)
{
    if (m->queued[k] || m->dirty[k])
        return;
    if (m->running[k]) {
        m->dirty[k] = true;
        return;
    }
    m->queued[k] = true;
    m->fifo[m->len++] = k;
}

static void model_promote(model *m, kl_time now)
{
    for (;;) {
        int first = -1;
        for (int k = 0; k < KEYS; k++)
            if (m->due[k] <= now && (first < 0 || m->due[k] < m->due[first] || (m->due[k] == m->due[first] && m->order[k] < m->order[first])))
                first = k;
        if (first < 0)
            return;
        m->due[first] = KL_NEVER;
        model_add(m, first);
    }
}

static void model_add_after(model *m, int k, kl_time delay, kl_time now)
{
    if (m->down)
        return;
    if (delay <= 0) {
        model_add(m, k);
    } else if (now + delay < m->due[k]) {
        m->due[k] = now + delay;
        m->order[k] = m->next++;
    }
}

static int model_get(model *m)
{
    if (!m->len)
        return -1;
    int k = m->fifo[0];
    memmove(m->fifo, m->fifo + 1, sizeof *m->fifo * (size_t)--m->len);
    m->queued[k] = false;
    m->running[k] = true;
    return k;
}

static void model_done(model *m, int k)
{
    m->running[k] = false;
    if (m->dirty[k]) {
        m->dirty[k] = false;
        m->queued[k] = true;
        m->fifo[m->len++] = k;
    }
}

static void model_down(model *m)
{
    m->down = true;
    for (int k = 0; k < KEYS; k++)
        m->due[k] = KL_NEVER;
}

static void check_same(kl_workqueue *q, const model *m, kl_time now, const char *const *names)
{
    kl_workqueue_stats s;
    size_t running = 0, delayed = 0;
    kl_time next = KL_NEVER;
    kl_workqueue_stats_get(q, now, &s);
    for (int k = 0; k < KEYS; k++) {
        kl_time due;
        const char *want = m->running[k] ? (m->dirty[k] ? "running, queued again" : "running") : m->queued[k] ? "queued" : m->due[k] < KL_NEVER ? "waiting" : "absent";
        assert_string_equal(kl_workqueue_state(q, names[k], &due), want);
        assert_int_equal(due, m->due[k]);
        assert_int_equal(kl_workqueue_requeues(q, names[k]), m->failures[k]);
        running += m->running[k];
        delayed += m->due[k] < KL_NEVER;
        next = m->due[k] < next ? m->due[k] : next;
    }
    assert_int_equal(s.ready, m->len);
    assert_int_equal(s.running, running);
    assert_int_equal(s.delayed, delayed);
    assert_int_equal(kl_workqueue_next_due(q), m->len ? 0 : next);
    assert_int_equal(kl_workqueue_drained(q), m->down && !m->len && !running);
}

static void random_operations_follow_the_rules(void **state)
{
    (void)state;
    static const char *const names[KEYS] = { "a", "b", "ns/c", "ns/d", "e", "f" };
    for (uint64_t seed = 1; seed <= 60; seed++) {
        kl_random r = { seed };
        kl_workqueue *q = exact_queue();
        model m = {0};
        kl_time now = 0;
        for (int k = 0; k < KEYS; k++)
            m.due[k] = KL_NEVER;
        for (int i = 0; i < 600; i++) {
            int k = (int)(kl_random_next(&r) % KEYS);
            kl_time delay = kl_random_between(&r, -1, 40);
            model_promote(&m, now);            /* whatever is done first finds the due keys queued */
            switch (kl_random_next(&r) % 9) {
            case 0: case 1:
                kl_workqueue_add(q, names[k], now);
                if (!m.down)
                    model_add(&m, k);
                break;
            case 2:
                kl_workqueue_add_after(q, names[k], delay, now);
                model_add_after(&m, k, delay, now);
                break;
            case 3:
                delay = kl_workqueue_add_rate_limited(q, names[k], now);
                assert_int_equal(delay, KL_MILLISECONDS(5) << (m.failures[k] < 18 ? m.failures[k] : 17));
                m.failures[k]++;
                model_add_after(&m, k, delay, now);
                if (m.failures[k] == 17) {
                    kl_workqueue_forget(q, names[k]);
                    m.failures[k] = 0;
                }
                break;
            case 4:
                kl_workqueue_forget(q, names[k]);
                m.failures[k] = 0;
                break;
            case 5: case 6: {
                int want = model_get(&m);
                assert_next(q, now, want < 0 ? NULL : names[want]);
                break;
            }
            case 7:
                if (m.running[k]) {
                    kl_workqueue_done(q, names[k], now);
                    model_done(&m, k);
                }
                break;
            default:
                now += delay > 30 ? KL_MILLISECONDS(delay) : delay < 0 ? 0 : delay;
                break;
            }
            model_promote(&m, now);
            check_same(q, &m, now, names);
            if (i == 500) {
                kl_workqueue_shut_down(q);
                model_down(&m);
            }
            check_same(q, &m, now, names);
        }
        kl_workqueue_free(q);
    }
}

/* --- threads: no key runs twice at once, none is lost ---------------------------------------------------------------------------- */

#define CROWD_KEYS 20
#define CROWD_ADDS 4000
typedef struct crowd {
    kl_workqueue *q;
    kl_mutex mu;
    kl_cond cond;
    bool running[CROWD_KEYS];
    int seen[CROWD_KEYS], added[CROWD_KEYS], overlaps, news;
} crowd;

static void crowd_wake(void *arg)
{
    crowd *c = arg;
    kl_lock(&c->mu);
    c->news++;
    kl_cond_broadcast(&c->cond);
    kl_unlock(&c->mu);
}

static void crowd_work(void *arg)
{
    crowd *c = arg;
    kl_queue_item it;
    for (;;) {
        kl_lock(&c->mu);
        int news = c->news;
        kl_unlock(&c->mu);
        if (!kl_workqueue_try_get(c->q, kl_clock_now(kl_clock_real()), &it)) {
            if (kl_workqueue_drained(c->q))
                return;
            kl_lock(&c->mu);
            while (news == c->news)
                kl_cond_wait(&c->cond, &c->mu);
            kl_unlock(&c->mu);
            continue;
        }
        int k = atoi(it.key);
        kl_lock(&c->mu);
        c->overlaps += c->running[k];
        c->running[k] = true;
        c->seen[k] = c->added[k];              /* everything added before this run began is dealt with by it */
        kl_unlock(&c->mu);
        kl_lock(&c->mu);
        c->running[k] = false;
        kl_unlock(&c->mu);
        kl_workqueue_done(c->q, it.key, kl_clock_now(kl_clock_real()));
        kl_free(it.key);
    }
}

static void crowd_add(void *arg)
{
    crowd *c = arg;
    kl_random r = { kl_thread_self() };
    char key[8];
    for (int i = 0; i < CROWD_ADDS; i++) {
        int k = (int)(kl_random_next(&r) % CROWD_KEYS);
        snprintf(key, sizeof key, "%d", k);
        kl_lock(&c->mu);
        c->added[k]++;
        kl_unlock(&c->mu);
        kl_workqueue_add(c->q, key, kl_clock_now(kl_clock_real()));
    }
}

static void a_crowd_of_threads_loses_no_key_and_runs_none_twice_at_once(void **state)
{
    (void)state;
    crowd c = {0};
    kl_thread *workers[3], *adders[2];
    kl_mutex_init(&c.mu);
    kl_cond_init(&c.cond);
    c.q = kl_workqueue_new(&(kl_workqueue_options){ .wake = crowd_wake, .wake_arg = &c });
    for (int i = 0; i < 3; i++)
        workers[i] = kl_thread_start("worker", crowd_work, &c);
    for (int i = 0; i < 2; i++)
        adders[i] = kl_thread_start("adder", crowd_add, &c);
    for (int i = 0; i < 2; i++)
        kl_thread_join(adders[i]);
    kl_workqueue_shut_down(c.q);
    for (int i = 0; i < 3; i++)
        kl_thread_join(workers[i]);
    assert_int_equal(c.overlaps, 0);
    for (int k = 0; k < CROWD_KEYS; k++)
        assert_int_equal(c.seen[k], c.added[k]);
    kl_workqueue_free(c.q);
    kl_cond_fini(&c.cond);
    kl_mutex_fini(&c.mu);
}

KL_TESTS(
    cmocka_unit_test(a_key_added_often_is_handed_out_once),
    cmocka_unit_test(adds_while_running_mean_one_more_run_after_it),
    cmocka_unit_test(keys_come_out_in_the_order_they_went_in),
    cmocka_unit_test(a_delayed_key_comes_when_its_time_comes_and_not_before),
    cmocka_unit_test(of_two_delays_the_earlier_wins),
    cmocka_unit_test(an_add_does_not_cancel_a_delay),
    cmocka_unit_test(a_delay_that_ends_while_the_key_runs_makes_it_run_again),
    cmocka_unit_test(failures_climb_the_ladder_until_forgotten),
    cmocka_unit_test(jitter_shortens_a_delay_by_at_most_its_share),
    cmocka_unit_test(shutting_down_hands_out_what_is_queued_and_takes_nothing_new),
    cmocka_unit_test(a_key_whose_time_has_come_goes_before_one_that_is_added_later),
    cmocka_unit_test(wakes_whoever_waits_exactly_when_there_is_news),
    cmocka_unit_test(done_of_a_key_that_does_not_run_is_nothing),
    cmocka_unit_test(stats_tell_what_runs_and_for_how_long),
    cmocka_unit_test(random_operations_follow_the_rules),
    cmocka_unit_test(a_crowd_of_threads_loses_no_key_and_runs_none_twice_at_once))
