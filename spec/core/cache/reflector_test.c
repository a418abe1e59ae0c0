/* reflector_test.c - the list/watch state machine with inputs of the test: no source, no thread, no clock. */
#include "support/test.h"

#include "cache/reflector.h"

typedef struct bench {
    kl_reflector *r;
    kl_time now;
} bench;

static bench start_bench(void) { return (bench){kl_reflector_new(42, 0, false), KL_SECONDS(100)}; }

static kl_reflector_action put(bench *b, kl_reflector_input in)
{
    return kl_reflector_step(b->r, &in, b->now);
}

static kl_reflector_action start(bench *b)
{
    return put(b, (kl_reflector_input){.kind = KL_REFLECTOR_START});
}
static kl_reflector_action page(bench *b, const char *rv, const char *more)
{
    return put(b, (kl_reflector_input){.kind = KL_REFLECTOR_PAGE, .rv = rv, .continue_token = more});
}
static kl_reflector_action opened(bench *b)
{
    return put(b, (kl_reflector_input){.kind = KL_REFLECTOR_OPENED});
}
static kl_reflector_action frame(bench *b, kl_event_type t, const char *rv)
{
    return put(b, (kl_reflector_input){.kind = KL_REFLECTOR_FRAME, .type = t, .rv = rv});
}
static kl_reflector_action timer(bench *b)
{
    return put(b, (kl_reflector_input){.kind = KL_REFLECTOR_TIMER});
}

static kl_reflector_action fails(bench *b, kl_reflector_input_kind kind, kl_status st, const char *message)
{
    kl_err e = KL_ERR_INIT;
    if (st)
        kl_fail(&e, st, "%s", message ? message : "scripted");
    kl_reflector_action a = put(b, (kl_reflector_input){.kind = kind, .err = st ? &e : NULL});
    kl_err_fini(&e);
    return a;
}

static kl_reflector_action ends(bench *b, kl_status st) { return fails(b, KL_REFLECTOR_ENDED, st, NULL); }

/* A reflector whose watch is open and has the given resourceVersion. */
static bench watching(const char *rv)
{
    bench b = start_bench();
    start(&b);
    assert_int_equal(page(&b, rv, NULL).what, KL_REFLECTOR_WATCH);
    opened(&b);
    return b;
}

static void assert_list(kl_reflector_action a, const char *rv, int64_t limit)
{
    assert_int_equal(a.what, KL_REFLECTOR_LIST);
    assert_non_null(a.list.rv);
    assert_string_equal(a.list.rv, rv);
    assert_int_equal(a.list.limit, limit);
    assert_null(a.list.continue_token);
}

static void assert_watch(kl_reflector_action a, const char *rv)
{
    assert_int_equal(a.what, KL_REFLECTOR_WATCH);
    assert_string_equal(a.watch.rv, rv);
    assert_true(a.watch.bookmarks);
    assert_in_range(a.watch.timeout_seconds, 300, 599);
}

/* Waits out a WAIT whose delay must lie in [d, 2d), and gives what comes after it. */
static kl_reflector_action wait_out(bench *b, kl_reflector_action a, kl_time d)
{
    assert_int_equal(a.what, KL_REFLECTOR_WAIT);
    assert_in_range(a.until - b->now, d, 2 * d - 1);
    b->now = a.until - 1;
    assert_int_equal(timer(b).what, KL_REFLECTOR_GO_ON);
    b->now++;
    return timer(b);
}

static void lists_at_zero_then_watches_from_the_listed_version(void **state)
{
    (void)state;
    bench b = start_bench();
    assert_string_equal(kl_reflector_state(b.r), "idle");
    assert_list(start(&b), "0", 500);
    kl_reflector_action a = page(&b, "17", NULL);
    assert_true(a.complete);
    assert_watch(a, "17");
    assert_string_equal(kl_reflector_state(b.r), "watching");
    kl_reflector_free(b.r);
}

static void pages_by_continue_and_replaces_only_after_the_last_page(void **state)
{
    (void)state;
    bench b = start_bench();
    start(&b);
    kl_reflector_action a = page(&b, "17", "c1");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(a.what, KL_REFLECTOR_LIST);
        assert_false(a.complete);
        assert_null(a.list.rv);
        assert_int_equal(a.list.limit, 500);
        assert_string_equal(a.list.continue_token, i ? "c2" : "c1");
        a = page(&b, "17", i ? NULL : "c2");
    }
    assert_true(a.complete);
    assert_watch(a, "17");
    assert_int_equal(kl_reflector_counters(b.r)->lists, 1);
    assert_int_equal(kl_reflector_counters(b.r)->pages, 3);
    /* A server that pages lists at "0" pages all of them: later lists keep the limit. */
    assert_list(ends(&b, KL_EGONE), "17", 500);
    kl_reflector_free(b.r);
}

static void a_list_stands_where_its_first_page_stood(void **state)
{
    (void)state;
    bench b = start_bench();
    start(&b);
    page(&b, "17", "c1");
    page(&b, "19", "c2");
    assert_watch(page(&b, "21", NULL), "17");
    kl_reflector_free(b.r);
}

