/* loop_test.c - posts in order, timers at their time, and the end of a loop. */
#include "support/test.h"

#include <stdatomic.h>

#include "base/buf.h"
#include "base/sync.h"
#include "base/loop.h"

typedef struct world {
    kl_clock *clock;
    kl_loop *l;
    kl_buf said;
    uint64_t victim;
} world;
typedef struct word {
    world *w;
    const char *text;
} word;

static void setup(world *w)
{
    *w = (world){.clock = kl_clock_fake_new(KL_SECONDS(10), 0)};
    w->l = kl_loop_new("spec", w->clock);
}

static void teardown(world *w)
{
    kl_loop_free(w->l);
    kl_clock_fake_free(w->clock);
    kl_buf_fini(&w->said);
}

static void say(void *arg)
{
    word *x = arg;
    kl_buf_puts(&x->w->said, x->text);
}

static void say_and_post(void *arg)
{
    word *x = arg;
    say(arg);
    kl_loop_post(x->w->l, say, x);
}

static void cancel_victim(void *arg)
{
    word *x = arg;
    say(arg);
    kl_loop_timer_cancel(x->w->l, x->w->victim);
}

#define assert_said(w, text)                                                                                 \
    do {                                                                                                     \
        assert_string_equal(kl_buf_str(&(w)->said), text);                                                   \
        kl_buf_clear(&(w)->said);                                                                            \
    } while (0)

static void posts_run_in_order_also_those_that_posts_make(void **state)
{
    (void)state;
    world w;
    setup(&w);
    word a = {&w, "a"}, b = {&w, "b"}, c = {&w, "c"};
    kl_loop_post(w.l, say, &a);
    kl_loop_post(w.l, say_and_post, &b);
    kl_loop_post(w.l, say, &c);
    assert_said(&w, "");
    assert_int_equal(kl_loop_step(w.l), KL_NEVER);
    assert_said(&w, "abcb");
    teardown(&w);
}

static void take_a_while(void *arg)
{
    word *x = arg;
    say(arg);
    kl_clock_advance(x->w->clock, KL_SECONDS(1));
}

static void lines_take_turns_by_the_time_that_they_take(void **state)
{
    (void)state;
    world w;
    setup(&w);
    word slow = {&w, "s"}, quick = {&w, "q"}, plain = {&w, "p"};
    kl_loop_line *a = kl_loop_line_new(), *b = kl_loop_line_new();
    for (int i = 0; i < 4; i++)
        kl_loop_post_in(w.l, a, take_a_while, &slow);
    for (int i = 0; i < 3; i++)
        kl_loop_post_in(w.l, b, say, &quick);
    kl_loop_post(w.l, say, &plain);
    assert_int_equal(kl_loop_line_waiting(w.l, a), 4);
    assert_int_equal(kl_loop_next(w.l), INT64_MIN);
    kl_loop_step(w.l);
    assert_said(&w, "sqqqpsss");
    /* who was away has no claim on the time of those who were there */
    for (int i = 0; i < 3; i++) {
        kl_loop_post_in(w.l, a, take_a_while, &slow);
        kl_loop_post_in(w.l, b, take_a_while, &quick);
    }
    kl_loop_step(w.l);
    assert_said(&w, "qsqsqs");
    assert_int_equal(kl_loop_line_waiting(w.l, a), 0);
    kl_loop_line_free(a);
    kl_loop_line_free(b);
    teardown(&w);
}

static void lines_keep_the_order_of_posts_where_no_time_passes(void **state)
{
    (void)state;
    world w;
    setup(&w);
    word a = {&w, "a"}, b = {&w, "b"}, p = {&w, "p"};
    kl_loop_line *l = kl_loop_line_new(), *m = kl_loop_line_new();
    kl_loop_post_in(w.l, m, say, &b);
    kl_loop_post_in(w.l, l, say, &a);
    kl_loop_post(w.l, say, &p);
    kl_loop_post_in(w.l, m, say, &b);
    kl_loop_post(w.l, say, &p);
    kl_loop_post_in(w.l, l, say, &a);
    kl_loop_step(w.l);
    assert_said(&w, "bapbpa");
    kl_loop_line_free(l);
    kl_loop_line_free(m);
    teardown(&w);
}

