/* groups_test.c - keys that exclude each other, keys that are held and keys that were given up: what they
 * promise, and random operations against the rules written as plain loops.
 *
 * KL_MODEL_OPS=n sets how many operations the random part gets. */
#include "support/test.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"
#include "queue/workqueue.h"

static kl_workqueue *queue(void)
{
    return kl_workqueue_new(&(kl_workqueue_options){.backoff = {KL_SECONDS(1), KL_SECONDS(100), 0}});
}

static void add(kl_workqueue *q, const char *key, int priority, kl_time now)
{
    kl_workqueue_add_with(q, key, &(kl_add){.priority = priority}, now);
}

/* Takes what is next, which must be `key`. */
static kl_queue_item take(kl_workqueue *q, const char *key, kl_time now)
{
    kl_queue_item it = {0};
    assert_true(kl_workqueue_try_get(q, now, &it));
    assert_string_equal(it.key, key);
    return it;
}

static void nothing_is_ready(kl_workqueue *q, kl_time now)
{
    kl_queue_item it;
    assert_false(kl_workqueue_try_get(q, now, &it));
}

static const char *state_of(kl_workqueue *q, const char *key) { return kl_workqueue_state(q, key, NULL); }

static void of_a_group_one_runs_and_the_end_calls_the_next(void **state)
{
    (void)state;
    kl_workqueue *q = queue();
    kl_workqueue_stats s;
    add(q, "ns/a", 0, 1);
    add(q, "ns/b", 0, 2);
    add(q, "ns/c", 0, 3);
    add(q, "ns/other", 0, 4);
    kl_queue_item a = take(q, "ns/a", 5);
    assert_true(kl_workqueue_enter(q, &a, "node-1", 5));
    kl_queue_item b = take(q, "ns/b", 5);
    assert_false(kl_workqueue_enter(q, &b, "node-1", 5));
    assert_string_equal(state_of(q, "ns/b"), "waiting for its group");
    kl_queue_item c = take(q, "ns/c", 5);
    assert_false(kl_workqueue_enter(q, &c, "node-1", 5));
    kl_queue_item o = take(q, "ns/other", 5);
    assert_true(kl_workqueue_enter(q, &o, "node-2", 5));
    nothing_is_ready(q, 6);
    assert_int_equal(kl_workqueue_next_due(q), KL_NEVER);
    kl_workqueue_stats_get(q, 6, &s);
    assert_int_equal(s.parked, 2);
    assert_int_equal(s.running, 2);
    assert_int_equal(s.ready, 0);
    kl_workqueue_finish(q, &o, 7); /* another group's end is not news for this one */
    nothing_is_ready(q, 7);
    add(q, "ns/late", 0, 8);
    kl_workqueue_finish(q, &a, 9);
    b = take(q, "ns/b", 9); /* at the place of its age: before what came later */
    assert_int_equal(b.queued_at, 2);
    assert_true(kl_workqueue_enter(q, &b, "node-1", 9));
    kl_queue_item late = take(q, "ns/late", 9);
    kl_workqueue_finish(q, &late, 9);
    kl_workqueue_finish(q, &b, 10);
    c = take(q, "ns/c", 10);
    assert_true(kl_workqueue_enter(q, &c, "node-1", 10));
    kl_workqueue_finish(q, &c, 11);
    assert_string_equal(state_of(q, "ns/c"), "absent");
    kl_workqueue_free(q);
}

static void the_more_urgent_of_a_group_is_called_first(void **state)
{
    (void)state;
    kl_workqueue *q = queue();
    add(q, "ns/runs", 0, 0);
    kl_queue_item r = take(q, "ns/runs", 0), it;
    assert_true(kl_workqueue_enter(q, &r, "g", 0));
    static const struct {
        const char *key;
        int priority;
    } keys[] = {{"ns/low", KL_PRIORITY_LOW}, {"ns/first", 0}, {"ns/second", 0}, {"ns/high", 5}};
    for (size_t i = 0; i < 4; i++) {
        add(q, keys[i].key, keys[i].priority, (kl_time)i + 1);
        it = take(q, keys[i].key, (kl_time)i + 1);
        assert_false(kl_workqueue_enter(q, &it, "g", (kl_time)i + 1));
    }
    static const char *const order[] = {"ns/high", "ns/first", "ns/second", "ns/low"};
    for (size_t i = 0; i < 4; i++) {
        kl_workqueue_finish(q, &r, 10);
        r = take(q, order[i], 10);
        assert_true(kl_workqueue_enter(q, &r, "g", 10));
    }
    kl_workqueue_finish(q, &r, 11);
    kl_workqueue_free(q);
}

