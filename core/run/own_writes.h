/* own_writes.h - a run begins when the caches show what the runs of its key before it wrote. One for each
 * controller.
 *
 *   write answered --note--> owed by the caches that would show it --their events, bookmarks, lists--> shown
 *                                        `--time is over--> run anyway, told and counted
 *
 * Owed is a resourceVersion: a cache that has come to it, or beyond, shows the write or what came after
 * it. Where the server does not count, the object has to have that version, or another one than before. A
 * deletion is shown when that incarnation is gone. What a cache does not hold (another namespace, another
 * selection, another kind) it does not owe. Keys that wait are held by the queue, and released by what the
 * informers say: nobody polls. A name is a key, or the text of a serial group ("=text"), whose runs see
 * what the one before wrote, whichever key that had.
 *
 * Any thread, unless said otherwise; nothing waits for I/O. */
#ifndef KL_RUN_OWN_WRITES_H
#define KL_RUN_OWN_WRITES_H

#include "cache/informer.h"
#include "client/client.h"
#include "queue/workqueue.h"
#include "metrics/metrics.h"

/* How long a key waits at most. The event of a write comes within milliseconds of its answer; what has not
 * come after this is a watch in trouble. */
#define KL_OWN_WRITES_DEFAULT KL_SECONDS(5)

typedef struct kl_own_writes kl_own_writes;

/* `controller` and metrics (may be NULL) are borrowed. Freed when nothing is watched any more and no
 * thread uses it. */
kl_own_writes *kl_own_writes_new(
    const char *controller, kl_workqueue *q, kl_clock *clock, kl_controller_metrics *metrics);
void kl_own_writes_free(kl_own_writes *o);

/* A cache that runs read from, of a generation; selectors as texts, NULL: all. As often as it is watched
 * it is unwatched; with the last time what it owes is forgotten. On the loop. */
void kl_own_writes_watch(
    kl_own_writes *o, kl_informer *i, const kl_resource *r, const char *labels, const char *fields);
void kl_own_writes_unwatch(kl_own_writes *o, kl_informer *i);

typedef struct kl_written { /* borrowed */
    kl_verb verb;
    const kl_resource *resource;
    const char *ns, *name;   /* as asked for; NULL where the answer says */
    const char *subresource; /* NULL: the object itself */
    const kl_value *answer;
} kl_written;
/* A write of `name` has succeeded; it is owed until then. */
void kl_own_writes_note(kl_own_writes *o, const char *name, const kl_written *x, kl_time until);
/* True when something is owed to `name`: `key` is released when it is shown, and runs at *until at the
 * latest. */
bool kl_own_writes_owed(kl_own_writes *o, const char *name, const char *key, kl_time now, kl_time *until);
/* "v1/ConfigMap ns/a", what the key waits for first; NULL: nothing. Caller frees. */
char *kl_own_writes_why(kl_own_writes *o, const char *name);
/* The same of any key that is held, with the key before it: "ns/a: v1/ConfigMap ns/b". NULL: none is. */
char *kl_own_writes_first(kl_own_writes *o);

#endif
