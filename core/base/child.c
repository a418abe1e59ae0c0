/* child.c - runs a program to its end.
 *
 *   spawn --> poll {stdout, stderr, its end, stop} until it ended --> what the pipes still hold --> result
 *                 `-- too long, too much, stopped --> SIGKILL, wait for its end
 *
 * A program may have ended while one of its children keeps the pipes open; so its end is watched separately
 * (a pidfd), and only the bytes in the pipes at that time are read. If the host reaps every child before us,
 * only the exit status is lost. */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/mem.h"

#define LOOK_EVERY_MS 50 /* to poll for its end, where there are no pidfds */
/* More than a pipe holds (pipe-max-size): a program that writes as fast as we read must not keep us from
 * looking at the time, at its end and at the others. */
#define TAKE_MAX ((size_t)1 << 20)

struct kl_child {
    int stop;
};

typedef struct run {
    const kl_child_order *o;
    kl_child_result *r;
    pid_t pid;
    int out, err, end; /* -1: closed, or not available */
    bool ended;
    int status; /* of waitpid; -1 unknown */
} run;

kl_child *kl_child_new(void)
{
    kl_child *c = kl_new(kl_child);
    c->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return c;
}

void kl_child_free(kl_child *c)
{
    if (!c)
        return;
    if (c->stop >= 0)
        close(c->stop);
    kl_free(c);
}

void kl_child_stop(kl_child *c) { eventfd_write(c->stop, 1); }

bool kl_child_terminal(void) { return isatty(STDIN_FILENO); }

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* No signal is blocked or handled; with `group`, the child leads a group of its own. */
static void plain_attributes(posix_spawnattr_t *attr, bool group)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    if (posix_spawnattr_init(attr))
        kl_mem_die("memory (spawn)");
    posix_spawnattr_setsigmask(attr, &none);
    posix_spawnattr_setsigdefault(attr, &all);
    posix_spawnattr_setpgroup(attr, 0);
    posix_spawnattr_setflags(
        attr, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (group ? POSIX_SPAWN_SETPGROUP : 0)));
}