static void a_key_that_changes_its_group_releases_the_next_of_the_old_one(void **state)
{
    (void)state;
    kl_workqueue *q = queue();
    add(q, "ns/a", 0, 1);
    add(q, "ns/b", 0, 2);
    add(q, "ns/c", 0, 3);
    add(q, "ns/d", 0, 4);
    kl_queue_item a = take(q, "ns/a", 5), b = take(q, "ns/b", 5), c = take(q, "ns/c", 5),
                  d = take(q, "ns/d", 5);
    assert_true(kl_workqueue_enter(q, &a, "g", 5));
    assert_false(kl_workqueue_enter(q, &b, "g", 5));
    assert_false(kl_workqueue_enter(q, &c, "g", 5));
    assert_false(kl_workqueue_enter(q, &d, "g", 5));
    kl_workqueue_finish(q, &a, 6);
    b = take(q, "ns/b", 6);
    nothing_is_ready(q, 6);
    assert_true(kl_workqueue_enter(q, &b, "h", 6)); /* its object has moved */
    c = take(q, "ns/c", 6);                         /* so another one of g may */
    kl_workqueue_finish(q, &c, 7);                  /* which is gone, and in no group any more */
    d = take(q, "ns/d", 7);
    kl_workqueue_hold(q, &d, 100, 7); /* not now */
    kl_workqueue_finish(q, &b, 8);
    nothing_is_ready(q, 8);
    d = take(q, "ns/d", 100);
    assert_int_equal(d.queued_at, 4);
    assert_true(kl_workqueue_enter(q, &d, "g", 100));
    kl_workqueue_finish(q, &d, 101);
    kl_workqueue_free(q);
}

static void an_add_reconsiders_a_parked_key(void **state)
{
    (void)state;
    kl_workqueue *q = queue();
    add(q, "ns/a", 0, 1);
    add(q, "ns/b", 0, 2);
    kl_queue_item a = take(q, "ns/a", 3), b = take(q, "ns/b", 3);
    assert_true(kl_workqueue_enter(q, &a, "g", 3));
    assert_false(kl_workqueue_enter(q, &b, "g", 3));
    add(q, "ns/b", 7, 4);
    b = take(q, "ns/b", 5);
    assert_int_equal(b.priority, 7);
    assert_int_equal(b.queued_at, 2);
    assert_true(kl_workqueue_enter(q, &b, "h", 5));
    kl_workqueue_finish(q, &a, 6);
    kl_workqueue_finish(q, &b, 6);
    nothing_is_ready(q, 7);
    kl_workqueue_free(q);
}

static void parked_keys_are_handed_out_before_the_queue_is_drained(void **state)
{
    (void)state;
    kl_workqueue *q = queue();
    add(q, "ns/a", 0, 1);
    add(q, "ns/b", 0, 2);
    kl_queue_item a = take(q, "ns/a", 3), b = take(q, "ns/b", 3);
    assert_true(kl_workqueue_enter(q, &a, "g", 3));
    assert_false(kl_workqueue_enter(q, &b, "g", 3));
    kl_workqueue_shut_down(q);
    assert_false(kl_workqueue_drained(q));
    kl_workqueue_finish(q, &a, 4);
    assert_false(kl_workqueue_drained(q));
    b = take(q, "ns/b", 5);
    assert_true(kl_workqueue_enter(q, &b, "g", 5));
    kl_workqueue_finish(q, &b, 6);
    assert_true(kl_workqueue_drained(q));
    kl_workqueue_free(q);
}

static void a_held_key_comes_again_in_time_or_when_it_is_released_or_added(void **state)
{
    (void)state;
    kl_workqueue *q = queue();
    kl_workqueue_stats s;
    for (int way = 0; way < 3; way++) {
        kl_time t = way * 1000, due;
        add(q, "ns/a", -3, t + 1);
        kl_queue_item a = take(q, "ns/a", t + 2);
        kl_workqueue_hold(q, &a, t + 100, t + 2);
        assert_string_equal(kl_workqueue_state(q, "ns/a", &due), "held");
        assert_int_equal(due, t + 100);
        kl_workqueue_stats_get(q, t + 3, &s);
        assert_int_equal(s.held, 1);
        assert_int_equal(s.delayed, 1);
        nothing_is_ready(q, t + 99);
        if (way == 1)
            kl_workqueue_release(q, "ns/a", t + 50);
        if (way == 2)
            add(q, "ns/a", KL_PRIORITY_LOW, t + 50);
        a = take(q, "ns/a", way ? t + 50 : t + 100);
        assert_int_equal(a.queued_at, t + 1);
        assert_int_equal(a.priority, -3);
        kl_workqueue_finish(q, &a, t + 200);
        assert_string_equal(state_of(q, "ns/a"), "absent");
    }
    kl_workqueue_stats_get(q, 5000, &s);
    assert_int_equal(s.adds, 3); /* one for each; what joined a held key is none */
    assert_int_equal(s.held, 0);
    kl_workqueue_free(q);
}

static void a_key_that_is_released_before_it_is_held_is_not_held(void **state)
{
    (void)state;
    kl_workqueue *q = queue();
    add(q, "ns/a", 0, 1);
    kl_queue_item a = take(q, "ns/a", 2);
    kl_workqueue_release(q, "ns/a", 3);
    kl_workqueue_release(q, "ns/absent", 3);
    kl_workqueue_hold(q, &a, 100, 4);
    a = take(q, "ns/a", 5);
    add(q, "ns/a", 9, 6); /* likewise one that was added: something has happened */
    kl_workqueue_hold(q, &a, 100, 7);
    a = take(q, "ns/a", 8);
    assert_int_equal(a.priority, 9);
    assert_int_equal(a.queued_at, 1);
    kl_workqueue_hold(q, &a, 100, 9); /* neither now */
    nothing_is_ready(q, 10);
    kl_workqueue_shut_down(q);
    assert_true(kl_workqueue_drained(q));
    kl_workqueue_free(q);
}

