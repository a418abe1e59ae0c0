/* process.c - signals and news for the main thread: a signalfd and an eventfd, one poll. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"

static int signals = -1, pokes = -1;

static void signal_set(sigset_t *s)
{
    sigemptyset(s);
    sigaddset(s, SIGTERM);
    sigaddset(s, SIGINT);
    sigaddset(s, SIGHUP);
}

void cli_signals_block(void)
{
    sigset_t s;
    signal_set(&s);
    sigprocmask(SIG_BLOCK, &s, NULL);
    signal(SIGPIPE, SIG_IGN);
    signals = signalfd(-1, &s, SFD_NONBLOCK | SFD_CLOEXEC);
    pokes = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

static atomic_bool poked, moved;

void cli_wake(void)
{
    uint64_t one = 1;
    ssize_t n = write(pokes, &one, sizeof one);
    (void)n; /* when the counter is full, the descriptor is readable already */
}

static void tell(atomic_bool *what)
{
    if (!atomic_exchange(what, true))
        cli_wake();
}

void cli_poke(void) { tell(&poked); }
void cli_move(void) { tell(&moved); }

static bool told_to_end, told_to_reload; /* signals that came while something else was awaited */

/* CLI_TIMEOUT also when *done has become true (done may be NULL); whoever makes it so wakes. */
static cli_news wait_for_news(kl_time timeout, const atomic_bool *done)
{
    kl_clock *c = kl_clock_real();
    kl_time until = timeout == KL_NEVER ? KL_NEVER : kl_clock_now(c) + timeout;
    for (;;) {
        kl_time left = until == KL_NEVER ? KL_NEVER : until - kl_clock_now(c);
        struct pollfd fds[2] = {{signals, POLLIN, 0}, {pokes, POLLIN, 0}};
        bool told = atomic_load(&poked) || atomic_load(&moved);
        int n = poll(fds, 2,
            told || left <= 0      ? 0
                : left == KL_NEVER ? -1
                                   : (int)(left / KL_MILLISECONDS(1)) + 1);
        struct signalfd_siginfo info;
        uint64_t count;
        if (n > 0 && fds[0].revents && read(signals, &info, sizeof info) == (ssize_t)sizeof info)
            return info.ssi_signo == SIGHUP ? CLI_HANGUP : CLI_TERMINATE;
        if (n > 0 && fds[1].revents)
            (void)!read(pokes, &count, sizeof count);
        if (atomic_exchange(&poked, false))
            return CLI_POKED;
        if (atomic_exchange(&moved, false))
            return CLI_MOVED;
        if (left <= 0 || (done && atomic_load(done)))
            return CLI_TIMEOUT;
    }
}

cli_news cli_wait(kl_time timeout)
{
    if (told_to_end)
        return CLI_TERMINATE;
    if (!told_to_reload)
        return wait_for_news(timeout, NULL);
    told_to_reload = false;
    return CLI_HANGUP;
}

bool cli_wait_until(const atomic_bool *done, kl_time timeout, bool *end)
{
    kl_time now = kl_clock_now(kl_clock_real()), until = now + timeout;
    bool something = false, anything = false, asked_to_end = false;
    while (!atomic_load(done) && !asked_to_end && now < until) {
        cli_news news = wait_for_news(until - now, done);
        asked_to_end = news == CLI_TERMINATE;
        told_to_reload |= news == CLI_HANGUP;
        something |= news == CLI_POKED;
        anything |= news == CLI_MOVED;
        now = kl_clock_now(kl_clock_real());
    }
    if (something)
        cli_poke();
    if (anything)
        cli_move();
    told_to_end |= asked_to_end;
    *end = asked_to_end;
    return atomic_load(done);
}

/* timeout(1) and some init systems signal the process and then its group: both signals are one request. */
#define SAME_WISH KL_MILLISECONDS(250)

static kl_time first_signal;

static void exit_now(int sig)
{
    (void)sig;
    if (kl_clock_now(kl_clock_real()) - first_signal < SAME_WISH)
        return;
    static const char text[] = "kubelua: second signal, exiting at once\n";
    ssize_t n = write(2, text, sizeof text - 1);
    (void)n;
    _exit(1);
}

void cli_leave_stuck(void *arg)
{
    (void)arg;
    static const char text[] =
        "kubelua: the grace period is over and a run is stuck; exiting without waiting for it\n";
    ssize_t n = write(2, text, sizeof text - 1);
    (void)n;
    _exit(1);
}

static void leave_late(int sig)
{
    (void)sig;
    static const char text[] = "kubelua: the grace period is over and the process has not ended; exiting\n";
    ssize_t n = write(2, text, sizeof text - 1);
    (void)n;
    _exit(1);
}

void cli_leave_after(kl_time time)
{
    struct sigaction a = {.sa_handler = leave_late};
    sigaction(SIGALRM, &a, NULL);
    sigset_t s;
    sigemptyset(&s);
    sigaddset(&s, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &s, NULL);
    alarm((unsigned)(time / KL_SECONDS(1)) + 1);
}

void cli_second_signal_exits(void)
{
    first_signal = kl_clock_now(kl_clock_real());
    struct sigaction a = {.sa_handler = exit_now};
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGINT, &a, NULL);
    sigset_t s;
    sigemptyset(&s);
    sigaddset(&s, SIGTERM);
    sigaddset(&s, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &s, NULL);
}

bool cli_log(const char *command, const char *level, const char *format)
{
    kl_log_level l;
    kl_err err = KL_ERR_INIT;
    if (kl_log_level_parse(level, &l, &err)) {
        cli_fail_err(2, command, &err);
        return false;
    }
    bool json = format && !strcmp(format, "json");
    if (format && !json && strcmp(format, "text")) {
        cli_fail(2, command, "--log-format %s: it is text or json", format);
        return false;
    }
    kl_log_set_level(l);
    kl_log_set_detailed(json);
    kl_log_set_sink(json ? kl_log_json_sink : kl_log_file_sink, NULL);
    return true;
}