static void a_bookmark_ends_the_doubt_that_silence_left(void **state)
{
    (void)state;
    bench b = watching("17");
    b.now += KL_SECONDS(75);
    kl_reflector_action a = timer(&b);
    assert_watch(a, "17");
    assert_int_equal(a.until - b.now, KL_SECONDS(150)); /* silence may be normal here */
    opened(&b);
    frame(&b, KL_BOOKMARK, "18");
    b.now += KL_SECONDS(2);
    a = ends(&b, KL_OK);
    assert_watch(a, "18");
    assert_int_equal(a.until - b.now, KL_SECONDS(75));
    kl_reflector_free(b.r);
}

static void later_lists_go_without_pages_so_that_the_watch_cache_serves_them(void **state)
{
    (void)state;
    bench b = watching("17");
    assert_list(ends(&b, KL_EGONE), "17", 0);
    kl_reflector_free(b.r);
}

static void history_lost_between_pages_means_one_whole_list(void **state)
{
    (void)state;
    bench b = start_bench();
    start(&b);
    page(&b, "17", "c1");
    kl_reflector_action a = fails(&b, KL_REFLECTOR_LIST_FAILED, KL_EGONE, NULL);
    assert_list(a, "0", 0);
    assert_true(page(&b, "20", NULL).complete);
    assert_string_equal(kl_reflector_rv(b.r), "20");
    kl_reflector_free(b.r);
}

static void a_lost_page_is_requested_again_without_earlier_ones(void **state)
{
    (void)state;
    static const kl_status lost[] = {KL_ECLOSED, KL_ETIMEOUT, KL_ECONNECT, KL_ETHROTTLED, KL_ESERVER};
    bench b = start_bench();
    start(&b);
    page(&b, "17", "c1");
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        kl_reflector_action a = fails(&b, KL_REFLECTOR_LIST_FAILED, lost[i], NULL);
        assert_false(a.complete);
        assert_true(a.keep);
        a = wait_out(&b, a, KL_MILLISECONDS(800) << i);
        assert_int_equal(a.what, KL_REFLECTOR_LIST);
        assert_string_equal(a.list.continue_token, "c1");
    }
    assert_int_equal(kl_reflector_counters(b.r)->lists, 1);
    assert_true(page(&b, "17", NULL).complete);
    kl_reflector_free(b.r);
}

static void a_list_that_is_refused_starts_over_after_a_backoff(void **state)
{
    (void)state;
    bench b = start_bench();
    kl_reflector_action a = start(&b);
    a = fails(&b, KL_REFLECTOR_LIST_FAILED, KL_ECLOSED, NULL);
    assert_false(a.keep);
    assert_list(wait_out(&b, a, KL_MILLISECONDS(800)), "0", 500);
    page(&b, "17", "c1");
    a = fails(&b, KL_REFLECTOR_LIST_FAILED, KL_EFORBIDDEN, NULL);
    assert_false(a.keep);
    assert_list(wait_out(&b, a, KL_MILLISECONDS(1600)), "0", 500);
    kl_reflector_free(b.r);
}

static void an_expired_list_asks_for_the_newest_at_once(void **state)
{
    (void)state;
    bench b = watching("17");
    assert_list(ends(&b, KL_EGONE), "17", 0);
    assert_list(fails(&b, KL_REFLECTOR_LIST_FAILED, KL_EGONE, NULL), "", 500);
    assert_watch(page(&b, "99", NULL), "99");
    opened(&b);
    b.now += KL_MINUTES(2);
    assert_watch(ends(&b, KL_OK), "99");
    assert_list(ends(&b, KL_EGONE), "99", 0); /* and later lists go from the last seen again */
    kl_reflector_free(b.r);
}

static void a_resource_version_from_the_future_is_given_up_like_an_expired_one(void **state)
{
    (void)state;
    bench b = watching("17");
    assert_list(
        fails(&b, KL_REFLECTOR_ENDED, KL_ETIMEOUT, "Too large resource version: 17, current: 3"), "17", 0);
    assert_list(fails(&b, KL_REFLECTOR_LIST_FAILED, KL_ETIMEOUT,
                    "Timeout: Too large resource version: 17, current: 3"),
        "", 500);
    assert_watch(page(&b, "3", NULL), "3");
    kl_reflector_free(b.r);
}

static void newest_that_is_gone_too_backs_off(void **state)
{
    (void)state;
    bench b = start_bench();
    start(&b);
    assert_list(fails(&b, KL_REFLECTOR_LIST_FAILED, KL_EGONE, NULL), "", 500);
    kl_reflector_action a = fails(&b, KL_REFLECTOR_LIST_FAILED, KL_EGONE, NULL);
    assert_list(wait_out(&b, a, KL_MILLISECONDS(800)), "", 500);
    kl_reflector_free(b.r);
}

static void every_frame_moves_the_resource_version(void **state)
{
    (void)state;
    bench b = watching("17");
    const char *rvs[] = {"18", "19", "25", "31"};
    kl_event_type types[] = {KL_ADDED, KL_MODIFIED, KL_DELETED, KL_BOOKMARK};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(frame(&b, types[i], rvs[i]).what, KL_REFLECTOR_GO_ON);
        assert_string_equal(kl_reflector_rv(b.r), rvs[i]);
    }
    frame(&b, KL_MODIFIED, NULL);
    assert_string_equal(kl_reflector_rv(b.r), "31");
    kl_reflector_free(b.r);
}