static void a_key_that_is_held_in_its_group_keeps_it(void **state)
{
    (void)state;
    kl_workqueue *q = queue();
    add(q, "ns/a", 0, 1);
    add(q, "ns/b", 0, 2);
    kl_queue_item a = take(q, "ns/a", 3), b = take(q, "ns/b", 3);
    assert_true(kl_workqueue_enter(q, &a, "g", 3));
    assert_false(kl_workqueue_enter(q, &b, "g", 3));
    kl_workqueue_hold(q, &a, 100, 4);
    nothing_is_ready(q, 5);
    kl_workqueue_release(q, "ns/a", 6);
    a = take(q, "ns/a", 6);
    assert_true(kl_workqueue_enter(q, &a, "g", 6));
    kl_workqueue_hold(q, &a, 100, 7);
    /* it is dropped, and who was handed out already is not left waiting for it */
    kl_workqueue_shut_down(q);
    b = take(q, "ns/b", 8);
    assert_true(kl_workqueue_enter(q, &b, "g", 8));
    kl_workqueue_finish(q, &b, 9);
    assert_true(kl_workqueue_drained(q));
    kl_workqueue_free(q);
}

static void a_given_up_key_waits_until_its_object_changes(void **state)
{
    (void)state;
    kl_workqueue *q = queue();
    kl_workqueue_stats s;
    add(q, "ns/a", 0, 1);
    kl_queue_item a = take(q, "ns/a", 2);
    kl_workqueue_add_rate_limited(q, "ns/a", 2);
    kl_workqueue_finish(q, &a, 3);
    a = take(q, "ns/a", KL_SECONDS(2));
    kl_workqueue_rest(q, &a);
    kl_workqueue_finish(q, &a, KL_SECONDS(2));
    assert_string_equal(state_of(q, "ns/a"), "given up");
    assert_int_equal(kl_workqueue_requeues(q, "ns/a"), 0);
    kl_workqueue_add_with(q, "ns/a", &(kl_add){.routine = true}, KL_SECONDS(3));
    nothing_is_ready(q, KL_SECONDS(3));
    kl_workqueue_stats_get(q, KL_SECONDS(3), &s);
    assert_int_equal(s.resting, 1);
    assert_int_equal(s.failing, 0);
    add(q, "ns/a", KL_PRIORITY_LOW, KL_SECONDS(4));
    a = take(q, "ns/a", KL_SECONDS(4));
    /* while it fails for the last time: that was of an older state */
    add(q, "ns/a", 0, KL_SECONDS(5));
    kl_workqueue_rest(q, &a);
    kl_workqueue_finish(q, &a, KL_SECONDS(5));
    a = take(q, "ns/a", KL_SECONDS(5));
    /* and here nobody changed anything */
    kl_workqueue_add_with(q, "ns/a", &(kl_add){.routine = true}, KL_SECONDS(5));
    kl_workqueue_rest(q, &a);
    kl_workqueue_finish(q, &a, KL_SECONDS(6));
    nothing_is_ready(q, KL_SECONDS(6));
    assert_string_equal(state_of(q, "ns/a"), "given up");
    for (int i = 0; i < 5000; i++) { /* many more, so that to forget them rebuilds the table */
        char key[16];
        snprintf(key, sizeof key, "ns/%d", i);
        add(q, key, 0, KL_SECONDS(7));
        a = take(q, key, KL_SECONDS(7));
        kl_workqueue_rest(q, &a);
        kl_workqueue_finish(q, &a, KL_SECONDS(7));
    }
    kl_workqueue_set_backoff(q, &(kl_backoff_policy){KL_SECONDS(7), KL_SECONDS(9), 0});
    kl_workqueue_stats_get(q, KL_SECONDS(7), &s);
    assert_int_equal(s.resting, 0);
    kl_workqueue_add_with(q, "ns/a", &(kl_add){.routine = true}, KL_SECONDS(8));
    a = take(q, "ns/a", KL_SECONDS(8));
    /* and the new ladder counts */
    assert_int_equal(kl_workqueue_add_rate_limited(q, "ns/a", KL_SECONDS(8)), KL_SECONDS(7));
    kl_workqueue_finish(q, &a, KL_SECONDS(8));
    kl_workqueue_free(q);
}

static void failing(kl_workqueue *q, const char *key, kl_time now)
{
    add(q, key, 0, now);
    kl_queue_item i = take(q, key, now);
    kl_workqueue_add_rate_limited(q, key, now);
    kl_workqueue_finish(q, &i, now);
}

