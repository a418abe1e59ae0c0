/* loop.h - a thread that runs posted functions in order, and timers. The control thread and the mapper thread
 * are loops.
 *
 * A loop that was never started is driven by kl_loop_step, so specs need no thread. Posts and timers come
 * from any thread; the functions run on the loop's thread only. Freeing runs the posted functions and drops
 * the timers. */
#ifndef KL_BASE_LOOP_H
#define KL_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/clock.h"

typedef struct kl_loop kl_loop;

kl_loop *kl_loop_new(const char *name, kl_clock *clock);
void kl_loop_start(kl_loop *l);
void kl_loop_free(kl_loop *l); /* not from the loop itself */
bool kl_loop_on_thread(const kl_loop *l);
void kl_loop_post(kl_loop *l, void (*fn)(void *arg), void *arg);
/* A line is a queue of posts that run in their order. The line whose functions have used the least time goes
 * next, so a slow line delays itself first. A post without a line waits for at most one function of a line.
 * While a fake clock stands still, all functions run in the order of their posts. A line must be empty when
 * it is freed, and must not outlive its loop. */
typedef struct kl_loop_line kl_loop_line;
kl_loop_line *kl_loop_line_new(void);
void kl_loop_line_free(kl_loop_line *line);
void kl_loop_post_in(kl_loop *l, kl_loop_line *line, void (*fn)(void *arg), void *arg);
size_t kl_loop_line_waiting(kl_loop *l, const kl_loop_line *line); /* posts that have not begun; any thread */
uint64_t kl_loop_timer(kl_loop *l, kl_time after, void (*fn)(void *arg), void *arg);
/* on the loop's thread: fn is not called after this */
void kl_loop_timer_cancel(kl_loop *l, uint64_t id);
/* Posts fn and waits until it has run. On the loop's own thread, or if the loop was never started, fn runs at
 * once. */
void kl_loop_call(kl_loop *l, void (*fn)(void *arg), void *arg);
/* The same, but gives up after `within` of real time: returns false if fn has not begun by then, and fn never
 * runs. */
bool kl_loop_call_within(kl_loop *l, void (*fn)(void *arg), void *arg, kl_time within);
/* Checks the timers again, after a fake clock was moved. Any thread. */
void kl_loop_wake(kl_loop *l);
/* When the loop has work: INT64_MIN while something is posted, else the time of the next timer, or KL_NEVER.
 * Any thread. */
kl_time kl_loop_next(kl_loop *l);
/* Runs everything due and returns the time of the next timer, or KL_NEVER. For loops without a thread. */
kl_time kl_loop_step(kl_loop *l);

#endif
