/* model_test.c - millions of random operations on each order against the rules written as plain loops; and
 * a crowd of threads.
 *
 * KL_MODEL_OPS=n sets how many operations each order gets. */
#include "support/test.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"
#include "queue/workqueue.h"

#define KEYS 24
#define SPACES 4
#if defined(__SANITIZE_THREAD__)
#define OPS 100000 /* one thread, thirty times slower */
#else
#define OPS 1000000
#endif
/* Not a multiple of what time moves by, so that few levels are equally urgent. */
#define AGEING 977

static const int priorities[] = {-100, -1, 0, 3};
#define LEVELS 4

typedef struct entry {
    bool queued, running, dirty, waiting, delayed;
    int priority, failures;
    kl_time at, again_at, due;
    uint64_t due_seq, place, first_add; /* place: order in its level */
} entry;

typedef struct model {
    kl_queue_order order;
    entry e[KEYS];
    int ring[LEVELS][SPACES], ring_len[LEVELS];
    uint64_t places, due_seqs, entries;
    bool down;
} model;

static char names[KEYS][16];

static int space_of(int k) { return k % SPACES; }

static int level_of(int priority)
{
    int l = 0;
    while (priorities[l] != priority)
        l++;
    return l;
}

static void model_queue(model *m, int k)
{
    entry *e = &m->e[k];
    int l = level_of(e->priority), *ring = m->ring[l];
    e->queued = true;
    e->place = m->places++;
    for (int i = 0; i < m->ring_len[l]; i++)
        if (ring[i] == space_of(k))
            return;
    ring[m->ring_len[l]++] = space_of(k);
}

static void ring_drop(model *m, int l, int i)
{
    memmove(&m->ring[l][i], &m->ring[l][i + 1], sizeof m->ring[l][0] * (size_t)(--m->ring_len[l] - i));
}

static void model_unqueue(model *m, int k)
{
    int l = level_of(m->e[k].priority);
    m->e[k].queued = false;
    for (int i = 0; i < KEYS; i++)
        if (m->e[i].queued && m->e[i].priority == m->e[k].priority && space_of(i) == space_of(k))
            return;
    for (int i = 0; i < m->ring_len[l]; i++)
        if (m->ring[l][i] == space_of(k)) {
            ring_drop(m, l, i);
            return;
        }
}

static void model_entry(model *m, int k, int priority)
{
    entry *e = &m->e[k];
    if (!e->queued && !e->dirty && !e->waiting) {
        e->priority = priority;
        e->delayed = false;
        e->first_add = m->entries++;
    } else if (priority > e->priority) {
        bool queued = e->queued;
        if (queued)
            model_unqueue(m, k);
        e->priority = priority;
        if (queued)
            model_queue(m, k);
    }
}

static void model_ready(model *m, int k, kl_time at)
{
    entry *e = &m->e[k];
    if (e->queued || e->dirty)
        return;
    if (e->running) {
        e->dirty = true;
        e->again_at = at;
        return;
    }
    e->at = at;
    model_queue(m, k);
}

static void model_add(model *m, int k, int priority, kl_time delay, kl_time now)
{
    entry *e = &m->e[k];
    if (m->down)
        return;
    model_entry(m, k, priority);
    if (delay <= 0) {
        if (m->order != KL_QUEUE_FIFO)
            e->waiting = false;
        e->delayed = false;
        model_ready(m, k, now);
    } else if ((!e->queued && !e->dirty) || m->order == KL_QUEUE_FIFO) {
        if (!e->waiting || now + delay < e->due) {
            e->due = now + delay;
            e->due_seq = m->due_seqs++;
        }
        e->waiting = true;
    }
}

static void model_promote(model *m, kl_time now)
{
    for (;;) {
        int first = -1;
        for (int k = 0; k < KEYS; k++) {
            entry *e = &m->e[k], *f = &m->e[first < 0 ? 0 : first];
            if (e->waiting && e->due <= now
                && (first < 0 || e->due < f->due || (e->due == f->due && e->due_seq < f->due_seq)))
                first = k;
        }
        if (first < 0)
            return;
        m->e[first].waiting = false;
        m->e[first].delayed = m->order == KL_QUEUE_RANK;
        model_ready(m, first, m->e[first].due);
    }
}