static kl_status spawn(run *x, int out, int errors, kl_err *err)
{
    const kl_child_order *o = x->o;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    plain_attributes(&attr, !o->terminal);
    if (posix_spawn_file_actions_init(&files))
        kl_mem_die("memory (spawn)");
    int rc = o->terminal ? 0
                         : posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (!rc && errors >= 0)
        rc = posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
    if (!rc)
        rc = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    if (!rc)
        rc = posix_spawnp(&x->pid, o->program, &files, &attr, (char *const *)o->argv, (char *const *)o->env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    if (rc == ENOENT)
        return kl_fail(err, KL_ENOTFOUND, "%s does not exist%s", o->program,
            strchr(o->program, '/') ? "" : " (looked for in PATH)");
    return rc ? kl_fail(err, KL_EIO, "%s cannot be started: %s", o->program, strerror(rc)) : KL_OK;
}

/* Takes what the pipe has now. False: no more will come. */
static bool take(int fd, kl_buf *to)
{
    char chunk[8192];
    for (size_t most = to->len + TAKE_MAX; to->len < most;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && errno == EAGAIN;
        if (kl_buf_add(to, chunk, (size_t)n))
            return true; /* too much output: the caller checks for that */
    }
    return true;
}

static void take_errors(run *x)
{
    kl_buf fresh = KL_BUF_INIT;
    kl_buf *kept = &x->r->err;
    if (!take(x->err, &fresh))
        shut(&x->err);
    if (fresh.len > x->o->err_max)
        kl_buf_consume(&fresh, fresh.len - x->o->err_max);
    if (kept->len + fresh.len > x->o->err_max)
        kl_buf_consume(kept, kept->len + fresh.len - x->o->err_max);
    kl_buf_add(kept, fresh.data, fresh.len);
    kl_buf_fini(&fresh);
}

static void reap(run *x, bool wait)
{
    int status = 0;
    pid_t got;
    do
        got = waitpid(x->pid, &status, wait ? 0 : WNOHANG);
    while (got < 0 && errno == EINTR);
    if (!got)
        return;
    x->ended = true;
    x->status = got < 0 ? -1 : status;
}

static kl_status watch(run *x, int stop, kl_err *err)
{
    kl_time until = kl_clock_now(kl_clock_real()) + x->o->timeout;
    for (;;) {
        kl_time left = until - kl_clock_now(kl_clock_real());
        if (left <= 0)
            return kl_fail(err, KL_ETIMEOUT, "%s did not end within %lld s", x->o->program,
                (long long)(x->o->timeout / KL_SECONDS(1)));
        int ms = left > KL_SECONDS(3600) ? 3600000 : (int)(left / KL_MILLISECONDS(1)) + 1;
        struct pollfd fds[] = {{.fd = stop, .events = POLLIN}, {.fd = x->out, .events = POLLIN},
            {.fd = x->err, .events = POLLIN}, {.fd = x->end, .events = POLLIN}};
        int rc = poll(fds, 4, x->end < 0 && ms > LOOK_EVERY_MS ? LOOK_EVERY_MS : ms);
        if (rc < 0 && errno != EINTR)
            return kl_fail(err, KL_EIO, "cannot wait for %s: %s", x->o->program, strerror(errno));
        if (fds[0].revents && rc > 0)
            return kl_fail(err, KL_ECANCELLED, "%s was stopped", x->o->program);
        /* before the pipes are read, so that they hold all that the program wrote */
        reap(x, false);
        if (x->out >= 0 && !take(x->out, &x->r->out))
            shut(&x->out);
        if (x->err >= 0)
            take_errors(x);
        if (kl_buf_status(&x->r->out))
            return kl_fail(err, KL_ETOOBIG, "%s wrote more than %zu KiB", x->o->program, x->o->out_max >> 10);
        if (x->ended)
            return KL_OK;
    }
}

kl_status kl_child_run(kl_child *c, const kl_child_order *o, kl_child_result *out, kl_err *err)
{
    run x = {.o = o, .r = out, .out = -1, .err = -1, .end = -1};
    int pipes[4] = {-1, -1, -1, -1};
    *out = (kl_child_result){.code = -1};
    kl_buf_init(&out->out, o->out_max);
    kl_status st = KL_OK;
    if (c->stop < 0 || pipe2(pipes, O_CLOEXEC) || (!o->terminal && pipe2(pipes + 2, O_CLOEXEC)))
        st = kl_fail(err, KL_EIO, "%s cannot be started: %s", o->program, strerror(errno));
    if (!st)
        st = spawn(&x, pipes[1], pipes[3], err);
    shut(&pipes[1]);
    shut(&pipes[3]);
    x.out = pipes[0];
    x.err = pipes[2];
    if (!st) {
        fcntl(x.out, F_SETFL, O_NONBLOCK);
        if (x.err >= 0)
            fcntl(x.err, F_SETFL, O_NONBLOCK);
        x.end = (int)syscall(SYS_pidfd_open, x.pid, 0);
        if (x.end >= 0)
            fcntl(x.end, F_SETFD, FD_CLOEXEC);
        st = watch(&x, c->stop, err);
        if (!x.ended) {
            kill(o->terminal ? x.pid : -x.pid, SIGKILL);
            reap(&x, true);
        }
    }
    shut(&x.out);
    shut(&x.err);
    shut(&x.end);
    if (st)
        kl_buf_fini(&out->out);
    else if (x.status >= 0 && WIFEXITED(x.status))
        out->code = WEXITSTATUS(x.status);
    else if (x.status >= 0 && WIFSIGNALED(x.status))
        out->signal = WTERMSIG(x.status);
    else
        out->code = 0; /* another thread reaped it */
    return st;
}

/* --- a program that talks with us --------------------------------------------------------- */

static int spawn_talker(const char *program, const char *const *argv, int end, pid_t *pid)
{
    static char *const none_env[] = {NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    plain_attributes(&attr, true);
    if (posix_spawn_file_actions_init(&files))
        kl_mem_die("memory (spawn)");
    int rc = posix_spawn_file_actions_adddup2(&files, end, STDIN_FILENO);
#ifdef KL_DEBUG
    if (!rc)
        rc = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
#else
    if (!rc)
        rc = posix_spawn_file_actions_addclosefrom_np(&files, STDOUT_FILENO);
#endif
    if (!rc)
        rc = posix_spawn(pid, program, &files, &attr, (char *const *)argv, none_env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return rc;
}

kl_status kl_child_talk(const char *program, const char *const *argv, int *fd, pid_t *pid, kl_err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return kl_fail(err, KL_EIO, "%s cannot be started: %s", program, strerror(errno));
    int rc = spawn_talker(program, argv, ends[1], pid);
    close(ends[1]);
    if (rc) {
        close(ends[0]);
        return kl_fail(err, KL_EIO, "%s cannot be started: %s", program, strerror(rc));
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *fd = ends[0];
    return KL_OK;
}

void kl_child_end(int fd, pid_t pid, int *status)
{
    *status = -1;
    pid_t got = waitpid(pid, status, WNOHANG);
    if (!got) {
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
        do
            got = waitpid(pid, status, 0);
        while (got < 0 && errno == EINTR);
    }
    if (got < 0)
        *status = -1;
    close(fd);
}
