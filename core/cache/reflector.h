/* reflector.h - the list/watch state machine: inputs go in, the next action comes out.
 *
 *   idle --start--> listing --page--> listing --last page--> watching --ended--> watching (from the last resourceVersion)
 *        `--start--> streaming --the initial events' end--> watching      streaming --refused, silent--> listing
 *   watching --gone--> listing or streaming      any --failed--> waiting --timer--> where it was      any --stop--> stopped
 *
 * The existing objects arrive in one of two ways: as lists in pages, or as the first events of a watch
 * (sendInitialEvents), which the server ends with a marked bookmark. Not every server supports the second;
 * then the first is used, permanently if the server said that it lacks it.
 *
 * It does no I/O, has no thread and no clock: `now` is an argument and never decreases. The owner performs
 * the actions, one at a time: LIST, WATCH and WAIT end whatever was open before.
 *
 * Differences from its model (client-go's reflector.go): a list is repeated only when the server reports that
 * the history is gone, or when no watch gets past one place in it; every other end of a watch resumes from
 * the last resourceVersion; a failed page is requested again, without the pages before it; the backoff is
 * reset only after sustained success; and an unreachable server is tried every few seconds, and at once when
 * any other request to it succeeds. Owner thread. */
#ifndef KL_CACHE_REFLECTOR_H
#define KL_CACHE_REFLECTOR_H

#include "base/clock.h"
#include "base/err.h"
#include "cache/source.h"
#include "model/event.h"

typedef struct kl_reflector kl_reflector;

typedef enum kl_reflector_input_kind {
    KL_REFLECTOR_START,
    /* a list request succeeded: `rv`, and `continue_token` unless it was the last page */
    KL_REFLECTOR_PAGE,
    KL_REFLECTOR_LIST_FAILED,  /* err */
    KL_REFLECTOR_OPENED,       /* the watch was answered with 200 */
    KL_REFLECTOR_FRAME,        /* an event or a bookmark: type, rv (NULL: the object had none) */
    KL_REFLECTOR_STREAM_ERROR, /* an ERROR event: err holds its Status */
    KL_REFLECTOR_ENDED,        /* the watch has ended: err NULL or KL_OK for a clean close */
    KL_REFLECTOR_TIMER,        /* the action's `until` has come (early is fine) */
    KL_REFLECTOR_KICK,         /* stop waiting: the missing kind or permission may exist now */
    /* the server, which was unreachable, has answered another request */
    KL_REFLECTOR_ANSWERED,
    KL_REFLECTOR_STOP,
} kl_reflector_input_kind;

typedef struct kl_reflector_input {
    kl_reflector_input_kind kind;
    const char *rv, *continue_token;
    bool barren; /* PAGE: all its items were in earlier pages */
    kl_event_type type;
    bool initial_end; /* FRAME: a bookmark that ends the initial events */
    const kl_err *err;
} kl_reflector_input;

typedef enum kl_reflector_do {
    KL_REFLECTOR_GO_ON, /* nothing new: the open request stays */
    /* without a continue token: discard all collected items; with one: discard those of the page that is
     * repeated */
    KL_REFLECTOR_LIST,
    /* with `initial`: discard all collected items, and collect events until `complete` */
    KL_REFLECTOR_WATCH,
    KL_REFLECTOR_WAIT, /* with `keep`: collected items stay */
    KL_REFLECTOR_STOPPED,
} kl_reflector_do;

typedef struct kl_reflector_action {
    kl_reflector_do what;
    bool keep; /* WAIT: the next LIST continues after the received pages */
    /* the items collected since the last fresh LIST are the complete state at `rv`: replace the store */
    bool complete;
    kl_list_request list;   /* LIST; strings are borrowed until the next step */
    kl_watch_request watch; /* WATCH; likewise */
    kl_time until;          /* when to send TIMER; KL_NEVER: no timer */
} kl_reflector_action;

typedef struct kl_reflector_counts {
    uint64_t lists; /* fresh lists requested, pages not counted */
    uint64_t pages, watches, frames, errors;
    uint64_t short_watches; /* ended within a second */
    uint64_t stalls;        /* watches given up because of silence */
    uint64_t streams;       /* watches requested with initial events */
    uint64_t fallbacks;     /* of these, those that fell back to lists */
    uint64_t relists;       /* times that our resourceVersion had expired */
} kl_reflector_counts;

/* page_size 0: 500. `seed` is for jitter and watch timeouts. `stream`: request the initial events of a watch
 * rather than lists. */
kl_reflector *kl_reflector_new(uint64_t seed, int64_t page_size, bool stream);
void kl_reflector_free(kl_reflector *r);
kl_reflector_action kl_reflector_step(kl_reflector *r, const kl_reflector_input *in, kl_time now);

/* "idle", "listing", "streaming", "watching", "waiting", "parked", "stopped"; static */
const char *kl_reflector_state(const kl_reflector *r);
/* the last resourceVersion seen, "" before; borrowed until the next step */
const char *kl_reflector_rv(const kl_reflector *r);
/* the last failure while it lasts, or NULL; borrowed likewise */
const char *kl_reflector_message(const kl_reflector *r);
kl_status kl_reflector_failure(const kl_reflector *r); /* its kind, KL_OK when there is none */
/* refused (401, 403, 404) or an object too big: a person must help */
bool kl_reflector_parked(const kl_reflector *r);
const kl_reflector_counts *kl_reflector_counters(const kl_reflector *r);

#endif
