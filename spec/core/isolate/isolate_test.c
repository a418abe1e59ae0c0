/* isolate_test.c - foreign processes in place of isolated ones: whatever they send, they are killed, reaped
 * and reported. */
#include "support/test.h"

#include <string.h>
#include <sys/wait.h>
#include "base/base64.h"
#include "base/mem.h"
#include "run/function.h"
#include "isolate/isolate.h"

static kl_program *program;
static atomic_bool stop;

static int setup(void **state)
{
    (void)state;
    kl_controller_spec spec = {.name = kl_strdup("web")};
    program = kl_program_of_function("web.lua", &spec, NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kl_program_unref(program);
    atomic_store(&stop, false);
    return 0;
}

/* Hears what it is told first, all of it, and is ready. */
#define READY                                                                                                \
    "head -c 13 <&0 >/dev/null; printf '\\011\\000\\000\\000\\040\\001\\000\\000\\000\\000\\000\\000\\000' " \
    ">&0; "

static kl_status opened_as(const char *const *argv, kl_isolate **out, kl_err *err)
{
    return kl_isolate_open(&(kl_isolate_order){.program = program,
                               .stop = &stop,
                               .path = argv[0],
                               .argv = argv,
                               .cpu = KL_MILLISECONDS(250),
                               .patience = KL_SECONDS(1),
                               .message = 1 << 20},
        out, NULL, err);
}

static kl_status opened(const char *script, kl_isolate **out, kl_err *err)
{
    return opened_as((const char *[]){"/bin/sh", "-c", script, NULL}, out, err);
}

static void assert_refused(const char *script, const char *why)
{
    kl_isolate *i = NULL;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(opened(script, &i, &err), KL_ESCRIPT);
    assert_non_null(strstr(kl_err_message(&err), "the isolated Lua process of web"));
    assert_non_null(strstr(kl_err_message(&err), why));
    kl_err_fini(&err);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left of it */
}

static void an_invalid_message_ends_it(void **state)
{
    (void)state;
    /* no such word */
    assert_refused(
        "printf '\\005\\000\\000\\000\\377\\000\\000\\000\\000' >&0; exec sleep 60", "invalid message");
    /* a read of no run */
    assert_refused(
        "printf '\\005\\000\\000\\000\\100\\000\\000\\000\\000' >&0; exec sleep 60", "invalid message");
    /* a result of nothing */
    assert_refused(
        "printf '\\005\\000\\000\\000\\043\\000\\000\\000\\000' >&0; exec sleep 60", "invalid message");
    assert_refused("printf '\\377\\377\\377\\377\\377' >&0; exec sleep 60", "more than");
    assert_refused("echo hello, here I am >&0; exec sleep 60", "was killed");
}

static void its_exit_is_reported_exactly(void **state)
{
    (void)state;
    assert_refused("exit 3", "with status 3");
    assert_refused("exit 9", "exceeded its memory limit");
    assert_refused("kill -9 $$", "signal 9");
    assert_refused("kill -SYS $$", "seccomp");
}

static void a_function_of_one_that_is_gone_fails(void **state)
{
    (void)state;
    kl_isolate *i = NULL;
    bool pass = false;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(opened(READY "kill -9 $$", &i, &err), KL_OK);
    assert_int_equal(kl_isolate_predicate(i, 1, NULL, NULL, &pass, &err), KL_ESCRIPT);
    assert_non_null(strstr(kl_err_message(&err), "signal 9"));
    assert_true(pass);
    assert_true(kl_isolate_worn(i));
    assert_non_null(kl_isolate_dead(i));
    kl_err_fini(&err);
    assert_int_equal(kl_isolate_index(i, 1, NULL, NULL, NULL, &err), KL_ESCRIPT);
    kl_err_fini(&err);
    kl_isolate_close(i);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void one_that_lives_is_ended_with_its_state(void **state)
{
    (void)state;
    kl_isolate *i = NULL;
    assert_int_equal(opened(READY "exec sleep 60", &i, NULL), KL_OK);
    assert_false(kl_isolate_worn(i));
    assert_null(kl_isolate_look(i));
    kl_isolate_close(i);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* It joins the group of this process, and would live as long as its socket. */
static void one_that_leaves_its_group_is_ended(void **state)
{
    (void)state;
    kl_isolate *i = NULL;
    const char *argv[] = {"/usr/bin/perl", "-e", "setpgrp(0, getpgrp(getppid)) and exec @ARGV", "sh", "-c",
        READY "exec cat >/dev/null", NULL};
    assert_int_equal(opened_as(argv, &i, NULL), KL_OK);
    kl_isolate_close(i);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void one_that_computes_without_end_is_ended(void **state)
{
    (void)state;
    kl_isolate *i = NULL;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(opened(READY "while :; do :; done", &i, NULL), KL_OK);
    assert_int_equal(kl_isolate_index(i, 1, NULL, NULL, NULL, &err), KL_ESCRIPT);
    assert_non_null(strstr(kl_err_message(&err), "`cpu`"));
    kl_err_fini(&err);
    kl_isolate_close(i);
}

/* A log line, once and again: it is heard at once each time, and uses hardly any processor time. */
#define LINE                                                                                                 \
    "printf "                                                                                                \
    "'\\024\\000\\000\\000\\202\\002\\000\\000\\000\\001\\000\\000\\0000\\006\\000\\000\\000\"talk\"' >&0; "

static void one_that_sends_endlessly_is_ended(void **state)
{
    (void)state;
    kl_isolate *i = NULL;
    kl_err err = KL_ERR_INIT;
    kl_log_set_level(KL_LOG_OFF);
    assert_int_equal(opened(READY "while :; do " LINE "done", &i, NULL), KL_OK);
    assert_int_equal(kl_isolate_index(i, 1, NULL, NULL, NULL, &err), KL_ESCRIPT);
    assert_non_null(strstr(kl_err_message(&err), "`cpu`"));
    kl_err_fini(&err);
    kl_isolate_close(i);
}

/* Begins a message of 16 MB and sends a byte now and then, for days. */
static void one_that_sends_byte_by_byte_ends_with_its_worker(void **state)
{
    (void)state;
    kl_isolate *i = NULL;
    kl_err err = KL_ERR_INIT;
    kl_log_set_level(KL_LOG_OFF);
    assert_int_equal(
        opened(READY "printf '\\000\\000\\000\\001' >&0; while printf x >&0; do sleep 0.01; done", &i, NULL),
        KL_OK);
    atomic_store(&stop, true);
    assert_int_equal(kl_isolate_index(i, 1, NULL, NULL, NULL, &err), KL_ESCRIPT);
    assert_non_null(strstr(kl_err_message(&err), "its worker ends"));
    kl_err_fini(&err);
    kl_isolate_close(i);
}

/* Sends more than we take while we send, and takes nothing itself. */
static void one_that_sends_and_takes_nothing_is_ended(void **state)
{
    (void)state;
    kl_isolate *i = NULL;
    kl_err err = KL_ERR_INIT;
    char *text = kl_alloc(1 << 20);
    memset(text, 'x', 1 << 20);
    text[900000] = '\0';
    const kl_value *v = kl_value_of_str(text);
    kl_log_set_level(KL_LOG_OFF);
    assert_int_equal(opened(READY "head -c 80000000 /dev/zero >&0; exec sleep 60", &i, NULL), KL_OK);
    atomic_store(&stop, true);
    assert_int_equal(kl_isolate_index(i, 1, v, NULL, NULL, &err), KL_ESCRIPT);
    kl_err_fini(&err);
    kl_value_unref(v);
    kl_free(text);
    kl_isolate_close(i);
}

static void count(void *arg, const char *text)
{
    (void)text;
    ++*(size_t *)arg;
}

/* results N: a RESULT with N empty texts. */
#define RESULTS                                                                                              \
    "number() { for k in 0 8 16 24; do printf \"\\\\$(printf %03o $(($1 >> k & 255)))\"; done; }; "          \
    "results() { number $((3 * $1 + 22)); printf '\\046\\004\\000\\000\\000\\000\\000\\000\\000'; "          \
    "number $((3 * $1 + 1)); printf '['; yes '\"\",' | head -n $(($1 - 1)) | tr -d '\\n'; printf '\"\"]'; "  \
    "number 0; number 0; }; "

static void one_that_emits_more_than_a_script_may_is_ended(void **state)
{
    (void)state;
    kl_isolate *i = NULL;
    size_t n = 0;
    kl_err err = KL_ERR_INIT;
    kl_log_set_level(KL_LOG_OFF);
    assert_int_equal(
        opened(RESULTS READY "{ results 10000; results 10001; } >&0; exec sleep 60", &i, NULL), KL_OK);
    assert_ok(kl_isolate_index(i, 1, NULL, count, &n, &err), &err);
    assert_int_equal(n, 10000);
    assert_int_equal(kl_isolate_index(i, 1, NULL, count, &n, &err), KL_ESCRIPT);
    assert_non_null(strstr(kl_err_message(&err), "invalid message"));
    assert_int_equal(n, 10000);
    kl_err_fini(&err);
    kl_isolate_close(i);
}

/* kubelua's own process, told to be one controller of a script that returns two. */
static kl_status opened_ours(int controller, kl_isolate **out, kl_err *err)
{
    static const char text[] =
        "local kube = require 'kubelua'\n"
        "local function named(name) return kube.controller { name = name,\n"
        "  resource = 'v1/ConfigMap', isolate = true, reconcile = function() end } end\n"
        "return { named 'first', named 'second' }\n";
    const char *argv[] = {"kubelua", "--isolated-child", NULL};
    char *source = kl_base64_encode(text, sizeof text - 1);
    char *json = kl_sprintf("{\"controller\": %d, \"memory\": %d, \"dir\": \".\", "
                            "\"sources\": [[\"web.lua\", \"web.lua\", \"%s\"]]}",
        controller, 1 << 30, source);
    const kl_value *boot = NULL;
    assert_ok(kl_value_decode(json, strlen(json), &boot, err), err);
    kl_status st = kl_isolate_open(&(kl_isolate_order){.program = program,
                                       .stop = &stop,
                                       .path = getenv("KUBELUA"),
                                       .argv = argv,
                                       .boot = boot,
                                       .cpu = KL_SECONDS(30),
                                       .patience = KL_SECONDS(30),
                                       .message = 1 << 20},
        out, NULL, err);
    kl_value_unref(boot);
    kl_free(json);
    kl_free(source);
    return st;
}

/* A script can count, and return other controllers in its own process. */
static void a_controller_that_the_script_does_not_return_there_is_an_error(void **state)
{
    (void)state;
    kl_isolate *i = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(opened_ours(1, &i, &err), &err);
    kl_isolate_close(i);
    i = NULL;
    for (int wrong = 2; wrong < 4; wrong++) {
        assert_int_equal(opened_ours(wrong, &i, &err), KL_ESCRIPT);
        char *said = kl_sprintf("the script returned no controller %d when loaded again", wrong);
        assert_non_null(strstr(kl_err_message(&err), said));
        kl_free(said);
        kl_err_fini(&err);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_invalid_message_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(its_exit_is_reported_exactly, setup, teardown),
        cmocka_unit_test_setup_teardown(a_function_of_one_that_is_gone_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_lives_is_ended_with_its_state, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_leaves_its_group_is_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_computes_without_end_is_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_sends_endlessly_is_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_sends_byte_by_byte_ends_with_its_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_sends_and_takes_nothing_is_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_emits_more_than_a_script_may_is_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_controller_that_the_script_does_not_return_there_is_an_error, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
