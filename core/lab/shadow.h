/* shadow.h - runs a candidate for the next generation beside the running one. The candidate gets the keys
 * that the live controllers ran, with the inputs of those runs. It sends nothing, and its results are
 * compared with theirs.
 *
 *   none --begin--> wiring (its caches fill; live runs wait for it) --> following
 *        --promote, end or another begin--> none
 *
 * The candidate has its own threads, states and queues, with one worker for each controller. A live run only
 * records references; when the candidate is too slow, runs are skipped and counted. Call these functions on
 * the manager's loop, except those marked "any thread". */
#ifndef KL_LAB_SHADOW_H
#define KL_LAB_SHADOW_H

#include "controller/controller.h"

typedef struct kl_shadow kl_shadow;

/* env is borrowed, and must be complete before the first kl_shadow_begin. */
kl_shadow *kl_shadow_new(const kl_controller_env *env);
/* The observer of live runs: any thread. */
kl_witness kl_shadow_witness(kl_shadow *s);

typedef struct kl_shadow_options {
    const char *path;   /* the candidate's file, for messages; copied */
    const char *script; /* the script that it shadows; copied */
    /* the names of its controllers that exist already; NULL-terminated, for the call */
    const char *const *live;
    /* `clean` is called once this many keys match and none differs; 0: never */
    size_t promote_after;
    /* called once, on any thread; call kl_shadow_clean then, because another candidate may have begun. May be
     * NULL */
    void (*clean)(void *arg);
    void *arg;
} kl_shadow_options;

/* Ends the present candidate. Controllers of p run beside the live ones of the same names, at least one.
 * Takes a reference. */
void kl_shadow_begin(kl_shadow *s, kl_program *p, const kl_shadow_options *o);
void kl_shadow_end(kl_shadow *s); /* its threads end asynchronously */
void kl_shadow_advance(kl_shadow *s);
/* Waits until the candidate's threads have ended; after kl_shadow_end. Any thread. */
void kl_shadow_wait(kl_shadow *s);
void kl_shadow_free(kl_shadow *s); /* after the last live worker. NULL is fine */

/* The number of differing keys in the report, the newest first. */
#define KL_SHADOW_TOLD 100
/* {candidate, script, state, why, waiting, same, differs, fails, runs, skipped, promote_after, keys:
 * [{controller, key, verdict, diff, at}], beside: [..], new: [..]}; waiting: live runs that the candidate has
 * not repeated yet. A new reference; NULL without a candidate. Any thread. */
const kl_value *kl_shadow_report(kl_shadow *s);
/* Whether the present candidate satisfies promote_after. Any thread. */
bool kl_shadow_clean(kl_shadow *s);
/* The candidate's program, a new reference; NULL without a candidate. Any thread. */
kl_program *kl_shadow_program(kl_shadow *s);

#endif