/* The first of a level, of one namespace (or any: -1), by the place it took. */
static int oldest_of(const model *m, int l, int space)
{
    int best = -1;
    for (int k = 0; k < KEYS; k++)
        if (m->e[k].queued && m->e[k].priority == priorities[l] && (space < 0 || space_of(k) == space)
            && (best < 0 || m->e[k].place < m->e[best].place))
            best = k;
    return best;
}

static bool rank_before(const entry *a, const entry *b)
{
    if (a->delayed != b->delayed)
        return b->delayed;
    if (a->delayed && a->at != b->at)
        return a->at < b->at;
    return a->first_add < b->first_add;
}

static int ranked_of(const model *m, int l, int got)
{
    int best = -1;
    for (int k = 0; k < KEYS; k++)
        if (m->e[k].queued && m->e[k].priority == priorities[l]
            && (best < 0 || rank_before(&m->e[k], &m->e[best])))
            best = k;
    /* Of keys that were delayed to the same moment either may come first. */
    if (got >= 0 && best >= 0 && m->e[got].queued && m->e[got].priority == priorities[l] && m->e[got].delayed
        && m->e[best].delayed && m->e[got].at == m->e[best].at)
        return got;
    return best;
}

static kl_time urgency(const model *m, int l)
{
    return m->e[oldest_of(m, l, -1)].at - (kl_time)priorities[l] * AGEING;
}

/* What must have been handed out: `got` where two levels are equally urgent and it is the next of one of
 * them. -1: nothing. */
static int model_get(model *m, int got, kl_time now)
{
    int highest = -1, level = -1, k;
    for (int l = LEVELS - 1; l >= 0; l--) {
        if (oldest_of(m, l, -1) < 0)
            continue;
        if (highest < 0)
            highest = level = l;
        else if (m->order == KL_QUEUE_FAIR
            && (urgency(m, l) < urgency(m, level)
                || (urgency(m, l) == urgency(m, level) && oldest_of(m, l, -1) == got)))
            level = l;
    }
    if (highest < 0)
        return -1;
    if (m->order == KL_QUEUE_RANK)
        k = ranked_of(m, level, got);
    else if (m->order == KL_QUEUE_FIFO || level != highest)
        k = oldest_of(m, level, -1);
    else
        k = oldest_of(m, level, m->ring[level][0]);
    if (m->order == KL_QUEUE_FAIR && level == highest) { /* its turn is over */
        int space = m->ring[level][0];
        ring_drop(m, level, 0);
        m->ring[level][m->ring_len[level]++] = space;
    }
    model_unqueue(m, k);
    m->e[k].running = true;
    m->e[k].at = now;
    return k;
}

static void model_done(model *m, int k)
{
    entry *e = &m->e[k];
    e->running = false;
    if (e->dirty) {
        e->dirty = false;
        e->at = e->again_at;
        model_queue(m, k);
    }
}

static void check_same(kl_workqueue *q, const model *m, kl_time now)
{
    kl_workqueue_stats s;
    size_t running = 0, delayed = 0, ready = 0, failing = 0;
    kl_time next = KL_NEVER, unfinished = 0;
    kl_workqueue_stats_get(q, now, &s);
    for (int k = 0; k < KEYS; k++) {
        const entry *e = &m->e[k];
        kl_time due;
        const char *want = e->running ? (e->dirty ? "running, queued again" : "running")
            : e->queued               ? "queued"
            : e->waiting              ? "waiting"
                                      : "absent";
        assert_string_equal(kl_workqueue_state(q, names[k], &due), want);
        assert_int_equal(due, e->waiting ? e->due : KL_NEVER);
        assert_int_equal(kl_workqueue_requeues(q, names[k]), e->failures);
        if (e->queued || e->dirty || e->waiting)
            assert_int_equal(kl_workqueue_priority(q, names[k]), e->priority);
        running += e->running;
        delayed += e->waiting;
        ready += e->queued;
        failing += e->failures > 0;
        unfinished += e->running ? now - e->at : 0;
        next = e->waiting && e->due < next ? e->due : next;
    }
    assert_int_equal(s.ready, ready);
    assert_int_equal(s.running, running);
    assert_int_equal(s.delayed, delayed);
    assert_int_equal(s.failing, failing);
    assert_int_equal(s.unfinished, unfinished);
    assert_int_equal(kl_workqueue_next_due(q), ready ? 0 : next);
    assert_int_equal(kl_workqueue_drained(q), m->down && !ready && !running);
}

