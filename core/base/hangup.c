/* hangup.c - one thread waits, with one epoll set, for the end of sockets that nobody reads, and for one
 * timer. */
#include "base/hangup.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/sync.h"

#define STOP_ID UINT64_MAX
#define EVENTS_AT_ONCE 64

struct kl_hangup {
    int epoll;
    int stop; /* an eventfd, readable when we are to end */
    int timer;
    void (*gone)(void *arg, uint64_t id);
    void *arg;
    kl_thread *thread;
};

static void watch_loop(void *arg)
{
    kl_hangup *h = arg;
    struct epoll_event events[EVENTS_AT_ONCE];
    for (;;) {
        int n = epoll_wait(h->epoll, events, EVENTS_AT_ONCE, -1);
        if (n < 0 && errno != EINTR)
            return;
        for (int i = 0; i < n; i++) {
            if (events[i].data.u64 == STOP_ID)
                return;
            uint64_t times;
            if (events[i].data.u64 != KL_HANGUP_TIME || read(h->timer, &times, sizeof times) > 0)
                h->gone(h->arg, events[i].data.u64);
        }
    }
}

static void hangup_free(kl_hangup *h)
{
    const int fds[] = {h->epoll, h->stop, h->timer};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    kl_free(h);
}

kl_status kl_hangup_start(void (*gone)(void *arg, uint64_t id), void *arg, kl_hangup **out, kl_err *err)
{
    kl_hangup *h = kl_new(kl_hangup);
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    h->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    h->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct epoll_event stop = {.events = EPOLLIN, .data.u64 = STOP_ID},
                       timer = {.events = EPOLLIN, .data.u64 = KL_HANGUP_TIME};
    if (h->epoll < 0 || h->stop < 0 || h->timer < 0 || epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->stop, &stop)
        || epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->timer, &timer)) {
        kl_fail(err, KL_EIO, "cannot watch sockets for hang-ups: %s", strerror(errno));
        hangup_free(h);
        return KL_EIO;
    }
    h->gone = gone;
    h->arg = arg;
    h->thread = kl_thread_start("kl-hangup", watch_loop, h);
    *out = h;
    return KL_OK;
}

void kl_hangup_stop(kl_hangup *h)
{
    if (!h)
        return;
    eventfd_write(h->stop, 1);
    kl_thread_join(h->thread);
    hangup_free(h);
}

void kl_hangup_add(kl_hangup *h, int fd, uint64_t id)
{
    /* epoll always reports HUP and ERR */
    struct epoll_event ev = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.u64 = id};
    if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &ev) && errno == EEXIST)
        epoll_ctl(h->epoll, EPOLL_CTL_MOD, fd, &ev);
}

void kl_hangup_remove(kl_hangup *h, int fd) { epoll_ctl(h->epoll, EPOLL_CTL_DEL, fd, NULL); }

void kl_hangup_at(kl_hangup *h, kl_time when)
{
    struct itimerspec at = {.it_value = {.tv_sec = when / KL_SECONDS(1), .tv_nsec = when % KL_SECONDS(1)}};
    (void)timerfd_settime(h->timer, TFD_TIMER_ABSTIME, &at, NULL);
}
