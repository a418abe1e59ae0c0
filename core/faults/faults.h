/* faults.h - the fault switchboard: rules that make the embedded API server lie, fail and stall on request.
 *
 *   request --kl_faults_meet--> a failure to answer
 *                               KL_EAGAIN: it is held, and handled again later
 *                               KL_OK: it is served by its plan
 *   frame of a watch --kl_fault_watch_put--> sent, kept for later, sent twice, or the watch ends
 *
 * Any thread, but for kl_fault_watch, which is its owner's. */
#ifndef KL_FAULTS_FAULTS_H
#define KL_FAULTS_FAULTS_H

#include "base/clock.h"
#include "httpd/httpd.h"
#include "schema/kinds.h"
#include "value/value.h"

#define KL_FAULTS_PATH "/kubelua/v1/faults"

typedef struct kl_faults kl_faults;

/* `changed` is called without a lock when rules are added or removed, so that they apply to running watches
 * at once. */
kl_faults *kl_faults_new(kl_clock *clock, void (*changed)(void *arg), void *arg);
void kl_faults_free(kl_faults *f); /* after the HTTP server; answers the requests that it still holds. NULL is
                                      fine */

/* Adds the rules of {"seed": 7, "rules": [...]}, or one rule: all of them, or none. The error names the rule
 * and its field. */
KL_NODISCARD kl_status kl_faults_add(kl_faults *f, const kl_value *v, kl_err *err);
/* {"seed", "rules"}: each rule as given, with its hits and its remaining times; a new reference */
const kl_value *kl_faults_list(kl_faults *f);
void kl_faults_clear(kl_faults *f);
/* The sum of the remaining `times` of all rules that have them. */
size_t kl_faults_left(kl_faults *f);
/* GET, POST and DELETE of KL_FAULTS_PATH. */
void kl_faults_serve(kl_faults *f, kl_httpd_request *http);

/* The attributes of a request that rules match; borrowed. */
typedef struct kl_fault_call {
    const kl__kind *kind; /* NULL: the path is not of a resource */
    const char *ns, *name, *sub;
    const char *verb; /* "get", "watch", ...; NULL: unknown */
    const char *path;
    const char *agent; /* User-Agent, or NULL */
} kl_fault_call;

typedef enum kl_fault_cut {
    KL_CUT_NONE,
    KL_CUT_END,     /* a clean end, as at its timeout */
    KL_CUT_RESET,   /* the connection breaks */
    KL_CUT_HALF,    /* within a frame */
    KL_CUT_EXPIRED, /* by an ERROR frame of code 410 */
} kl_fault_cut;

/* The time at which `events` events were sent and `after` has passed. */
typedef struct kl_fault_moment {
    int64_t events;
    kl_time after;
} kl_fault_moment;

/* How a request is served. All zero: without faults. */
typedef struct kl_fault_plan {
    unsigned what; /* the effects that are set, see faults_impl.h */
    kl_time latency;
    bool half;     /* done by kl_faults_meet */
    int64_t stale; /* a list shows the state of this many changes ago */
    kl_fault_cut cut;
    kl_fault_moment cut_at, stall_at;
    kl_time stall, lag;
    kl_time late;      /* delay of bookmarks; KL_NEVER: none are sent */
    double twice, old; /* probability for each frame */
    uint64_t seed;     /* of draws in a watch */
    uint64_t known;    /* rules up to this number were considered */
    uint64_t clears;   /* the number of kl_faults_clear calls at that time */
} kl_fault_plan;

/* KL_OK: serve the request by *plan. KL_EAGAIN: it is held, and kl_httpd_again brings it back. Other: answer
 * with the failure, and with a Retry-After if err->retry_after_ns is set. */
KL_NODISCARD kl_status kl_faults_meet(
    kl_faults *f, const kl_fault_call *c, kl_httpd_request *http, kl_fault_plan *plan, kl_err *err);
/* Releases held requests that are due; returns the time of the next one, or KL_NEVER. */
kl_time kl_faults_tick(kl_faults *f);

typedef struct kl_fault_watch kl_fault_watch;
/* Sends a frame; false: the watch has to end. */
typedef bool kl_fault_write(void *arg, const kl_buf *frame);

/* For a new watch. Copies the call; stream and the call's kind are borrowed. */
kl_fault_watch *kl_fault_watch_new(kl_faults *f, const kl_fault_call *c, const kl_fault_plan *plan,
    kl_fault_write *write, void *arg, kl_httpd_stream *stream);
void kl_fault_watch_free(kl_fault_watch *w);
/* False: the watch has to end. */
KL_NODISCARD bool kl_fault_watch_put(kl_fault_watch *w, const kl_buf *frame, bool bookmark);
/* Sends the frames that are due; *next is the time of the next call, or KL_NEVER. False: the watch has to
 * end. */
KL_NODISCARD bool kl_fault_watch_look(kl_fault_watch *w, kl_time *next);
/* Whether the watch ends with an ERROR frame of code 410. */
bool kl_fault_watch_expired(const kl_fault_watch *w);

#endif