static void timers_fire_at_their_time_and_in_its_order(void **state)
{
    (void)state;
    world w;
    setup(&w);
    word a = {&w, "a"}, b = {&w, "b"}, c = {&w, "c"};
    kl_loop_timer(w.l, KL_SECONDS(3), say, &c);
    kl_loop_timer(w.l, KL_SECONDS(1), say, &a);
    kl_loop_timer(w.l, KL_SECONDS(2), say, &b);
    assert_int_equal(kl_loop_step(w.l), KL_SECONDS(11));
    kl_clock_advance(w.clock, KL_SECONDS(1) - 1);
    kl_loop_step(w.l);
    assert_said(&w, "");
    kl_clock_advance(w.clock, 1);
    assert_int_equal(kl_loop_step(w.l), KL_SECONDS(12));
    assert_said(&w, "a");
    kl_clock_advance(w.clock, KL_SECONDS(5));
    assert_int_equal(kl_loop_step(w.l), KL_NEVER);
    assert_said(&w, "bc");
    kl_loop_timer(w.l, -1, say, &a); /* the past is now */
    kl_loop_step(w.l);
    assert_said(&w, "a");
    teardown(&w);
}

static void a_cancelled_timer_does_not_fire_even_when_it_is_due(void **state)
{
    (void)state;
    world w;
    setup(&w);
    word a = {&w, "a"}, b = {&w, "b"};
    kl_loop_timer(w.l, KL_SECONDS(1), cancel_victim, &a);
    w.victim = kl_loop_timer(w.l, KL_SECONDS(1), say, &b);
    kl_clock_advance(w.clock, KL_SECONDS(1));
    kl_loop_step(w.l);
    assert_said(&w, "a");
    kl_loop_timer_cancel(w.l, w.victim); /* again, and nothing at all, are fine */
    kl_loop_timer_cancel(w.l, 0);
    teardown(&w);
}

static void shutdown_runs_posted_functions_and_drops_timers(void **state)
{
    (void)state;
    world w;
    setup(&w);
    word a = {&w, "a"}, b = {&w, "b"};
    kl_loop_timer(w.l, 0, say, &b);
    kl_loop_timer(w.l, KL_SECONDS(9), say, &b);
    kl_loop_post(w.l, say_and_post, &a);
    kl_loop_free(w.l);
    assert_said(&w, "aa");
    kl_clock_fake_free(w.clock);
    kl_buf_fini(&w.said);
}

static void a_call_without_a_thread_runs_at_once(void **state)
{
    (void)state;
    world w;
    setup(&w);
    word a = {&w, "a"};
    kl_loop_call(w.l, say, &a);
    assert_said(&w, "a");
    assert_false(kl_loop_on_thread(w.l));
    teardown(&w);
}

/* --- with its thread ---------------------------------------------------------------------- */

typedef struct seen {
    kl_loop *l;
    bool on_thread, nested;
    int n;
} seen;

static void note_inner(void *arg) { ((seen *)arg)->nested = true; }

static void note(void *arg)
{
    seen *s = arg;
    s->on_thread = kl_loop_on_thread(s->l);
    s->n++;
    kl_loop_call(s->l, note_inner, s); /* on its own thread: at once */
}

static void call_after_the_end(void *arg)
{
    seen *s = arg;
    kl_loop_call(s->l, note_inner, s);
}

static void a_call_waits_until_the_thread_has_run_it(void **state)
{
    (void)state;
    kl_loop *l = kl_loop_new("spec", NULL);
    seen s = {.l = l};
    kl_loop_start(l);
    for (int i = 0; i < 100; i++)
        kl_loop_call(l, note, &s);
    assert_int_equal(s.n, 100);
    assert_true(s.on_thread && s.nested);
    assert_false(kl_loop_on_thread(l));
    kl_loop_free(l);
}

