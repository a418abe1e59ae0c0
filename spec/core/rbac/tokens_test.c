/* tokens_test.c - the key that signs tokens is created once, without blocking its users. */
#include "support/test.h"

#include "base/sync.h"
#include "rbac/tokens.h"

typedef struct waiting {
    kl__issuer *issuer;
    kl_mutex mu;
    kl_cond cond;
    int ready;
} waiting;

static void on_ready(void *arg)
{
    waiting *w = arg;
    bool there = kl__issuer_await(w->issuer, on_ready, w);
    kl_lock(&w->mu);
    w->ready += there ? 1 : 100;
    kl_cond_broadcast(&w->cond);
    kl_unlock(&w->mu);
}

static void assert_keys(kl__issuer *i, const char *expected)
{
    kl_buf keys = KL_BUF_INIT;
    kl__issuer_keys(i, &keys);
    if (expected)
        assert_string_equal(kl_buf_str(&keys), expected);
    else
        assert_non_null(strstr(kl_buf_str(&keys), "\"alg\":\"RS256\""));
    kl_buf_fini(&keys);
}

static void waiters_are_called_once_and_later_ones_do_not_wait(void **state)
{
    (void)state;
    waiting w = {.issuer = kl__issuer_new()};
    kl_mutex_init(&w.mu);
    kl_cond_init(&w.cond);
    for (int i = 0; i < 3; i++)
        assert_false(kl__issuer_await(w.issuer, on_ready, &w));
    kl_lock(&w.mu);
    while (w.ready < 3)
        kl_cond_wait(&w.cond, &w.mu);
    assert_int_equal(w.ready, 3);
    kl_unlock(&w.mu);
    assert_true(kl__issuer_await(w.issuer, on_ready, &w));
    kl_buf keys = KL_BUF_INIT;
    kl__issuer_keys(w.issuer, &keys);
    assert_keys(w.issuer, kl_buf_str(&keys));
    kl__issuer_free(w.issuer);
    assert_int_equal(w.ready, 3);
    kl_buf_fini(&keys);
    kl_cond_fini(&w.cond);
    kl_mutex_fini(&w.mu);
}

static void after_a_stop_no_caller_waits_and_the_key_is_still_made(void **state)
{
    (void)state;
    waiting w = {.issuer = kl__issuer_new()};
    kl__issuer_stop(w.issuer);
    assert_true(kl__issuer_await(w.issuer, on_ready, &w));
    assert_keys(w.issuer, NULL);
    kl__issuer_free(w.issuer);
    assert_int_equal(w.ready, 0);
}

KL_TESTS(cmocka_unit_test(waiters_are_called_once_and_later_ones_do_not_wait),
    cmocka_unit_test(after_a_stop_no_caller_waits_and_the_key_is_still_made))
