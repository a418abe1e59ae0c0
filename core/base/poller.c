/* poller.c - epoll with an eventfd in it for wakes.
 *
 *   awake --wait--> asleep --ready, due or woken--> awake
 *
 * `state` makes wakes cheap: only the one that finds the owner asleep writes to the eventfd. */
#include "base/poller.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/mem.h"

#define BATCH 64 /* events per wait: the next wait returns the others */

enum { AWAKE, ASLEEP, WOKEN };

/* A socket that was removed since the last wait. libcurl often adds it again before the next wait, which then
 * costs one epoll call. */
typedef struct loose {
    int fd, what;
} loose;

struct kl_poller {
    int epoll, event;
    atomic_int state;
    loose *loose; /* owner thread */
    size_t nloose;
};

kl_poller *kl_poller_new(void)
{
    int ep = epoll_create1(EPOLL_CLOEXEC), ev = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = ev};
    if (ep < 0 || ev < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e)) {
        if (ep >= 0)
            close(ep);
        if (ev >= 0)
            close(ev);
        return NULL;
    }
    kl_poller *p = kl_new(kl_poller);
    p->epoll = ep;
    p->event = ev;
    atomic_init(&p->state, AWAKE);
    return p;
}

void kl_poller_free(kl_poller *p)
{
    if (!p)
        return;
    close(p->epoll);
    close(p->event);
    kl_free(p->loose);
    kl_free(p);
}

static void tell(kl_poller *p, int fd, int what)
{
    struct epoll_event e = {
        .events = (what & KL_POLL_IN ? EPOLLIN | EPOLLRDHUP : 0u) | (what & KL_POLL_OUT ? EPOLLOUT : 0u),
        .data.fd = fd};
    /* A system call, not libc's: ThreadSanitizer would see a use of the file that has this number now. */
    if (!what)
        syscall(SYS_epoll_ctl, p->epoll, EPOLL_CTL_DEL, fd, &e);
    else if (epoll_ctl(p->epoll, EPOLL_CTL_MOD, fd, &e) && errno == ENOENT)
        epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e);
}

void kl_poller_watch(kl_poller *p, int fd, int what)
{
    size_t i = 0;
    while (i < p->nloose && p->loose[i].fd != fd)
        i++;
    if (i < p->nloose) {
        p->loose[i].what = what;
    } else if (what) {
        tell(p, fd, what);
    } else {
        p->loose = kl_realloc(p->loose, (p->nloose + 1) * sizeof *p->loose);
        p->loose[p->nloose++] = (loose){fd, 0};
    }
}

void kl_poller_closing(kl_poller *p, int fd)
{
    for (size_t i = 0; i < p->nloose; i++)
        if (p->loose[i].fd == fd) {
            tell(p, fd, 0);
            p->loose[i--] = p->loose[--p->nloose];
        }
}

/* Rounded up, so that the wait never ends early. */
static int milliseconds_until(kl_time until)
{
    if (until == KL_NEVER)
        return -1;
    kl_time left = until - kl_clock_now(kl_clock_real());
    if (left <= 0)
        return 0;
    kl_time ms = (left - 1) / KL_MILLISECONDS(1) + 1;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

static void drain(int event)
{
    uint64_t n;
    while (read(event, &n, sizeof n) < 0 && errno == EINTR)
        ;
}

size_t kl_poller_wait(kl_poller *p, kl_time until, kl_ready *out, size_t max)
{
    struct epoll_event e[BATCH];
    for (size_t i = 0; i < p->nloose; i++)
        tell(p, p->loose[i].fd, p->loose[i].what);
    p->nloose = 0;
    int timeout = milliseconds_until(until), awake = AWAKE;
    if (timeout && !atomic_compare_exchange_strong(&p->state, &awake, ASLEEP))
        timeout = 0; /* woken meanwhile */
    int n = epoll_wait(p->epoll, e, max < BATCH ? (int)max : BATCH, timeout);
    atomic_store(&p->state, AWAKE);
    size_t filled = 0;
    for (int i = 0; i < n; i++) {
        if (e[i].data.fd == p->event) {
            drain(p->event);
            continue;
        }
        out[filled].fd = e[i].data.fd;
        out[filled++].what = (e[i].events & (EPOLLIN | EPOLLRDHUP) ? KL_POLL_IN : 0)
            | (e[i].events & EPOLLOUT ? KL_POLL_OUT : 0)
            | (e[i].events & (EPOLLERR | EPOLLHUP) ? KL_POLL_ERR : 0);
    }
    return filled;
}

void kl_poller_wake(kl_poller *p)
{
    uint64_t one = 1;
    if (atomic_exchange(&p->state, WOKEN) == ASLEEP)
        while (write(p->event, &one, sizeof one) < 0 && errno == EINTR)
            ;
}
