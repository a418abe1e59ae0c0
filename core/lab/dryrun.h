/* dryrun.h - the dry run of a whole process: each write is logged as a diff instead of being sent.
 *
 * A key runs again and again and would write the same each time, so an unchanged diff of an object is logged
 * once. */
#ifndef KL_LAB_DRYRUN_H
#define KL_LAB_DRYRUN_H

#include "run/imagine.h"
#include "events/news.h"

typedef struct kl_dryrun kl_dryrun;

/* `ask`: the server computes the result of a write (dryRun=All), with its defaults and its refusals. */
kl_dryrun *kl_dryrun_new(bool ask);
void kl_dryrun_free(kl_dryrun *d);                         /* after the last run. NULL is fine */
const kl_imagination *kl_dryrun_imagination(kl_dryrun *d); /* borrowed */
/* Logs an Event that is not sent; any thread. */
void kl_dryrun_event(kl_dryrun *d, const kl_news *n);

#endif
