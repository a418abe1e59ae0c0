/* correlator.h - tells which event notes are the same, which are similar, and which are too many. A function
 * of (state, news, now).
 *
 * Same: component, object, related object, type, reason, action and note agree; they are one Event that
 * repeats. Similar: they differ in the note alone. The tenth different note within ten minutes, and those
 * after it, become one combined Event. Too many: each new Event takes a token of its (component, object,
 * type): 25 at once, one more every five minutes. The numbers are those of client-go's EventCorrelator; its
 * series key lacks the note, so client-go loses a second note with the same reason. Memory is bounded: the
 * least recently used entries are dropped. Owner's lock. */
#ifndef KL_EVENTS_CORRELATOR_H
#define KL_EVENTS_CORRELATOR_H

#include <stdbool.h>
#include "base/clock.h"
#include "events/news.h"

typedef struct kl_correlator kl_correlator;

kl_correlator *kl_correlator_new(void);
void kl_correlator_free(kl_correlator *c);
/* The key of the Event that counts this note; the caller kl_free()s. *combined: it is the combined Event of
 * similar notes. */
char *kl_correlator_see(kl_correlator *c, const kl_news *n, kl_time now, bool *combined);
/* Takes a token for a new Event. False: too many; *first is set for the first refusal after a success. */
bool kl_correlator_allow(kl_correlator *c, const kl_news *n, kl_time now, bool *first);

#endif
