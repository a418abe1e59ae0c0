/* probation.h - watches a controller's generations at work, and tells when the present one is so much
 * worse than the one before it that that should come back (controller/breaker.h judges). Made, told of
 * generations and freed on the loop. */
#ifndef KL_CONTROLLER_PROBATION_H
#define KL_CONTROLLER_PROBATION_H

#include "base/loop.h"
#include "run/worker.h"

/* So long a new generation is compared with the one before it. */
#define KL_PROBATION_DEFAULT KL_MINUTES(1)

typedef struct kl_probation kl_probation;

typedef struct kl_probation_options {
    kl_loop *loop;
    kl_clock *clock;
    kl_time window; /* 0: KL_PROBATION_DEFAULT; below 0: nobody is watched */
    /* On the loop, once for a generation. `why` is for people, and borrowed. */
    void (*broken)(void *arg, int generation, const char *why);
    void *arg;
} kl_probation_options;

kl_probation *kl_probation_new(const kl_probation_options *o);
void kl_probation_free(kl_probation *p); /* no run is told of any more */
/* It has taken over. `failing`: keys that had failed last under the one before it. */
void kl_probation_published(kl_probation *p, int generation, size_t failing);
void kl_probation_ran(kl_probation *p, const kl_ran *r); /* any thread */

#endif
