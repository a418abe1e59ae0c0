/* breaker.h - whether new logic does so much worse than the previous logic that it must be rolled back. A
 * function of the results of both; no clock, no I/O.
 *
 * A generation is on trial for a while after it took over (kl_trial). It is bad when it fails much more often
 * than the previous one, or when its keys write again and again, much more often than before. Failures of the
 * server (no answer, 429, 5xx) do not count. */
#ifndef KL_CONTROLLER_BREAKER_H
#define KL_CONTROLLER_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/clock.h"

/* --- the judge ---------------------------------------------------------------------------- */

typedef struct kl_breaker_side {
    uint64_t runs, errors;
    /* of the new side: only those of keys beyond KL_BREAKER_FREE_WRITES */
    uint64_t writes;
    kl_time lasted; /* how long it has been the present logic */
} kl_breaker_side;

/* Fewer failures do not count: one failing object, retried at once, reaches this number in half a second. */
#define KL_BREAKER_ERRORS 5
/* One run in five: below that, most of the work succeeds, and a rollback would undo it. */
#define KL_BREAKER_ERROR_SHARE 0.2
/* The factor that "much more" means, for failures and for writes. */
#define KL_BREAKER_RATIO 3.0
/* Early failures say little about the other keys: the verdict waits for this many runs, or this much time. */
#define KL_BREAKER_RUNS 50
#define KL_BREAKER_SETTLE KL_SECONDS(5)
/* The first writes of a key in a trial do not count: new logic may have to change its objects, step by step.
 * A key in a write loop passes this number within a second. */
#define KL_BREAKER_FREE_WRITES 10
#define KL_BREAKER_WRITES 20
/* At most this many failures in a row count for one key, because the backoff decides how many more follow. */
#define KL_BREAKER_ATTEMPTS 5

/* NULL while `fresh` is acceptable; otherwise the reason, for people: "8 of 10 runs fail, 1 of 500 did
 * before". Caller frees. */
char *kl_breaker_judge(const kl_breaker_side *before, const kl_breaker_side *fresh);

/* --- a trial: one controller's new generation, run by run. Any thread --------------------- */

typedef struct kl_trial kl_trial;

typedef struct kl_trial_run {
    const char *key;
    int generation, attempt;
    bool failed, excused; /* excused: a call of it failed for the server's reasons */
    bool wrote;
} kl_trial_run;

kl_trial *kl_trial_new(void);
void kl_trial_free(kl_trial *t);
/* `generation` has taken over from the one with the results `before`; `failing` keys failed then, so their
 * failures are expected. Ends the previous trial. */
void kl_trial_begin(kl_trial *t, int generation, const kl_breaker_side *before, size_t failing, kl_time now);
void kl_trial_end(kl_trial *t);
/* True when the caller should judge. */
bool kl_trial_note(kl_trial *t, const kl_trial_run *r, kl_time now);
/* The verdict so far, as kl_breaker_judge; a bad one ends the trial. *generation: the generation on trial. */
char *kl_trial_verdict(kl_trial *t, kl_time now, int *generation);

#endif
