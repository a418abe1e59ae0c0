/* own_writes.h - read-your-writes: a run begins when the caches show the writes of earlier runs of its key.
 * Each controller has one.
 *
 *   write answered --note--> owed by the caches that will show it --their events, bookmarks, lists--> shown
 *                                        `--`until` passes--> the key runs anyway; logged and counted
 *
 * A cache owes a resourceVersion: once it has reached that version, it shows the write or a later one. Where
 * versions are not numbers, the cached object must have the answered version, or any but the one before the
 * write. A deletion is shown when the cache no longer holds the deleted uid. Bindings and evictions answer
 * without a version: they are shown when the Pod has a node, or is being deleted. Writes of objects
 * outside the cache (another namespace, selection or kind) are not awaited. The queue holds waiting keys, and
 * informers release them: nothing polls. A name is a key, or a serial group ("=text"): a run of a group sees
 * the writes of the group's previous run, even if that run had another key.
 *
 * Any thread, unless stated otherwise; nothing waits for I/O. */
#ifndef KL_RUN_OWN_WRITES_H
#define KL_RUN_OWN_WRITES_H

#include "cache/informer.h"
#include "client/client.h"
#include "queue/workqueue.h"
#include "metrics/metrics.h"

/* The longest wait of a key. The event of a write normally arrives within milliseconds of the answer; one
 * this late means that the watch is broken. */
#define KL_OWN_WRITES_DEFAULT KL_SECONDS(5)

typedef struct kl_own_writes kl_own_writes;

/* `controller` and metrics (may be NULL) are borrowed. Free it after the last unwatch, when no thread uses
 * it. */
kl_own_writes *kl_own_writes_new(
    const char *controller, kl_workqueue *q, kl_clock *clock, kl_controller_metrics *metrics);
void kl_own_writes_free(kl_own_writes *o);

/* Adds a cache that the runs of a generation read from; the selectors are texts, NULL: all. Each watch needs
 * one unwatch; the last unwatch of a cache drops what it owes. On the loop. */
void kl_own_writes_watch(
    kl_own_writes *o, kl_informer *i, const kl_resource *r, const char *labels, const char *fields);
void kl_own_writes_unwatch(kl_own_writes *o, kl_informer *i);

typedef struct kl_written { /* a write; all borrowed */
    kl_verb verb;
    const kl_resource *resource;
    const char *ns, *name;   /* as requested; NULL: the answer has it */
    const char *subresource; /* NULL: the object itself */
    const kl_value *answer;
} kl_written;
/* Records a successful write of a run of `name`; the caches owe it until `until`. */
void kl_own_writes_note(kl_own_writes *o, const char *name, const kl_written *x, kl_time until);
/* True: a cache still owes writes of `name`, so `key` must wait. It is released when they are shown, and runs
 * at *until at the latest. */
bool kl_own_writes_owed(kl_own_writes *o, const char *name, const char *key, kl_time now, kl_time *until);
/* The first object that `name` waits for, as "v1/ConfigMap ns/a"; NULL: none. Caller frees. */
char *kl_own_writes_why(kl_own_writes *o, const char *name);
/* The same for one of the waiting keys, with that key in front: "ns/a: v1/ConfigMap ns/b". NULL: no key
 * waits. */
char *kl_own_writes_first(kl_own_writes *o);

#endif
