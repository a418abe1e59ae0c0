/* hangup.c - one epoll set of sockets that nobody reads, one thread that waits for their ends. */
#include "base/hangup.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/sync.h"

#define STOP_ID UINT64_MAX
#define EVENTS_AT_ONCE 64

struct kl_hangup {
    int epoll, stop; /* stop: an eventfd, readable when we are to end */
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
            h->gone(h->arg, events[i].data.u64);
        }
    }
}

kl_status kl_hangup_start(void (*gone)(void *arg, uint64_t id), void *arg, kl_hangup **out, kl_err *err)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = STOP_ID};
    if (epoll < 0 || stop < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, stop, &ev)) {
        kl_fail(err, KL_EIO, "cannot watch sockets for hang-ups: %s", strerror(errno));
        if (epoll >= 0)
            close(epoll);
        if (stop >= 0)
            close(stop);
        return KL_EIO;
    }
    kl_hangup *h = kl_new(kl_hangup);
    h->epoll = epoll;
    h->stop = stop;
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
    close(h->epoll);
    close(h->stop);
    kl_free(h);
}

void kl_hangup_add(kl_hangup *h, int fd, uint64_t id)
{
    /* HUP and ERR come unasked */
    struct epoll_event ev = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.u64 = id};
    if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &ev) && errno == EEXIST)
        epoll_ctl(h->epoll, EPOLL_CTL_MOD, fd, &ev);
}

void kl_hangup_remove(kl_hangup *h, int fd) { epoll_ctl(h->epoll, EPOLL_CTL_DEL, fd, NULL); }
