/* poller.h - one thread sleeps until a socket is ready, its time has come or another thread wakes it: the
 * only door to epoll for clients (servers have base/httpd).
 *
 * Owner thread but for kl_poller_wake. Readiness is level-triggered: data that was not read is reported
 * again. A wake is one system call when the owner sleeps or is about to, and none when it is awake and has
 * been woken already. */
#ifndef KL_BASE_POLLER_H
#define KL_BASE_POLLER_H

#include <stdbool.h>
#include <stddef.h>
#include "base/clock.h"

typedef struct kl_poller kl_poller;

/* ERR (error or hang-up) is reported, never asked for */
enum { KL_POLL_IN = 1, KL_POLL_OUT = 2, KL_POLL_ERR = 4 };
typedef struct kl_ready {
    int fd;
    int what;
} kl_ready;

kl_poller *kl_poller_new(void); /* NULL: no file descriptors left */
void kl_poller_free(kl_poller *p);
/* Which readiness of fd (KL_POLL_*) to report from now on; 0: none. */
void kl_poller_watch(kl_poller *p, int fd, int what);
/* before fd is closed: another file may get its number at once */
void kl_poller_closing(kl_poller *p, int fd);
/* Waits until monotonic `until` (KL_NEVER: forever; a time in the past: only looks) and returns how many of
 * out[max] were filled. A wake that came since the last call ends the wait at once, with no entry of its
 * own. */
size_t kl_poller_wait(kl_poller *p, kl_time until, kl_ready *out, size_t max);
void kl_poller_wake(kl_poller *p); /* any thread */

#endif