static void get(kl_workqueue *q, model *m, kl_time now)
{
    kl_queue_item it = {0};
    int got = -1;
    if (kl_workqueue_try_get(q, now, &it))
        for (got = 0; strcmp(names[got], it.key);)
            got++;
    kl_time at = got >= 0 ? m->e[got].at : 0;
    int want = model_get(m, got, now);
    assert_int_equal(got, want);
    if (got < 0)
        return;
    assert_int_equal(it.priority, m->e[got].priority);
    assert_int_equal(it.queued_at, at);
}

static void one_life(kl_queue_order order, uint64_t seed, long ops)
{
    kl_random r = {seed};
    kl_workqueue *q = kl_workqueue_new(
        &(kl_workqueue_options){.order = order, .ageing = AGEING, .backoff = {50, 3000, 0}});
    model *m = kl_new(model);
    kl_time now = 0;
    m->order = order;
    for (long i = 0; i < ops; i++) {
        int k = (int)(kl_random_next(&r) % KEYS), priority = priorities[kl_random_next(&r) % LEVELS];
        kl_time delay = kl_random_between(&r, -1, 400);
        model_promote(m, now); /* whatever is done first finds the due keys queued */
        switch (kl_random_next(&r) % 12) {
        case 0:
        case 1:
        case 2:
            kl_workqueue_add_with(q, names[k], &(kl_add){.priority = priority}, now);
            model_add(m, k, priority, 0, now);
            break;
        case 3:
            kl_workqueue_add_with(q, names[k], &(kl_add){.priority = priority, .after = delay}, now);
            model_add(m, k, priority, delay, now);
            break;
        case 4: {
            kl_time want = 50 << (m->e[k].failures < 6 ? m->e[k].failures : 6);
            want = want > 3000 ? 3000 : want;
            assert_int_equal(kl_workqueue_add_rate_limited(q, names[k], now), want);
            m->e[k].failures++;
            model_add(m, k, 0, want, now);
            break;
        }
        case 5:
            kl_workqueue_forget(q, names[k]);
            m->e[k].failures = 0;
            break;
        case 6:
        case 7:
        case 8: get(q, m, now); break;
        case 9:
        case 10:
            for (int n = 0; n < KEYS && !m->e[k].running; n++)
                k = (k + 1) % KEYS;
            kl_workqueue_done(q, names[k], now);
            if (m->e[k].running)
                model_done(m, k);
            break;
        default: break;
        }
        now += 1 + kl_random_between(&r, 0, i % 1000 < 500 ? 20 : 3000);
        if (i == ops - 200) {
            model_promote(m, now);
            check_same(q, m, now);
            kl_workqueue_shut_down(q);
            m->down = true;
            for (int n = 0; n < KEYS; n++)
                m->e[n].waiting = false;
        }
        if (!(i % 16) || i > ops - 200) {
            model_promote(m, now);
            check_same(q, m, now);
        }
    }
    kl_free(m);
    kl_workqueue_free(q);
}

static void random_operations_follow_the_rules(void **state)
{
    (void)state;
    const char *more = getenv("KL_MODEL_OPS");
    long ops = more ? atol(more) : OPS;
    for (int k = 0; k < KEYS; k++)
        snprintf(names[k], sizeof names[k], space_of(k) ? "ns-%d/name-%d" : "%.0dname-%d", space_of(k), k);
    for (int order = KL_QUEUE_FAIR; order <= KL_QUEUE_RANK; order++)
        for (uint64_t seed = 1; seed <= 8; seed++)
            one_life((kl_queue_order)order, seed * 3 + (uint64_t)order, ops / 8);
}

/* --- eight threads: no key runs twice at once, none is lost ------------------------------- */