static void synthetic_adds_of_a_watch_from_nowhere_do_not_move_it(void **state)
{
    (void)state;
    bench b = start_bench();
    start(&b);
    assert_int_equal(page(&b, "0", NULL).what, KL_REFLECTOR_WATCH);
    frame(&b, KL_ADDED, "30");
    frame(&b, KL_ADDED, "20");
    assert_string_equal(kl_reflector_rv(b.r), "0");
    frame(&b, KL_MODIFIED, "31");
    assert_string_equal(kl_reflector_rv(b.r), "31");
    frame(&b, KL_ADDED, "32");
    assert_string_equal(kl_reflector_rv(b.r), "32");
    kl_reflector_free(b.r);
}

static void a_watch_from_nowhere_that_ends_is_listed_again(void **state)
{
    (void)state;
    bench b = start_bench();
    start(&b);
    page(&b, "", NULL);
    opened(&b);
    b.now += KL_SECONDS(5);
    assert_list(ends(&b, KL_ECLOSED), "0", 500);
    kl_reflector_free(b.r);
}

static void a_clean_close_resumes_at_once_without_a_list(void **state)
{
    (void)state;
    bench b = watching("17");
    frame(&b, KL_MODIFIED, "18");
    b.now += KL_MINUTES(5);
    assert_watch(ends(&b, KL_OK), "18");
    assert_int_equal(kl_reflector_counters(b.r)->lists, 1);
    kl_reflector_free(b.r);
}

static void a_broken_connection_resumes_without_a_list(void **state)
{
    (void)state;
    const kl_status how[] = {KL_ECLOSED, KL_ETIMEOUT, KL_ECONNECT};
    for (size_t i = 0; i < 3; i++) {
        bench b = watching("17");
        b.now += KL_SECONDS(20);
        assert_watch(ends(&b, how[i]), "17");
        opened(&b);
        assert_null(kl_reflector_message(b.r));
        kl_reflector_free(b.r);
    }
}

static void garbage_in_the_stream_resumes_after_a_backoff(void **state)
{
    (void)state;
    bench b = watching("17");
    frame(&b, KL_MODIFIED, "18");
    assert_watch(wait_out(&b, ends(&b, KL_ESYNTAX), KL_MILLISECONDS(800)), "18");
    kl_reflector_free(b.r);
}

static void very_short_watches_back_off_and_never_list(void **state)
{
    (void)state;
    bench b = watching("17");
    kl_time d = KL_MILLISECONDS(800);
    for (int i = 0; i < 10; i++) {
        b.now += KL_MILLISECONDS(10);
        assert_watch(wait_out(&b, ends(&b, KL_OK), d), "17");
        opened(&b);
        d = d * 2 > KL_SECONDS(30) ? KL_SECONDS(30) : d * 2;
    }
    assert_int_equal(kl_reflector_counters(b.r)->lists, 1);
    assert_int_equal(kl_reflector_counters(b.r)->short_watches, 10);
    kl_reflector_free(b.r);
}

static void short_watches_with_events_back_off_later(void **state)
{
    (void)state;
    bench b = watching("17");
    char rv[16];
    int free_ones = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(rv, sizeof rv, "%d", 100 + i);
        frame(&b, KL_MODIFIED, rv);
        kl_reflector_action a = ends(&b, KL_OK);
        if (a.what == KL_REFLECTOR_WATCH) {
            free_ones++;
        } else {
            b.now = a.until;
            a = timer(&b);
        }
        assert_watch(a, rv);
        opened(&b);
    }
    assert_int_equal(free_ones, 3);
    kl_reflector_free(b.r);
}

static void refused_and_throttled_watches_back_off_without_a_list(void **state)
{
    (void)state;
    const kl_status how[] = {KL_ECONNECT, KL_ETHROTTLED, KL_ESERVER};
    for (size_t k = 0; k < 3; k++) {
        bench b = watching("17");
        b.now += KL_MINUTES(2);
        assert_watch(ends(&b, KL_OK), "17");
        kl_time d = KL_MILLISECONDS(800);
        for (int i = 0; i < 9; i++) {
            assert_watch(wait_out(&b, ends(&b, how[k]), d), "17");
            /* nobody is there: trying costs nothing */
            kl_time max = how[k] == KL_ECONNECT ? KL_SECONDS(4) : KL_SECONDS(30);
            d = d * 2 > max ? max : d * 2;
        }
        assert_int_equal(kl_reflector_counters(b.r)->lists, 1);
        kl_reflector_free(b.r);
    }
}

