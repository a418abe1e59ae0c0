/* kinds.h - news of kinds: CustomResourceDefinitions and APIServices, watched as soon as a kind is missed,
 * end the waits of those who miss one. For the caches of a manager (caches_news.c) and for informers
 * without one (informers_news.c), which say how to watch, how to ask, and on which thread.
 *
 *   nobody misses a kind --missing, parked--> watched --event--> who waits asks, now and a few times more
 *                                               `--forbidden, not there--> given up for ten minutes
 *
 * Of these objects only the conditions are kept. One thread: the owner's. */
#ifndef KL_INFORMERS_KINDS_H
#define KL_INFORMERS_KINDS_H

#include "base/clock.h"
#include "value/projection.h"

#define KL__NEWS_KINDS 2
extern const char *const kl__news_kinds[KL__NEWS_KINDS];
/* Of these objects hardly anything is kept. The caller's reference. */
kl_projection *kl__news_keep(void);

typedef struct kl__news_hooks {
    /* those who miss their kind ask for it now */
    void (*ask)(void *arg);
    uint64_t (*timer)(void *arg, kl_time after, void (*fn)(void *), void *fn_arg);
    void (*timer_cancel)(void *arg, uint64_t id);
    void *arg;
    const char *late; /* how much later a kind is found without a watch: "30s" */
} kl__news_hooks;

typedef struct kl__news {
    kl__news_hooks h;
    kl_clock *clock;
    kl_time given_up; /* when it was found that this may not be watched; -1: it may, as far as we know */
    int step;         /* how often was asked since the last event */
    uint64_t timer;
} kl__news;

void kl__news_init(kl__news *n, kl_clock *clock, const kl__news_hooks *h);
/* Whether watching is worth trying. */
bool kl__news_hopeful(const kl__news *n);
/* A kind came, went or changed, or the first list is there. */
void kl__news_came(kl__news *n);
/* The watch was refused, or has nothing to watch. */
void kl__news_refused(kl__news *n, const char *why);
/* Nobody watches any more. */
void kl__news_quiet(kl__news *n);

#endif
