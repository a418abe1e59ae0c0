/* kinds.h - news of kinds: CustomResourceDefinitions and APIServices, watched as soon as a kind is missing;
 * their events end the waits for kinds. The caches of a manager (caches_news.c) and informers without one
 * (informers_news.c) use it, and provide the watch, the look-up and the thread.
 *
 *   no kind is missing --missing, parked--> watched --event--> waiting ones look it up, now and a few times more
 *                                             `--forbidden, not there--> given up for ten minutes
 *
 * Only the conditions of these objects are kept. Owner thread. */
#ifndef KL_INFORMERS_KINDS_H
#define KL_INFORMERS_KINDS_H

#include "base/clock.h"
#include "value/projection.h"

#define KL__NEWS_KINDS 2
extern const char *const kl__news_kinds[KL__NEWS_KINDS];
/* The projection of these objects: only their conditions. The caller's reference. */
kl_projection *kl__news_keep(void);

typedef struct kl__news_hooks {
    /* looks missing kinds up again */
    void (*ask)(void *arg);
    uint64_t (*timer)(void *arg, kl_time after, void (*fn)(void *), void *fn_arg);
    void (*timer_cancel)(void *arg, uint64_t id);
    void *arg;
    const char *late; /* the delay of finding a kind without a watch: "30s" */
} kl__news_hooks;

typedef struct kl__news {
    kl__news_hooks h;
    kl_clock *clock;
    kl_time given_up; /* when the watch was found to be forbidden; -1: allowed, as far as we know */
    int step;         /* look-ups since the last event */
    uint64_t timer;
} kl__news;

void kl__news_init(kl__news *n, kl_clock *clock, const kl__news_hooks *h);
/* Whether to try the watch: false for ten minutes after a refusal. */
bool kl__news_hopeful(const kl__news *n);
/* A kind was added, removed or changed, or the first list has arrived. */
void kl__news_came(kl__news *n);
/* The watch was refused, or its kinds do not exist. */
void kl__news_refused(kl__news *n, const char *why);
/* Ends the watch. */
void kl__news_quiet(kl__news *n);

#endif