static void pardoned_keys_start_over(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        kl_workqueue *q = queue();
        kl_workqueue_stats s;
        add(q, "ns/good", 0, 1);
        kl_queue_item i = take(q, "ns/good", 1);
        kl_workqueue_finish(q, &i, 1);
        failing(q, "ns/bad", 2);
        add(q, "ns/gone", 0, 3);
        i = take(q, "ns/gone", 3);
        kl_workqueue_rest(q, &i);
        kl_workqueue_finish(q, &i, 3);
        kl_workqueue_add_after(q, "ns/later", KL_SECONDS(60), 4);
        add(q, "ns/runs", 0, 5);
        kl_queue_item runs = take(q, "ns/runs", 5);
        kl_workqueue_add_rate_limited(q, "ns/runs", 5);
        assert_int_equal(
            kl_workqueue_pardon(q, again ? &(kl_add){.priority = KL_PRIORITY_RELOAD} : NULL, 6), 3);
        kl_workqueue_stats_get(q, 6, &s);
        assert_int_equal(s.failing, 0);
        assert_int_equal(s.resting, 0);
        assert_int_equal(kl_workqueue_requeues(q, "ns/bad"), 0);
        assert_int_equal(s.ready, again ? 2 : 0);
        assert_string_equal(state_of(q, "ns/bad"), again ? "queued" : "waiting");
        assert_string_equal(state_of(q, "ns/gone"), again ? "queued" : "absent");
        assert_string_equal(state_of(q, "ns/later"), "waiting");
        assert_string_equal(state_of(q, "ns/runs"), again ? "running, queued again" : "running");
        kl_workqueue_finish(q, &runs, 7);
        kl_workqueue_add_with(q, "ns/gone", &(kl_add){.routine = true}, 8);
        kl_workqueue_stats_get(q, 8, &s);
        assert_int_equal(s.ready, again ? 3 : 1);
        kl_workqueue_free(q);
    }
}

/* --- no key waits forever ---------------------------------------------------------------- */

#define CROWD 60 /* keys in the queue at most */
#define FLOWS 6
#define TICK KL_MILLISECONDS(10)

/* Adversaries of several kinds keep the queue full; what is oldest by age and priority must come within
 * the time that the priorities are apart, plus so many turns as there can be older keys and namespaces. */
static void no_key_waits_without_bound(void **state)
{
    (void)state;
    static const int priorities[] = {KL_PRIORITY_LOW, -10, 0, 10};
    kl_time bound = 110 * KL_QUEUE_AGEING + CROWD * FLOWS * TICK;
    for (uint64_t seed = 0; seed < 12; seed++) {
        kl_random r = {seed};
        kl_workqueue *q = queue();
        kl_workqueue_stats s;
        kl_queue_item it;
        kl_time now = 0, worst = 0;
        int low = 0, passed = 0;
        for (int i = 0; i < 20000; i++, now += TICK) {
            kl_workqueue_stats_get(q, now, &s);
            for (size_t n = s.ready; n < CROWD; n++) {
                char key[32];
                /* One namespace floods, or all do; urgent keys only, or of any priority. */
                int space = seed % 2 && kl_random_next(&r) % 50 ? 0 : (int)(kl_random_next(&r) % FLOWS);
                int priority = seed % 3 && kl_random_next(&r) % 100 ? 10 : priorities[kl_random_next(&r) % 4];
                snprintf(key, sizeof key, "%d/%d-%zu", space, i, n);
                add(q, key, priority, now);
            }
            assert_true(kl_workqueue_try_get(q, now, &it));
            low += it.priority == KL_PRIORITY_LOW;
            passed += it.priority > KL_PRIORITY_LOW && now - it.queued_at < KL_SECONDS(1);
            worst = now - it.queued_at > worst ? now - it.queued_at : worst;
            kl_workqueue_finish(q, &it, now);
        }
        assert_in_range(worst, 0, bound);
        assert_true(low > 0);    /* what nobody waits for comes, too */
        assert_true(passed > 0); /* and does not hold up what somebody changed */
        kl_workqueue_free(q);
    }
}

/* --- threads: of a group one runs, and nobody is left waiting ----------------------------- */

#define CROWD_KEYS 40
#define CROWD_GROUPS 5
#define CROWD_ADDS 5000
#define CROWD_ADDERS 2
#define CROWD_WORKERS 4
typedef struct crowd {
    kl_workqueue *q;
    kl_mutex mu;
    kl_cond cond;
    bool busy[CROWD_GROUPS];
    int seen[CROWD_KEYS], added[CROWD_KEYS], overlaps, news;
} crowd;

static kl_time clock_now(void) { return kl_clock_now(kl_clock_real()); }

static void crowd_wake(void *arg)
{
    crowd *c = arg;
    kl_lock(&c->mu);
    c->news++;
    kl_cond_broadcast(&c->cond);
    kl_unlock(&c->mu);
}

static void crowd_run(crowd *c, const kl_queue_item *it, kl_random *r)
{
    int k = atoi(strchr(it->key, '/') + 1), g = k % CROWD_GROUPS;
    char group[16];
    snprintf(group, sizeof group, "g%d", g);
    bool holds = kl_random_next(r) % 8 == 0;
    if (holds && kl_random_next(r) % 2) { /* not now */
        kl_workqueue_hold(c->q, it, clock_now() + 1000, clock_now());
        return;
    }
    if (!kl_workqueue_enter(c->q, it, group, clock_now()))
        return;
    if (holds) { /* nor now, and the group waits with it */
        kl_workqueue_hold(c->q, it, clock_now() + 1000, clock_now());
        return;
    }
    kl_lock(&c->mu);
    c->overlaps += c->busy[g];
    c->busy[g] = true;
    c->seen[k] = c->added[k];
    kl_unlock(&c->mu);
    kl_lock(&c->mu);
    c->busy[g] = false;
    kl_unlock(&c->mu);
    kl_workqueue_finish(c->q, it, clock_now());
}

