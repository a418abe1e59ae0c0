/* probation.h - observes a controller's generations, and reports when the present one does so much worse than
 * the previous one that it must be rolled back (controller/breaker.h judges). All calls on the loop. */
#ifndef KL_CONTROLLER_PROBATION_H
#define KL_CONTROLLER_PROBATION_H

#include "base/loop.h"
#include "run/worker.h"

/* How long a new generation is compared with the previous one. */
#define KL_PROBATION_DEFAULT KL_MINUTES(1)

typedef struct kl_probation kl_probation;

typedef struct kl_probation_options {
    kl_loop *loop;
    kl_clock *clock;
    kl_time window; /* 0: KL_PROBATION_DEFAULT; below 0: no comparison */
    /* On the loop, once for a generation. `why` is for people, and borrowed. */
    void (*broken)(void *arg, int generation, const char *why);
    void *arg;
} kl_probation_options;

kl_probation *kl_probation_new(const kl_probation_options *o);
void kl_probation_free(kl_probation *p); /* after the last report of a run */
/* A generation has taken over. `failing`: the number of keys whose last run failed under the previous one. */
void kl_probation_published(kl_probation *p, int generation, size_t failing);
void kl_probation_ran(kl_probation *p, const kl_ran *r); /* any thread */

#endif
