/* cause.h - what triggered a run of a key: a reason and, for an event, its object.
 *
 * The queue carries it as an opaque kl_cause (queue/workqueue.h) that owns a reference to the object:
 * nothing is copied or allocated for it. */
#ifndef KL_RUN_CAUSE_H
#define KL_RUN_CAUSE_H

#include "value/value.h"
#include "queue/workqueue.h"

typedef enum kl_why {
    KL_WHY_UNKNOWN,
    KL_WHY_START, /* the controller started, and runs all keys */
    KL_WHY_ADDED,
    KL_WHY_CHANGED,
    KL_WHY_DELETED, /* an event of the object */
    KL_WHY_RESYNC,  /* `resync` was due */
    KL_WHY_TRIGGER, /* `every` or `cron` was due */
    KL_WHY_AFTER,   /* its last run requested it */
    KL_WHY_RETRY,   /* its last run failed, or waits for something */
    KL_WHY_RELOAD,  /* new logic runs all keys */
    KL_WHY_LEADING, /* this process became the leader, or the key moved to this shard */
    KL_WHY_HAND,    /* a user requested it */
    KL_WHY_REQUEST, /* a request of the API server to a webhook */
} kl_why;

/* "started", "added", "changed", "deleted", "resync", "trigger", "after", "retry", "reload", "leading",
 * "by hand", "request", "unknown". Static. */
const char *kl_why_name(kl_why why);

/* A cause that refers to an object, NULL: to none. */
static inline kl_cause kl_cause_of(kl_why why, const kl_value *object)
{
    return (kl_cause){.what = kl_value_id(kl_value_ref(object)), .why = (uint8_t)why};
}
/* The object, or NULL; borrowed from the cause. */
static inline const kl_value *kl_cause_object(const kl_cause *c)
{
    return (const kl_value *)(uintptr_t)c->what;
}
/* For kl_workqueue_options. */
void kl_cause_forget(uint32_t what);

#endif