static void crowd_work(void *arg)
{
    crowd *c = arg;
    kl_queue_item it;
    kl_random r = {kl_thread_self()};
    for (;;) {
        kl_lock(&c->mu);
        int news = c->news;
        kl_unlock(&c->mu);
        while (kl_workqueue_try_get(c->q, clock_now(), &it))
            crowd_run(c, &it, &r);
        if (kl_workqueue_drained(c->q))
            return;
        kl_time due = kl_workqueue_next_due(c->q);
        kl_lock(&c->mu);
        while (news == c->news && kl_cond_wait_until(&c->cond, &c->mu, due))
            ;
        kl_unlock(&c->mu);
    }
}

static void crowd_add(void *arg)
{
    crowd *c = arg;
    kl_random r = {kl_thread_self()};
    char key[16];
    for (int i = 0; i < CROWD_ADDS; i++) {
        int k = (int)(kl_random_next(&r) % CROWD_KEYS);
        snprintf(key, sizeof key, "%d/%d", k % 3, k);
        kl_lock(&c->mu);
        c->added[k]++;
        kl_unlock(&c->mu);
        kl_workqueue_add_with(
            c->q, key, &(kl_add){.priority = (int)(kl_random_next(&r) % 3) * -50}, clock_now());
        kl_workqueue_release(c->q, key, clock_now());
    }
}

/* Every key that was added runs afterwards, without anybody adding it once more: who is parked or held is
 * brought again. */
static void many_threads_overlap_in_no_group_and_leave_no_key_waiting(void **state)
{
    (void)state;
    crowd c = {0};
    kl_thread *workers[CROWD_WORKERS], *adders[CROWD_ADDERS];
    kl_workqueue_stats s;
    kl_mutex_init(&c.mu);
    kl_cond_init(&c.cond);
    c.q = kl_workqueue_new(&(kl_workqueue_options){.wake = crowd_wake, .wake_arg = &c});
    for (int i = 0; i < CROWD_WORKERS; i++)
        workers[i] = kl_thread_start("worker", crowd_work, &c);
    for (int i = 0; i < CROWD_ADDERS; i++)
        adders[i] = kl_thread_start("adder", crowd_add, &c);
    for (int i = 0; i < CROWD_ADDERS; i++)
        kl_thread_join(adders[i]);
    /* held keys would be dropped, so it ends first */
    for (kl_time end = clock_now() + KL_SECONDS(120);;) {
        kl_workqueue_stats_get(c.q, clock_now(), &s);
        if (!s.ready && !s.delayed && !s.running && !s.parked)
            break;
        assert_true(clock_now() < end);
        kl_lock(&c.mu);
        kl_cond_wait_until(&c.cond, &c.mu, clock_now() + KL_MILLISECONDS(1));
        kl_unlock(&c.mu);
    }
    kl_workqueue_shut_down(c.q);
    for (int i = 0; i < CROWD_WORKERS; i++)
        kl_thread_join(workers[i]);
    assert_int_equal(c.overlaps, 0);
    for (int k = 0; k < CROWD_KEYS; k++)
        assert_int_equal(c.seen[k], c.added[k]);
    kl_workqueue_free(c.q);
    kl_cond_fini(&c.cond);
    kl_mutex_fini(&c.mu);
}

/* --- against a model ---------------------------------------------------------------------- */

#define KEYS 24
#define SPACES 3
#define LEVELS 3
#define GROUPS 4
#define AGEING 977
#if defined(__SANITIZE_THREAD__)
#define OPS 60000
#else
#define OPS 400000
#endif
static const int levels[LEVELS] = {-100, 0, 3};
static char names[KEYS][16];
static const char *const group_names[GROUPS] = {"g0", "g1", "g2", "g3"};

/* What is ready in one place: the queue's, or a group's. */
typedef struct shelf {
    bool in[KEYS], back[KEYS];
    uint64_t place[KEYS], places;
    int ring[LEVELS][SPACES], ring_len[LEVELS];
} shelf;

typedef struct entry {
    bool running, dirty, waiting, held, released, called;
    int priority, group; /* group: -1, or where it runs, is parked or the candidate */
    bool parked;
    kl_time at, again_at, due;
    uint64_t due_seq;
    kl_queue_item item; /* of the queue, while running */
} entry;

typedef struct model {
    entry e[KEYS];
    shelf ready, parked[GROUPS];
    int runs[GROUPS], candidate[GROUPS];
    uint64_t due_seqs;
    bool down;
    kl_workqueue *q; /* asked where two levels are equally urgent */
} model;

static int space_of(int k) { return k % SPACES; }
static int level_of(int p) { return p == levels[0] ? 0 : p == levels[1] ? 1 : 2; }

static bool same_flow(const model *m, const shelf *s, int i, int k)
{
    return s->in[i] && m->e[i].priority == m->e[k].priority && space_of(i) == space_of(k);
}

static void ring_drop(shelf *s, int l, int i)
{
    memmove(&s->ring[l][i], &s->ring[l][i + 1], sizeof s->ring[l][0] * (size_t)(--s->ring_len[l] - i));
}

static void shelf_put(model *m, shelf *s, int k, bool back)
{
    int l = level_of(m->e[k].priority);
    bool there = false;
    for (int i = 0; i < KEYS; i++)
        there |= same_flow(m, s, i, k);
    if (!there)
        s->ring[l][s->ring_len[l]++] = space_of(k);
    s->in[k] = true;
    s->back[k] = back;
    s->place[k] = s->places++;
}

