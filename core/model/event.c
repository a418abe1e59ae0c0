/* event.c - the names of watch events. */
#include "model/event.h"

#include <string.h>

static const char *const names[] = {[KL_ADDED] = "ADDED",
    [KL_MODIFIED] = "MODIFIED",
    [KL_DELETED] = "DELETED",
    [KL_BOOKMARK] = "BOOKMARK",
    [KL_ERROR] = "ERROR"};

bool kl_event_parse(const char *word, kl_event_type *out)
{
    for (int t = KL_ADDED; word && t <= KL_ERROR; t++)
        if (!strcmp(word, names[t])) {
            *out = (kl_event_type)t;
            return true;
        }
    return false;
}

const char *kl_event_name(kl_event_type t) { return names[t]; }