#define CROWD_KEYS 40
#define CROWD_ADDS 6000
#define CROWD_ADDERS 4
#define CROWD_WORKERS 3
typedef struct crowd {
    kl_workqueue *q;
    kl_mutex mu;
    kl_cond cond;
    bool running[CROWD_KEYS], over;
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
    int k = atoi(strchr(it->key, '/') + 1);
    kl_lock(&c->mu);
    c->overlaps += c->running[k];
    c->running[k] = true;
    /* everything added before this run began is dealt with by it */
    c->seen[k] = c->added[k];
    kl_unlock(&c->mu);
    if (kl_random_next(r) % 4 == 0)
        kl_workqueue_add_with(
            c->q, it->key, &(kl_add){.priority = it->priority, .rate_limited = true}, clock_now());
    else
        kl_workqueue_forget(c->q, it->key);
    kl_lock(&c->mu);
    c->running[k] = false;
    kl_unlock(&c->mu);
    if (kl_random_next(r) % 2)
        kl_workqueue_finish(c->q, it, clock_now());
    else
        kl_workqueue_done(c->q, it->key, clock_now());
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
        if (i % 5 == 0) { /* a delay may be dropped at the end, so it is not counted */
            kl_workqueue_add_with(
                c->q, key, &(kl_add){.after = (kl_time)(i % 7) * 1000, .priority = i % 3}, clock_now());
            continue;
        }
        kl_lock(&c->mu);
        c->added[k]++;
        kl_unlock(&c->mu);
        kl_workqueue_add_with(
            c->q, key, &(kl_add){.priority = (int)(kl_random_next(&r) % 5) * -50}, clock_now());
    }
}

static void crowd_look(void *arg)
{
    crowd *c = arg;
    kl_workqueue_stats s;
    kl_workqueue_depths d;
    for (bool over = false; !over;) {
        kl_workqueue_stats_get(c->q, clock_now(), &s);
        kl_workqueue_depths_get(c->q, &d);
        assert_true(s.ready <= CROWD_KEYS && s.running <= CROWD_WORKERS && s.delayed <= CROWD_KEYS);
        kl_workqueue_state(c->q, "1/1", NULL);
        kl_lock(&c->mu);
        over = c->over;
        kl_unlock(&c->mu);
    }
}

static void a_crowd_of_threads_loses_no_key_and_runs_none_twice_at_once(void **state)
{
    (void)state;
    for (int order = KL_QUEUE_FAIR; order <= KL_QUEUE_RANK; order++) {
        crowd c = {0};
        kl_thread *workers[CROWD_WORKERS], *adders[CROWD_ADDERS], *looker;
        kl_mutex_init(&c.mu);
        kl_cond_init(&c.cond);
        c.q = kl_workqueue_new(&(kl_workqueue_options){.order = (kl_queue_order)order,
            .wake = crowd_wake,
            .wake_arg = &c,
            .backoff = {1000, 9000, 0.5}});
        looker = kl_thread_start("looker", crowd_look, &c);
        for (int i = 0; i < CROWD_WORKERS; i++)
            workers[i] = kl_thread_start("worker", crowd_work, &c);
        for (int i = 0; i < CROWD_ADDERS; i++)
            adders[i] = kl_thread_start("adder", crowd_add, &c);
        for (int i = 0; i < CROWD_ADDERS; i++)
            kl_thread_join(adders[i]);
        kl_workqueue_shut_down(c.q);
        for (int i = 0; i < CROWD_WORKERS; i++)
            kl_thread_join(workers[i]);
        kl_lock(&c.mu);
        c.over = true;
        kl_unlock(&c.mu);
        kl_thread_join(looker);
        assert_int_equal(c.overlaps, 0);
        for (int k = 0; k < CROWD_KEYS; k++)
            assert_int_equal(c.seen[k], c.added[k]);
        kl_workqueue_free(c.q);
        kl_cond_fini(&c.cond);
        kl_mutex_fini(&c.mu);
    }
}

KL_TESTS(cmocka_unit_test(random_operations_follow_the_rules),
    cmocka_unit_test(a_crowd_of_threads_loses_no_key_and_runs_none_twice_at_once))
