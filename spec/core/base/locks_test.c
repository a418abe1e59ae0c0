/* locks_test.c - the order of locks: a debug build ends a process that violates it, and release builds do
 * not check. */
#include "support/test.h"

#include "base/locks.h"
#include "base/sync.h"

#ifdef KL_DEBUG

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/watchdog.h"

static kl_mutex leaf = KL_MUTEX_INIT, other = KL_MUTEX_INIT, server = KL_MUTEX_INIT_AS(KL_LOCK_SERVER),
                log = KL_MUTEX_INIT_AS(KL_LOCK_LOG);
static kl_spin values = KL_SPIN_INIT_AS(KL_LOCK_VALUES), memory;

/* What a child process that runs fn says before it is aborted; NULL: it ends well. */
static const char *last_words(void (*fn)(void))
{
    static char said[512];
    int ends[2], status;
    size_t n = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        signal(SIGABRT, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        fn();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0;)
        n += (size_t)got;
    said[n] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && !WEXITSTATUS(status))
        return NULL;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return said;
}

static void in_order(void)
{
    for (int i = 0; i < 2; i++) {
        kl_lock(&server);
        kl_lock(&leaf);
        kl_lock(&log);
        kl_spin_lock(&values);
        kl_spin_lock(&memory);
        kl_unlock(&leaf); /* not the last that was taken */
        kl_spin_unlock(&memory);
        kl_spin_unlock(&values);
        kl_unlock(&log);
        kl_lock(&other);
        kl_unlock(&other);
        kl_unlock(&server);
    }
}

static void upwards(void)
{
    kl_lock(&leaf);
    kl_lock(&server);
}

static void two_leaves(void)
{
    kl_lock(&leaf);
    kl_lock(&other);
}

static void itself(void)
{
    kl_lock(&leaf);
    kl_lock(&leaf);
}

static void a_mutex_under_a_spin_lock(void)
{
    kl_spin_lock(&memory);
    kl_lock(&log);
}

static void a_script_under_a_lock(void)
{
    kl_guard g = {.turn = 0};
    kl_guard_init(&g, NULL, NULL);
    kl_lock(&leaf);
    kl_guard_enter(&g, &(kl_terms){.deadline = KL_NEVER});
}

static void a_wait_under_another_lock(void)
{
    kl_cond c;
    kl_cond_init(&c);
    kl_lock(&server);
    kl_lock(&leaf);
    kl_cond_wait_until(&c, &leaf, 0);
}

static void a_wait(void)
{
    kl_cond c;
    kl_cond_init(&c);
    kl_lock(&leaf);
    kl_cond_wait_until(&c, &leaf, 0);
    kl_unlock(&leaf);
    kl_locks_none("end");
}

static void unheld(void) { kl_unlock(&leaf); }

static void says(void (*fn)(void), const char *a, const char *b)
{
    const char *said = last_words(fn);
    assert_non_null(said);
    if (!strstr(said, a) || !strstr(said, b))
        fail_msg("expected \"%s\" and \"%s\" in: %s", a, b, said);
}

static void a_kept_order_passes(void **state)
{
    (void)state;
    assert_null(last_words(in_order));
    assert_null(last_words(a_wait));
}

static void a_broken_order_aborts_with_both_names(void **state)
{
    (void)state;
    char held[64], taken[64];
    snprintf(held, sizeof held, "while the lock of %s is held", leaf.id.place);
    snprintf(taken, sizeof taken, "the lock of %s is taken", server.id.place);
    assert_non_null(strstr(leaf.id.place, "locks_test.c:"));
    says(upwards, taken, held);
    snprintf(taken, sizeof taken, "the lock of %s is taken", other.id.place);
    says(two_leaves, taken, held);
    snprintf(taken, sizeof taken, "the lock of %s is taken", leaf.id.place);
    says(itself, taken, held);
    snprintf(taken, sizeof taken, "the lock of %s is taken", log.id.place);
    says(a_mutex_under_a_spin_lock, taken, "while the lock of a spin lock is held");
}

static void waiting_or_running_a_script_with_a_lock_aborts(void **state)
{
    (void)state;
    says(a_script_under_a_lock, "run a script", leaf.id.place);
    says(a_wait_under_another_lock, "wait for a condition", server.id.place);
    says(unheld, "released", "nobody");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_order_passes),
        cmocka_unit_test(a_broken_order_aborts_with_both_names),
        cmocka_unit_test(waiting_or_running_a_script_with_a_lock_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void locks_behave_as_in_pthread(void **state)
{
    (void)state;
    assert_int_equal(sizeof(kl_mutex), sizeof(pthread_mutex_t));
    assert_int_equal(sizeof(kl_spin), sizeof(uint32_t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(locks_behave_as_in_pthread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