static void retry_after_is_a_lower_bound(void **state)
{
    (void)state;
    bench b = watching("17");
    kl_err e = KL_ERR_INIT;
    kl_fail(&e, KL_ETHROTTLED, "slow down");
    e.retry_after_ns = KL_SECONDS(77);
    kl_reflector_action a = put(&b, (kl_reflector_input){.kind = KL_REFLECTOR_ENDED, .err = &e});
    assert_int_equal(a.what, KL_REFLECTOR_WAIT);
    assert_int_equal(a.until - b.now, KL_SECONDS(77));
    kl_err_fini(&e);
    kl_reflector_free(b.r);
}

static void errors_in_the_stream(void **state)
{
    (void)state;
    bench b = watching("17");
    assert_watch(
        wait_out(&b, fails(&b, KL_REFLECTOR_STREAM_ERROR, KL_ETHROTTLED, NULL), KL_MILLISECONDS(800)), "17");
    assert_watch(
        wait_out(&b, fails(&b, KL_REFLECTOR_STREAM_ERROR, KL_ESERVER, NULL), KL_MILLISECONDS(1600)), "17");
    assert_list(fails(&b, KL_REFLECTOR_STREAM_ERROR, KL_EGONE, NULL), "17", 0);
    page(&b, "18", NULL);
    assert_list(wait_out(&b, fails(&b, KL_REFLECTOR_STREAM_ERROR, KL_EREJECTED, NULL), KL_MILLISECONDS(3200)),
        "18", 0);
    kl_reflector_free(b.r);
}

static void a_watch_that_never_gets_past_a_place_is_listed_after_some_tries(void **state)
{
    (void)state;
    static const struct {
        kl_reflector_input_kind kind;
        kl_status st;
    } how[] = {
        {KL_REFLECTOR_STREAM_ERROR, KL_ESERVER},
        {KL_REFLECTOR_ENDED, KL_ESYNTAX},
    };
    for (size_t i = 0; i < 2; i++) {
        bench b = watching("17");
        kl_time d = KL_MILLISECONDS(800);
        for (int k = 0; k < 4; k++, d *= 2) {
            assert_watch(wait_out(&b, fails(&b, how[i].kind, how[i].st, NULL), d), "17");
            opened(&b);
        }
        frame(&b, KL_MODIFIED, "18"); /* it did get past it */
        for (int k = 0; k<4; k++, d = d * 2> KL_SECONDS(30) ? KL_SECONDS(30) : d * 2)
            assert_watch(wait_out(&b, fails(&b, how[i].kind, how[i].st, NULL), d), "18");
        assert_list(wait_out(&b, fails(&b, how[i].kind, how[i].st, NULL), d), "18", 0);
        assert_watch(page(&b, "30", NULL), "30");
        kl_reflector_free(b.r);
    }
}

static void history_lost_again_and_again_is_asked_for_slower_and_slower(void **state)
{
    (void)state;
    bench b = watching("17");
    assert_list(ends(&b, KL_EGONE), "17", 0);
    kl_time d = KL_MILLISECONDS(800);
    for (int i = 0; i < 4; i++) {
        page(&b, "17", NULL);
        assert_list(wait_out(&b, ends(&b, KL_EGONE), d), "17", 0);
        d *= 2;
    }
    kl_reflector_free(b.r);
}

static void backoff_is_forgotten_only_after_sustained_success(void **state)
{
    (void)state;
    bench b = watching("17");
    for (int i = 0; i < 4; i++) { /* 0.8, 1.6, 3.2, 6.4 */
        kl_reflector_action a = ends(&b, KL_ESERVER);
        b.now = a.until;
        timer(&b);
    }
    opened(&b); /* an answer alone proves nothing */
    assert_watch(wait_out(&b, ends(&b, KL_ESERVER), KL_MILLISECONDS(12800)), "17");
    opened(&b);
    b.now += KL_SECONDS(2);
    frame(&b, KL_BOOKMARK, "18"); /* a frame on a watch that lives does */
    assert_watch(wait_out(&b, ends(&b, KL_ESERVER), KL_MILLISECONDS(800)), "18");
    ends(&b, KL_ESERVER);
    b.now += KL_SECONDS(40);
    timer(&b);
    opened(&b);
    b.now += KL_SECONDS(61); /* and so does a minute of quiet */
    ends(&b, KL_OK);
    assert_watch(wait_out(&b, ends(&b, KL_ESERVER), KL_MILLISECONDS(800)), "18");
    kl_reflector_free(b.r);
}

static void refusals_park_and_are_tried_again(void **state)
{
    (void)state;
    const kl_status how[] = {KL_EAUTH, KL_EFORBIDDEN, KL_ENOTFOUND, KL_ETOOBIG};
    for (size_t i = 0; i < 4; i++) {
        bench b = start_bench();
        start(&b);
        kl_reflector_action a = fails(&b, KL_REFLECTOR_LIST_FAILED, how[i], "grant list on pods");
        assert_true(kl_reflector_parked(b.r));
        assert_string_equal(kl_reflector_state(b.r), "parked");
        assert_string_equal(kl_reflector_message(b.r), "grant list on pods");
        assert_list(wait_out(&b, a, KL_MILLISECONDS(800)), "0", 500);
        assert_true(page(&b, "1", NULL).complete);
        assert_false(kl_reflector_parked(b.r));
        assert_null(kl_reflector_message(b.r));
        kl_reflector_free(b.r);
    }
}

