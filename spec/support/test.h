/* test.h - what every C test includes: cmocka with the headers it forgets, and a few words of our own.
 *
 *   static void a_sentence_about_behaviour(void **state) { (void)state; assert_int_equal(1, 1); }
 *   KL_TESTS(cmocka_unit_test(a_sentence_about_behaviour))
 *
 * The runner reads the results as TAP and each program's exit status. */
#ifndef KL_SPEC_TEST_H
#define KL_SPEC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"

/* The main of a test program that has nothing to set up. */
#define KL_TESTS(...)                                                                                        \
    int main(void)                                                                                           \
    {                                                                                                        \
        const struct CMUnitTest kl_tests[] = {__VA_ARGS__};                                                  \
        return cmocka_run_group_tests(kl_tests, NULL, NULL);                                                 \
    }

/* A call that must succeed; the story of its failure is in the report. `err` is a kl_err *. */
#define assert_ok(call, err)                                                                                 \
    do {                                                                                                     \
        if ((call) != KL_OK)                                                                                 \
            fail_msg("%s: %s (%s)", #call, kl_err_message(err), kl_status_name((err)->status));              \
    } while (0)

/* A call that must fail with `want`, and whose message must contain `part`. Leaves err clean. */
#define assert_fails(call, want, err, part)                                                                  \
    do {                                                                                                     \
        kl_status kl_got_ = (call);                                                                          \
        if (kl_got_ != (want))                                                                               \
            fail_msg("%s: %s, wanted %s", #call, kl_status_name(kl_got_), kl_status_name(want));             \
        if (!strstr(kl_err_message(err), (part)))                                                            \
            fail_msg("%s: message \"%s\" lacks \"%s\"", #call, kl_err_message(err), (part));                 \
        kl_err_fini(err);                                                                                    \
    } while (0)

#endif
