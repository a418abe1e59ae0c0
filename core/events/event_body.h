/* event_body.h - turns news into an Event of events.k8s.io/v1, or of core/v1 for servers that have only that.
 * Pure. */
#ifndef KL_EVENTS_EVENT_BODY_H
#define KL_EVENTS_EVENT_BODY_H

#include <stdbool.h>
#include "base/clock.h"
#include "events/news.h"

/* The API server's limits (apis/core/validation/events.go). */
#define KL_EVENT_NOTE_MAX 1024
#define KL_EVENT_WORD_MAX 128

/* How often it was seen, and when; wall time. */
typedef struct kl_event_series {
    int64_t count;
    kl_time first, last;
} kl_event_series;

/* The fixed fields of an Event, as events.k8s.io/v1 names them; a new reference. Texts are cut between
 * characters to the server's limits. */
const kl_value *kl_event_body(
    const kl_news *n, const char *name, const char *ns, const char *instance, bool combined, kl_time first);
/* The Event to create from that body, a new reference; with a series when it was seen more than once. */
const kl_value *kl_event_create(const kl_value *body, const kl_event_series *s, bool core);
/* The merge patch with the new count, a new reference. */
const kl_value *kl_event_patch(const kl_event_series *s, bool core);

#endif
