/* retry.h - whether a request is sent again, and after how long: client-go's rules. Pure. Any thread.
 *
 *   result                                           GET        others       watch (client.lua)
 *   429 or 5xx with Retry-After                      again      again        again
 *   429 or 5xx without, other codes, also 3xx        no         no           no
 *   connection reset or ended, HTTP/2 stream lost    1 s        no           1 s
 *   the same, and certainly nothing was sent         1 s        1 s          1 s
 *   refused, unresolved, no TLS                      no         no           no
 *   no answer in time                                no         no           1 s
 * Ten times at most, and only while the call has time left. call.c retries a 401 once, with renewed
 * credentials. */
#ifndef KL_CLIENT_RETRY_H
#define KL_CLIENT_RETRY_H

#include <stdbool.h>
#include "base/clock.h"
#include "base/err.h"

typedef struct kl__attempt {
    const char *method;
    bool watch;
    int retries;  /* before this one */
    kl_status st; /* of the transport; KL_OK: `code` was answered */
    int code;
    bool sent;           /* it may have reached the server */
    kl_time retry_after; /* the server's Retry-After; -1: none */
} kl__attempt;

/* The wait before the next attempt; -1: do not retry. */
kl_time kl__retry_wait(const kl__attempt *a);

#endif
