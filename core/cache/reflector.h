/* reflector.h - the list/watch state machine: what happened goes in, what to do next comes out.
 *
 *   idle --start--> listing --page--> listing --last page--> watching --ended--> watching (from the last resourceVersion)
 *   watching --gone--> listing      any --failed--> waiting --timer--> listing or watching      any --stop--> stopped
 *
 * It does no I/O, has no thread and no clock: `now` is an argument and only ever grows. Whoever owns it does what the
 * action says, one thing at a time: LIST, WATCH and WAIT end whatever was open before.
 *
 * Better than what it is modelled on (client-go's reflector.go): a list is repeated only when the server says that the
 * history is gone; every other end of a watch resumes from the last resourceVersion, and the backoff is forgotten only
 * after sustained success. Owner thread. */
#ifndef KL_CACHE_REFLECTOR_H
#define KL_CACHE_REFLECTOR_H

#include "base/clock.h"
#include "base/err.h"
#include "cache/source.h"
#include "model/event.h"

typedef struct kl_reflector kl_reflector;

typedef enum kl_reflector_input_kind {
    KL_REFLECTOR_START,
    KL_REFLECTOR_PAGE,         /* a list request succeeded: `rv`, and `continue_token` unless it was the last page */
    KL_REFLECTOR_LIST_FAILED,  /* err */
    KL_REFLECTOR_OPENED,       /* the watch was answered with 200 */
    KL_REFLECTOR_FRAME,        /* an event or a bookmark: type, rv (NULL: the object had none) */
    KL_REFLECTOR_STREAM_ERROR, /* an ERROR event: err holds its Status */
    KL_REFLECTOR_ENDED,        /* the watch is over: err NULL or KL_OK for a clean close */
    KL_REFLECTOR_TIMER,        /* the action's `until` has come (early is fine) */
    KL_REFLECTOR_KICK,         /* do not wait any longer: what we waited for may be there */
    KL_REFLECTOR_STOP,
} kl_reflector_input_kind;

typedef struct kl_reflector_input {
    kl_reflector_input_kind kind;
    const char *rv, *continue_token;
    kl_event_type type;
    const kl_err *err;
} kl_reflector_input;

typedef enum kl_reflector_do {
    KL_REFLECTOR_GO_ON,        /* nothing new: leave open what is open */
    KL_REFLECTOR_LIST,         /* without a continue token: throw away what was collected so far */
    KL_REFLECTOR_WATCH,
    KL_REFLECTOR_WAIT,
    KL_REFLECTOR_STOPPED,
} kl_reflector_do;

typedef struct kl_reflector_action {
    kl_reflector_do what;
    bool complete;             /* the items collected since the last fresh LIST are the whole truth at `rv`: replace the store */
    kl_list_request list;      /* LIST; strings are borrowed until the next step */
    kl_watch_request watch;    /* WATCH; likewise */
    kl_time until;             /* when to send TIMER; KL_NEVER: no timer */
} kl_reflector_action;

typedef struct kl_reflector_counts {
    uint64_t lists;            /* fresh lists asked for, pages not counted */
    uint64_t pages, watches, frames, errors;
    uint64_t short_watches;    /* ended within a second */
    uint64_t stalls;           /* watches given up because they had been silent */
} kl_reflector_counts;

/* page_size 0: 500. The seed draws jitter and watch timeouts. */
kl_reflector *kl_reflector_new(uint64_t seed, int64_t page_size);
void kl_reflector_free(kl_reflector *r);
kl_reflector_action kl_reflector_step(kl_reflector *r, const kl_reflector_input *in, kl_time now);

const char *kl_reflector_state(const kl_reflector *r);       /* "idle", "listing", "watching", "waiting", "parked", "stopped"; static */
const char *kl_reflector_rv(const kl_reflector *r);          /* the last resourceVersion seen, "" before; borrowed until the next step */
const char *kl_reflector_message(const kl_reflector *r);     /* the last failure while it lasts, or NULL; borrowed likewise */
bool kl_reflector_parked(const kl_reflector *r);             /* refused (401, 403, 404) or an object too big: waiting for a person to help */
const kl_reflector_counts *kl_reflector_counters(const kl_reflector *r);

#endif
