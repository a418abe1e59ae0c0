/* informers.h - shared informers of a client, for programs without a manager: one per kind and selection,
 * refcounted.
 *
 *   kl_informers *f = kl_informers_new(&(kl_informers_options){ .client = c });
 *   kl_informers_acquire(f, &(kl_informer_want){ .kind = "v1/Pod" }, &pods, &err);      subscribe, add
 * indexes, then kl_informers_start(f);  kl_informers_wait(f, deadline);  ... kl_informer_list(pods, ...) ...
 *   kl_informers_free(f);   kl_client_free(c);
 *
 * Kinds are looked up by the informers themselves: one that the server lacks, or may not be read, parks
 * (kl_informer_stats says why) and heals by itself. The first that misses its kind begins a watch of
 * CustomResourceDefinitions and APIServices, whose events end all waits; where these may not be watched,
 * it is asked for with backoff. Of a kind that is gone the objects are deleted. A manager has
 * informers/caches.h, which does the same on its loop. Any thread but the client's own. */
#ifndef KL_INFORMERS_INFORMERS_H
#define KL_INFORMERS_INFORMERS_H

#include "cache/informer.h"
#include "client/client.h"

typedef struct kl_informers kl_informers;

typedef struct kl_informers_options {
    kl_client *client; /* outlives the set */
    kl_clock *clock;   /* NULL: real */
    size_t max_object; /* bytes of one object; 0: 16 MiB */
    /* begin with the initial events of a watch rather than with lists, where the server can */
    bool stream;
    /* A list or watch failed, or an informer got well again: kl_informer_stats_get(i) says which. On the
     * watch thread; may be NULL. */
    void (*on_trouble)(void *arg, kl_informer *i);
    void *arg;
} kl_informers_options;

typedef struct kl_informer_want { /* borrowed for the call */
    const char *kind;             /* "apps/v1/Deployment" */
    const char *ns;               /* NULL: all namespaces */
    const char *labels, *fields;  /* selectors; NULL: none */
    kl_projection *keep;          /* of each object; NULL: all of it */
} kl_informer_want;

kl_informers *kl_informers_new(const kl_informers_options *o);
/* Stops what still runs, waits for the watch thread to be done with it, and lets go. Informers of which
 * the caller holds a reference can still be read. */
void kl_informers_free(kl_informers *f);

/* The informer of what is wanted, made when nobody has it yet; *out is borrowed until its release.
 * KL_EINVAL for a kind that is no "group/version/Kind", and after kl_informers_stop. */
KL_NODISCARD kl_status kl_informers_acquire(
    kl_informers *f, const kl_informer_want *w, kl_informer **out, kl_err *err);
/* The last release of an informer stops it, which needs no waiting. Its subscriptions must have ended. */
void kl_informers_release(kl_informers *f, kl_informer *i);
/* Starts those that have not started yet: also those that came since the last start. */
void kl_informers_start(kl_informers *f);
/* Waits until everything that was started is synced: the stores hold what there is. False when `deadline`
 * passed, or it was stopped. */
bool kl_informers_wait(kl_informers *f, kl_time deadline);
/* Stops all of them and waits until no callback will follow. The stores stay as they are; nothing can be
 * acquired any more. */
void kl_informers_stop(kl_informers *f);

#endif
