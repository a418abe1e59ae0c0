/* breaker.h - whether new logic is so much worse than the logic before it that that should come back. A
 * function of what both have done; no clock, no I/O.
 *
 * A generation is on trial for a while after it took over (kl_trial). It is bad when it fails much more
 * often than the one before it, or when its keys write again and again and that much more often. What came
 * of the server (no answer, 429, 5xx) is nobody's failure here. */
#ifndef KL_CONTROLLER_BREAKER_H
#define KL_CONTROLLER_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/clock.h"

/* --- the judge ---------------------------------------------------------------------------- */

typedef struct kl_breaker_side {
    uint64_t runs, errors;
    /* of the new side: those of keys that had written often enough already (KL_BREAKER_FREE_WRITES) */
    uint64_t writes;
    kl_time lasted; /* for how long it has been the present logic */
} kl_breaker_side;

/* Fewer failures are an accident: one object, tried again at once, fails so often in half a second. */
#define KL_BREAKER_ERRORS 5
/* One run in five: below that most of the work is done, and going back would undo it. */
#define KL_BREAKER_ERROR_SHARE 0.2
/* "Much more", of failures and of writes. */
#define KL_BREAKER_RATIO 3.0
/* Whose failures come first says little: so many runs, or so much time, tell of the rest of the keys. */
#define KL_BREAKER_RUNS 50
#define KL_BREAKER_SETTLE KL_SECONDS(5)
/* A key may write in so many runs of a trial for nothing: new logic has something to change, step by step.
 * What turns in circles is past that in a second. */
#define KL_BREAKER_FREE_WRITES 10
#define KL_BREAKER_WRITES 20
/* Of a key's failures in a row so many count: the backoff decides about the others. */
#define KL_BREAKER_ATTEMPTS 5

/* NULL while there is nothing to be said against `fresh`; else why not, for people: "8 of 10 runs fail, 1
 * of 500 did before". Caller frees. */
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
/* `generation` has taken over from what did `before`, when so many keys were failing: their failures are
 * expected. Ends the trial before it. */
void kl_trial_begin(kl_trial *t, int generation, const kl_breaker_side *before, size_t failing, kl_time now);
void kl_trial_end(kl_trial *t);
/* True when somebody should look. */
bool kl_trial_note(kl_trial *t, const kl_trial_run *r, kl_time now);
/* The verdict so far, as kl_breaker_judge; once it is bad the trial is over. *generation, which it is
 * about. */
char *kl_trial_verdict(kl_trial *t, kl_time now, int *generation);

#endif
