/* clock.c - time, real and fake: the only door to the system clock.
 *
 * A fake clock is two atomics that stand still until they are advanced: a spec owns time, also from another
 * thread. */
#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include "base/mem.h"

struct kl_clock {
    bool fake;
    _Atomic kl_time monotonic; /* fake only; boottime runs with it, for a fake never sleeps */
    _Atomic kl_time wall;
};

static kl_time system_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return KL_SECONDS(ts.tv_sec) + ts.tv_nsec;
}

kl_clock *kl_clock_real(void)
{
    static kl_clock real;
    return &real;
}

kl_clock *kl_clock_fake_new(kl_time monotonic, kl_time wall)
{
    kl_clock *c = kl_new(kl_clock);
    c->fake = true;
    atomic_init(&c->monotonic, monotonic);
    atomic_init(&c->wall, wall);
    return c;
}

void kl_clock_fake_free(kl_clock *c)
{
    if (c && c->fake)
        kl_free(c);
}

void kl_clock_advance(kl_clock *c, kl_time by)
{
    if (!c->fake)
        return;
    atomic_fetch_add(&c->wall, by);
    atomic_fetch_add(&c->monotonic, by);
}

void kl_clock_set_wall(kl_clock *c, kl_time wall)
{
    if (c->fake)
        atomic_store(&c->wall, wall);
}

kl_time kl_clock_now(kl_clock *c)
{
    return c->fake ? atomic_load(&c->monotonic) : system_clock(CLOCK_MONOTONIC);
}

kl_time kl_clock_boot(kl_clock *c)
{
    return c->fake ? atomic_load(&c->monotonic) : system_clock(CLOCK_BOOTTIME);
}

kl_time kl_clock_wall(kl_clock *c) { return c->fake ? atomic_load(&c->wall) : system_clock(CLOCK_REALTIME); }

kl_time kl_clock_thread_cpu(void) { return system_clock(CLOCK_THREAD_CPUTIME_ID); }

/* The kernel's number of a thread's clock, as from pthread_getcpuclockid, but safe when the thread has
 * ended. */
kl_time kl_clock_cpu_of(uint64_t thread)
{
    struct timespec ts;
    clockid_t id = (clockid_t)(~(unsigned)thread << 3 | 6);
    return clock_gettime(id, &ts) ? 0 : KL_SECONDS(ts.tv_sec) + ts.tv_nsec;
}

kl_time kl_clock_cpu_of_process(pid_t pid)
{
    struct timespec ts;
    clockid_t id = (clockid_t)(~(unsigned)pid << 3 | 2);
    return clock_gettime(id, &ts) ? 0 : KL_SECONDS(ts.tv_sec) + ts.tv_nsec;
}
