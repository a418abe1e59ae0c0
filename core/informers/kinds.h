/* kinds.h - what it means to watch the kinds of a server: for the caches of a manager (kinds.c) and for
 * informers without one (informers_news.c). */
#ifndef KL_INFORMERS_KINDS_H
#define KL_INFORMERS_KINDS_H

#include "base/clock.h"
#include "value/projection.h"

#define KL__NEWS_KINDS 2
extern const char *const kl__news_kinds[KL__NEWS_KINDS];
/* Of these objects hardly anything is kept. The caller's reference. */
kl_projection *kl__news_keep(void);
/* Discovery says a little later what a CRD's status said: after news it is asked at once, and again after
 * these waits. 0: enough. */
kl_time kl__news_wait(int step);
/* Where kinds may not be watched, it may be tried again after this long. */
#define KL__NEWS_GIVEN_UP KL_MINUTES(10)

#endif