/* Holds the loop until it is let go. */
typedef struct held {
    kl_mutex mu;
    kl_cond cond;
    bool there, go;
} held;

static void hold(void *arg)
{
    held *h = arg;
    kl_lock(&h->mu);
    h->there = true;
    kl_cond_broadcast(&h->cond);
    while (!h->go)
        kl_cond_wait(&h->cond, &h->mu);
    kl_unlock(&h->mu);
}

static void a_call_with_a_limit_is_withdrawn_while_the_loop_hangs_and_never_runs(void **state)
{
    (void)state;
    kl_loop *l = kl_loop_new("spec", NULL);
    held h = {0};
    seen late = {.l = l}, good = {.l = l};
    kl_mutex_init(&h.mu);
    kl_cond_init(&h.cond);
    kl_loop_start(l);
    kl_loop_post(l, hold, &h);
    kl_lock(&h.mu);
    while (!h.there)
        kl_cond_wait(&h.cond, &h.mu);
    kl_unlock(&h.mu);
    assert_false(kl_loop_call_within(l, note, &late, KL_MILLISECONDS(5)));
    kl_lock(&h.mu);
    h.go = true;
    kl_cond_broadcast(&h.cond);
    kl_unlock(&h.mu);
    assert_true(kl_loop_call_within(l, note, &good, KL_SECONDS(60)));
    kl_loop_free(l);
    assert_int_equal(late.n, 0);
    assert_int_equal(good.n, 1);
    kl_cond_fini(&h.cond);
    kl_mutex_fini(&h.mu);
}

static void count(void *arg) { atomic_fetch_add((atomic_int *)arg, 1); }

/* The next timer comes as soon as the last one fired, when the loop is about to wait. */
static void a_timer_that_another_thread_adds_is_never_overlooked(void **state)
{
    (void)state;
    kl_loop *l = kl_loop_new("spec", NULL);
    atomic_int fired = 0;
    kl_loop_start(l);
    kl_time end = kl_clock_now(kl_clock_real()) + KL_SECONDS(60);
    bool late = false;
    for (int i = 1; i <= 20000 && !late; i++) {
        for (volatile int wait = i % 500; wait > 0; wait--) {}
        kl_loop_timer(l, 0, count, &fired);
        while (atomic_load(&fired) < i && !late)
            late = kl_clock_now(kl_clock_real()) > end;
    }
    assert_false(late);
    kl_loop_free(l);
}

static void a_call_from_what_runs_at_the_very_end_does_not_wait_for_a_thread_that_has_gone(void **state)
{
    (void)state;
    kl_loop *l = kl_loop_new("spec", NULL);
    seen s = {.l = l};
    kl_loop_post(l, call_after_the_end, &s);
    kl_loop_free(l);
    assert_true(s.nested);
}

KL_TESTS(cmocka_unit_test(posts_run_in_order_also_those_that_posts_make),
    cmocka_unit_test(lines_take_turns_by_the_time_that_they_take),
    cmocka_unit_test(lines_keep_the_order_of_posts_where_no_time_passes),
    cmocka_unit_test(timers_fire_at_their_time_and_in_its_order),
    cmocka_unit_test(a_cancelled_timer_does_not_fire_even_when_it_is_due),
    cmocka_unit_test(shutdown_runs_posted_functions_and_drops_timers),
    cmocka_unit_test(a_call_without_a_thread_runs_at_once),
    cmocka_unit_test(a_call_waits_until_the_thread_has_run_it),
    cmocka_unit_test(a_call_with_a_limit_is_withdrawn_while_the_loop_hangs_and_never_runs),
    cmocka_unit_test(a_timer_that_another_thread_adds_is_never_overlooked),
    cmocka_unit_test(a_call_from_what_runs_at_the_very_end_does_not_wait_for_a_thread_that_has_gone))

/* not in tsan: it starts no thread */