/* It was asked for again and again while it was missing; that is no reason to wait once it is there. */
static void a_kind_that_is_back_restarts_its_backoff(void **state)
{
    (void)state;
    bench b = start_bench();
    start(&b);
    for (int i = 0; i < 6; i++) {
        (void)fails(&b, KL_REFLECTOR_LIST_FAILED, KL_ENOTFOUND, "404 page not found");
        (void)put(&b, (kl_reflector_input){.kind = KL_REFLECTOR_KICK});
    }
    kl_reflector_action a = fails(&b, KL_REFLECTOR_LIST_FAILED, KL_ETHROTTLED, "storage is (re)initializing");
    assert_false(kl_reflector_parked(b.r));
    (void)wait_out(&b, a, KL_MILLISECONDS(800));
    a = fails(&b, KL_REFLECTOR_LIST_FAILED, KL_ETHROTTLED, "storage is (re)initializing");
    (void)wait_out(&b, a, KL_MILLISECONDS(1600));
    kl_reflector_free(b.r);
}

static void an_object_too_big_stays_parked_until_something_gets_past_it(void **state)
{
    (void)state;
    bench b = watching("17");
    assert_watch(wait_out(&b, ends(&b, KL_ETOOBIG), KL_MILLISECONDS(800)), "17");
    opened(&b);
    assert_true(kl_reflector_parked(b.r));
    frame(&b, KL_MODIFIED, "19");
    assert_false(kl_reflector_parked(b.r));
    kl_reflector_free(b.r);
}

static void a_kind_that_went_away_is_listed_again(void **state)
{
    (void)state;
    bench b = watching("17");
    assert_list(wait_out(&b, ends(&b, KL_ENOTFOUND), KL_MILLISECONDS(800)), "17", 0);
    kl_reflector_free(b.r);
}

static void a_kick_ends_a_wait_and_disturbs_nothing_else(void **state)
{
    (void)state;
    bench b = start_bench();
    start(&b);
    assert_int_equal(fails(&b, KL_REFLECTOR_LIST_FAILED, KL_ENOTFOUND, NULL).what, KL_REFLECTOR_WAIT);
    assert_list(put(&b, (kl_reflector_input){.kind = KL_REFLECTOR_KICK}), "0", 500);
    page(&b, "3", NULL);
    assert_int_equal(put(&b, (kl_reflector_input){.kind = KL_REFLECTOR_KICK}).what, KL_REFLECTOR_GO_ON);
    kl_reflector_free(b.r);
}

static void a_watch_that_has_shown_bookmarks_stalls_after_75_seconds(void **state)
{
    (void)state;
    bench b = watching("17");
    b.now += KL_SECONDS(60);
    kl_reflector_action a = frame(&b, KL_BOOKMARK, "18");
    assert_int_equal(a.until - b.now, KL_SECONDS(75));
    b.now += KL_SECONDS(30);
    a = frame(&b, KL_MODIFIED, "19"); /* any sign of life counts */
    assert_int_equal(a.until - b.now, KL_SECONDS(75));
    b.now = a.until - 1;
    assert_int_equal(timer(&b).what, KL_REFLECTOR_GO_ON);
    b.now++;
    assert_watch(timer(&b), "19");
    assert_int_equal(kl_reflector_counters(b.r)->stalls, 1);
    assert_int_equal(kl_reflector_counters(b.r)->lists, 1);
    kl_reflector_free(b.r);
}

static void a_watch_without_bookmarks_is_resumed_at_growing_intervals(void **state)
{
    (void)state;
    bench b = watching("17");
    kl_time patience[] = {KL_SECONDS(75), KL_SECONDS(150), KL_SECONDS(300)};
    kl_time since = b.now;
    kl_time until = timer(&b).until;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(until - since, patience[i]);
        b.now = until;
        kl_reflector_action a = timer(&b);
        assert_watch(a, "17");
        since = b.now;
        until = a.until;
    }
    /* Never later than the watch should have ended anyway. */
    assert_in_range(until - since, KL_SECONDS(330), KL_SECONDS(630));
    assert_int_equal(kl_reflector_counters(b.r)->lists, 1);
    kl_reflector_free(b.r);
}

static void late_inputs_are_ignored_and_stop_is_final(void **state)
{
    (void)state;
    bench b = watching("17");
    assert_int_equal(page(&b, "99", NULL).what, KL_REFLECTOR_GO_ON);
    assert_int_equal(fails(&b, KL_REFLECTOR_LIST_FAILED, KL_EGONE, NULL).what, KL_REFLECTOR_GO_ON);
    assert_string_equal(kl_reflector_rv(b.r), "17");
    assert_int_equal(put(&b, (kl_reflector_input){.kind = KL_REFLECTOR_STOP}).what, KL_REFLECTOR_STOPPED);
    assert_int_equal(ends(&b, KL_OK).what, KL_REFLECTOR_STOPPED);
    assert_int_equal(start(&b).what, KL_REFLECTOR_STOPPED);
    assert_string_equal(kl_reflector_state(b.r), "stopped");
    kl_reflector_free(b.r);
}

