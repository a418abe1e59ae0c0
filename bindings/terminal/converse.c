/* converse.c - a session on this process's own standard streams, for exec: env.converse(session, input,
 * tty).
 *
 *   a thread: standard input --> session        the caller: session --> standard output and error, until the end
 *
 * With tty the terminal is raw meanwhile: every key goes to the other side, ^C too, and a changed window
 * size is reported. The terminal is restored however the process ends, except by SIGKILL. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "api/stream.h"
#include "base/sync.h"
#include "terminal/converse.h"

#define SLICE KL_MILLISECONDS(200) /* how soon a new window size or the end of the session is seen */
#define CHUNK ((size_t)16 << 10)

static struct termios before;
static volatile sig_atomic_t raw, resized;

static void put_back(void)
{
    if (raw)
        tcsetattr(0, TCSADRAIN, &before);
    raw = 0;
}

static void on_end(int sig)
{
    put_back();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void on_resize(int sig)
{
    (void)sig;
    resized = 1;
}

static void make_raw(void)
{
    struct termios t;
    if (tcgetattr(0, &before))
        return;
    t = before;
    cfmakeraw(&t);
    raw = 1;
    signal(SIGTERM, on_end);
    signal(SIGHUP, on_end);
    tcsetattr(0, TCSADRAIN, &t);
    signal(SIGWINCH, on_resize);
    resized = 1;
}

static void tell_size(kl_session *s)
{
    struct winsize w;
    resized = 0;
    if (!ioctl(1, TIOCGWINSZ, &w) && w.ws_col && w.ws_row)
        kl_session_resize(s, w.ws_col, w.ws_row);
}

/* --- standard input ----------------------------------------------------------------------- */

typedef struct feeder {
    kl_session *s;
    int stop;
    _Atomic bool stopping;
} feeder;

static kl_time soon(void) { return kl_clock_now(kl_clock_real()) + SLICE; }

static void feed(void *arg)
{
    feeder *f = arg;
    char data[CHUNK];
    while (!atomic_load(&f->stopping)) {
        struct pollfd fds[2] = {{0, POLLIN, 0}, {f->stop, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (!fds[0].revents)
            continue;
        ssize_t n = read(0, data, sizeof data);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            break;
        for (size_t at = 0, taken; at < (size_t)n && !atomic_load(&f->stopping); at += taken)
            kl_session_write(f->s, soon(), data + at, (size_t)n - at, &taken);
    }
    if (!atomic_load(&f->stopping))
        kl_session_close_input(f->s);
}

/* --- the conversation --------------------------------------------------------------------- */

static bool put(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t w = write(fd, data, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0 && errno == EAGAIN) {
            struct pollfd p = {fd, POLLOUT, 0};
            poll(&p, 1, -1);
            continue;
        }
        if (w < 0)
            return false;
        data += w;
        n -= (size_t)w;
    }
    return true;
}

/* Returns how the session ended; *problem: an errno of our own output. */
static kl_status converse(kl_session *s, int *problem, kl_err *err)
{
    char data[CHUNK];
    for (;;) {
        int channel;
        size_t n;
        if (raw && resized)
            tell_size(s);
        kl_status st = kl_session_read(s, soon(), &channel, data, sizeof data, &n, err);
        if (st == KL_EAGAIN)
            continue;
        if (st || !n)
            return st;
        if (!put(channel == KL_STDERR ? 2 : 1, data, n)) {
            *problem = errno;
            return KL_OK;
        }
    }
}

/* env.converse(session, input, tty): the exit status; raises how it failed */
int cli_converse(lua_State *L)
{
    kl_session *s = lkl__session_at(L, 1);
    bool input = lua_toboolean(L, 2), tty = lua_toboolean(L, 3) && isatty(0);
    feeder f = {.s = s, .stop = eventfd(0, EFD_CLOEXEC)};
    kl_err err = KL_ERR_INIT;
    kl_thread *t = NULL;
    int problem = 0;
    if (f.stop < 0)
        return luaL_error(L, "no file descriptors are left");
    if (tty)
        make_raw();
    if (input)
        t = kl_thread_start("stdin", feed, &f);
    kl_status st = converse(s, &problem, &err);
    atomic_store(&f.stopping, true);
    uint64_t one = 1;
    while (write(f.stop, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    kl_thread_join(t);
    close(f.stop);
    put_back();
    if (st)
        return lkl_raise(L, &err, "exec", "v1/Pod", NULL);
    if (problem)
        return luaL_error(L, "cannot write the output: %s", strerror(problem));
    lua_pushinteger(L, kl_session_exit(s));
    return 1;
}
