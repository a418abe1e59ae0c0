/* retry_test.c - retries and waits: retry.h, limiter.h and pace.h, which are functions of (state, now). */
#include "support/test.h"

#include "client/pace.h"
#include "client/retry.h"

/* --- retry -------------------------------------------------------------------------------- */

#define NEVER ((kl_time)-1)

static kl_time wait_of(const char *method, bool watch, kl_status st, int code, bool sent, kl_time after)
{
    return kl__retry_wait(&(kl__attempt){
        .method = method, .watch = watch, .st = st, .code = code, .sent = sent, .retry_after = after});
}

/* The rows of client-go's own table (rest/request_test.go, TestRequestWithRetry and what it checks with
 * every method). */
static void the_table_is_client_gos(void **state)
{
    (void)state;
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < 5; i++) {
        const char *m = methods[i];
        bool get = i == 0;
        assert_int_equal(wait_of(m, false, KL_OK, 429, true, 0), 0);
        assert_int_equal(wait_of(m, false, KL_OK, 429, true, KL_SECONDS(3)), KL_SECONDS(3));
        assert_int_equal(wait_of(m, false, KL_OK, 503, true, 0), 0);
        assert_int_equal(wait_of(m, false, KL_OK, 500, true, KL_SECONDS(1)), KL_SECONDS(1));
        assert_int_equal(wait_of(m, false, KL_OK, 504, true, KL_SECONDS(1)), KL_SECONDS(1));
        assert_int_equal(wait_of(m, false, KL_OK, 429, true, -1), NEVER);
        assert_int_equal(wait_of(m, false, KL_OK, 500, true, -1), NEVER);
        static const int final[] = {200, 201, 301, 302, 400, 401, 403, 404, 409, 410, 422};
        for (size_t k = 0; k < sizeof final / sizeof *final; k++)
            assert_int_equal(wait_of(m, false, KL_OK, final[k], true, 0), NEVER);
        /* reset, end of file, connection lost */
        assert_int_equal(wait_of(m, false, KL_ECLOSED, 0, true, -1), get ? KL_SECONDS(1) : NEVER);
        /* the same before a byte went out: nobody can have done it */
        assert_int_equal(wait_of(m, false, KL_ECLOSED, 0, false, -1), KL_SECONDS(1));
        /* refused; too late */
        assert_int_equal(wait_of(m, false, KL_ECONNECT, 0, false, -1), NEVER);
        assert_int_equal(wait_of(m, false, KL_ETIMEOUT, 0, true, -1), NEVER);
        assert_int_equal(wait_of(m, false, KL_ESERVER, 200, true, -1), NEVER);
        assert_int_equal(wait_of(m, false, KL_ECANCELLED, 0, true, -1), NEVER);
    }
    assert_int_equal(wait_of("GET", true, KL_ETIMEOUT, 0, true, -1), KL_SECONDS(1));
    assert_int_equal(wait_of("GET", true, KL_ECLOSED, 0, true, -1), KL_SECONDS(1));
}

static void ten_are_the_most(void **state)
{
    (void)state;
    kl__attempt a = {.method = "GET", .code = 429, .sent = true};
    for (a.retries = 0; a.retries < 10; a.retries++)
        assert_int_equal(kl__retry_wait(&a), 0);
    assert_int_equal(kl__retry_wait(&a), NEVER);
}

/* --- pace --------------------------------------------------------------------------------- */

static void start(kl__pace *p, int n)
{
    for (int i = 0; i < n; i++)
        kl__pace_start(p);
}

static void an_open_pace_has_no_limit(void **state)
{
    (void)state;
    kl__pace p = {0};
    kl_time when;
    start(&p, 10000);
    assert_true(kl__pace_room(&p, 0, &when));
    assert_false(kl__pace_over(&p, KL_PACE_GOOD, 0, 0, 1));
    assert_true(kl__pace_room(&p, 0, &when));
    assert_int_equal(p.under_way, 9999);
}

static void a_429_halves_and_rests_and_answers_open_again(void **state)
{
    (void)state;
    kl__pace p = {0};
    kl_time when, t = KL_SECONDS(10);
    start(&p, 16);
    assert_true(kl__pace_over(&p, KL_PACE_REFUSED, t - 5, KL_SECONDS(2), t));
    assert_int_equal((int)p.window, 8);
    assert_false(kl__pace_room(&p, t, &when));
    assert_int_equal(when, t + KL_SECONDS(2));
    /* The others of the same round were on their way: their refusals are no news, but a longer rest is. */
    for (int i = 0; i < 10; i++)
        assert_false(kl__pace_over(&p, KL_PACE_REFUSED, t - 5, KL_SECONDS(3), t));
    assert_int_equal((int)p.window, 8);
    t += KL_SECONDS(3);
    assert_true(kl__pace_room(&p, t, &when)); /* 5 are under way, 8 may */
    start(&p, 3);
    assert_false(kl__pace_room(&p, t, &when));
    assert_int_equal(when, KL_NEVER); /* when one ends */
    /* One that was sent after the cut is refused: half again. */
    assert_true(kl__pace_over(&p, KL_PACE_REFUSED, t, -1, t + 1));
    assert_int_equal((int)p.window, 4);
    t += KL_SECONDS(2);
    int answers = 0;
    for (bool opened = false; !opened; answers++) {
        assert_true(answers < 2000);
        if (kl__pace_room(&p, t, &when))
            kl__pace_start(&p);
        opened = kl__pace_over(&p, KL_PACE_GOOD, t, 0, t);
    }
    /* additive: a round for each step */
    assert_true(answers > 16 * 16);
    assert_true(kl__pace_room(&p, t, &when));
    assert_true(p.window == 0);
}

static void one_at_a_time_is_the_least_and_recovers_at_once(void **state)
{
    (void)state;
    kl__pace p = {0};
    kl_time when, t = 0;
    start(&p, 1);
    assert_true(kl__pace_over(&p, KL_PACE_REFUSED, 0, KL_SECONDS(3600), t));
    assert_true(p.window >= 1);
    assert_false(kl__pace_room(&p, KL_SECONDS(29), &when));
    /* an hour is too long for all to stand still */
    assert_true(kl__pace_room(&p, KL_SECONDS(30), &when));
    start(&p, 1);
    assert_false(kl__pace_room(&p, KL_SECONDS(30), &when));
    /* a broken line says nothing */
    assert_false(kl__pace_over(&p, KL_PACE_UNKNOWN, KL_SECONDS(30), 0, KL_SECONDS(31)));
    start(&p, 1);
    assert_true(kl__pace_over(&p, KL_PACE_GOOD, KL_SECONDS(31), 0, KL_SECONDS(31)));
    assert_true(p.window == 0);
}

KL_TESTS(cmocka_unit_test(the_table_is_client_gos), cmocka_unit_test(ten_are_the_most),
    cmocka_unit_test(an_open_pace_has_no_limit),
    cmocka_unit_test(a_429_halves_and_rests_and_answers_open_again),
    cmocka_unit_test(one_at_a_time_is_the_least_and_recovers_at_once))

/* not in tsan: it starts no thread */