static void watches_spread_over_five_to_ten_minutes(void **state)
{
    (void)state;
    bench b = watching("17");
    int64_t least = 1000, most = 0;
    for (int i = 0; i < 500; i++) {
        b.now += KL_MINUTES(2);
        kl_reflector_action a = ends(&b, KL_OK);
        assert_watch(a, "17");
        opened(&b);
        least = a.watch.timeout_seconds < least ? a.watch.timeout_seconds : least;
        most = a.watch.timeout_seconds > most ? a.watch.timeout_seconds : most;
    }
    assert_in_range(least, 300, 310);
    assert_in_range(most, 590, 599);
    kl_reflector_free(b.r);
}

/* --- initial events ----------------------------------------------------------------------- */

static bench start_stream(void) { return (bench){kl_reflector_new(42, 0, true), KL_SECONDS(100)}; }

static void assert_stream(kl_reflector_action a, const char *rv)
{
    assert_watch(a, rv);
    assert_true(a.watch.initial);
}

static kl_reflector_action initial_end(bench *b, const char *rv)
{
    return put(b,
        (kl_reflector_input){.kind = KL_REFLECTOR_FRAME, .type = KL_BOOKMARK, .rv = rv, .initial_end = true});
}

static void a_stream_is_complete_after_its_initial_events_and_continues_as_a_watch(void **state)
{
    (void)state;
    bench b = start_stream();
    assert_stream(start(&b), "");
    assert_string_equal(kl_reflector_state(b.r), "streaming");
    opened(&b);
    assert_false(frame(&b, KL_ADDED, "7").complete);
    assert_false(frame(&b, KL_BOOKMARK, "8").complete);
    assert_string_equal(kl_reflector_rv(b.r), ""); /* they are unordered */
    b.now += KL_SECONDS(5);
    kl_reflector_action a = initial_end(&b, "9");
    assert_int_equal(a.what, KL_REFLECTOR_GO_ON);
    assert_true(a.complete);
    assert_string_equal(kl_reflector_state(b.r), "watching");
    assert_string_equal(kl_reflector_rv(b.r), "9");
    assert_false(frame(&b, KL_ADDED, "12").complete);
    assert_string_equal(kl_reflector_rv(b.r), "12");
    a = ends(&b, KL_OK);
    assert_watch(a, "12");
    assert_false(a.watch.initial);
    assert_int_equal(kl_reflector_counters(b.r)->lists, 0);
    assert_int_equal(kl_reflector_counters(b.r)->streams, 1);
    kl_reflector_free(b.r);
}

static void lost_history_is_streamed_again_no_older_than_the_last_seen_version(void **state)
{
    (void)state;
    bench b = start_stream();
    start(&b);
    initial_end(&b, "9");
    assert_stream(ends(&b, KL_EGONE), "9");
    /* not even that: the newest, in the same breath */
    assert_stream(ends(&b, KL_EGONE), "");
    kl_reflector_action a = ends(&b, KL_EGONE);
    assert_list(a, "", 500); /* that makes no sense: ask in the other way */
    page(&b, "20", NULL);
    assert_stream(
        wait_out(&b, fails(&b, KL_REFLECTOR_STREAM_ERROR, KL_EGONE, NULL), KL_MILLISECONDS(800)), "20");
    kl_reflector_free(b.r);
}

static void a_server_that_cannot_stream_is_listed_at_once_and_not_asked_again(void **state)
{
    (void)state;
    bench b = start_stream();
    start(&b);
    assert_list(ends(&b, KL_EREJECTED), "0", 500);
    assert_watch(page(&b, "17", NULL), "17");
    assert_list(ends(&b, KL_EGONE), "17", 0);
    assert_int_equal(kl_reflector_counters(b.r)->fallbacks, 1);
    kl_reflector_free(b.r);
}

static void a_server_that_was_asked_too_much_is_not_listed_either(void **state)
{
    (void)state;
    bench b = start_stream();
    start(&b);
    assert_stream(wait_out(&b, ends(&b, KL_ETHROTTLED), KL_MILLISECONDS(800)), "");
    assert_stream(wait_out(&b, ends(&b, KL_ECONNECT), KL_MILLISECONDS(1600)), "");
    assert_stream(
        wait_out(&b, fails(&b, KL_REFLECTOR_STREAM_ERROR, KL_ETHROTTLED, NULL), KL_MILLISECONDS(3200)), "");
    kl_reflector_free(b.r);
}

static void streams_that_break_are_tried_three_times(void **state)
{
    (void)state;
    bench b = start_stream();
    start(&b);
    assert_stream(wait_out(&b, ends(&b, KL_ECLOSED), KL_MILLISECONDS(800)), "");
    assert_stream(wait_out(&b, ends(&b, KL_OK), KL_MILLISECONDS(1600)), "");
    assert_list(ends(&b, KL_ECLOSED), "0", 500);
    page(&b, "17", NULL);
    assert_stream(ends(&b, KL_EGONE), "17"); /* another time it may work */
    kl_reflector_free(b.r);
}

