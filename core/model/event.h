/* event.h - the types of watch events. */
#ifndef KL_MODEL_EVENT_H
#define KL_MODEL_EVENT_H

typedef enum kl_event_type { KL_ADDED, KL_MODIFIED, KL_DELETED, KL_BOOKMARK, KL_ERROR } kl_event_type;

/* "ADDED" ... ; false for any other word. */
#include <stdbool.h>
bool kl_event_parse(const char *word, kl_event_type *out);
const char *kl_event_name(kl_event_type t);

#endif
