/* child_test.c - programs that run to their end: their input and output, and that nothing of them is left. */
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/child.h"
#include "base/mem.h"
#include "base/sync.h"
#include "support/fds.h"

extern char **environ;

static kl_child_result r;

static kl_status sh(kl_child *c, const char *script, kl_time timeout, size_t out_max, kl_err *err)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    return kl_child_run(c,
        &(kl_child_order){.program = "sh",
            .argv = argv,
            .env = (const char *const *)environ,
            .timeout = timeout,
            .out_max = out_max,
            .err_max = 16},
        &r, err);
}

static void done(void)
{
    kl_buf_fini(&r.out);
    kl_buf_fini(&r.err);
}

/* We have no child, living or dead. */
static void assert_childless(void) { assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); }

static void gives_output_status_and_the_last_of_stderr(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_child *c = kl_child_new();
    size_t before = fds_open();
    assert_ok(sh(c, "echo out; echo 0123456789abcdefTAIL >&2; exit 7", KL_SECONDS(60), 100, &err), &err);
    assert_string_equal(kl_buf_str(&r.out), "out\n");
    assert_string_equal(kl_buf_str(&r.err), "56789abcdefTAIL\n");
    assert_int_equal(r.code, 7);
    assert_int_equal(r.signal, 0);
    done();
    assert_ok(sh(c, "kill -9 $$", KL_SECONDS(60), 100, &err), &err);
    assert_int_equal(r.signal, SIGKILL);
    done();
    assert_childless();
    assert_int_equal(fds_open(), before);
    kl_child_free(c);
}

static void the_program_gets_three_descriptors_no_blocked_signal_and_no_stdin(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_child *c = kl_child_new();
    kl_signal_mask old;
    int leaky = open("/dev/null", O_RDONLY); /* a host's, without O_CLOEXEC */
    assert_true(leaky > 2);
    kl_signals_block(&old);
    void (*was)(int) = signal(SIGPIPE, SIG_IGN);
    assert_ok(sh(c,
                  "cat; ls /proc/self/fd | wc -l; grep -E '^Sig(Blk|Ign)' /proc/self/status | sed "
                  "'s/[0-9a-f]*\\(.......\\)$/\\1/'",
                  KL_SECONDS(60), 1000, &err),
        &err);
    signal(SIGPIPE, was);
    kl_signals_restore(&old);
    close(leaky);
    /* ls itself opens the directory: 0, 1, 2 and that one. Signals above 28 are left out: two of them are
     * glibc's. */
    assert_string_equal(kl_buf_str(&r.out), "4\nSigBlk:\t0000000\nSigIgn:\t0000000\n");
    done();
    kl_child_free(c);
}

static void too_much_and_too_long_end_in_a_kill(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_child *c = kl_child_new();
    assert_fails(sh(c, "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done",
                     KL_SECONDS(60), 10000, &err),
        KL_ETOOBIG, &err, "wrote more than");
    done();
    assert_childless();
    /* the grandchild is of the same process group, and dies with it: otherwise it would hold this test for
     * a minute */
    assert_fails(sh(c, "sleep 60 & sleep 60", KL_MILLISECONDS(100), 100, &err), KL_ETIMEOUT, &err,
        "did not end within");
    done();
    assert_childless();
    kl_child_free(c);
}

/* More than one writes, so that the pipe is never empty. */
static void errors_without_end_take_neither_memory_nor_more_than_its_time(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_child *c = kl_child_new();
    assert_fails(sh(c, "yes >&2 & yes >&2 & yes >&2 & exec yes >&2", KL_MILLISECONDS(200), 100, &err),
        KL_ETIMEOUT, &err, "did not end within");
    assert_int_equal(r.err.len, 16);
    done();
    char file[] = "/tmp/kubelua-child-XXXXXX";
    close(mkstemp(file)); /* as long as it is there, the grandchild writes */
    char *script = kl_sprintf(
        "{ while [ -e %s ]; do head -c 1000000 /dev/zero; done >&2; } & echo whole; exit 3", file);
    assert_ok(sh(c, script, KL_SECONDS(60), 100, &err), &err);
    assert_string_equal(kl_buf_str(&r.out), "whole\n");
    assert_int_equal(r.code, 3);
    done();
    unlink(file);
    kl_free(script);
    kl_child_free(c);
}

static void a_grandchild_with_the_pipe_delays_nothing(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_child *c = kl_child_new();
    char file[] = "/tmp/kubelua-child-XXXXXX";
    close(mkstemp(file)); /* as long as it is there, the grandchild lives */
    char *script = kl_sprintf("echo whole; { while [ -e %s ]; do sleep 0.1; done; } & exit 0", file);
    assert_ok(sh(c, script, KL_SECONDS(60), 100, &err), &err);
    assert_string_equal(kl_buf_str(&r.out), "whole\n");
    assert_int_equal(r.code, 0);
    done();
    unlink(file);
    kl_free(script);
    kl_child_free(c);
}

static void a_missing_program_is_named(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_child *c = kl_child_new();
    const char *argv[] = {"kubelua-no-such", NULL};
    kl_child_order o = {.program = "kubelua-no-such",
        .argv = argv,
        .env = (const char *const *)environ,
        .timeout = KL_SECONDS(1),
        .out_max = 1,
        .err_max = 1};
    assert_fails(kl_child_run(c, &o, &r, &err), KL_ENOTFOUND, &err,
        "kubelua-no-such does not exist (looked for in PATH)");
    done();
    o.program = "/tmp";
    assert_fails(kl_child_run(c, &o, &r, &err), KL_EIO, &err, "/tmp cannot be started: Permission denied");
    done();
    kl_child_free(c);
}

static void stop_soon(void *arg) { kl_child_stop(arg); }

static void a_stop_ends_the_run_and_all_later_ones(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_child *c = kl_child_new();
    kl_thread *t = kl_thread_start("stopper", stop_soon, c);
    assert_fails(sh(c, "sleep 60", KL_SECONDS(120), 100, &err), KL_ECANCELLED, &err, "stopped");
    done();
    kl_thread_join(t);
    assert_fails(sh(c, "sleep 60", KL_SECONDS(120), 100, &err), KL_ECANCELLED, &err, "stopped");
    done();
    assert_childless();
    kl_child_free(c);
}

KL_TESTS(cmocka_unit_test(gives_output_status_and_the_last_of_stderr),
    cmocka_unit_test(errors_without_end_take_neither_memory_nor_more_than_its_time),
    cmocka_unit_test(the_program_gets_three_descriptors_no_blocked_signal_and_no_stdin),
    cmocka_unit_test(too_much_and_too_long_end_in_a_kill),
    cmocka_unit_test(a_grandchild_with_the_pipe_delays_nothing), cmocka_unit_test(a_missing_program_is_named),
    cmocka_unit_test(a_stop_ends_the_run_and_all_later_ones))
