/* own_writes.h - read-your-writes: a run begins when the caches show the writes of earlier runs of its key.
 * One for each controller.
 *
 *   write answered --note--> owed by the caches that would show it --their events, bookmarks, lists--> shown
 *                                        `--time is over--> run anyway, logged and counted
 *
 * A cache owes a resourceVersion: when it has reached that version, it shows the write or a later one. Where
 * the server's versions are not numbers, the object must have that version, or another one than before. A
 * deletion is shown when that incarnation is gone. A cache does not owe objects that it does not hold
 * (another namespace, selection or kind). The queue holds waiting keys, and informers release them: nothing
 * polls. A name is a key, or the text of a serial group ("=text"), whose runs see the writes of the previous
 * run, whichever key that had.
 *
 * Any thread, unless said otherwise; nothing waits for I/O. */
#ifndef KL_RUN_OWN_WRITES_H
#define KL_RUN_OWN_WRITES_H

#include "cache/informer.h"
#include "client/client.h"
#include "queue/workqueue.h"
#include "metrics/metrics.h"

/* The maximum wait of a key. The event of a write arrives within milliseconds of its answer; after this time
 * the watch is in trouble. */
#define KL_OWN_WRITES_DEFAULT KL_SECONDS(5)

typedef struct kl_own_writes kl_own_writes;

/* `controller` and metrics (may be NULL) are borrowed. Freed when nothing is watched any more and no
 * thread uses it. */
kl_own_writes *kl_own_writes_new(
    const char *controller, kl_workqueue *q, kl_clock *clock, kl_controller_metrics *metrics);
void kl_own_writes_free(kl_own_writes *o);

/* A cache that runs read from, of a generation; selectors as texts, NULL: all. Each watch needs one unwatch;
 * the last one drops its debts. On the loop. */
void kl_own_writes_watch(
    kl_own_writes *o, kl_informer *i, const kl_resource *r, const char *labels, const char *fields);
void kl_own_writes_unwatch(kl_own_writes *o, kl_informer *i);

typedef struct kl_written { /* borrowed */
    kl_verb verb;
    const kl_resource *resource;
    const char *ns, *name;   /* as requested; NULL where the answer has it */
    const char *subresource; /* NULL: the object itself */
    const kl_value *answer;
} kl_written;
/* A write of `name` has succeeded; caches owe it until `until`. */
void kl_own_writes_note(kl_own_writes *o, const char *name, const kl_written *x, kl_time until);
/* True when `name` has to wait: `key` is released when its writes are shown, and runs at *until at the
 * latest. */
bool kl_own_writes_owed(kl_own_writes *o, const char *name, const char *key, kl_time now, kl_time *until);
/* "v1/ConfigMap ns/a", what the key waits for first; NULL: nothing. Caller frees. */
char *kl_own_writes_why(kl_own_writes *o, const char *name);
/* The same for one of the held keys, with the key before it: "ns/a: v1/ConfigMap ns/b". NULL: no key is
 * held. */
char *kl_own_writes_first(kl_own_writes *o);

#endif