static void shelf_remove(model *m, shelf *s, int k)
{
    int l = level_of(m->e[k].priority);
    s->in[k] = false;
    for (int i = 0; i < KEYS; i++)
        if (same_flow(m, s, i, k))
            return;
    for (int i = 0; i < s->ring_len[l]; i++)
        if (s->ring[l][i] == space_of(k)) {
            ring_drop(s, l, i);
            return;
        }
}

/* Put back ones by age, then the others as they came. */
static bool flow_before(const model *m, const shelf *s, int a, int b)
{
    if (s->back[a] != s->back[b])
        return s->back[a];
    if (s->back[a] && m->e[a].at != m->e[b].at)
        return m->e[a].at < m->e[b].at;
    return s->place[a] < s->place[b];
}

static int shelf_first(const model *m, const shelf *s, int l, int space)
{
    int best = -1;
    for (int k = 0; k < KEYS; k++)
        if (s->in[k] && m->e[k].priority == levels[l] && space_of(k) == space
            && (best < 0 || flow_before(m, s, k, best)))
            best = k;
    return best;
}

static int shelf_oldest(const model *m, const shelf *s, int l)
{
    int back = -1, first = -1;
    for (int k = 0; k < KEYS; k++) {
        if (!s->in[k] || m->e[k].priority != levels[l])
            continue;
        if (s->back[k] && (back < 0 || flow_before(m, s, k, back)))
            back = k;
        if (!s->back[k] && (first < 0 || s->place[k] < s->place[first]))
            first = k;
    }
    return back < 0 || (first >= 0 && m->e[first].at < m->e[back].at) ? first : back;
}

static kl_time urgency(const model *m, const shelf *s, int l)
{
    return m->e[shelf_oldest(m, s, l)].at - (kl_time)levels[l] * AGEING;
}

/* `seen`: the queue says that this one was taken: believed where two levels are equally urgent. */
static int shelf_take(model *m, shelf *s, bool (*seen)(const model *m, int k, int got), int got)
{
    int highest = -1, level = -1;
    for (int l = LEVELS - 1; l >= 0; l--) {
        if (shelf_oldest(m, s, l) < 0)
            continue;
        if (highest < 0)
            highest = level = l;
        else if (urgency(m, s, l) < urgency(m, s, level)
            || (urgency(m, s, l) == urgency(m, s, level) && seen(m, shelf_oldest(m, s, l), got)))
            level = l;
    }
    if (highest < 0)
        return -1;
    int k = level == highest ? shelf_first(m, s, level, s->ring[level][0]) : shelf_oldest(m, s, level);
    if (level == highest) {
        int space = s->ring[level][0];
        ring_drop(s, level, 0);
        s->ring[level][s->ring_len[level]++] = space;
    }
    shelf_remove(m, s, k);
    return k;
}

static bool is_got(const model *m, int k, int got)
{
    (void)m;
    return k == got;
}
static bool was_called(const model *m, int k, int got)
{
    (void)got;
    return !strcmp(kl_workqueue_state(m->q, names[k], NULL), "queued");
}

static void model_settle(model *m, int g)
{
    if (g < 0 || m->runs[g] >= 0 || m->candidate[g] >= 0)
        return;
    int k = shelf_take(m, &m->parked[g], was_called, -1);
    if (k < 0) {
        memset(&m->parked[g], 0, sizeof m->parked[g]); /* an empty group is forgotten, turns and all */
        return;
    }
    m->candidate[g] = k;
    m->e[k].parked = false;
    shelf_put(m, &m->ready, k, true);
}

static void model_leave(model *m, int k)
{
    int g = m->e[k].group;
    m->e[k].group = -1;
    if (g >= 0 && m->runs[g] == k)
        m->runs[g] = -1;
    if (g >= 0 && m->candidate[g] == k)
        m->candidate[g] = -1;
    model_settle(m, g);
}

static void model_unrun(model *m, int k)
{
    entry *e = &m->e[k];
    e->running = e->dirty = e->waiting = false;
    e->at = e->item.queued_at;
    e->priority = e->priority > e->item.priority ? e->priority : e->item.priority;
}

static void model_ready(model *m, int k, kl_time at)
{
    entry *e = &m->e[k];
    if (m->ready.in[k] || e->parked || e->dirty)
        return;
    if (e->held) {
        e->held = false;
        shelf_put(m, &m->ready, k, true);
    } else if (e->running) {
        e->dirty = true;
        e->again_at = at;
    } else {
        e->at = at;
        shelf_put(m, &m->ready, k, false);
    }
}

static void model_add(model *m, int k, int priority, kl_time delay, kl_time now)
{
    entry *e = &m->e[k];
    shelf *in = m->ready.in[k] ? &m->ready : e->parked ? &m->parked[e->group] : NULL;
    if (m->down)
        return;
    if (!in && !e->dirty && !e->waiting) {
        e->priority = priority;
    } else if (priority > e->priority) {
        if (in)
            shelf_remove(m, in, k);
        e->priority = priority;
        if (in)
            shelf_put(m, in, k, false);
    }
    if (delay > 0) {
        if (in || e->dirty)
            return;
        if (!e->waiting || now + delay < e->due) {
            e->due = now + delay;
            e->due_seq = m->due_seqs++;
        }
        e->waiting = true;
    } else if (e->parked) {
        shelf_remove(m, in, k);
        e->parked = false;
        e->group = -1;
        shelf_put(m, &m->ready, k, true);
    } else {
        e->waiting = false;
        model_ready(m, k, now);
    }
}