static void any_other_failure_of_a_stream_leaves_it_to_a_list(void **state)
{
    (void)state;
    static const kl_status other[] = {KL_ESERVER, KL_EFORBIDDEN, KL_ENOTFOUND, KL_ESYNTAX, KL_ETOOBIG};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        bench b = start_stream();
        start(&b);
        assert_list(ends(&b, other[i]), "0", 500);
        kl_reflector_free(b.r);
    }
}

static void a_silent_stream_is_given_up_and_an_active_one_is_not(void **state)
{
    (void)state;
    bench b = start_stream();
    kl_reflector_action a = start(&b);
    assert_int_equal(a.until, b.now + KL_SECONDS(30));
    for (int i = 0; i < 10; i++) {
        b.now += KL_SECONDS(29);
        a = frame(&b, KL_ADDED, "7");
        assert_int_equal(a.what, KL_REFLECTOR_GO_ON);
        assert_int_equal(a.until, b.now + KL_SECONDS(30));
    }
    b.now = a.until;
    a = timer(&b);
    assert_int_equal(a.what, KL_REFLECTOR_WAIT); /* a stream that broke: once more */
    assert_stream(wait_out(&b, a, KL_MILLISECONDS(800)), "");
    assert_int_equal(kl_reflector_counters(b.r)->stalls, 1);
    kl_reflector_free(b.r);
}

/* Ten minutes of an outage, then somebody else hears the server again: all who wait come within a second,
 * and none keeps a long wait for what comes next. */
static void an_answer_after_an_outage_ends_the_wait_and_the_backoff(void **state)
{
    (void)state;
    static const kl_status how[] = {KL_ECONNECT, KL_ESERVER, KL_EFORBIDDEN};
    for (size_t k = 0; k < 3; k++) {
        bench b = watching("17");
        b.now += KL_MINUTES(2);
        kl_reflector_action a = ends(&b, how[k]);
        if (a.what == KL_REFLECTOR_WATCH) /* the first end of a good watch is free */
            a = ends(&b, how[k]);
        for (kl_time end = b.now + KL_MINUTES(10); b.now < end;) {
            assert_int_equal(a.what, KL_REFLECTOR_WAIT);
            b.now = a.until;
            assert_int_equal(timer(&b).what, KL_REFLECTOR_WATCH);
            a = ends(&b, how[k]);
        }
        a = put(&b, (kl_reflector_input){.kind = KL_REFLECTOR_ANSWERED});
        assert_int_equal(a.what, KL_REFLECTOR_WAIT);
        assert_in_range(a.until - b.now, 0, KL_MILLISECONDS(800));
        b.now = a.until;
        assert_watch(timer(&b), "17");
        assert_watch(wait_out(&b, ends(&b, KL_ESERVER), KL_MILLISECONDS(800)), "17");
        kl_reflector_free(b.r);
    }
}

static void a_flapping_server_ends_waits_rarely(void **state)
{
    (void)state;
    bench b = watching("17");
    kl_reflector_action a = ends(&b, KL_ESERVER);
    a = put(&b, (kl_reflector_input){.kind = KL_REFLECTOR_ANSWERED});
    b.now = a.until;
    timer(&b);
    a = ends(&b, KL_ESERVER);
    assert_int_equal(put(&b, (kl_reflector_input){.kind = KL_REFLECTOR_ANSWERED}).what, KL_REFLECTOR_GO_ON);
    assert_watch(wait_out(&b, a, KL_MILLISECONDS(800)), "17");
    kl_reflector_free(b.r);
}

static void a_retry_after_is_still_respected(void **state)
{
    (void)state;
    bench b = watching("17");
    kl_err e = KL_ERR_INIT;
    kl_fail(&e, KL_ETHROTTLED, "slow down");
    e.retry_after_ns = KL_SECONDS(20);
    kl_time until = put(&b, (kl_reflector_input){.kind = KL_REFLECTOR_ENDED, .err = &e}).until;
    kl_reflector_action a = put(&b, (kl_reflector_input){.kind = KL_REFLECTOR_ANSWERED});
    assert_int_equal(a.what, KL_REFLECTOR_GO_ON);
    assert_int_equal(a.until, until);
    kl_err_fini(&e);
    kl_reflector_free(b.r);
}

static void pages_that_lead_nowhere_are_given_up(void **state)
{
    (void)state;
    bench b = start_bench();
    start(&b);
    assert_int_equal(page(&b, "17", "again").what, KL_REFLECTOR_LIST);
    assert_list(wait_out(&b, page(&b, "17", "again"), KL_MILLISECONDS(800)), "0", 500);
    assert_non_null(strstr(kl_reflector_message(b.r), "the list does not end"));
    kl_reflector_action a = {0};
    char token[16];
    for (int i = 0; i < 5; i++) {
        snprintf(token, sizeof token, "t%d", i);
        a = put(&b,
            (kl_reflector_input){
                .kind = KL_REFLECTOR_PAGE, .rv = "17", .continue_token = token, .barren = true});
        assert_int_equal(a.what, i < 4 ? KL_REFLECTOR_LIST : KL_REFLECTOR_WAIT);
    }
    assert_list(wait_out(&b, a, KL_MILLISECONDS(1600)), "0", 500);
    for (int i = 0; i < 50; i++) { /* items among them: it does come on */
        snprintf(token, sizeof token, "u%d", i);
        a = put(&b,
            (kl_reflector_input){
                .kind = KL_REFLECTOR_PAGE, .rv = "17", .continue_token = token, .barren = i % 3});
        assert_int_equal(a.what, KL_REFLECTOR_LIST);
    }
    kl_reflector_free(b.r);
}

