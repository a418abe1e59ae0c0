/* clock.h - time, real and fake.
 *
 * kl_time is nanoseconds. Monotonic time is for ordering and waiting; boottime counts through suspend and
 * decides leadership; wall time (nanoseconds since the epoch) is written into objects. A fake clock stands
 * still until advanced. Any thread. */
#ifndef KL_BASE_CLOCK_H
#define KL_BASE_CLOCK_H

#include <stdint.h>
#include <sys/types.h>

typedef int64_t kl_time;

#define KL_MICROSECONDS(n) ((kl_time)(n)*1000)
#define KL_MILLISECONDS(n) ((kl_time)(n)*1000000)
#define KL_SECONDS(n) ((kl_time)(n)*1000000000)
#define KL_MINUTES(n) KL_SECONDS((n)*60)
#define KL_NEVER INT64_MAX

/* `n` seconds that somebody else chose, held to 0..most, which is a duration that kl_time holds. */
static inline kl_time kl_seconds_within(int64_t n, kl_time most)
{
    return n <= 0 ? 0 : n >= most / KL_SECONDS(1) ? most : KL_SECONDS(n);
}

/* The moment `d` after `t`; KL_NEVER where no clock gets there: durations last up to 292 years. */
static inline kl_time kl_time_after(kl_time t, kl_time d)
{
    kl_time sum;
    return __builtin_add_overflow(t, d, &sum) ? KL_NEVER : sum;
}

typedef struct kl_clock kl_clock;

kl_clock *kl_clock_real(void); /* static, never freed */
kl_clock *kl_clock_fake_new(kl_time monotonic, kl_time wall);
void kl_clock_fake_free(kl_clock *c);
void kl_clock_advance(kl_clock *c, kl_time by);    /* fake only */
void kl_clock_set_wall(kl_clock *c, kl_time wall); /* fake only: wall time may be set back, too */

kl_time kl_clock_now(kl_clock *c);  /* CLOCK_MONOTONIC */
kl_time kl_clock_boot(kl_clock *c); /* CLOCK_BOOTTIME */
kl_time kl_clock_wall(kl_clock *c); /* CLOCK_REALTIME */
kl_time kl_clock_thread_cpu(void);  /* CPU time of the calling thread */
/* CPU time of another thread, by its kl_thread_self(); 0 when it is gone */
kl_time kl_clock_cpu_of(uint64_t thread);
kl_time kl_clock_cpu_of_process(pid_t pid); /* of all its threads; 0 when it is gone */

#endif