static void model_promote(model *m, kl_time now)
{
    for (;;) {
        int first = -1;
        for (int k = 0; k < KEYS; k++) {
            const entry *e = &m->e[k], *f = &m->e[first < 0 ? 0 : first];
            if (e->waiting && e->due <= now
                && (first < 0 || e->due < f->due || (e->due == f->due && e->due_seq < f->due_seq)))
                first = k;
        }
        if (first < 0)
            return;
        m->e[first].waiting = false;
        model_ready(m, first, m->e[first].due);
    }
}

static void check_same(const model *m, kl_time now)
{
    kl_workqueue_stats s;
    size_t running = 0, delayed = 0, ready = 0, held = 0, parked = 0;
    kl_time next = KL_NEVER;
    kl_workqueue_stats_get(m->q, now, &s);
    for (int k = 0; k < KEYS; k++) {
        const entry *e = &m->e[k];
        kl_time due;
        const char *want = e->running ? (e->dirty ? "running, queued again" : "running")
            : e->parked               ? "waiting for its group"
            : m->ready.in[k]          ? "queued"
            : e->held                 ? "held"
            : e->waiting              ? "waiting"
                                      : "absent";
        assert_string_equal(kl_workqueue_state(m->q, names[k], &due), want);
        assert_int_equal(due, e->waiting ? e->due : KL_NEVER);
        running += e->running;
        delayed += e->waiting;
        ready += m->ready.in[k];
        held += e->held;
        parked += e->parked;
        next = e->waiting && e->due < next ? e->due : next;
    }
    assert_int_equal(s.ready, ready);
    assert_int_equal(s.running, running);
    assert_int_equal(s.delayed, delayed);
    assert_int_equal(s.held, held);
    assert_int_equal(s.parked, parked);
    assert_int_equal(kl_workqueue_next_due(m->q), ready ? 0 : next);
    assert_int_equal(kl_workqueue_drained(m->q), m->down && !ready && !running && !parked);
    for (int g = 0; g < GROUPS; g++) { /* who is parked has somebody to wait for */
        bool any = false;
        for (int k = 0; k < KEYS; k++)
            any |= m->parked[g].in[k];
        assert_true(!any || m->runs[g] >= 0 || m->candidate[g] >= 0);
    }
}

/* Which one was handed out, or -1. */
static int get(model *m, kl_time now)
{
    kl_queue_item it = {0};
    int got = -1;
    if (kl_workqueue_try_get(m->q, now, &it))
        for (got = 0; strcmp(names[got], it.key);)
            got++;
    int want = shelf_take(m, &m->ready, is_got, got);
    assert_int_equal(got, want);
    if (got < 0)
        return -1;
    entry *e = &m->e[got];
    assert_int_equal(it.priority, e->priority);
    assert_int_equal(it.queued_at, e->at);
    e->item = it;
    e->running = true;
    e->released = false;
    return got;
}

static void enter(model *m, int k, int g, kl_time now)
{
    entry *e = &m->e[k];
    bool in = kl_workqueue_enter(m->q, &e->item, group_names[g], now);
    if (e->group >= 0 && e->group != g)
        model_leave(m, k);
    e->group = g;
    if (m->candidate[g] == k)
        m->candidate[g] = -1;
    assert_int_equal(in, m->runs[g] < 0 || m->runs[g] == k);
    if (in) {
        m->runs[g] = k;
        return;
    }
    model_unrun(m, k);
    e->parked = true;
    shelf_put(m, &m->parked[g], k, e->called);
    e->called = true;
}

static void hold(model *m, int k, kl_time until, kl_time now)
{
    entry *e = &m->e[k];
    bool ready = e->dirty || e->released || until <= now;
    kl_workqueue_hold(m->q, &e->item, until, now);
    if (e->group < 0 || m->runs[e->group] != k)
        model_leave(m, k);
    model_unrun(m, k);
    if (ready) {
        shelf_put(m, &m->ready, k, true);
    } else if (!m->down) {
        e->held = e->waiting = true;
        e->due = until;
        e->due_seq = m->due_seqs++;
    }
}

static void done(model *m, int k, kl_time now)
{
    entry *e = &m->e[k];
    kl_workqueue_finish(m->q, &e->item, now);
    model_leave(m, k);
    e->running = e->called = false;
    if (e->dirty) {
        e->dirty = false;
        e->at = e->again_at;
        shelf_put(m, &m->ready, k, false);
    }
}

static void add_both(model *m, int k, int priority, kl_time now)
{
    kl_workqueue_add_with(m->q, names[k], &(kl_add){.priority = priority}, now);
    model_add(m, k, priority, 0, now);
}

/* Somebody who runs, from k on; -1. */
static int running_from(const model *m, int k)
{
    for (int n = 0; n < KEYS; n++)
        if (m->e[(k + n) % KEYS].running)
            return (k + n) % KEYS;
    return -1;
}