static void a_list_of_more_pages_than_a_server_can_have_is_given_up(void **state)
{
    (void)state;
    bench b = start_bench();
    start(&b);
    kl_reflector_action a = {.what = KL_REFLECTOR_LIST};
    char token[16];
    int i = 0;
    for (; i < 200000 && a.what == KL_REFLECTOR_LIST; i++) {
        snprintf(token, sizeof token, "t%d", i);
        a = page(&b, "17", token);
    }
    assert_int_equal(i, 100000);
    assert_int_equal(a.what, KL_REFLECTOR_WAIT);
    assert_non_null(strstr(kl_reflector_message(b.r), "more than 100,000 pages"));
    kl_reflector_free(b.r);
}

KL_TESTS(cmocka_unit_test(pages_that_lead_nowhere_are_given_up),
    cmocka_unit_test(a_list_of_more_pages_than_a_server_can_have_is_given_up),
    cmocka_unit_test(an_answer_after_an_outage_ends_the_wait_and_the_backoff),
    cmocka_unit_test(a_flapping_server_ends_waits_rarely), cmocka_unit_test(a_retry_after_is_still_respected),
    cmocka_unit_test(lists_at_zero_then_watches_from_the_listed_version),
    cmocka_unit_test(pages_by_continue_and_replaces_only_after_the_last_page),
    cmocka_unit_test(a_bookmark_ends_the_doubt_that_silence_left),
    cmocka_unit_test(a_list_stands_where_its_first_page_stood),
    cmocka_unit_test(later_lists_go_without_pages_so_that_the_watch_cache_serves_them),
    cmocka_unit_test(history_lost_between_pages_means_one_whole_list),
    cmocka_unit_test(a_lost_page_is_requested_again_without_earlier_ones),
    cmocka_unit_test(a_list_that_is_refused_starts_over_after_a_backoff),
    cmocka_unit_test(an_expired_list_asks_for_the_newest_at_once),
    cmocka_unit_test(a_resource_version_from_the_future_is_given_up_like_an_expired_one),
    cmocka_unit_test(newest_that_is_gone_too_backs_off),
    cmocka_unit_test(every_frame_moves_the_resource_version),
    cmocka_unit_test(synthetic_adds_of_a_watch_from_nowhere_do_not_move_it),
    cmocka_unit_test(a_watch_from_nowhere_that_ends_is_listed_again),
    cmocka_unit_test(a_clean_close_resumes_at_once_without_a_list),
    cmocka_unit_test(a_broken_connection_resumes_without_a_list),
    cmocka_unit_test(garbage_in_the_stream_resumes_after_a_backoff),
    cmocka_unit_test(very_short_watches_back_off_and_never_list),
    cmocka_unit_test(short_watches_with_events_back_off_later),
    cmocka_unit_test(refused_and_throttled_watches_back_off_without_a_list),
    cmocka_unit_test(retry_after_is_a_lower_bound), cmocka_unit_test(errors_in_the_stream),
    cmocka_unit_test(a_watch_that_never_gets_past_a_place_is_listed_after_some_tries),
    cmocka_unit_test(history_lost_again_and_again_is_asked_for_slower_and_slower),
    cmocka_unit_test(backoff_is_forgotten_only_after_sustained_success),
    cmocka_unit_test(refusals_park_and_are_tried_again),
    cmocka_unit_test(a_kind_that_is_back_restarts_its_backoff),
    cmocka_unit_test(an_object_too_big_stays_parked_until_something_gets_past_it),
    cmocka_unit_test(a_kind_that_went_away_is_listed_again),
    cmocka_unit_test(a_kick_ends_a_wait_and_disturbs_nothing_else),
    cmocka_unit_test(a_watch_that_has_shown_bookmarks_stalls_after_75_seconds),
    cmocka_unit_test(a_watch_without_bookmarks_is_resumed_at_growing_intervals),
    cmocka_unit_test(late_inputs_are_ignored_and_stop_is_final),
    cmocka_unit_test(watches_spread_over_five_to_ten_minutes),
    cmocka_unit_test(a_stream_is_complete_after_its_initial_events_and_continues_as_a_watch),
    cmocka_unit_test(lost_history_is_streamed_again_no_older_than_the_last_seen_version),
    cmocka_unit_test(a_server_that_cannot_stream_is_listed_at_once_and_not_asked_again),
    cmocka_unit_test(a_server_that_was_asked_too_much_is_not_listed_either),
    cmocka_unit_test(streams_that_break_are_tried_three_times),
    cmocka_unit_test(any_other_failure_of_a_stream_leaves_it_to_a_list),
    cmocka_unit_test(a_silent_stream_is_given_up_and_an_active_one_is_not))

/* not in tsan: it starts no thread */
