/* bell.c - a bell is a timer of the kernel (timerfd): to ring is to let it expire at once. */
#include "api/bell.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/locks.h"
#include "base/mem.h"
#include "base/sync.h"

struct lkl_bell {
    atomic_int refs;
    int fd;
    kl_mutex mu;
    bool rung KL_GUARDED_BY(mu); /* an alarm must not replace a pending ring */
};

kl_status lkl__bell_new(lkl_bell **out, kl_err *err)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0)
        return kl_fail(err, KL_EIO, "no descriptor to wait for: %s", strerror(errno));
    lkl_bell *b = kl_new(lkl_bell);
    atomic_init(&b->refs, 1);
    b->fd = fd;
    kl_mutex_init_as(&b->mu, KL_LOCK_POST);
    *out = b;
    return KL_OK;
}

lkl_bell *lkl__bell_ref(lkl_bell *b)
{
    atomic_fetch_add(&b->refs, 1);
    return b;
}

void lkl__bell_unref(lkl_bell *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    close(b->fd);
    kl_mutex_fini(&b->mu);
    kl_free(b);
}

/* Arms the timer; 0 disarms it. */
static void set_timer(int fd, kl_time after)
{
    struct itimerspec at = {.it_value = {.tv_sec = after / KL_SECONDS(1), .tv_nsec = after % KL_SECONDS(1)}};
    (void)timerfd_settime(fd, 0, &at, NULL);
}

void lkl__bell_ring(lkl_bell *b)
{
    if (!b)
        return;
    kl_lock(&b->mu);
    if (!b->rung)
        set_timer(b->fd, 1);
    b->rung = true;
    kl_unlock(&b->mu);
}

int lkl__bell_fd(const lkl_bell *b) { return b->fd; }

void lkl__bell_hush(lkl_bell *b)
{
    kl_lock(&b->mu);
    b->rung = false;
    set_timer(b->fd, 0); /* this also clears a pending expiry */
    kl_unlock(&b->mu);
}

void lkl__bell_alarm(lkl_bell *b, kl_time after)
{
    kl_lock(&b->mu);
    if (!b->rung)
        set_timer(b->fd, after == KL_NEVER ? 0 : after > 0 ? after : 1);
    kl_unlock(&b->mu);
}

bool lkl__bell_wait(lkl_bell *b, kl_time most)
{
    struct pollfd p = {.fd = b->fd, .events = POLLIN};
    int ms = (int)((most + KL_MILLISECONDS(1) - 1) / KL_MILLISECONDS(1));
    return poll(&p, 1, ms) > 0;
}
