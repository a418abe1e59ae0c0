/* rehearse.h - one run of a key whose writes are not sent, beside the normal work, and its report: a dry run
 * on request.
 *
 * It has its own worker and queue, reads the same caches, and leaves nothing behind: no write, no Event, no
 * memo, no metric. The caller frees it (kl_rehearsal_end). */
#ifndef KL_CONTROLLER_REHEARSE_H
#define KL_CONTROLLER_REHEARSE_H

#include "run/worker.h"

typedef struct kl_rehearsal kl_rehearsal;

/* Begins, with the logic and the objects of `like`, which outlive it. done is called once, on its thread,
 * with a report, a reference for the callee: {runs: [one, see observe/flight.h], writes: [{verb, kind, key,
 * subresource, changes, error}]}; without runs, the run did not end within `within`, or the key has no
 * object. */
kl_rehearsal *kl_rehearse(const kl_worker_owner *like, const char *key, kl_time within,
    void (*done)(void *arg, const kl_value *report), void *arg);
bool kl_rehearsal_over(kl_rehearsal *r); /* any thread: kl_rehearsal_end would not block */
void kl_rehearsal_end(kl_rehearsal *r);  /* ends the run if it still runs, and frees it */

#endif