/* Which group a key is in changes now and then; some are in none. */
static int group_of(int k, long i)
{
    return (int)((unsigned)k * 7 + (unsigned)(i / 3000) * (unsigned)(k % 3)) % (GROUPS + 1) - 1;
}

static void one_life(uint64_t seed, long ops)
{
    kl_random r = {seed};
    model *m = kl_new(model);
    kl_time now = 0;
    m->q = kl_workqueue_new(&(kl_workqueue_options){.ageing = AGEING});
    for (int k = 0; k < KEYS; k++)
        m->e[k].group = -1;
    for (int g = 0; g < GROUPS; g++)
        m->runs[g] = m->candidate[g] = -1;
    for (long i = 0; i < ops; i++) {
        int k = (int)(kl_random_next(&r) % KEYS), priority = levels[kl_random_next(&r) % LEVELS], who;
        kl_time delay = kl_random_between(&r, 0, 400);
        model_promote(m, now);
        switch (kl_random_next(&r) % 12) {
        case 0:
        case 1:
        case 2: add_both(m, k, priority, now); break;
        case 3:
            kl_workqueue_add_with(m->q, names[k], &(kl_add){.priority = priority, .after = delay}, now);
            model_add(m, k, priority, delay, now);
            break;
        case 4:
            kl_workqueue_release(m->q, names[k], now);
            if (m->e[k].held) {
                m->e[k].waiting = false;
                model_ready(m, k, now);
            } else if (m->e[k].running) {
                m->e[k].released = true;
            }
            break;
        case 5:
        case 6:
        case 7:
        case 8:
            who = get(m, now);
            if (who >= 0 && kl_random_next(&r) % 4 == 0) /* something comes between */
                add_both(m, (int)(kl_random_next(&r) % 2 ? (unsigned)who : kl_random_next(&r) % KEYS),
                    priority, now);
            if (who >= 0 && kl_random_next(&r) % 4 == 0)
                hold(m, who, now + delay, now);
            else if (who >= 0 && group_of(who, i) >= 0)
                enter(m, who, group_of(who, i), now);
            if (who >= 0 && m->e[who].running && kl_random_next(&r) % 4 == 0)
                hold(m, who, now + delay, now);
            break;
        default:
            who = running_from(m, k);
            if (who >= 0)
                done(m, who, now);
            break;
        }
        now += 1 + kl_random_between(&r, 0, i % 1000 < 500 ? 20 : 3000);
        if (!(i % 16)) {
            model_promote(m, now);
            check_same(m, now);
        }
    }
    model_promote(m, now);
    check_same(m, now); /* it has looked, too */
    /* what waits is dropped, and all else comes to an end, parked or not */
    kl_workqueue_shut_down(m->q);
    m->down = true;
    for (int k = 0; k < KEYS; k++)
        m->e[k].waiting = false;
    for (int n = 0; n < KEYS; n++) { /* in the order in which they were due */
        int first = -1;
        for (int k = 0; k < KEYS; k++)
            if (m->e[k].held
                && (first < 0 || m->e[k].due < m->e[first].due
                    || (m->e[k].due == m->e[first].due && m->e[k].due_seq < m->e[first].due_seq)))
                first = k;
        if (first >= 0) {
            m->e[first].held = false;
            model_leave(m, first);
        }
    }
    for (int left = 5 * KEYS; left && !kl_workqueue_drained(m->q); left--, now++) {
        int who = get(m, now);
        if (who >= 0 && group_of(who, 0) >= 0)
            enter(m, who, group_of(who, 0), now);
        who = running_from(m, left);
        if (who >= 0)
            done(m, who, now);
        check_same(m, now);
    }
    assert_true(kl_workqueue_drained(m->q));
    kl_workqueue_free(m->q);
    kl_free(m);
}

static void random_operations_follow_the_rules(void **state)
{
    (void)state;
    const char *text = getenv("KL_MODEL_OPS");
    long ops = text ? atol(text) : OPS;
    for (int k = 0; k < KEYS; k++)
        snprintf(names[k], sizeof names[k], "%d/%d", space_of(k), k);
    for (uint64_t seed = 1; seed <= 8; seed++)
        one_life(seed, ops / 8);
}

KL_TESTS(cmocka_unit_test(of_a_group_one_runs_and_the_end_calls_the_next),
    cmocka_unit_test(the_more_urgent_of_a_group_is_called_first),
    cmocka_unit_test(a_key_that_changes_its_group_releases_the_next_of_the_old_one),
    cmocka_unit_test(an_add_reconsiders_a_parked_key),
    cmocka_unit_test(parked_keys_are_handed_out_before_the_queue_is_drained),
    cmocka_unit_test(a_held_key_comes_again_in_time_or_when_it_is_released_or_added),
    cmocka_unit_test(a_key_that_is_released_before_it_is_held_is_not_held),
    cmocka_unit_test(a_key_that_is_held_in_its_group_keeps_it),
    cmocka_unit_test(a_given_up_key_waits_until_its_object_changes),
    cmocka_unit_test(pardoned_keys_start_over), cmocka_unit_test(no_key_waits_without_bound),
    cmocka_unit_test(many_threads_overlap_in_no_group_and_leave_no_key_waiting),
    cmocka_unit_test(random_operations_follow_the_rules))
