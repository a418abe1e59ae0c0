/* informers.h - shared informers of a client, for programs without a manager: one per kind and selection,
 * refcounted.
 *
 *   kl_informers *f = kl_informers_new(&(kl_informers_options){ .client = c });
 *   kl_informers_acquire(f, &(kl_informer_want){ .kind = "v1/Pod" }, &pods, &err);
 *   ... subscribe, add indexes ...
 *   kl_informers_start(f);
 *   kl_informers_wait(f, deadline);
 *   ... kl_informer_list(pods, ...) ...
 *   kl_informers_free(f);
 *   kl_client_free(c);
 *
 * The informers look up their kinds: an informer whose kind is missing or forbidden parks (kl_informer_stats
 * tells why) and recovers without help. The first one starts a watch of CustomResourceDefinitions and
 * APIServices, whose events end all waits; where that watch is forbidden, kinds are polled with backoff. When
 * a kind is gone, its objects are deleted. A manager has informers/caches.h, which does the same on its loop.
 * Any thread but the client's own. */
#ifndef KL_INFORMERS_INFORMERS_H
#define KL_INFORMERS_INFORMERS_H

#include "cache/informer.h"
#include "client/client.h"

typedef struct kl_informers kl_informers;

typedef struct kl_informers_options {
    kl_client *client; /* outlives the set */
    kl_clock *clock;   /* NULL: real */
    size_t max_object; /* bytes of one object; 0: 16 MiB */
    /* begin with the initial events of a watch rather than with lists, if the server supports it */
    bool stream;
    /* Called when a list or watch failed, or an informer recovered: see kl_informer_stats_get(i). On the
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
/* Stops the running informers, waits for the watch thread to finish with them, and releases them. Informers
 * to which the caller holds a reference can still be read. */
void kl_informers_free(kl_informers *f);

/* The informer of a selection, created for its first user; *out is borrowed until its release. KL_EINVAL for
 * a kind that is not "group/version/Kind", and after kl_informers_stop. */
KL_NODISCARD kl_status kl_informers_acquire(
    kl_informers *f, const kl_informer_want *w, kl_informer **out, kl_err *err);
/* The last release of an informer stops it, without waiting. Its subscriptions must have ended. */
void kl_informers_release(kl_informers *f, kl_informer *i);
/* Starts the informers that have not started yet, even those acquired since the last start. */
void kl_informers_start(kl_informers *f);
/* Waits until all started informers are synced. False when `deadline` passed, or the set was stopped. */
bool kl_informers_wait(kl_informers *f, kl_time deadline);
/* Stops all informers and waits until no callback will follow. The stores stay; no informer can be acquired
 * any more. */
void kl_informers_stop(kl_informers *f);

#endif
