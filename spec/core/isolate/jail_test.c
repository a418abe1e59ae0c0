/* jail_test.c - the allowed system calls of a process in the jail, and those that end it. */
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/child.h"
#include "base/clock.h"
#include "isolate/jail.h"
#include "base/mem.h"

#if defined __SANITIZE_THREAD__
#define FILTERED 0
#else
#define FILTERED 1
#endif
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define LIMITED 0
#else
#define LIMITED 1
#endif

#define ROOM ((size_t)32 << 20)

/* How a process ends that enters the jail and does that; its standard input is one end of a socket pair. */
static int ended(void (*what)(void))
{
    int ends[2], status = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t pid = fork();
    if (!pid) {
        kl_err err = KL_ERR_INIT;
        dup2(ends[1], STDIN_FILENO);
        if (kl_jail_enter(ROOM, &err))
            _exit(100);
        what();
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(ends[0]);
    return status;
}

static void opens(void) { _exit(open("/etc/passwd", O_RDONLY) < 0 ? 1 : 0); }
static void connects(void) { _exit(socket(AF_INET, SOCK_STREAM, 0) < 0 ? 1 : 0); }
static void forks(void) { _exit(fork() < 0 ? 1 : 0); }
static void kills(void) { _exit(kill(getppid(), 0) ? 1 : 0); }

static void executes(void)
{
    char *argv[] = {"true", NULL};
    execv("/bin/true", argv);
    _exit(1);
}

static void writes_elsewhere(void) { _exit(send(STDOUT_FILENO, "x", 1, 0) < 0 ? 1 : 0); }

static int by_byte(const void *x, const void *y) { return *(const char *)x - *(const char *)y; }

static void works(void)
{
    char large[1 << 16] = {0};
    qsort(large, sizeof large, 1, by_byte);
    char *p = malloc(ROOM / 4);
    memset(p, 1, ROOM / 4);
    time_t now = time(NULL);
    struct tm t;
    char text[64];
    localtime_r(&now, &t);
    strftime(text, sizeof text, "%c %Z", &t);
    if (send(STDIN_FILENO, text, strlen(text), 0) < 0 || kl_clock_now(kl_clock_real()) <= 0)
        _exit(1);
    free(p);
}

static void swells(void)
{
    for (int i = 0; i < 64; i++) {
        char *p = malloc(1 << 20);
        if (!p)
            _exit(9);
        memset(p, 1, 1 << 20);
    }
}

static void assert_forbidden(void (*what)(void))
{
    int status = ended(what);
    if (!FILTERED)
        return;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void a_forbidden_system_call_ends_the_process(void **state)
{
    (void)state;
    assert_forbidden(opens);
    assert_forbidden(connects);
    assert_forbidden(forks);
    assert_forbidden(kills);
    assert_forbidden(executes);
    assert_forbidden(writes_elsewhere);
}

static void computing_and_talking_go_on(void **state)
{
    (void)state;
    int status = ended(works);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void memory_has_a_limit(void **state)
{
    (void)state;
    int status = ended(swells);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), LIMITED ? 9 : 0);
}

static void a_process_with_another_parent_is_reported(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    pid_t pid = fork();
    int status = 0;
    if (!pid)
        _exit(kl_jail_tie(getpid(), &err) == KL_EIO && !kl_jail_tie(getppid(), NULL) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forbidden_system_call_ends_the_process),
        cmocka_unit_test(computing_and_talking_go_on),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(a_process_with_another_parent_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
