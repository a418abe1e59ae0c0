/* err_test.c - statuses, messages of errors, and allocation that cannot fail. */
#include "support/test.h"

#include "base/err.h"
#include "base/mem.h"

static void the_last_story_wins(void **state)
{
    (void)state;
    kl_err e = KL_ERR_INIT;
    assert_string_equal(kl_err_message(&e), "");
    assert_int_equal(kl_fail(&e, KL_EINVAL, "first %d", 1), KL_EINVAL);
    e.http_code = 400;
    e.reason = kl_strdup("BadRequest");
    assert_int_equal(kl_fail(&e, KL_EIO, "again after: %s", kl_err_message(&e)), KL_EIO);
    assert_string_equal(kl_err_message(&e), "again after: first 1");
    assert_int_equal(e.http_code, 0);
    assert_null(e.reason);
    assert_int_equal(kl_err_prefix(&e, "file %s", "x"), KL_EIO);
    assert_string_equal(kl_err_message(&e), "file x: again after: first 1");
    kl_err_fini(&e);
    assert_int_equal(e.status, KL_OK);
}

static void a_story_is_optional(void **state)
{
    (void)state;
    assert_int_equal(kl_fail(NULL, KL_EGONE, "%s", "x"), KL_EGONE);
    assert_true(kl_err_prefix(NULL, "x") != KL_OK);
    assert_string_equal(kl_err_message(NULL), "");
    kl_err_fini(NULL);
    kl_err_move(NULL, NULL);
    kl_err_copy(NULL, NULL);
}

static void moves_and_copies_whole(void **state)
{
    (void)state;
    kl_err a = KL_ERR_INIT, b = KL_ERR_INIT, c = KL_ERR_INIT;
    (void)!kl_fail(&a, KL_ECONFLICT, "busy");
    a.http_code = 409;
    a.retry_after_ns = 5;
    a.reason = kl_strdup("Conflict");
    a.details = kl_strdup("{}");
    kl_err_copy(&b, &a);
    kl_err_copy(&b, &b);
    (void)!kl_fail(&c, KL_EIO, "old");
    kl_err_move(&c, &a);
    kl_err_move(&c, &c);
    assert_null(a.message);
    assert_int_equal(a.status, KL_OK);
    kl_err *both[] = {&b, &c};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(both[i]->status, KL_ECONFLICT);
        assert_int_equal(both[i]->http_code, 409);
        assert_int_equal(both[i]->retry_after_ns, 5);
        assert_string_equal(both[i]->reason, "Conflict");
        assert_string_equal(both[i]->details, "{}");
        assert_string_equal(kl_err_message(both[i]), "busy");
    }
    kl_err_fini(&b);
    kl_err_move(NULL, &c);
    assert_null(c.message);
}

static void every_status_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = KL_OK; i <= KL_EINTERNAL; i++) {
        assert_non_null(kl_status_name((kl_status)i));
        for (int k = KL_OK; k < i; k++)
            assert_string_not_equal(kl_status_name((kl_status)i), kl_status_name((kl_status)k));
    }
    assert_string_equal(kl_status_name(KL_ETOOBIG), "too_big");
    assert_string_equal(kl_status_name(KL_ECONNECT), "unreachable");
    assert_string_equal(kl_status_name((kl_status)999), "internal");
}

static jmp_buf out;
static char what_ended[64];

static void end_here(const char *what)
{
    snprintf(what_ended, sizeof what_ended, "%s", what);
    longjmp(out, 1);
}

static void memory_that_ends_meets_the_hook(void **state)
{
    (void)state;
    kl_mem_set_hook(end_here);
    if (!setjmp(out)) {
        kl_free(kl_new_array(kl_err, SIZE_MAX / 2));
        fail();
    }
    kl_mem_set_hook(NULL);
    assert_non_null(strstr(what_ended, "overflows"));
}

static void makes_text(void **state)
{
    (void)state;
    char *a = kl_sprintf("%s-%d", "x", 5), *b = kl_strndup("abcdef", 3), *c = kl_strndup("ab\0cd", 5),
         *d = kl_alloc(0);
    assert_string_equal(a, "x-5");
    assert_string_equal(b, "abc");
    assert_string_equal(c, "ab");
    assert_non_null(d);
    assert_null(kl_strdup(NULL));
    assert_null(kl_strndup(NULL, 3));
    d = kl_realloc(d, 100);
    int *zeroes = kl_new_array(int, 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(zeroes[i], 0);
    kl_free(a);
    kl_free(b);
    kl_free(c);
    kl_free(d);
    kl_free(zeroes);
    kl_free(NULL);
}

KL_TESTS(cmocka_unit_test(the_last_story_wins), cmocka_unit_test(a_story_is_optional),
    cmocka_unit_test(moves_and_copies_whole), cmocka_unit_test(every_status_has_a_name_of_its_own),
    cmocka_unit_test(memory_that_ends_meets_the_hook), cmocka_unit_test(makes_text))

/* not in tsan: it starts no thread */
